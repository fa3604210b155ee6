package skill

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/metier-run/metier/internal/disclosure"
	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/skill"
)

const mainFile = skill.ManifestFile

// listPathLimit is how many files skills_list names for a skill (B1 5.3). It is
// part of the rendering and not a setting.
const listPathLimit = 30

// list answers skills_list.
func (s *Set) list() journal.Result {
	var b strings.Builder
	switch len(s.skills) {
	case 0:
		return journal.Result{Text: listNone, OK: true}
	case 1:
		b.WriteString(listOne)
	default:
		fmt.Fprintf(&b, listMany, len(s.skills))
	}
	for _, k := range s.skills {
		fmt.Fprintf(&b, "\n%s\n  %s\n", k.Name, k.Description)
		if k.Compatibility != "" {
			fmt.Fprintf(&b, "  requires: %s\n", k.Compatibility)
		}
		fmt.Fprintf(&b, "  files: %s\n", fileList(k))
	}
	return journal.Result{Text: strings.TrimRight(b.String(), "\n"), OK: true}
}

// fileList names the manifest and at most 30 other files.
func fileList(k skill.Skill) string {
	others := bundled(k)
	if len(others) == 0 {
		return listOnlyMain
	}
	parts := []string{mainFile}
	for _, f := range others[:min(len(others), listPathLimit)] {
		parts = append(parts, f.Path+disclosure.Mark(f))
	}
	text := strings.Join(parts, ", ")
	if more := len(others) - listPathLimit; more > 0 {
		text += fmt.Sprintf(listMore, more)
	}
	return text
}

// bundled is every file but the manifest.
func bundled(k skill.Skill) []skill.File {
	var files []skill.File
	for _, f := range k.Files {
		if f.Kind != skill.KindManifest {
			files = append(files, f)
		}
	}
	return files
}

// read answers skills_read with a page of at most size bytes.
func (s *Set) read(ctx context.Context, text string, size int64) (journal.Result, error) {
	a, err := parseArguments(text)
	if bad, ok := errors.AsType[*offsetError](err); ok {
		return failure(a.skill, a.path, badOffset, bad.text), nil
	}
	if err != nil {
		return failure("", "", badArguments, ReadName), nil
	}
	if a.skill == "" {
		return failure("", "", "%s", noSkillNamed+s.reachable()), nil
	}
	k, ok := s.find(a.skill)
	if !ok {
		return failure("", "", "%s", fmt.Sprintf(unknownSkill, a.skill)+s.reachable()), nil
	}
	name := cleanPath(k.Name, a.path, func(p string) bool { return holds(k, p) })
	page, err := k.Read(ctx, name, a.offset, size)
	if err != nil {
		return refusal(k, name, err)
	}
	return journal.Result{Text: render(k, page, name == mainFile), OK: true, Skill: k.Name, Detail: page.Path}, nil
}

func holds(k skill.Skill, name string) bool {
	for _, f := range k.Files {
		if f.Path == name || strings.HasPrefix(f.Path, strings.TrimRight(name, "/")+"/") {
			return true
		}
	}
	return false
}

func (s *Set) reachable() string {
	if len(s.skills) == 0 {
		return skillsNone
	}
	return fmt.Sprintf(skillsAre, strings.Join(s.names(), ", "))
}

// render is a page with its header, and what follows the last page of the
// instructions, which may be a link to another file: the index of the files.
func render(k skill.Skill, p skill.Page, main bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, readHeader, k.Name, p.Path)
	switch {
	case p.Binary:
		fmt.Fprintf(&b, "\n"+readBinary, disclosure.Size(p.Total))
		return b.String()
	case p.Offset > 0 || p.More():
		fmt.Fprintf(&b, readRange, p.Offset, p.Next, p.Total)
	}
	b.WriteString("\n")
	switch {
	case p.Total == 0:
		b.WriteString(readEmpty)
	case p.Offset == p.Total:
		b.WriteString(readAtEnd)
	default:
		b.WriteString(p.Text)
	}
	if p.More() {
		fmt.Fprintf(&b, readTruncated, k.Name, p.Path, p.Next)
		return b.String()
	}
	if index := disclosure.FileIndex(k); (main || p.Path == mainFile) && index != "" {
		text := strings.TrimRight(b.String(), "\n")
		return text + "\n\n" + strings.TrimRight(index, "\n")
	}
	return b.String()
}

// refusal turns a refusal into a sentence. What is not one is a failure of the
// host. A folder is no mistake: its files are listed.
func refusal(k skill.Skill, name string, err error) (journal.Result, error) {
	e, ok := errors.AsType[*skill.ReadError](err)
	if !ok {
		return journal.Result{}, fmt.Errorf("%s: %w", ReadName, err)
	}
	switch {
	case errors.Is(e, skill.ErrFolder):
		files := strings.TrimRight(disclosure.Files(k.Folder(name)), "\n")
		name = strings.TrimRight(name, "/")
		return journal.Result{Text: fmt.Sprintf(readFolder, k.Name, name, files), OK: true, Skill: k.Name, Detail: name}, nil
	case !errors.Is(e, skill.ErrNoFile):
		return failure(k.Name, name, refused, k.Name, e.Message), nil
	case holds(k, name):
		return failure(k.Name, name, goneFile, k.Name, name), nil
	}
	return missing(k, name), nil
}

// missing answers a path that names nothing: with the file that was probably
// meant, and with what there is.
func missing(k skill.Skill, name string) journal.Result {
	text := fmt.Sprintf(noFile, k.Name, name)
	if near := nearest(k, name); near != "" {
		text += fmt.Sprintf(didYouMean, near)
	}
	if others := bundled(k); len(others) > 0 {
		text += fmt.Sprintf(filesAre, strings.TrimRight(disclosure.Files(others), "\n"))
	} else {
		text += onlyMain
	}
	return failure(k.Name, name, "%s", text)
}

// nearest is the file of the same path in another case, or the only one of the
// same base name.
func nearest(k skill.Skill, name string) string {
	var same []string
	for _, f := range k.Files {
		if strings.EqualFold(f.Path, name) {
			return f.Path
		}
		if strings.EqualFold(path.Base(f.Path), path.Base(name)) {
			same = append(same, f.Path)
		}
	}
	if len(same) == 1 {
		return same[0]
	}
	return ""
}
