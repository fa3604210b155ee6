package skills

import (
	"errors"
	"path/filepath"
	"time"

	"github.com/metier-run/metier/skill"
)

// Object is a skill as clients see it (seed 1, "HTTP - managing skills"). What a
// manifest does not say is null.
type Object struct {
	// ID is the name: what a request puts into "skills".
	ID            string  `json:"id"`
	Object        string  `json:"object"`
	Name          string  `json:"name"`
	Description   string  `json:"description"`
	License       *string `json:"license"`
	Compatibility *string `json:"compatibility"`
	// Metadata and AllowedTools are as the manifest has them. The latter grants
	// nothing.
	Metadata     map[string]string `json:"metadata"`
	AllowedTools []string          `json:"allowed_tools"`
	Files        []File            `json:"files"`
	// Bytes is the size of all files.
	Bytes  int64  `json:"bytes"`
	Origin string `json:"origin"`
	// Warnings are sentences with their place in SKILL.md.
	Warnings []string `json:"warnings"`
	// Modified is the time of the newest file, to the second.
	Modified time.Time `json:"modified"`
}

// File is a file of a skill, SKILL.md included.
type File struct {
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`
	Kind  string `json:"kind"`
	Text  bool   `json:"text"`
}

// Instructions is a skill with the text after its front matter.
type Instructions struct {
	Object `json:",inline"`
	Text   string `json:"instructions"`
}

// Describe makes the object of a skill. It names no path of the host.
func Describe(k skill.Skill) Object {
	o := Object{
		ID: k.Name, Object: "skill", Name: k.Name, Description: k.Description,
		License: orNull(k.License), Compatibility: orNull(k.Compatibility),
		Metadata: k.Metadata, AllowedTools: k.AllowedTools,
		Bytes: k.Bytes, Origin: string(k.Origin), Modified: k.Modified.UTC().Truncate(time.Second),
	}
	for _, f := range k.Files {
		o.Files = append(o.Files, File{Path: f.Path, Bytes: f.Bytes, Kind: string(f.Kind), Text: f.Text})
	}
	for _, w := range k.Warnings {
		o.Warnings = append(o.Warnings, w.String())
	}
	return o
}

// loadError tells why a folder did not load. Where paths are not shown it has
// the folder's name, and the reason as far as that is about the skill's own text.
func (d *Door) loadError(e *skill.LoadError) LoadError {
	if d.options.ShowPaths {
		return LoadError{Path: e.Dir, Message: e.Err.Error()}
	}
	l := LoadError{Path: d.shown(e.Dir), Message: "it could not be read; metier skills list has the reason, on the server's machine"}
	if m, ok := errors.AsType[*skill.ManifestError](e.Err); ok {
		l.Message = m.Error()
	}
	if m, ok := errors.AsType[*skill.LimitError](e.Err); ok {
		l.Message = m.Error()
	}
	if m, ok := errors.AsType[*skill.ClashError](e.Err); ok {
		l.Message = "another skill has the name " + m.Name + " already, so this one is left out: rename one of them"
	}
	return l
}

// shown is a directory as this server's clients may see it.
func (d *Door) shown(dir string) string {
	if d.options.ShowPaths {
		return dir
	}
	return filepath.Base(dir)
}
