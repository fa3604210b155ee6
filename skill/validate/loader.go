package validate

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/metier-run/metier/skill"
)

// loader is the verdict of Metier's own reader: [skill.Load] on this one folder.
func (c *checker) loader(ctx context.Context) {
	s, err := skill.Load(ctx, skill.Options{Roots: []skill.Root{{Dir: c.dir}}})
	if err != nil {
		c.fail(FieldFolder, CodeUnreadable, "%v", err)
		return
	}
	for _, e := range s.Errors() {
		c.add(refusal(e.Err))
	}
	for _, k := range s.Skills() {
		c.skill = k.Name
		for _, w := range k.Warnings {
			f := Finding{Severity: Warning, Field: fieldOf(w.Code), Code: w.Code, Message: w.Message, Line: w.Line, Column: w.Column}
			if w.Code != skill.WarnFile {
				f.File = skill.ManifestFile
			}
			c.add(f)
		}
	}
}

// refusal is why the loader left a skill out.
func refusal(err error) Finding {
	if e, ok := errors.AsType[*skill.ManifestError](err); ok {
		return Finding{
			Severity: Error, Field: FieldManifest, Code: CodeManifest, Message: e.Problem + ": " + e.Fix,
			File: skill.ManifestFile, Line: e.Line, Column: e.Column,
		}
	}
	if e, ok := errors.AsType[*skill.LimitError](err); ok {
		return Finding{Severity: Error, Field: FieldFiles, Code: e.Limit, Message: e.Error()}
	}
	if e, ok := errors.AsType[*skill.ClashError](err); ok {
		return Finding{Severity: Error, Field: "name", Code: CodeNameClash, Message: e.Error()}
	}
	return Finding{Severity: Error, Field: FieldFolder, Code: CodeUnreadable, Message: err.Error()}
}

// fieldOf is the key that a warning of the loader is about.
func fieldOf(code string) string {
	switch {
	case code == skill.WarnFile:
		return FieldFiles
	case strings.HasPrefix(code, "name-"):
		return "name"
	case code == skill.WarnDescriptionLong:
		return "description"
	case code == skill.WarnCompatibilityLong:
		return "compatibility"
	case code == skill.WarnMetadata:
		return "metadata"
	}
	return FieldFrontMatter
}

// CheckAll checks the skill in the folder dir or, when that is none itself, each
// skill that the loader finds below it, sorted by path, for each target. For
// [Metier] a skill whose name another one has is not valid. A folder without any
// skill gives the reports that say so; so does one of several skills when [Spec]
// is the only target, because the reference validator takes single skills.
func CheckAll(ctx context.Context, dir string, targets ...Target) []Report {
	dirs, refused := below(ctx, dir)
	if len(dirs) == 0 || len(targets) == 1 && targets[0] == Spec {
		dirs = []string{dir}
	}
	var reports []Report
	for _, d := range dirs {
		for _, t := range targets {
			r := Check(ctx, d, t)
			if e, ok := errors.AsType[*skill.ClashError](refused[d]); ok && t == Metier {
				r.Findings = append([]Finding{refusal(e)}, r.Findings...)
			}
			r.Path = named(dir, d)
			reports = append(reports, r)
		}
	}
	return reports
}

// below lists the skills in a folder that is none itself, and why the loader
// refused some of them.
func below(ctx context.Context, dir string) ([]string, map[string]error) {
	if hasManifest(dir) {
		return nil, nil
	}
	s, err := skill.Load(ctx, skill.Options{Roots: []skill.Root{{Dir: dir}}})
	if err != nil { // said again by Check
		return nil, nil
	}
	refused := map[string]error{}
	var dirs []string
	for _, k := range s.Skills() {
		dirs = append(dirs, k.Dir())
	}
	for _, e := range s.Errors() {
		dirs = append(dirs, e.Dir)
		refused[e.Dir] = e.Err
	}
	return sorted(dirs), refused
}

// named is a found folder as the caller would write it: below what the caller
// named.
func named(dir, found string) string {
	if found == dir {
		return dir
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return found
	}
	rel, err := filepath.Rel(abs, found)
	if err != nil {
		return found
	}
	return filepath.Join(dir, rel)
}

// hasManifest reports whether a folder is meant as a skill itself. A folder that
// cannot be listed is left to [Check].
func hasManifest(dir string) bool {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return true
	}
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return strings.EqualFold(e.Name(), skill.ManifestFile) })
}
