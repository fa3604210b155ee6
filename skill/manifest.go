package skill

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// What the Agent Skills specification allows, in code points of the text as it
// is used: the description and the compatibility after their white space has
// become single spaces. (A name has only ASCII, so bytes are the same.) Sizes of
// a manifest, a file and a skill count bytes (see [Options]).
const (
	maxName          = 64
	maxDescription   = 1024
	maxCompatibility = 500
)

// Manifest is the front matter of a SKILL.md. It is shared: do not change its
// maps and slices.
type Manifest struct {
	// Name is the skill's id: lower-case letters, digits and single hyphens, at
	// most 64. Where the manifest and the directory disagree it is the
	// directory's name, if that is a legal one.
	Name string
	// Declared is the name as the manifest writes it; empty if it has none.
	Declared string
	// Description says what the skill does and when to use it, on one line. One
	// of more than 1024 code points is kept whole, with a warning.
	Description string
	License     string
	// Compatibility says what the skill needs of its environment, on one line.
	// One of more than 500 code points is kept whole, with a warning.
	Compatibility string
	Metadata      map[string]string
	// AllowedTools is what the author would pre-approve. It is reported and
	// grants nothing.
	AllowedTools []string
	// Tools are held back until the skill is loaded (seed 2).
	Tools []string
	// Extra holds every other key: strings, bools, ints, nil, []any and
	// map[string]any; any other scalar, such as 1.10, is the text as written.
	Extra map[string]any
	// Fields holds every key, those with a place above too, in the order of the
	// file.
	Fields []Field
}

// Field is a key of the front matter.
type Field struct {
	Key string
	// Value is as in [Manifest.Extra].
	Value any
	// Raw is the field's lines byte for byte, from its key up to the next one,
	// without the blank lines and comments between the two. It is empty when the
	// front matter is written in braces.
	Raw string
	// Line and Column are the key's place in SKILL.md, from 1.
	Line, Column int
}

// Warning is something out of order that did not keep a skill from loading.
type Warning struct {
	// Code is stable and meant for programs: one of the Warn constants.
	Code string
	// Message says what is wrong and what to write.
	Message string
	// File is the path of the file in the skill.
	File string
	// Line and Column, from 1, are the place in SKILL.md; 0 when there is none.
	Line, Column int
}

// The codes of warnings.
const (
	WarnNameDiffers       = "name-differs"
	WarnNameNormalised    = "name-normalised"
	WarnNameMissing       = "name-missing"
	WarnDescriptionLong   = "description-too-long"
	WarnCompatibilityLong = "compatibility-too-long"
	WarnColon             = "colon-unquoted"
	WarnMetadata          = "metadata-not-strings"
	WarnField             = "field-ignored"
	WarnFile              = "file-left-out"
)

// String is the place and the message.
func (w Warning) String() string { return at(w.Line, w.Column) + w.Message }

// ManifestError is why a SKILL.md cannot be loaded.
type ManifestError struct {
	// File is where the manifest is on this host, if it came from one, and
	// "SKILL.md" otherwise. It is for operators: Error does not tell it.
	File string
	// Line and Column, from 1, are the place in it; Column is 0 when the whole
	// line is meant. Columns count code points.
	Line, Column int
	// Problem says what is wrong and Fix what to write instead.
	Problem, Fix string
}

// Error is the place, the problem and the fix.
func (e *ManifestError) Error() string {
	return "read SKILL.md: " + at(e.Line, e.Column) + e.Problem + ": " + e.Fix
}

func at(line, column int) string {
	switch {
	case line == 0:
		return ""
	case column == 0:
		return fmt.Sprintf("line %d: ", line)
	}
	return fmt.Sprintf("line %d, column %d: ", line, column)
}

// Parse reads the text of a SKILL.md. dir is the name of the directory that
// holds it, or empty when there is none. Besides warnings it fails with a
// [*ManifestError] when there is no front matter between lines of "---", when
// that is not valid YAML (a key that stands twice included), when there is no
// description, and when neither name nor dir makes a legal name.
//
// A plain value that holds ": ", the commonest mistake, is no failure: it is
// read as text with a warning where that is the only reading. Lines may end in
// LF, CR LF or CR, and a byte order mark is passed over. Parse sets no limit to
// the size of data.
func Parse(data []byte, dir string) (Manifest, []Warning, error) {
	s, err := split(data)
	if err != nil {
		return Manifest{}, nil, err
	}
	fields, repaired, err := parseHead(s)
	if err != nil {
		return Manifest{}, nil, err
	}
	b := builder{head: s, warnings: repaired}
	if err := b.build(fields, dir); err != nil {
		return Manifest{}, nil, err
	}
	return b.m, b.warnings, nil
}

// builder turns the fields of the front matter into a manifest.
type builder struct {
	head     section
	m        Manifest
	warnings []Warning
}

func (b *builder) build(fields []field, dir string) error {
	var name, description field
	for _, f := range fields {
		value := plain(f.value)
		b.m.Fields = append(b.m.Fields, Field{
			Key: f.key, Value: value, Raw: f.raw, Line: f.name.Line + b.head.line - 1, Column: f.name.Column,
		})
		switch f.key {
		case "name":
			name = f
		case "description":
			description = f
			b.m.Description = oneLine(b.text(f))
		case "license":
			b.m.License = b.text(f)
		case "compatibility":
			b.m.Compatibility = oneLine(b.text(f))
		case "metadata":
			b.m.Metadata = b.metadata(f)
		case "allowed-tools":
			b.m.AllowedTools = b.list(f)
		case "tools":
			b.m.Tools = b.list(f)
		default:
			if b.m.Extra == nil {
				b.m.Extra = map[string]any{}
			}
			b.m.Extra[f.key] = value
		}
		b.long(f)
	}
	if b.m.Description == "" {
		return b.noDescription(description)
	}
	return b.name(name, dir)
}

func (b *builder) noDescription(f field) error {
	fix := `write what the skill does and when to use it, as in "description: Fill in PDF forms. Use when the user has a form."`
	switch {
	case f.value == nil:
		return b.head.refuse(0, 0, "the description is missing or empty", fix)
	case follow(f.value).Kind != yaml.ScalarNode:
		return b.head.refuse(f.value.Line, f.value.Column, "the description is not text", `put it in double quotes on the line of its name, as in description: "Use when: ..."`)
	}
	return b.head.refuse(f.value.Line, f.value.Column, "the description is missing or empty", fix)
}

// long warns of texts over the specification's length. They are kept whole.
func (b *builder) long(f field) {
	switch n := utf8.RuneCountInString(b.m.Description); {
	case f.key == "description" && n > maxDescription:
		b.warn(WarnDescriptionLong, f.value, "description has %d characters and may have %d: shorten it", n, maxDescription)
	}
	switch n := utf8.RuneCountInString(b.m.Compatibility); {
	case f.key == "compatibility" && n > maxCompatibility:
		b.warn(WarnCompatibilityLong, f.value, "compatibility has %d characters and may have %d: shorten it", n, maxCompatibility)
	}
}

// name settles the skill's id (see [Manifest.Name]).
func (b *builder) name(f field, dir string) error {
	if f.value != nil {
		b.m.Declared = strings.TrimSpace(b.text(f))
	}
	declared := normalise(b.m.Declared)
	folder := normalise(dir)
	switch {
	case declared == "" && folder == "":
		var line, column int
		if f.value != nil {
			line, column = f.value.Line, f.value.Column
		}
		return b.head.refuse(line, column, fmt.Sprintf("the name %q cannot be used and no directory gives one", b.m.Declared),
			`write a name of lower-case letters, digits and hyphens, as in "name: pdf-forms"`)
	case declared == "":
		b.m.Name = folder
		b.warn(WarnNameMissing, f.value, "there is no usable name, so the directory's is used: write \"name: %s\"", folder)
		return nil
	case declared != b.m.Declared:
		b.warn(WarnNameNormalised, f.value, "name %q is not lower-case letters, digits and single hyphens, at most %d: write \"name: %s\"", b.m.Declared, maxName, declared)
	}
	b.m.Name = declared
	if dir == "" || dir == declared {
		return nil
	}
	if folder == dir {
		b.m.Name = dir
	}
	b.warn(WarnNameDiffers, f.value, "name %q differs from the directory %q, and the skill is called %q: give both the same name", b.m.Declared, dir, b.m.Name)
	return nil
}

func (b *builder) warn(code string, n *yaml.Node, format string, args ...any) {
	w := Warning{Code: code, File: ManifestFile, Message: fmt.Sprintf(format, args...)}
	if n != nil && n.Line > 0 {
		w.Line, w.Column = n.Line+b.head.line-1, n.Column
	}
	b.warnings = append(b.warnings, w)
}

// text is the text of a scalar as written; a list or a map is left out with a
// warning.
func (b *builder) text(f field) string {
	n := follow(f.value)
	switch {
	case n.Kind != yaml.ScalarNode:
		b.warn(WarnField, f.value, "%s must be text and is left out: write it as one value", f.key)
		return ""
	case n.Tag == "!!null":
		return ""
	}
	return strings.TrimSpace(n.Value)
}

func (b *builder) metadata(f field) map[string]string {
	n := follow(f.value)
	if n.Tag == "!!null" {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		b.warn(WarnMetadata, f.value, "metadata must map names to text and is left out: write it as indented \"key: value\" lines")
		return nil
	}
	m := map[string]string{}
	for _, entry := range pairs(n) {
		v := follow(entry.value)
		if v.Kind != yaml.ScalarNode || v.Tag != "!!str" {
			b.warn(WarnMetadata, entry.value, "metadata %q is not text and is left out: put its value in double quotes", entry.key)
			continue
		}
		m[entry.key] = v.Value
	}
	return m
}

// list reads names, written as a YAML list or as text with white space or
// commas between them.
func (b *builder) list(f field) []string {
	n := follow(f.value)
	switch {
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null":
		return nil
	case n.Kind == yaml.ScalarNode:
		return words(n.Value)
	case n.Kind != yaml.SequenceNode:
		b.warn(WarnField, f.value, "%s must be a list of names and is left out: write it as \"%s: [first, second]\"", f.key, f.key)
		return nil
	}
	var out []string
	for _, item := range n.Content {
		v := follow(item)
		if v.Kind != yaml.ScalarNode || strings.TrimSpace(v.Value) == "" {
			b.warn(WarnField, item, "an entry of %s is not a name and is left out: write one name an entry", f.key)
			continue
		}
		out = append(out, strings.TrimSpace(v.Value))
	}
	return out
}

// words splits at white space and commas that stand outside parentheses, so
// that "Bash(git add:*) Read" is two names.
func words(s string) []string {
	depth := 0
	return strings.FieldsFunc(s, func(r rune) bool {
		switch r {
		case '(':
			depth++
		case ')':
			depth = max(0, depth-1)
		}
		return depth == 0 && (r == ',' || unicode.IsSpace(r))
	})
}

// oneLine puts single spaces for white space and control characters, and leaves
// out what formats without being seen: joiners, marks of direction, tags. A person
// must be able to read all that a model is told.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.Is(unicode.Cf, r):
			return -1
		case unicode.IsControl(r):
			return ' '
		}
		return r
	}, s)
	return strings.Join(strings.Fields(s), " ")
}

// normalise makes a legal name of s, or the empty string when nothing is left.
func normalise(s string) string {
	var b strings.Builder
	gap := false
	for _, r := range strings.ToLower(s) {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') {
			gap = b.Len() > 0
			continue
		}
		if gap {
			b.WriteByte('-')
			gap = false
		}
		b.WriteRune(r)
	}
	name := b.String()
	if len(name) > maxName {
		name = strings.TrimRight(name[:maxName], "-")
	}
	return name
}
