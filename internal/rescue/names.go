package rescue

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/wire"
)

// tool is a declared tool as calls are compared with it.
type tool struct {
	name string
	// key is the name without what models get wrong in it.
	key string
	// properties is the object of the schema's properties; nil without a schema.
	properties jsontext.Value
}

// names knows which names are declared.
type names []tool

func newNames(declared []llm.Declaration) names {
	n := make(names, 0, len(declared))
	for _, d := range declared {
		if d.Name == "" {
			continue
		}
		t := tool{name: d.Name, key: foldName(d.Name)}
		if wire.Lenient(d.Parameters) {
			t.properties = wire.Member(d.Parameters, "properties")
		}
		n = append(n, t)
	}
	return n
}

// foldName is a name in lower case and with underscores for hyphens.
func foldName(s string) string { return strings.ReplaceAll(strings.ToLower(s), "-", "_") }

// namespaces stand before a name in the prompts of some models, which then
// write them into their calls.
func namespaces() []string { return []string{"functions.", "function.", "default_api."} }

// find is the declared tool that a model means by a name: exactly, else whatever
// its case, else without a namespace and with hyphens for underscores. A name
// that fits two tools equally well means none.
func (n names) find(s string) (tool, bool) {
	s = strings.TrimSpace(s)
	if t, ok := n.only(func(t tool) bool { return t.name == s }); ok {
		return t, true
	}
	if t, ok := n.only(func(t tool) bool { return strings.EqualFold(t.name, s) }); ok {
		return t, true
	}
	key := bareName(s)
	return n.only(func(t tool) bool { return t.key == key })
}

// bareName is a name as models write it, reduced to what keys are.
func bareName(s string) string {
	s = strings.ToLower(s)
	for _, p := range namespaces() {
		if rest, ok := strings.CutPrefix(s, p); ok {
			s = rest
			break
		}
	}
	return foldName(s)
}

func (n names) only(match func(tool) bool) (tool, bool) {
	found := -1
	for i := range n {
		if !match(n[i]) {
			continue
		}
		if found >= 0 {
			return tool{}, false
		}
		found = i
	}
	if found < 0 {
		return tool{}, false
	}
	return n[found], true
}

// begins reports whether more text could make a declared name of s.
func (n names) begins(s string) bool {
	low := strings.ToLower(s)
	for _, p := range namespaces() {
		if strings.HasPrefix(p, low) {
			return true
		}
	}
	key, full := bareName(s), foldName(s)
	for _, t := range n {
		if strings.HasPrefix(t.key, key) || strings.HasPrefix(t.key, full) {
			return true
		}
	}
	return false
}

// has reports whether the schema names a property.
func (t tool) has(property string) bool { return wire.Member(t.properties, property) != nil }

// single is the one property that the tool has.
func (t tool) single() (string, bool) {
	name, n := "", 0
	for c := wire.Object(t.properties); c.Next(); n++ {
		quoted := append(append([]byte{'"'}, c.Name...), '"')
		name, _ = wire.String(quoted)
	}
	return name, n == 1
}
