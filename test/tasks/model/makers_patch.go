package model

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/metier-run/metier/test/tasks/task"
)

// edit is a patch that updates files which the view knows.
type edit struct {
	call     task.Call
	sections []task.Section
	// first is the index of the first section that updates a file without moving it.
	first int
	// before are the lines of its file.
	before []string
}

func (v view) edit(i, j int) (edit, bool) {
	e := edit{call: v.call(i, j)}
	if e.call.Tool != task.ApplyPatch {
		return e, false
	}
	sections, err := task.ParsePatch(e.call.Text("patch"))
	if err != nil {
		return e, false
	}
	e.sections = sections
	e.first = slices.IndexFunc(sections, func(s task.Section) bool { return s.Verb == "Update" && s.To == "" && len(s.Hunks) > 0 })
	if e.first < 0 {
		return e, false
	}
	data, ok := v.trees[i][v.trees[i].Find(e.name())]
	e.before = strings.Split(plain(data), "\n")
	return e, ok
}

func (e edit) name() string { return e.sections[e.first].Path }

// single says whether the patch is no more than the first update.
func (e edit) single() bool { return len(e.sections) == 1 }

// plain is a file as a model sees and types it: without byte order mark or CR.
func plain(data []byte) string {
	return strings.ReplaceAll(strings.TrimPrefix(string(data), "\ufeff"), "\r\n", "\n")
}

// after is the edited file as the model would type it.
func (e edit) after() (string, bool) {
	tree := task.Tree{e.name(): []byte(strings.Join(e.before, "\n"))}
	err := tree.Apply(e.call.Text("patch"))
	return string(tree[e.name()]), err == nil
}

// sent is the injection of a patch whose first update is written otherwise.
func (v view) sent(i, j int, e edit, s task.Section) injection {
	sections := slices.Clone(e.sections)
	sections[e.first] = s
	in := v.swap(i, j, e.call.With("patch", render(sections)))
	in.look = task.Round{{Tool: task.ReadFile, Args: map[string]any{"path": e.name()}}}
	return in
}

// render writes an envelope.
func render(sections []task.Section) string {
	var b strings.Builder
	b.WriteString("*** Begin Patch\n")
	for _, s := range sections {
		fmt.Fprintf(&b, "*** %s File: %s\n", s.Verb, s.Path)
		if s.To != "" {
			fmt.Fprintf(&b, "*** Move to: %s\n", s.To)
		}
		for line := range strings.Lines(s.Added) {
			b.WriteString("+" + line)
		}
		for _, h := range s.Hunks {
			b.WriteString(strings.TrimSpace("@@ "+h.Anchor) + "\n")
			for _, l := range h.Lines {
				b.WriteString(l + "\n")
			}
		}
	}
	b.WriteString("*** End Patch")
	return b.String()
}

// clone copies a section with its hunks, so that one can be changed.
func clone(s task.Section) task.Section {
	s.Hunks = slices.Clone(s.Hunks)
	for i := range s.Hunks {
		s.Hunks[i].Lines = slices.Clone(s.Hunks[i].Lines)
	}
	return s
}

var longWord = regexp.MustCompile(`[A-Za-z_]{5,}`)

// driftedContext shortens a word of a line that must be there.
func driftedContext(v view, i, j int) (injection, bool) {
	e, ok := v.edit(i, j)
	if !ok {
		return injection{}, false
	}
	s := clone(e.sections[e.first])
	for h := range s.Hunks {
		for n, line := range s.Hunks[h].Lines {
			at := longWord.FindStringIndex(line)
			if line[0] == '+' || at == nil {
				continue
			}
			word := line[at[0]:at[1]]
			s.Hunks[h].Lines[n] = line[:at[0]] + word[:3] + word[len(word)-1:] + line[at[1]:]
			in := v.sent(i, j, e, s)
			in.words = map[string]string{"line": strings.TrimSpace(line[1:])}
			return in, !strings.Contains(in.faulty[j].Text("patch"), in.words["line"])
		}
	}
	return injection{}, false
}

// copiedLineNumbers writes context and removed lines as read_file shows them.
func copiedLineNumbers(v view, i, j int) (injection, bool) {
	e, ok := v.edit(i, j)
	if !ok {
		return injection{}, false
	}
	s := clone(e.sections[e.first])
	for h := range s.Hunks {
		for n, line := range s.Hunks[h].Lines {
			if line[0] == '+' {
				continue
			}
			number := slices.Index(e.before, line[1:]) + 1
			s.Hunks[h].Lines[n] = fmt.Sprintf("%c%2d | %s", line[0], number, line[1:])
		}
	}
	return v.sent(i, j, e, s), true
}

// ambiguousHunk leaves the anchor out where another place fits first.
func ambiguousHunk(v view, i, j int) (injection, bool) {
	e, ok := v.edit(i, j)
	if !ok || !e.single() || len(e.sections[0].Hunks) != 1 || e.sections[0].Hunks[0].Anchor == "" {
		return injection{}, false
	}
	s := clone(e.sections[0])
	s.Hunks[0].Anchor = ""
	in := v.sent(i, j, e, s)
	right, ok := e.after()
	tree := task.Tree{e.name(): []byte(strings.Join(e.before, "\n"))}
	if err := tree.Apply(in.faulty[j].Text("patch")); err != nil || !ok {
		return injection{}, false
	}
	wrong := string(tree[e.name()])
	in.fix = []task.Round{{between(e.name(), wrong, right)}}
	return in, wrong != right
}

// between is a patch that turns one text into another, with the lines from the first
// to the last that differ.
func between(name, from, to string) task.Call {
	old, new := strings.Split(from, "\n"), strings.Split(to, "\n")
	head := 0
	for head < len(old) && head < len(new) && old[head] == new[head] {
		head++
	}
	tail := 0
	for tail < len(old)-head && tail < len(new)-head && old[len(old)-1-tail] == new[len(new)-1-tail] {
		tail++
	}
	head = max(0, head-2) // lines around, so that the hunk fits in one place
	h := task.Hunk{}
	for _, line := range old[head : len(old)-tail] {
		h.Lines = append(h.Lines, "-"+line)
	}
	for _, line := range new[head : len(new)-tail] {
		h.Lines = append(h.Lines, "+"+line)
	}
	return patchCall(render([]task.Section{{Verb: "Update", Path: name, Hunks: []task.Hunk{h}}}))
}

var closing = regexp.MustCompile(`[)\]}:](;?)$`)

// brokenSyntax drops the last bracket or colon of an added line.
func brokenSyntax(v view, i, j int) (injection, bool) {
	e, ok := v.edit(i, j)
	if !ok || !slices.Contains([]string{".py", ".js", ".mjs", ".json"}, path.Ext(e.name())) {
		return injection{}, false
	}
	s := clone(e.sections[e.first])
	for h := range s.Hunks {
		for n, line := range s.Hunks[h].Lines {
			if line[0] != '+' || !closing.MatchString(line) {
				continue
			}
			broken := closing.ReplaceAllString(line, "$1")
			s.Hunks[h].Lines[n] = broken
			in := v.sent(i, j, e, s)
			in.fix = []task.Round{{lineFix(e.name(), broken[1:], line[1:])}}
			return in, true
		}
	}
	return injection{}, false
}

// written sends the same patch in another spelling.
func (v view) written(i, j int, spell func(patch string) task.Call) (injection, bool) {
	e, ok := v.edit(i, j)
	if !ok {
		return injection{}, false
	}
	in := v.swap(i, j, spell(e.call.Text("patch")))
	return in, true
}

func lostEnd(v view, i, j int) (injection, bool) {
	return v.written(i, j, func(p string) task.Call { return patchCall(strings.TrimSuffix(p, "\n*** End Patch")) })
}

func fencedPatch(v view, i, j int) (injection, bool) {
	return v.written(i, j, func(p string) task.Call { return patchCall("```patch\n" + p + "\n```") })
}

func carriageReturns(v view, i, j int) (injection, bool) {
	return v.written(i, j, func(p string) task.Call { return patchCall(strings.ReplaceAll(p, "\n", "\r\n")) })
}

func patchInShell(v view, i, j int) (injection, bool) {
	return v.written(i, j, func(p string) task.Call { return command("apply_patch <<'PATCH'\n" + p + "\nPATCH") })
}

func patchThroughPipe(v view, i, j int) (injection, bool) {
	return v.written(i, j, func(p string) task.Call { return command("cat <<'PATCH' | apply_patch\n" + p + "\nPATCH") })
}

// unifiedDiff writes the one update as diff -u does.
func unifiedDiff(v view, i, j int) (injection, bool) {
	e, ok := v.edit(i, j)
	if !ok || !e.single() {
		return injection{}, false
	}
	var b strings.Builder
	fmt.Fprintf(&b, "--- a/%s\n+++ b/%[1]s\n", e.name())
	shift := 0
	for _, h := range e.sections[0].Hunks {
		at := max(1, slices.Index(e.before, h.Old()[0])+1)
		fmt.Fprintf(&b, "@@ -%d,%d +%d,%d @@\n%s\n", at, len(h.Old()), at+shift, len(h.New()), strings.Join(h.Lines, "\n"))
		shift += len(h.New()) - len(h.Old())
	}
	return v.swap(i, j, patchCall(b.String())), true
}

// stringReplacement sends the one hunk as another tool's call, if its lines are
// there once.
func stringReplacement(v view, i, j int) (injection, bool) {
	e, ok := v.edit(i, j)
	if !ok || !e.single() || len(e.sections[0].Hunks) != 1 {
		return injection{}, false
	}
	h := e.sections[0].Hunks[0]
	old := strings.Join(h.Old(), "\n")
	if strings.Count(strings.Join(e.before, "\n"), old) != 1 {
		return injection{}, false
	}
	c := task.Call{Tool: "str_replace", Args: map[string]any{"path": e.name(), "old_str": old, "new_str": strings.Join(h.New(), "\n")}}
	return v.swap(i, j, c), true
}

func overwrittenFile(v view, i, j int) (injection, bool) {
	e, ok := v.edit(i, j)
	if !ok || !e.single() {
		return injection{}, false
	}
	content, ok := e.after()
	c := task.Call{Tool: task.WriteFile, Args: map[string]any{"path": e.name(), "content": content}}
	return v.swap(i, j, c), ok
}

func retypedFile(v view, i, j int) (injection, bool) {
	e, ok := v.edit(i, j)
	if !ok || !e.single() {
		return injection{}, false
	}
	content, ok := e.after()
	in := v.swap(i, j, command("cat > "+e.name()+" <<'END'\n"+content+"END"))
	in.tool = task.Shell
	return in, ok && strings.HasSuffix(content, "\n")
}
