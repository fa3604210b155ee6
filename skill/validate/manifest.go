package validate

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/skill"
)

// lowerManifest is the spelling that the reference validator and OpenAI take
// besides SKILL.md.
const lowerManifest = "skill.md"

// manifest is a SKILL.md that was read.
type manifest struct {
	file string
	data []byte
}

// manifest reads the SKILL.md, or says why there is none.
func (c *checker) manifest() (manifest, bool) {
	name, ok := c.find()
	if !ok {
		return manifest{}, false
	}
	data, err := c.read(name)
	if err != nil {
		c.add(Finding{Severity: Error, Field: FieldManifest, Code: CodeUnreadable, File: name, Message: err.Error()})
		return manifest{}, false
	}
	return manifest{file: name, data: data}, true
}

func (c *checker) read(name string) ([]byte, error) {
	f, err := c.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var v config.Values
	most := v.Get(config.ManifestSize)
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", name, err)
	case int64(len(data)) > most:
		return nil, fmt.Errorf("read %s: it has more than %d bytes (%s): move what is long into files of their own", name, most, config.ManifestSize)
	}
	return data, nil
}

// find looks names up in the listing, so that a file system that ignores case
// gives the same verdict as one that does not.
func (c *checker) find() (string, bool) {
	entries, err := c.root.ReadDir(".")
	if err != nil {
		c.fail(FieldFolder, CodeUnreadable, "the folder cannot be read: %v", err)
		return "", false
	}
	var near string
	for _, e := range entries {
		switch {
		case e.Name() == skill.ManifestFile:
			return skill.ManifestFile, true
		case e.Name() == lowerManifest || near == "" && strings.EqualFold(e.Name(), skill.ManifestFile):
			near = e.Name()
		}
	}
	switch {
	case near == lowerManifest && c.target == Spec, near != "" && c.target == OpenAI:
		return near, true
	case c.target == Spec || near == "":
		c.fail(FieldManifest, CodeNoManifest, "Missing required file: SKILL.md")
	default:
		c.add(Finding{
			Severity: Error, Field: FieldManifest, Code: CodeManifestName, File: near,
			Message: fmt.Sprintf("the manifest is called %s: rename it to SKILL.md, in exactly this case", near),
		})
	}
	return "", false
}

// field is a key of the front matter and its value.
type field struct {
	key        string
	name, node *yaml.Node
}

// head is a front matter that was read.
type head struct {
	fields []field
	// line is what is added to a node's line to have that in SKILL.md.
	line int
	// body and bodyLine are where the text after it begins.
	body, bodyLine int
}

func (h head) find(key string) (field, bool) {
	for _, f := range h.fields {
		if f.key == key {
			return f, true
		}
	}
	return field{}, false
}

// problem is why a front matter cannot be read.
type problem struct {
	code, message string
	line, column  int
}

// The texts of the reference validator for front matter that it cannot read.
const (
	noFrontMatter   = "SKILL.md must start with YAML frontmatter (---)"
	openFrontMatter = "SKILL.md frontmatter not properly closed with ---"
	badYAML         = "Invalid YAML in frontmatter: "
	noMapping       = "SKILL.md frontmatter must be a YAML mapping"
)

// parse reads a front matter. Strict is the YAML of the reference validator: no
// flow style, anchors, aliases or tags. Fences are whole lines, so that a value
// may hold "---" (the reference cuts it in two there).
func parse(data []byte, strict bool) (head, *problem) {
	h, text, p := cut(data)
	if p != nil {
		return h, p
	}
	if !utf8.Valid(text) {
		return h, &problem{code: CodeYAML, message: badYAML + "it is not UTF-8", line: h.line + 1}
	}
	var doc yaml.Node
	if err := yaml.Load(text, &doc); err != nil {
		return h, yamlProblem(h, text, err)
	}
	top := &doc
	if doc.Kind == yaml.DocumentNode {
		top = doc.Content[0]
	}
	if top.Kind != yaml.MappingNode {
		return h, &problem{code: CodeNoMapping, message: noMapping, line: h.line + max(1, top.Line)}
	}
	if n, what := refused(top, strict); n != nil {
		return h, &problem{code: CodeYAML, message: badYAML + what, line: h.line + n.Line, column: n.Column}
	}
	for i := 0; i+1 < len(top.Content); i += 2 {
		h.fields = append(h.fields, field{key: top.Content[i].Value, name: top.Content[i], node: top.Content[i+1]})
	}
	return h, nil
}

// cut finds the front matter between two lines of "---".
func cut(data []byte) (head, []byte, *problem) {
	var h head
	at, start, line := 0, 0, 0
	for l := range bytes.Lines(data) {
		line++
		at += len(l)
		if string(bytes.TrimRight(l, " \t\r\n")) != "---" {
			if line == 1 {
				break
			}
			continue
		}
		if line > 1 {
			h.body, h.bodyLine = at, line+1
			return h, data[start : at-len(l)], nil
		}
		start, h.line = at, 1
	}
	if line <= 1 && h.line == 0 {
		p := &problem{code: CodeNoFrontMatter, message: noFrontMatter, line: 1}
		if bytes.HasPrefix(data, []byte("\ufeff")) {
			p.message += ", and this one starts with a byte order mark: save it as UTF-8 without one"
		}
		return h, nil, p
	}
	return h, nil, &problem{code: CodeOpenFrontMatter, message: openFrontMatter, line: 1}
}

func yamlProblem(h head, text []byte, err error) *problem {
	if len(bytes.TrimSpace(text)) == 0 {
		return &problem{code: CodeNoMapping, message: noMapping, line: 1}
	}
	p := &problem{code: CodeYAML, message: badYAML + err.Error(), line: h.line + 1}
	if e, ok := errors.AsType[*yaml.LoadError](err); ok && e.Mark.Line > 0 {
		p.message, p.line, p.column = badYAML+e.Message, h.line+e.Mark.Line, e.Mark.Column
	}
	return p
}

// refused finds what is not taken below a node. Aliases are not followed, so that
// the walk is as long as the text.
func refused(n *yaml.Node, strict bool) (*yaml.Node, string) {
	switch {
	case strict && (n.Kind == yaml.AliasNode || n.Anchor != ""):
		return n, "anchors and aliases (& and *) are not allowed: write the value out"
	case strict && n.Style&yaml.TaggedStyle != 0:
		return n, "tags (!) are not allowed: write the value as it is"
	case strict && n.Style&yaml.FlowStyle != 0:
		return n, "flow style ([...] and {...}) is not allowed: write one entry a line"
	}
	if n.Kind == yaml.MappingNode {
		if twice, what := badKey(n); twice != nil {
			return twice, what
		}
	}
	for _, child := range n.Content {
		if bad, what := refused(child, strict); bad != nil {
			return bad, what
		}
	}
	return nil, ""
}

func badKey(n *yaml.Node) (*yaml.Node, string) {
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		switch {
		case k.Kind != yaml.ScalarNode:
			return k, `a key is not plain text: write "key: value"`
		case seen[k.Value]:
			return k, fmt.Sprintf("the key %q stands twice: keep one of them", k.Value)
		}
		seen[k.Value] = true
	}
	return nil, ""
}
