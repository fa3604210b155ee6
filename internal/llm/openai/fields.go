package openai

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/wire"
)

// field is a member of an object that comes in parts.
type field struct {
	name string
	// text collects the contents of JSON strings; values the elements of arrays;
	// last is any other value.
	text, values []byte
	last         jsontext.Value
	kind         jsontext.Kind
}

// fields are the members of an object in order of first appearance. The zero
// fields is ready.
type fields struct {
	list []field
	at   map[string]int // made when there are many
}

// manyFields is how many members are more quickly found in a map. Upstreams send
// three or four; one that sends thousands must cost no more than its bytes.
const manyFields = 16

// get is the named member, or nil. It is valid until another is added.
func (f *fields) get(name string) *field {
	i, ok := -1, true
	if f.at != nil {
		i, ok = f.at[name]
	} else {
		i = slices.IndexFunc(f.list, func(x field) bool { return x.name == name })
	}
	if i < 0 || !ok {
		return nil
	}
	return &f.list[i]
}

// named is get, but adds the member that is not there yet.
func (f *fields) named(name []byte) *field {
	if x := f.get(string(name)); x != nil {
		return x
	}
	f.list = append(f.list, field{name: string(name)})
	switch {
	case f.at != nil:
		f.at[string(name)] = len(f.list) - 1
	case len(f.list) > manyFields:
		f.at = make(map[string]int, 2*manyFields)
		for i, x := range f.list {
			f.at[x.name] = i
		}
	}
	return &f.list[len(f.list)-1]
}

// merge continues a member: texts and arrays grow, other values are replaced.
func (f *fields) merge(name []byte, v jsontext.Value) {
	x := f.named(name)
	x.kind = v.Kind()
	switch x.kind {
	case '"':
		text, _ := wire.Contents(v)
		x.text = append(x.text, text...)
	case '[':
		for c := wire.Array(v); c.Next(); {
			if len(x.values) > 0 {
				x.values = append(x.values, ',')
			}
			x.values = append(x.values, c.Value...)
		}
	default:
		x.last = slices.Clone(v)
	}
}

// replace is merge for members that are repeated rather than continued.
func (f *fields) replace(name []byte, v jsontext.Value) {
	x := f.named(name)
	*x = field{name: x.name}
	f.merge(name, v)
}

func (f field) append(dst []byte) []byte {
	switch f.kind {
	case '"':
		return append(append(append(dst, '"'), f.text...), '"')
	case '[':
		return append(append(append(dst, '['), f.values...), ']')
	}
	return append(dst, f.last...)
}
