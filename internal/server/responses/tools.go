package responses

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/wire"
)

// toolset are the client's tools as an upstream is told of them: each a function of its own
// name.
type toolset struct {
	list []declared
	// choice is the client's wish in the other dialect; nil for none.
	choice []byte
	left   []string
}

// declared is one tool.
type declared struct {
	// flat is what the model calls it; namespace and name what the client does.
	flat, namespace, name string
	// custom: it takes text, where a function takes an object.
	custom bool
	// definition is the tool as the client sent it; group is the description of its
	// namespace.
	definition jsontext.Value
	group      string
}

// longestName is what vendors take for a function's name.
const longestName = 64

// flat is the one name of a tool of a namespace. It is the same in every request, so that
// earlier calls keep theirs; what no function can be called is told apart by a digest.
func flat(namespace, name string) string {
	if namespace == "" {
		return name
	}
	joined := namespace + "__" + name
	if strings.HasSuffix(namespace, "__") {
		joined = namespace + name
	}
	fit := strings.Map(fitting, joined)
	if fit == joined && len(joined) <= longestName {
		return joined
	}
	return marked(fit, namespace, name)
}

// fitting is a letter that the name of a function can have.
func fitting(r rune) rune {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '_', r == '-':
		return r
	}
	return '_'
}

// marked is a name that no other tool has.
func marked(joined, namespace, name string) string {
	sum := sha256.Sum256([]byte(namespace + "\x00" + name))
	mark := "_" + hex.EncodeToString(sum[:4])
	return joined[:min(len(joined), longestName-len(mark))] + mark
}

// decodeTools reads the tools and what the model is to do with them.
func decodeTools(v, choice jsontext.Value, most int) (toolset, error) {
	var s toolset
	if wire.IsNull(v) {
		return s, nil
	}
	if v.Kind() != '[' {
		return s, invalid("tools", `"tools" must be an array`)
	}
	for c := wire.Array(v); c.Next(); {
		if kind := kindOf(c.Value); kind != "namespace" {
			s.add(c.Value, "", "")
		} else if err := s.namespace(c.Value, most); err != nil {
			return s, err
		}
		if len(s.list)+len(s.left) > most {
			return s, tooMany("tools", "too_many_tools", "tools", most)
		}
	}
	s.separate()
	s.choose(choice)
	return s, nil
}

func kindOf(v jsontext.Value) string {
	kind, _ := wire.String(wire.Member(v, "type"))
	return kind
}

func (s *toolset) namespace(v jsontext.Value, most int) error {
	name, _ := wire.String(wire.Member(v, "name"))
	description, _ := wire.String(wire.Member(v, "description"))
	for c := wire.Array(wire.Member(v, "tools")); c.Next(); {
		if s.add(c.Value, name, description); len(s.list) > most {
			return tooMany("tools", "too_many_tools", "tools", most)
		}
	}
	return nil
}

func (s *toolset) add(v jsontext.Value, namespace, group string) {
	kind := kindOf(v)
	name, _ := wire.String(wire.Member(v, "name"))
	if kind != "function" && kind != "custom" || name == "" {
		if what := "the tool " + quoted(kind); !slices.Contains(s.left, what) {
			s.left = append(s.left, what)
		}
		return
	}
	s.list = append(s.list, declared{
		flat: flat(namespace, name), namespace: namespace, name: name,
		custom: kind == "custom", definition: v, group: group,
	})
}

// separate gives a tool of a namespace another name where a tool before it, or one without a
// namespace, has its.
func (s *toolset) separate() {
	taken := map[string]bool{}
	for _, d := range s.list {
		if d.namespace == "" {
			taken[strings.ToLower(d.flat)] = true
		}
	}
	for i, d := range s.list {
		if d.namespace == "" {
			continue
		}
		if taken[strings.ToLower(d.flat)] {
			s.list[i].flat = marked(d.flat, d.namespace, d.name)
		}
		taken[strings.ToLower(s.list[i].flat)] = true
	}
}

// choose reads the choice. One of some tools only is told by leaving the others out, which
// every upstream understands.
func (s *toolset) choose(v jsontext.Value) {
	if wire.IsNull(v) {
		return
	}
	if how, ok := wire.String(v); ok {
		if s.choice = v; len(s.list) == 0 && how != "auto" && how != "none" {
			s.left = append(s.left, "the tool choice "+quoted(how))
		}
		return
	}
	switch kind := kindOf(v); kind {
	case "function", "custom":
		s.choice = append(wire.AppendString([]byte(`{"type":"function","function":{"name":`), s.chosen(v)), "}}"...)
	case "allowed_tools":
		s.allow(v)
	default:
		s.left = append(s.left, "the tool choice "+quoted(kind))
	}
}

// chosen is the name by which a model knows the tool that a choice names.
func (s *toolset) chosen(v jsontext.Value) string {
	name, _ := wire.String(wire.Member(v, "name"))
	namespace, _ := wire.String(wire.Member(v, "namespace"))
	return s.flatOf(namespace, name)
}

// flatOf is the name by which a model knows a tool, also one that is not there any more.
func (s *toolset) flatOf(namespace, name string) string {
	for _, d := range s.list {
		if d.namespace == namespace && d.name == name {
			return d.flat
		}
	}
	return flat(namespace, name)
}

func (s *toolset) allow(v jsontext.Value) {
	allowed := map[string]bool{}
	for c := wire.Array(wire.Member(v, "tools")); c.Next(); {
		allowed[s.chosen(c.Value)] = true
	}
	s.list = slices.DeleteFunc(s.list, func(d declared) bool { return !allowed[d.flat] })
	if mode := wire.Member(v, "mode"); mode.Kind() == '"' {
		s.choice = mode
	}
}

// named is the tool that a model called.
func (s *toolset) named(called string) declared {
	for _, same := range []func(string) bool{
		func(flat string) bool { return flat == called },
		func(flat string) bool { return strings.EqualFold(flat, called) },
	} {
		if i := slices.IndexFunc(s.list, func(d declared) bool { return same(d.flat) }); i >= 0 {
			return s.list[i]
		}
	}
	return declared{flat: called, name: called}
}

// chat are the tools as the other dialect has them.
func (s *toolset) chat() []byte {
	out := []byte{'['}
	for i, d := range s.list {
		if i > 0 {
			out = append(out, ',')
		}
		out = d.append(out)
	}
	return append(out, ']')
}

func (d declared) append(dst []byte) []byte {
	description, _ := wire.String(wire.Member(d.definition, "description"))
	if d.custom {
		form := wire.Member(d.definition, "format")
		syntax, _ := wire.String(wire.Member(form, "syntax"))
		definition, _ := wire.String(wire.Member(form, "definition"))
		description = customDescription(description, syntax, definition)
	}
	dst = append(dst, `{"type":"function","function":{`...)
	dst = appendText(dst, "name", d.flat)
	if description = namespaced(d.group, description); description != "" {
		dst = appendText(dst, "description", description)
	}
	if d.custom {
		dst = append(dst, `,"parameters":{"type":"object","properties":{"input":{"type":"string","description":`...)
		dst = wire.AppendString(dst, customInput)
		return append(dst, `}},"required":["input"],"additionalProperties":false}}}`...)
	}
	for _, name := range []string{"parameters", "strict"} {
		if v := wire.Member(d.definition, name); !wire.IsNull(v) {
			dst = appendMember(dst, name, v)
		}
	}
	return append(dst, "}}"...)
}

// customArguments are a text as the arguments of the function that stands for a tool which
// takes text.
func customArguments(input string) string {
	return string(append(appendText([]byte{'{'}, "input", input), '}'))
}

// customText is the text of such arguments; what a model wrote in another form is the text
// itself.
func customText(arguments string) string {
	v := jsontext.Value(arguments)
	if wire.Lenient(v) {
		if input, ok := wire.String(wire.Member(v, "input")); ok {
			return input
		}
	}
	return arguments
}
