package rescue

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/wire"
)

// found is a call as it was read.
type found struct {
	tool      tool
	arguments string
}

// nameMembers are the members that hold a call's name in the shapes of the
// known models, best first.
func nameMembers() []string {
	return []string{"name", "tool_name", "function_name", "tool", "function", "recipient_name", "action"}
}

// argumentMembers are those that hold its arguments.
func argumentMembers() []string {
	return []string{"arguments", "parameters", "args", "params", "input", "tool_input", "action_input", "kwargs"}
}

// wrappers are members that hold whole calls, one or a list.
func wrappers() []string {
	return []string{"tool_calls", "tool_uses", "tool_call", "function_call"}
}

// labels are members that say nothing of a call but stand beside it.
func labels() []string { return []string{"id", "type", "tool_call_id", "call_id", "index"} }

func isNameMember(s string) bool { return slices.Contains(nameMembers(), s) }

// isMember reports whether a call that is a whole reply may have that member.
func isMember(s string) bool {
	return isNameMember(s) || slices.Contains(argumentMembers(), s) || slices.Contains(wrappers(), s) || slices.Contains(labels(), s)
}

// callsIn are the calls that a JSON value stands for: all of them declared, or
// none. whole asks for what a call must have when nothing but its shape says that
// it is one.
func (n names) callsIn(v jsontext.Value, whole bool) ([]found, bool) {
	return n.unwrap(v, whole, wrapped)
}

// wrapped is how often a call is wrapped: a list in an object, and the "function"
// member of its elements.
const wrapped = 4

func (n names) unwrap(v jsontext.Value, whole bool, left int) ([]found, bool) {
	if left == 0 {
		return nil, false
	}
	if v.Kind() == '[' {
		var calls []found
		for c := wire.Array(v); c.Next(); {
			one, ok := n.unwrap(c.Value, whole, left-1)
			if !ok || c.Value.Kind() != '{' {
				return nil, false
			}
			calls = append(calls, one...)
		}
		return calls, len(calls) > 0
	}
	if v.Kind() != '{' {
		return nil, false
	}
	for _, w := range wrappers() {
		if inner := wire.Member(v, w); inner != nil {
			return n.unwrap(inner, whole, left-1)
		}
	}
	if inner := wire.Member(v, "function"); inner.Kind() == '{' {
		return n.unwrap(inner, whole, left-1)
	}
	one, ok := n.callIn(v, whole)
	return []found{one}, ok
}

// callIn reads an object that is itself a call.
func (n names) callIn(v jsontext.Value, whole bool) (found, bool) {
	at, name := memberOf(v, nameMembers(), '"')
	if name == nil {
		// Granite puts the name where others put the word "function".
		at, name = memberOf(v, []string{"type"}, '"')
	}
	if name == nil {
		return n.keyed(v, whole)
	}
	s, _ := wire.String(name)
	t, ok := n.find(s)
	if !ok {
		return n.keyed(v, whole)
	}
	_, args := memberOf(v, argumentMembers(), 0)
	switch {
	case args != nil:
		if whole && (describes(t, args) || !onlyMembers(v)) {
			return found{}, false
		}
		text, ok := t.argumentText(args)
		return found{tool: t, arguments: text}, ok
	case whole:
		return found{}, false
	}
	return t.flat(v, at)
}

// memberOf is the first of the named members that is there, of a kind if one is
// given.
func memberOf(v jsontext.Value, list []string, kind jsontext.Kind) (string, jsontext.Value) {
	for _, name := range list {
		if m := wire.Member(v, name); m != nil && (kind == 0 || m.Kind() == kind) {
			return name, m
		}
	}
	return "", nil
}

func onlyMembers(v jsontext.Value) bool {
	for c := wire.Object(v); c.Next(); {
		name, _ := wire.String(append(append([]byte{'"'}, c.Name...), '"'))
		if !isMember(name) {
			return false
		}
	}
	return true
}

// describes reports whether what looks like arguments is a schema: an object that
// declares a tool and does not call it.
func describes(t tool, args jsontext.Value) bool {
	kind, _ := wire.String(wire.Member(args, "type"))
	return kind == "object" && wire.Member(args, "properties").Kind() == '{' && !t.has("properties")
}

// keyed reads {"name": {arguments}}, which is too much like any other object to
// be a whole reply.
func (n names) keyed(v jsontext.Value, whole bool) (found, bool) {
	c := wire.Object(v)
	if whole || !c.Next() || c.Value.Kind() != '{' {
		return found{}, false
	}
	t, ok := n.find(string(c.Name))
	args := c.Value
	if !ok || c.Next() {
		return found{}, false
	}
	return found{tool: t, arguments: string(args)}, true
}

// flat reads a call whose arguments stand beside its name.
func (t tool) flat(v jsontext.Value, nameAt string) (found, bool) {
	var a arguments
	for c := wire.Object(v); c.Next(); {
		name, _ := wire.String(append(append([]byte{'"'}, c.Name...), '"'))
		if name == nameAt || (slices.Contains(labels(), name) && !t.has(name)) {
			continue
		}
		if !t.has(name) {
			return found{}, false
		}
		a.add(name, c.Value)
	}
	text, ok := a.text()
	return found{tool: t, arguments: text}, ok
}

// argumentText is the arguments of a call that was JSON: the object as the model
// wrote it, or that which a string holds.
func (t tool) argumentText(v jsontext.Value) (string, bool) {
	switch v.Kind() {
	case '{':
		return string(v), true
	case 'n':
		return "{}", true
	case '"':
		s, _ := wire.String(v)
		if s == "" {
			return "{}", true
		}
		if fixed, ok := Repair(s); ok {
			return fixed, true
		}
		if only, ok := t.single(); ok {
			var a arguments
			a.add(only, t.value(only, s))
			return a.text()
		}
	case '[':
		if c := wire.Array(v); !c.Next() {
			return "{}", true
		}
	}
	return "", false
}
