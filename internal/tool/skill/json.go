package skill

import (
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/tool"
)

// Values are read as all tools read them; names, paths and words are trimmed here.

func lenient() json.Options { return tool.LenientJSON() }

func jsonValue(text string) (jsontext.Value, bool) { return tool.ReadJSON(text) }

func unfenced(text string) string { return tool.Unfenced(text) }

// member is a member of an object, its name folded.
type member struct {
	key   string
	value jsontext.Value
}

// membersOf lists the members of a valid object in their order.
func membersOf(v jsontext.Value) []member {
	var members []member
	for _, m := range tool.Members(v) {
		members = append(members, member{key: m.Key, value: m.Value})
	}
	return members
}

func elementsOf(v jsontext.Value) []jsontext.Value { return tool.Elements(v) }

func unmarshal(v jsontext.Value, out any) error { return json.Unmarshal(v, out, lenient()) }

// stringOf is the text of a valid string.
func stringOf(v jsontext.Value) string { return strings.TrimSpace(tool.Text(v)) }
