package file

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/guard"
	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/patch"
	"github.com/metier-run/metier/internal/tool"
	"github.com/metier-run/metier/internal/workspace"
)

// deepest is how far values are looked for in values.
const deepest = 6

// beginMarker begins a patch (B1 12.1).
const beginMarker = "*** Begin Patch"

// patchText finds the patch in the arguments of a call: operations in JSON, a text
// with the marker wherever it stands, or the argument of that name (B1 4.3, 12.3).
func patchText(arguments string) (string, error) {
	v, ok := tool.ReadJSON(tool.Unfenced(arguments))
	if !ok {
		return arguments, nil
	}
	if !v.IsValid(jsontext.AllowDuplicateNames(true)) {
		return "", badArgument(argumentHalf, "patch")
	}
	if operations, ok := operationsIn(v, deepest); ok {
		return string(operations), nil
	}
	c, err := parse(arguments)
	if err != nil {
		return "", badArgument(badPatch)
	}
	p, err := c.pick(0, patchKeys())
	if err != nil {
		return "", err
	}
	if p.Kind() == '"' && strings.Contains(tool.Text(p), beginMarker) {
		return tool.Text(p), nil
	}
	if text, ok := markedText(v, deepest); ok {
		return text, nil
	}
	return tool.Exact(p), nil
}

// operationsIn is the part of the arguments that is operations in JSON.
func operationsIn(v jsontext.Value, depth int) (jsontext.Value, bool) {
	if depth == 0 {
		return nil, false
	}
	switch v.Kind() {
	case '"':
		if inner, ok := tool.Structure(v); ok {
			return operationsIn(inner, depth-1)
		}
	case '[':
		elements := tool.Elements(v)
		if len(elements) == 0 || elements[0].Kind() != '{' {
			return nil, false
		}
		_, ok := operationsIn(elements[0], depth-1)
		return v, ok
	case '{':
		members := tool.Members(v)
		has := func(key string) bool {
			return slices.ContainsFunc(members, func(m tool.Member) bool { return m.Key == key })
		}
		if has("operations") || has("operation") || has("type") && has("path") {
			return v, true
		}
		for _, m := range members {
			if inner, ok := operationsIn(m.Value, depth-1); ok {
				return inner, true
			}
		}
	}
	return nil, false
}

// markedText is the first text with the marker, also when its lines are a list.
func markedText(v jsontext.Value, depth int) (string, bool) {
	if depth == 0 {
		return "", false
	}
	var inner []jsontext.Value
	switch v.Kind() {
	case '"':
		if value, ok := tool.Structure(v); ok {
			return markedText(value, depth-1)
		}
		text := tool.Text(v)
		return text, strings.Contains(text, beginMarker)
	case '[':
		inner = tool.Elements(v)
		if lines, ok := markedLines(inner); ok {
			return lines, true
		}
	case '{':
		for _, m := range tool.Members(v) {
			inner = append(inner, m.Value)
		}
	}
	for _, e := range inner {
		if text, ok := markedText(e, depth-1); ok {
			return text, true
		}
	}
	return "", false
}

// markedLines joins the lines of a patch.
func markedLines(elements []jsontext.Value) (string, bool) {
	if len(elements) < 2 || strings.TrimSpace(tool.Text(elements[0])) != beginMarker {
		return "", false
	}
	var lines []string
	for _, e := range elements {
		if e.Kind() != '"' {
			return "", false
		}
		lines = append(lines, strings.TrimSuffix(tool.Text(e), "\n"))
	}
	return strings.Join(lines, "\n"), true
}

// files are those of the workspace as a patch names them: from where the shell is.
type files struct {
	visit
	current string
	// seek finds the file that was probably meant, and sought counts how often it did.
	seek   func(rel string) string
	sought int
	// failed is the file that could not be read.
	failed string
}

var (
	_ patch.View   = (*files)(nil)
	_ patch.Target = (*files)(nil)
)

// rel is a path of the patch from the top of the work folder.
func (f *files) rel(name string) string { return path.Join(f.current, name) }

// Read gives a file.
func (f *files) Read(name string) (patch.File, error) {
	h, err := f.load(f.rel(name))
	if err != nil {
		f.failed = f.rel(name)
		return patch.File{}, err
	}
	return patch.File{Data: h.data, Mode: h.mode}, nil
}

// soughtMost is how many missing files of one patch are looked for.
const soughtMost = 3

// Near says what there is instead of a missing file.
func (f *files) Near(name string) string {
	rel := f.rel(name)
	if f.sought++; f.sought > soughtMost {
		return ""
	}
	text := f.around(rel)
	if near := f.seek(rel); near != "" {
		text = strings.TrimPrefix(fmt.Sprintf(didYouMean, f.name(near)), " ") + " " + text
	}
	return text
}

// Create makes a file that is not there.
func (f *files) Create(name string, to patch.File) error {
	return f.add(f.rel(name), to.Data, to.Mode.Perm())
}

// Write replaces a file.
func (f *files) Write(name string, to patch.File) error {
	return f.root.WriteFile(f.rel(name), to.Data, to.Mode.Perm())
}

// Remove takes a file away.
func (f *files) Remove(name string) error { return f.root.Remove(f.rel(name)) }

// clean judges a path of a patch: relative to where the shell is, and inside the
// workspace (B1 12.4). It stays as a model would write it there.
func (v visit) clean(name string) (string, error) {
	var err error
	if path.IsAbs(name) || strings.HasPrefix(name, "~") {
		_, err = guard.Clean(name)
	}
	rel, wrong := v.w.Resolve(name)
	if err == nil {
		err = wrong
	}
	if err != nil {
		return "", &guard.PathError{Path: tool.Clip(name), Err: errors.New(v.astray(name, err))}
	}
	return v.w.Shown(rel), nil
}

// patch applies a patch, whole or not at all.
func (v visit) patch(ctx context.Context, text string) journal.Result {
	limits := patch.Limits{
		PatchBytes: v.patchBytes, PatchFiles: v.patchFiles, FileBytes: int(v.fileSize),
		TotalBytes: v.patchTotal,
	}
	p, err := patch.Parse(text, v.clean, limits)
	if err != nil {
		return v.unpatched(nil, err)
	}
	f := &files{visit: v, current: v.w.Current(), seek: func(rel string) string { return v.nearest(ctx, rel) }}
	bounded, stop := context.WithTimeout(ctx, v.patchTime)
	change, err := p.Resolve(bounded, f, limits)
	late := bounded.Err() != nil && ctx.Err() == nil
	stop()
	switch {
	case err != nil && late:
		return failure("", "%s", patchSlow)
	case err != nil:
		return v.unpatched(f, err)
	}
	more := 0
	for _, c := range change.Files {
		more += len(c.After.Data) - len(c.Before.Data)
	}
	if r, ok := v.hasRoom(ctx, strings.Join(p.Paths(), ", "), int64(more)); !ok {
		return r
	}
	made := f.made(change)
	if err := change.Apply(ctx, f); err != nil {
		return v.unpatched(f, err)
	}
	r := v.patched(ctx, f, change)
	r.Text += made
	return r
}

// unpatched is the answer to a patch that was not applied. What patch says begins with
// what became of the files.
func (v visit) unpatched(f *files, err error) journal.Result {
	if bad, ok := errors.AsType[*patch.Error](err); ok {
		return journal.Result{Text: bad.Error()}
	}
	if undone, ok := errors.AsType[*patch.UndoneError](err); ok {
		if len(undone.Lost) > 0 {
			for _, name := range undone.Lost {
				v.w.Seen.Forget(f.rel(name))
			}
		}
		return journal.Result{Text: undone.Error()}
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return failure("", "%s", wasStopped)
	}
	return v.unreadable(f.failed, err)
}

// patched is the answer to a patch that was applied (B1 12.14).
func (v visit) patched(ctx context.Context, f *files, change patch.Change) journal.Result {
	var written []tool.Written
	var paths, all []string
	for _, c := range change.Files {
		rel := f.rel(c.Path)
		all = append(all, rel)
		if c.Unchanged() {
			continue
		}
		if c.Kind == patch.Delete {
			v.w.Seen.Forget(rel)
			continue
		}
		v.credit(f, c)
		paths = append(paths, rel)
		written = append(written, tool.Written{Path: rel, Shown: v.w.Shown(rel), Data: c.After.Data})
	}
	r := journal.Result{Text: change.Summary(), OK: true, Detail: tool.Clip(strings.Join(all, ", "))}
	if len(written) > 0 {
		if syntax := v.syntax(ctx, written); syntax != "" {
			r.Text += "\n" + syntax
		}
	}
	return v.kept(ctx, r, paths)
}

// credit notes what the model knows of a file after a patch: what it wrote, and what
// it knew before (B1 11.6).
func (v visit) credit(f *files, c patch.FileChange) {
	rel, from := f.rel(c.Path), f.rel(c.Path)
	if c.From != "" {
		from = f.rel(c.From)
	}
	if c.Kind == patch.Add {
		v.w.Seen.Whole(rel, c.After.Data)
		return
	}
	v.learned(from, rel, c.Before.Data, c.After.Data, c.Added, c.Deleted)
	if from != rel {
		v.w.Seen.Forget(from)
	}
}

// learned carries over what the model knew of a file in which it added and deleted
// lines. Which of the lines between two changes it knew is not told apart: they count
// as seen only where all of them were.
func (v visit) learned(from, rel string, before, after []byte, added, deleted int) {
	if v.knows(from, before) == workspace.Fresh {
		v.w.Seen.Whole(rel, after)
		return
	}
	head, tail := common(string(before), string(after))
	total, was := workspace.Lines(after), workspace.Lines(before)
	knewHead := head > 0 && v.w.Seen.Knows(from, before, 1, head)
	knewTail := tail > 0 && v.w.Seen.Knows(from, before, was-tail+1, was)
	oneChange := total-head-tail <= added && was-head-tail <= deleted
	knewBetween := oneChange || head+tail < was && v.w.Seen.Knows(from, before, head+1, was-tail)
	if knewHead {
		v.w.Seen.Some(rel, after, 1, head)
	}
	if knewTail {
		v.w.Seen.Some(rel, after, total-tail+1, total)
	}
	if knewBetween && head+tail < total {
		v.w.Seen.Some(rel, after, head+1, total-tail)
	}
}

// common counts the lines at the beginning and at the end that two contents share.
func common(before, after string) (head, tail int) {
	same := commonPrefix(before, after)
	if same < len(before) || same < len(after) {
		same = strings.LastIndexByte(before[:same], '\n') + 1
	}
	a, b := before[same:], after[same:]
	end := 0
	for end < len(a) && end < len(b) && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	// What is shared at the end must begin with a line in both, or give up a part.
	rest := a[len(a)-end:]
	if !lineBegins(a, end) || !lineBegins(b, end) {
		_, rest, _ = strings.Cut(rest, "\n")
	}
	return lineCount(before[:same]), lineCount(rest)
}

// lineBegins reports whether a line begins n bytes before the end of a text, which
// itself begins with one.
func lineBegins(text string, n int) bool {
	return n == len(text) || text[len(text)-n-1] == '\n'
}
