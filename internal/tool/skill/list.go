package skill

import (
	"fmt"
	"strings"

	"github.com/metier-run/metier/internal/disclosure"
	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/skill"
)

// listPathLimit is how many files skills_list names for a skill (B1 5.3). It is
// part of the rendering and not a setting.
const listPathLimit = 30

// list answers skills_list with the skills from an index on, as many as a page
// of size bytes holds and at least one.
func (s *Set) list(from, size int64) journal.Result {
	count := int64(len(s.skills))
	switch {
	case count == 0:
		return journal.Result{Text: listNone, OK: true}
	case from >= count:
		return failure("", "", listPast, from, count)
	}
	size = max(size, smallestPage) - listFrame
	var b strings.Builder
	next := from
	for _, k := range s.skills[from:] {
		text := entry(k)
		if next > from && int64(b.Len()+len(text)) > size {
			break
		}
		b.WriteString(text)
		next++
	}
	text := listHead(from, next, count) + strings.TrimRight(b.String(), "\n")
	if next < count {
		text += fmt.Sprintf(listTruncated, count-next, ListName, next)
	}
	return journal.Result{Text: text, OK: true}
}

// listFrame is more than what stands before and behind the entries of a page
// takes, in bytes.
const listFrame = 256

func listHead(from, next, count int64) string {
	switch {
	case from > 0 || next < count:
		return fmt.Sprintf(listPart, count, from+1, next)
	case count == 1:
		return listOne
	}
	return fmt.Sprintf(listMany, count)
}

// entry is what the list says of a skill.
func entry(k skill.Skill) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s\n  %s\n", k.Name, k.Description)
	if k.Compatibility != "" {
		fmt.Fprintf(&b, "  requires: %s\n", k.Compatibility)
	}
	fmt.Fprintf(&b, "  files: %s\n", fileList(k))
	return b.String()
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

// folder lists the files below a folder of a skill, from an index on, as many as
// a page of size bytes holds and at least one.
func folder(k skill.Skill, name string, from, size int64) journal.Result {
	files := k.Folder(name)
	if name = strings.TrimRight(name, "/"); name == "" {
		name = "."
	}
	if from >= int64(len(files)) {
		return failure(k.Name, name, folderPast, k.Name, name, len(files), from)
	}
	size = max(size, smallestPage) - listFrame
	var b strings.Builder
	fmt.Fprintf(&b, readFolder, k.Name, name)
	if from > 0 {
		fmt.Fprintf(&b, folderFrom, from+1, len(files))
	}
	b.WriteString("\n")
	next := from
	for _, f := range files[from:] {
		line := fmt.Sprintf("- %s%s (%s)\n", f.Path, disclosure.Mark(f), disclosure.Size(f.Bytes))
		if next > from && int64(b.Len()+len(line)) > size {
			break
		}
		b.WriteString(line)
		next++
	}
	text := strings.TrimRight(b.String(), "\n")
	if more := int64(len(files)) - next; more > 0 {
		text += fmt.Sprintf(folderTruncated, more, k.Name, name, next)
	}
	return journal.Result{Text: text, OK: true, Skill: k.Name, Detail: name}
}
