package rescue

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/wire"
)

// types is a set of JSON Schema's primitive types.
type types uint8

const (
	typeString types = 1 << iota
	typeNumber
	typeBoolean
	typeObject
	typeArray
	typeNull
)

func typeNamed(s string) types {
	switch s {
	case "string":
		return typeString
	case "integer", "number":
		return typeNumber
	case "boolean":
		return typeBoolean
	case "object":
		return typeObject
	case "array":
		return typeArray
	case "null":
		return typeNull
	}
	return 0
}

// typesOf is what a property's schema allows, as far as it says so in its own
// type or in that of its alternatives.
func typesOf(schema jsontext.Value) types {
	var t types
	v := wire.Member(schema, "type")
	if s, ok := wire.String(v); ok {
		t |= typeNamed(s)
	}
	for c := wire.Array(v); c.Next(); {
		s, _ := wire.String(c.Value)
		t |= typeNamed(s)
	}
	for _, name := range []string{"anyOf", "oneOf"} {
		for c := wire.Array(wire.Member(schema, name)); c.Next(); {
			t |= typesOf(c.Value)
		}
	}
	return t
}

// value is the JSON value that a text stands for where a tool's property wants
// one: by the schema's type, else a string.
func (t tool) value(property, text string) jsontext.Value {
	allowed := typesOf(wire.Member(t.properties, property))
	trimmed := strings.TrimSpace(text)
	if allowed&typeNull != 0 && (trimmed == "null" || trimmed == "None") {
		return jsontext.Value("null")
	}
	if allowed&typeString != 0 {
		return wire.AppendString(nil, text)
	}
	if allowed&typeBoolean != 0 {
		switch strings.ToLower(trimmed) {
		case "true", "false":
			return jsontext.Value(strings.ToLower(trimmed))
		}
	}
	if v, ok := literal(trimmed); ok && kindType(v)&allowed != 0 {
		return v
	}
	return wire.AppendString(nil, text)
}

// literal reads a JSON value, or one that is nearly that.
func literal(s string) (jsontext.Value, bool) {
	if v := jsontext.Value(s); v.IsValid() {
		return v, true
	}
	return mend(s, reading{})
}

func kindType(v jsontext.Value) types {
	switch v.Kind() {
	case '"':
		return typeString
	case '0':
		return typeNumber
	case 't', 'f':
		return typeBoolean
	case '{':
		return typeObject
	case '[':
		return typeArray
	case 'n':
		return typeNull
	}
	return 0
}

// settle gives a value that was written without quotes the type that the
// property has: 10115 is a number, and a string where the schema says so.
func (t tool) settle(property string, v jsontext.Value) jsontext.Value {
	allowed := typesOf(wire.Member(t.properties, property))
	switch kind := kindType(v); {
	case allowed == 0 || kind&allowed != 0:
		return v
	case kind == typeString:
		s, _ := wire.String(v)
		return t.value(property, s)
	case allowed&typeString != 0 && kind&(typeNumber|typeBoolean) != 0:
		return wire.AppendString(nil, string(v))
	}
	return v
}

// arguments builds the object of a call's arguments.
type arguments struct{ out []byte }

// add appends a member. A name that comes twice makes the object invalid, which
// [arguments.text] reports.
func (a *arguments) add(name string, v jsontext.Value) {
	if len(a.out) == 0 {
		a.out = append(a.out, '{')
	} else {
		a.out = append(a.out, ',')
	}
	a.out = wire.AppendString(a.out, name)
	a.out = append(a.out, ':')
	a.out = append(a.out, v...)
}

func (a *arguments) text() (string, bool) {
	if len(a.out) == 0 {
		return "{}", true
	}
	v := jsontext.Value(append(a.out, '}'))
	return string(v), v.IsValid()
}
