package code

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/tool"
	"github.com/metier-run/metier/internal/tool/file"
	toolshell "github.com/metier-run/metier/internal/tool/shell"
)

// plain is a set that takes calls only as they are declared, and says no more of them
// than whether they did it: a host without recovery, to measure the other one against.
type plain struct{ set }

var _ tool.Set = plain{}

// Invoke answers a call.
func (p plain) Invoke(ctx context.Context, c llm.Call, e tool.Env) (journal.Result, error) {
	if !p.ours(c.Name) && p.others != nil {
		return p.others.Invoke(ctx, c, e)
	}
	declared := p.declared(c.Name)
	switch {
	case declared == nil:
		return journal.Result{Text: fmt.Sprintf(plainUnknown, c.Name)}, nil
	case !asDeclared(c.Arguments, declared):
		return journal.Result{Text: fmt.Sprintf(plainArguments, c.Name)}, nil
	case c.Name == file.PatchName && !envelope(c.Arguments):
		return journal.Result{Text: plainPatch}, nil
	}
	result, err := p.set.Invoke(ctx, c, e)
	switch {
	case err != nil || c.Name == toolshell.Name: // its own option makes it plain
	case !result.OK:
		result.Text = firstSentence(result.Text)
	default:
		result.Text = notes.ReplaceAllLiteralString(result.Text, "")
	}
	return result, err
}

// declared are the parameters of one of our tools; nil when none has the name.
func (p plain) declared(name string) jsontext.Value {
	for _, d := range append(file.Declarations(p.c.s.o.Workspaces.Limits), toolshell.Declaration(p.c.s.o.Facts)) {
		if d.Name == name && p.ours(name) {
			return d.Parameters
		}
	}
	return nil
}

// asDeclared reports whether arguments are an object of members that are declared, each
// of its type.
func asDeclared(arguments string, parameters jsontext.Value) bool {
	var schema struct {
		Properties map[string]struct {
			Type string `json:"type"`
		} `json:"properties"`
		Required []string `json:"required"`
	}
	var members map[string]jsontext.Value
	if json.Unmarshal(parameters, &schema) != nil || json.Unmarshal([]byte(arguments), &members) != nil {
		return false
	}
	for name, value := range members {
		if property, ok := schema.Properties[name]; !ok || kindOf(property.Type) != plainKind(value) {
			return false
		}
	}
	for _, name := range schema.Required {
		if _, ok := members[name]; !ok {
			return false
		}
	}
	return true
}

// kindOf is the kind of values of a type that our tools declare.
func kindOf(declared string) jsontext.Kind {
	switch declared {
	case "string":
		return '"'
	case "integer", "number":
		return '0'
	}
	return 't'
}

func plainKind(v jsontext.Value) jsontext.Kind {
	if kind := v.Kind(); kind != 'f' {
		return kind
	}
	return 't'
}

// envelope reports whether a patch begins and ends as declared, with the line breaks of
// a text.
func envelope(arguments string) bool {
	var a struct {
		Patch string `json:"patch"`
	}
	if json.Unmarshal([]byte(arguments), &a) != nil || strings.Contains(a.Patch, "\r") {
		return false
	}
	text := strings.TrimSuffix(a.Patch, "\n")
	return strings.HasPrefix(text, "*** Begin Patch\n") && strings.HasSuffix(text, "\n*** End Patch")
}

var (
	sentence = regexp.MustCompile(`^(Nothing was changed\. )?.*?\.(?: [A-Z"]|$)`)
	// notes are what a success says of how it read the call.
	notes = regexp.MustCompile(`(?m)\n^Note: .*$`)
)

// firstSentence is what a refusal says first, behind that nothing was changed.
func firstSentence(text string) string {
	text, _, _ = strings.Cut(text, "\n")
	if found := sentence.FindString(text); found != "" {
		return found[:strings.LastIndexByte(found, '.')+1]
	}
	return text
}
