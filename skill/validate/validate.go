// Package validate says who accepts a skill folder and who would refuse it, and
// why: Metier's own loader, the reference validator of the open specification,
// and the upload endpoints of OpenAI and Anthropic. What passes it also packs
// into the archive that such a place takes.
//
// [Check] never runs anything that a skill ships, never writes, and never opens
// a path outside of the folder. It asks nobody over the network: what it knows of
// a vendor is what the vendor's documentation says.
//
//	report := validate.Check(ctx, "skills/pdf", validate.OpenAI)
//	for _, f := range report.Findings {
//		fmt.Println(f.Severity, f)
//	}
//
// Start at [Check] and [Report], then [Pack].
package validate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/metier-run/metier/internal/guard"
	"github.com/metier-run/metier/skill"
)

// Target is whom a skill is meant for.
type Target string

// The targets.
const (
	// Metier is the loader: what it refuses is an error, what it mends a warning.
	Metier Target = "metier"
	// Spec is the reference validator of the Agent Skills specification, with its
	// messages.
	Spec Target = "spec"
	// OpenAI is an upload to OpenAI's Skills API.
	OpenAI Target = "openai"
	// Anthropic is an upload to Anthropic's Skills API.
	Anthropic Target = "anthropic"
	// WellKnown is an archive for /.well-known/agent-skills/ of a web site.
	WellKnown Target = "well-known"
)

// Targets lists all targets.
func Targets() []Target { return []Target{Metier, Spec, OpenAI, Anthropic, WellKnown} }

// upload reports whether all files of the skill go somewhere.
func (t Target) upload() bool { return t == OpenAI || t == Anthropic || t == WellKnown }

// Severity says what a finding means for the target.
type Severity string

// The severities.
const (
	// Error: the target refuses the skill.
	Error Severity = "error"
	// Warning: the target takes the skill and ignores or changes something.
	Warning Severity = "warning"
	// Advice: the target does not care, and the skill would work better without.
	Advice Severity = "advice"
)

// Finding is something that was found. Its form is stable and meant for programs.
type Finding struct {
	Severity Severity `json:"severity"`
	// Field is a key of the front matter, or one of the Field constants.
	Field string `json:"field"`
	// Code is one of the Code constants, or one of the codes of package skill.
	Code string `json:"code"`
	// Message says what is wrong and, but for messages of the reference
	// validator, what to write instead.
	Message string `json:"message"`
	// File is the path inside the skill that the finding is about, if it is about
	// one.
	File string `json:"file,omitzero"`
	// Line and Column, from 1, are the place in File; 0 when there is none.
	Line   int `json:"line,omitzero"`
	Column int `json:"column,omitzero"`
}

// String is the message, with its place in front when it has one.
func (f Finding) String() string {
	switch {
	case f.Line == 0:
		return f.Message
	case f.Column == 0:
		return fmt.Sprintf("line %d: %s", f.Line, f.Message)
	}
	return fmt.Sprintf("line %d, column %d: %s", f.Line, f.Column, f.Message)
}

// What a finding can be about besides a key of the front matter.
const (
	FieldFolder      = "(folder)"
	FieldManifest    = "(manifest)"
	FieldFrontMatter = "(front matter)"
	FieldBody        = "(body)"
	FieldFiles       = "(files)"
)

// Report is the verdict of one target on one folder.
type Report struct {
	// Path is the folder, as the caller named it.
	Path   string `json:"path"`
	Target Target `json:"target"`
	// Name is the name that the skill would have, as far as it is known.
	Name string `json:"name"`
	// Findings come in the order errors, warnings, advice.
	Findings []Finding `json:"findings"`
}

// Valid reports whether the target takes the skill.
func (r Report) Valid() bool { return len(r.Of(Error)) == 0 }

// Of lists the findings of one severity.
func (r Report) Of(s Severity) []Finding {
	var out []Finding
	for _, f := range r.Findings {
		if f.Severity == s {
			out = append(out, f)
		}
	}
	return out
}

// The codes of findings.
const (
	CodePath            = "path-missing"
	CodeNoFolder        = "not-a-folder"
	CodeUnreadable      = "unreadable"
	CodeInterrupted     = "interrupted"
	CodeNoManifest      = "manifest-missing"
	CodeManifestName    = "manifest-name"
	CodeManifestCount   = "manifest-count"
	CodeManifest        = "manifest-invalid"
	CodeNoFrontMatter   = "front-matter-missing"
	CodeOpenFrontMatter = "front-matter-open"
	CodeYAML            = "yaml-invalid"
	CodeNoMapping       = "front-matter-not-mapping"
	CodeUnexpected      = "field-unexpected"
	CodeMissing         = "field-missing"
	CodeEmpty           = "field-empty"
	CodeType            = "field-type"
	CodeNameLong        = "name-too-long"
	CodeNameCase        = "name-not-lowercase"
	CodeNameEdge        = "name-edge-hyphen"
	CodeNameDouble      = "name-double-hyphen"
	CodeNameCharacters  = "name-characters"
	CodeNameFolder      = "name-differs"
	CodeNameReserved    = "name-reserved"
	CodeNameClash       = "name-clash"
	CodeXML             = "xml-tag"
	CodeLong            = "too-long"
	CodeFileCount       = "too-many-files"
	CodeFileSize        = "file-too-large"
	CodeTotalSize       = "skill-too-large"
	CodeArchiveSize     = "archive-too-large"
	CodeFileLeftOut     = skill.WarnFile
	CodeDeadLink        = "link-dead"
	CodeLinkOutside     = "link-outside"
	CodeBodyLong        = "body-long"
)

// Check holds the folder dir against the rules of a target. It reads the folder
// with the default ceilings of the table of limits. What keeps it from reading is
// a finding too, so a report is never empty of reasons when it is not valid.
func Check(ctx context.Context, dir string, t Target) Report {
	c := checker{dir: dir, target: t, name: baseName(dir)}
	c.run(ctx)
	return c.report()
}

// checker collects the findings on one folder.
type checker struct {
	dir    string
	target Target
	// name is the folder's own name.
	name     string
	skill    string
	root     *guard.Root
	findings []Finding
}

// baseName is the name of a folder that may be called ".".
func baseName(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		return filepath.Base(abs)
	}
	return filepath.Base(dir)
}

func (c *checker) report() Report {
	slices.SortStableFunc(c.findings, func(a, b Finding) int { return rank(a.Severity) - rank(b.Severity) })
	r := Report{Path: c.dir, Target: c.target, Name: c.skill, Findings: c.findings}
	if r.Findings == nil {
		r.Findings = []Finding{}
	}
	return r
}

func rank(s Severity) int { return slices.Index([]Severity{Error, Warning, Advice}, s) }

func (c *checker) run(ctx context.Context) {
	info, err := os.Stat(c.dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		c.fail(FieldFolder, CodePath, "Path does not exist: %s", c.dir)
		return
	case err != nil:
		c.fail(FieldFolder, CodeUnreadable, "the folder cannot be read: %v", err)
		return
	case !info.IsDir():
		c.fail(FieldFolder, CodeNoFolder, "Not a directory: %s", c.dir)
		return
	}
	if c.root, err = guard.OpenRoot(c.dir); err != nil {
		c.fail(FieldFolder, CodeUnreadable, "the folder cannot be read: %v", err)
		return
	}
	defer c.root.Close()
	c.judge(ctx)
	if ctx.Err() != nil {
		c.fail(FieldFolder, CodeInterrupted, "the check was broken off: %v", context.Cause(ctx))
	}
}

func (c *checker) judge(ctx context.Context) {
	m, ok := c.manifest()
	if !ok {
		return
	}
	if c.target == Metier {
		c.loader(ctx)
	} else {
		c.frontMatter(m)
	}
	if c.target.upload() {
		c.files(ctx)
	}
	c.body(m)
}

// add records a finding about SKILL.md or a file.
func (c *checker) add(f Finding) { c.findings = append(c.findings, f) }

func (c *checker) fail(field, code, format string, args ...any) {
	c.add(Finding{Severity: Error, Field: field, Code: code, Message: fmt.Sprintf(format, args...)})
}
