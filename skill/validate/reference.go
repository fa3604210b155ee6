package validate

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/metier-run/metier/internal/guard"
)

// Properties are the fields of a manifest as the reference reader of the
// specification gives them: every scalar is text as written, so that 1.0 stays
// "1.0". Fields that are not there are empty.
type Properties struct {
	Name          string
	Description   string
	License       string
	Compatibility string
	AllowedTools  string
	Metadata      map[string]string
	// Location is the absolute path of the SKILL.md.
	Location string
}

// ReadProperties reads the manifest in the folder dir, SKILL.md first, then
// skill.md. It does not validate beyond what it needs: its errors, with the texts
// of the reference, say that there is no manifest, that its front matter cannot
// be read, or that name or description is missing.
func ReadProperties(ctx context.Context, dir string) (Properties, error) {
	if err := ctx.Err(); err != nil {
		return Properties{}, err
	}
	root, err := guard.OpenRoot(dir)
	if err != nil {
		return Properties{}, fmt.Errorf("read properties of %s: %w", dir, err)
	}
	defer root.Close()
	c := checker{dir: dir, target: Spec, name: baseName(dir), root: root}
	name, ok := c.find()
	if !ok {
		return Properties{}, fmt.Errorf("SKILL.md not found in %s", dir)
	}
	data, err := c.read(name)
	if err != nil {
		return Properties{}, fmt.Errorf("read properties of %s: %w", dir, err)
	}
	h, p := parse(data, true)
	if p != nil {
		return Properties{}, fmt.Errorf("%s: %s", dir, p.message)
	}
	out, err := h.properties()
	if err != nil {
		return out, fmt.Errorf("%s: %w", dir, err)
	}
	out.Location, err = filepath.Abs(filepath.Join(dir, name))
	return out, err
}

func (h head) properties() (Properties, error) {
	var p Properties
	for _, key := range []string{"name", "description"} {
		f, ok := h.find(key)
		switch {
		case !ok:
			return p, errors.New("Missing required field in frontmatter: " + key)
		case strings.TrimSpace(text(f.node)) == "":
			return p, errors.New("Field '" + key + "' must be a non-empty string")
		}
	}
	for _, f := range h.fields {
		value := text(f.node)
		switch f.key {
		case "name":
			p.Name = strings.TrimSpace(value)
		case "description":
			p.Description = strings.TrimSpace(value)
		case "license":
			p.License = value
		case "compatibility":
			p.Compatibility = value
		case "allowed-tools":
			p.AllowedTools = tools(f.node)
		case "metadata":
			p.Metadata = texts(f.node)
		}
	}
	return p, nil
}

// tools joins a list, which some clients write, into the text that the
// specification has.
func tools(n *yaml.Node) string {
	if n.Kind != yaml.SequenceNode {
		return text(n)
	}
	var names []string
	for _, item := range n.Content {
		names = append(names, text(item))
	}
	return strings.Join(names, " ")
}

func texts(n *yaml.Node) map[string]string {
	if n.Kind != yaml.MappingNode {
		return nil
	}
	m := map[string]string{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		m[n.Content[i].Value] = text(n.Content[i+1])
	}
	return m
}

// escaped has the escapes of the reference, which writes quotes as HTML does.
var escaped = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#x27;")

// Prompt is the XML catalog of skills that the reference makes for a system
// prompt: each tag and each value on a line of its own, without a line end after
// the last. It is for hosts whose model reads files itself; Metier's own prompt
// is another.
func Prompt(skills []Properties) string {
	var b strings.Builder
	b.WriteString("<available_skills>\n")
	for _, p := range skills {
		b.WriteString("<skill>\n")
		for _, e := range [][2]string{{"name", p.Name}, {"description", p.Description}, {"location", p.Location}} {
			fmt.Fprintf(&b, "<%s>\n%s\n</%s>\n", e[0], escaped.Replace(e[1]), e[0])
		}
		b.WriteString("</skill>\n")
	}
	b.WriteString("</available_skills>")
	return b.String()
}
