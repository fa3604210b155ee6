package task

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// byteOrderMark is what some editors of Windows put before UTF-8.
const byteOrderMark = "\ufeff"

// Tree is the files of a workspace, by path with slashes.
type Tree map[string][]byte

// Find is the path that a name of a trajectory stands for: itself, or the only
// file below a folder that a shell may have changed to; "" when there is none.
func (t Tree) Find(name string) string {
	name = path.Clean(name)
	if _, ok := t[name]; ok {
		return name
	}
	found := ""
	for at := range t {
		if strings.HasSuffix(at, "/"+name) {
			if found != "" {
				return ""
			}
			found = at
		}
	}
	return found
}

// Hunk is one change of an update.
type Hunk struct {
	// Anchor is the text after @@; "" when there is none.
	Anchor string
	// Lines begin with space, minus or plus.
	Lines []string
}

// Old are the lines that the hunk looks for, New those that it puts there.
func (h Hunk) Old() []string { return h.side('-') }

// New are the lines that stand there afterwards.
func (h Hunk) New() []string { return h.side('+') }

func (h Hunk) side(sign byte) []string {
	var lines []string
	for _, l := range h.Lines {
		if l[0] == ' ' || l[0] == sign {
			lines = append(lines, l[1:])
		}
	}
	return lines
}

// Section is what a patch does with one file.
type Section struct {
	// Verb is Add, Update or Delete.
	Verb string
	Path string
	// To is the new path of an update that moves; "" when it doesn't.
	To string
	// Added is the text of a new file.
	Added string
	Hunks []Hunk
}

// ParsePatch reads an envelope as the recorded rounds write it, and nothing more:
// it is the measure for readers that forgive, so it forgives nothing.
func ParsePatch(patch string) ([]Section, error) {
	lines := strings.Split(patch, "\n")
	if len(lines) < 3 || lines[0] != "*** Begin Patch" || lines[len(lines)-1] != "*** End Patch" {
		return nil, fmt.Errorf("parse patch: it has no envelope")
	}
	var sections []Section
	for i, line := range lines[1 : len(lines)-1] {
		if verb, name, ok := header(line); ok {
			sections = append(sections, Section{Verb: verb, Path: name})
			continue
		}
		if len(sections) == 0 {
			return nil, fmt.Errorf("parse patch: line %d belongs to no file", i+2)
		}
		if err := sections[len(sections)-1].add(line); err != nil {
			return nil, fmt.Errorf("parse patch: line %d: %w", i+2, err)
		}
	}
	return sections, nil
}

func header(line string) (verb, name string, ok bool) {
	for _, verb := range []string{"Add", "Update", "Delete"} {
		if name, ok := strings.CutPrefix(line, "*** "+verb+" File: "); ok {
			return verb, name, true
		}
	}
	return "", "", false
}

// add takes a line of a section's body.
func (s *Section) add(line string) error {
	if to, ok := strings.CutPrefix(line, "*** Move to: "); ok && s.Verb == "Update" && len(s.Hunks) == 0 {
		s.To = to
		return nil
	}
	if line == "" {
		return fmt.Errorf("it is empty and has no sign")
	}
	switch sign := line[0]; {
	case s.Verb == "Add" && sign == '+':
		s.Added += line[1:] + "\n"
	case s.Verb == "Update" && strings.HasPrefix(line, "@@"):
		s.Hunks = append(s.Hunks, Hunk{Anchor: strings.TrimSpace(line[2:])})
	case s.Verb == "Update" && len(s.Hunks) > 0 && strings.IndexByte(" -+", sign) >= 0:
		last := &s.Hunks[len(s.Hunks)-1]
		last.Lines = append(last.Lines, line)
	default:
		return fmt.Errorf("%q does not belong there", line)
	}
	return nil
}

// Apply does what a patch says: exact lines or an error, all files or none. Line
// ends and a byte order mark stay as a file has them.
func (t Tree) Apply(patch string) error {
	sections, err := ParsePatch(patch)
	if err != nil {
		return err
	}
	next := maps.Clone(t)
	for _, s := range sections {
		if err := next.section(s); err != nil {
			return fmt.Errorf("apply patch to %s: %w", s.Path, err)
		}
	}
	clear(t)
	maps.Copy(t, next)
	return nil
}

func (t Tree) section(s Section) error {
	at := t.Find(s.Path)
	if s.Verb == "Add" {
		if at != "" {
			return fmt.Errorf("it exists")
		}
		t[path.Clean(s.Path)] = []byte(s.Added)
		return nil
	}
	if at == "" {
		return fmt.Errorf("no file has this name, or several")
	}
	data := t[at]
	delete(t, at)
	if s.Verb == "Delete" {
		return nil
	}
	changed, err := update(data, s.Hunks)
	if err != nil {
		return err
	}
	if s.To != "" {
		at = path.Clean(s.To)
	}
	t[at] = changed
	return nil
}

func update(data []byte, hunks []Hunk) ([]byte, error) {
	mark := bytes.HasPrefix(data, []byte(byteOrderMark))
	text := strings.TrimPrefix(string(data), byteOrderMark)
	end := "\n"
	if strings.Contains(text, "\r\n") {
		end = "\r\n"
	}
	lines := strings.Split(text, end)
	cursor := 0
	for i, h := range hunks {
		from, err := h.anchored(lines, cursor)
		if err != nil {
			return nil, fmt.Errorf("hunk %d: %w", i+1, err)
		}
		old := h.Old()
		at := find(lines, old, from)
		if at < 0 || len(old) == 0 {
			return nil, fmt.Errorf("hunk %d: its lines are not there", i+1)
		}
		lines = slices.Replace(lines, at, at+len(old), h.New()...)
		cursor = at + len(h.New())
	}
	text = strings.Join(lines, end)
	if mark {
		text = byteOrderMark + text
	}
	return []byte(text), nil
}

// anchored is where the search for a hunk begins.
func (h Hunk) anchored(lines []string, cursor int) (int, error) {
	if h.Anchor == "" {
		return cursor, nil
	}
	is := func(line string) bool { return strings.TrimSpace(line) == h.Anchor }
	if i := slices.IndexFunc(lines[cursor:], is); i >= 0 {
		return cursor + i + 1, nil
	}
	if slices.ContainsFunc(lines[:cursor], is) {
		return cursor, nil
	}
	return 0, fmt.Errorf("its anchor %q is not there", h.Anchor)
}

func find(lines, want []string, from int) int {
	for i := from; i+len(want) <= len(lines); i++ {
		if slices.Equal(lines[i:i+len(want)], want) {
			return i
		}
	}
	return -1
}

// Trees are the files before each round, as far as the recorded writes and patches
// tell; what commands write is not in them.
func Trees(files Tree, rounds []Round) []Tree {
	now := maps.Clone(files)
	var all []Tree
	for _, r := range rounds {
		all = append(all, maps.Clone(now))
		for _, c := range r {
			switch c.Tool {
			case WriteFile:
				now[c.Text("path")] = []byte(c.Text("content"))
			case ApplyPatch:
				_ = now.Apply(c.Text("patch")) // a file that a command wrote is not known here
			}
		}
	}
	return all
}
