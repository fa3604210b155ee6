package validate

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
	"golang.org/x/text/unicode/norm"
)

// What the specification allows, in code points.
const (
	maxName          = 64
	maxDescription   = 1024
	maxCompatibility = 500
)

// fields are the six fields of the specification, sorted.
func fields() []string {
	return []string{"allowed-tools", "compatibility", "description", "license", "metadata", "name"}
}

// frontMatter holds the fields against the target's rules.
func (c *checker) frontMatter(m manifest) {
	h, p := parse(m.data, c.target == Spec)
	if p != nil {
		c.add(Finding{
			Severity: Error, Field: FieldFrontMatter, Code: p.code, Message: p.message,
			File: m.file, Line: p.line, Column: p.column,
		})
		return
	}
	if f, ok := h.find("name"); ok {
		c.skill = norm.NFKC.String(strings.TrimSpace(text(f.node)))
	}
	r := rules{checker: c, head: h, file: m.file}
	switch c.target {
	case Anthropic:
		r.anthropic()
	case WellKnown:
		r.required("name", r.name)
		r.required("description", r.description)
		r.compatibility()
	default: // OpenAI documents that it checks against the specification
		r.unexpected(unexpectedFields())
		r.required("name", r.name)
		r.required("description", r.description)
		r.compatibility()
	}
}

// rules judges one front matter. The messages of the specification's rules are
// those of the reference validator, because people look for them.
type rules struct {
	*checker
	head head
	file string
}

// fail records an error at a node.
func (r rules) fail(n *yaml.Node, field, code, format string, args ...any) {
	f := Finding{Severity: Error, Field: field, Code: code, Message: fmt.Sprintf(format, args...), File: r.file}
	if n != nil {
		f.Line, f.Column = r.head.line+n.Line, n.Column
	}
	r.add(f)
}

// unexpected refuses every key that the specification does not have, in one
// message at the first of them.
func (r rules) unexpected(format string) {
	var first *yaml.Node
	var extra []string
	for _, f := range r.head.fields {
		if !slices.Contains(fields(), f.key) {
			extra = append(extra, f.key)
			if first == nil {
				first = f.name
			}
		}
	}
	if len(extra) > 0 {
		r.fail(first, FieldFrontMatter, CodeUnexpected, format, strings.Join(sorted(extra), ", "))
	}
}

func unexpectedFields() string {
	return "Unexpected fields in frontmatter: %s. Only ['" + strings.Join(fields(), "', '") + "'] are allowed."
}

// required holds a field that must be there against a rule.
func (r rules) required(key string, rule func(n *yaml.Node, value string)) {
	f, ok := r.head.find(key)
	if !ok {
		r.fail(nil, key, CodeMissing, "Missing required field in frontmatter: %s", key)
		return
	}
	value := text(f.node)
	if strings.TrimSpace(value) == "" {
		r.fail(f.node, key, CodeEmpty, "Field '%s' must be a non-empty string", key)
		return
	}
	rule(f.node, value)
}

// text is a scalar as it is written; anything else is no text.
func text(n *yaml.Node) string {
	for n.Kind == yaml.AliasNode && n.Alias != nil {
		n = n.Alias
	}
	if n.Kind != yaml.ScalarNode {
		return ""
	}
	return n.Value
}

// name is the specification's rule: lower-case letters and digits of any script.
func (r rules) name(n *yaml.Node, value string) {
	name := norm.NFKC.String(strings.TrimSpace(value))
	if count := utf8.RuneCountInString(name); count > maxName {
		r.fail(n, "name", CodeNameLong, "Skill name '%s' exceeds %d character limit (%d chars)", name, maxName, count)
	}
	if name != strings.ToLower(name) {
		r.fail(n, "name", CodeNameCase, "Skill name '%s' must be lowercase", name)
	}
	if strings.HasPrefix(name, "-") || strings.HasSuffix(name, "-") {
		r.fail(n, "name", CodeNameEdge, "Skill name cannot start or end with a hyphen")
	}
	if strings.Contains(name, "--") {
		r.fail(n, "name", CodeNameDouble, "Skill name cannot contain consecutive hyphens")
	}
	if strings.ContainsFunc(name, func(c rune) bool { return c != '-' && !unicode.IsLetter(c) && !unicode.IsNumber(c) }) {
		r.fail(n, "name", CodeNameCharacters, "Skill name '%s' contains invalid characters. Only letters, digits, and hyphens are allowed.", name)
	}
	if norm.NFKC.String(r.checker.name) != name {
		r.fail(n, "name", CodeNameFolder, "Directory name '%s' must match skill name '%s'", r.checker.name, name)
	}
}

func (r rules) description(n *yaml.Node, value string) {
	if count := utf8.RuneCountInString(value); count > maxDescription {
		r.fail(n, "description", CodeLong, "Description exceeds %d character limit (%d chars)", maxDescription, count)
	}
}

func (r rules) compatibility() {
	f, ok := r.head.find("compatibility")
	if !ok {
		return
	}
	value := text(f.node)
	count := utf8.RuneCountInString(value)
	switch {
	case value == "" && f.node.Kind != yaml.ScalarNode && f.node.Kind != yaml.AliasNode:
		r.fail(f.node, "compatibility", CodeType, "Field 'compatibility' must be a string")
	case count > maxCompatibility:
		r.fail(f.node, "compatibility", CodeLong, "Compatibility exceeds %d character limit (%d chars)", maxCompatibility, count)
	}
}

var (
	// plainName is what Anthropic takes as a name.
	plainName = regexp.MustCompile(`^[a-z0-9-]+$`)
	// xmlTag is text that reads as a tag: an opening, closing or empty one, a
	// declaration or an instruction.
	xmlTag = regexp.MustCompile(`<[/!?]?[A-Za-z][^<>]*>`)
	// reserved may not stand in a name that is uploaded to Anthropic.
	reserved = regexp.MustCompile(`(?i)anthropic|claude`)
)

// anthropic is stricter than the specification: ASCII names, reserved words, no
// tags. Three of the messages are those that its API gives.
func (r rules) anthropic() {
	r.unexpected("Unexpected key(s) in SKILL.md frontmatter: %s. Anthropic takes " + strings.Join(fields(), ", ") + " only: move others below metadata.")
	r.required("name", r.anthropicName)
	r.required("description", func(n *yaml.Node, value string) {
		r.description(n, strings.TrimSpace(value))
		r.noTags(n, "description", value)
	})
	r.compatibility()
}

func (r rules) anthropicName(n *yaml.Node, value string) {
	name := strings.TrimSpace(value)
	if count := utf8.RuneCountInString(name); count > maxName {
		r.fail(n, "name", CodeNameLong, "Anthropic takes names of up to %d characters, and this one has %d: shorten it", maxName, count)
	}
	r.noTags(n, "name", name)
	if !plainName.MatchString(name) {
		r.fail(n, "name", CodeNameCharacters, "Anthropic takes names of lower-case letters a to z, digits and hyphens only: rename %q", name)
	}
	if strings.HasPrefix(name, "-") || strings.HasSuffix(name, "-") {
		r.fail(n, "name", CodeNameEdge, "a name may not start or end with a hyphen: rename %q", name)
	}
	if strings.Contains(name, "--") {
		r.fail(n, "name", CodeNameDouble, "a name may not hold two hyphens in a row: rename %q", name)
	}
	if word := reserved.FindString(name); word != "" {
		r.fail(n, "name", CodeNameReserved, "Anthropic reserves the word %q, so no name may hold it: rename %q", word, name)
	}
	if name != r.checker.name {
		r.fail(n, "name", CodeNameFolder, "The folder name '%s' must match the skill name '%s' in SKILL.md.", r.checker.name, name)
	}
}

func (r rules) noTags(n *yaml.Node, field, value string) {
	if tag := xmlTag.FindString(value); tag != "" {
		r.fail(n, field, CodeXML, "Anthropic takes no XML tags in the %s, and %s reads as one: write it without the angle brackets", field, tag)
	}
}

func sorted(s []string) []string {
	s = slices.Clone(s)
	slices.Sort(s)
	return s
}
