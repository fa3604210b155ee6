package file

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/tool"
	"github.com/metier-run/metier/internal/workspace"
	"github.com/metier-run/metier/internal/workspace/diagnose"
)

// The modes of what a model makes.
const (
	fileMode   fs.FileMode = 0o644
	folderMode fs.FileMode = 0o755
)

// writeCall is what a call of write_file asks for.
type writeCall struct {
	name, content string
	overwrite     bool
	// structured says that the content came as JSON and not as text (B1 4.6).
	structured bool
	others     int
}

// write answers write_file: it makes a file, and never replaces one unless the older
// argument overwrite says so (B1 11.7).
func (v visit) write(ctx context.Context, arguments string) journal.Result {
	c, err := parse(arguments)
	if err != nil {
		return failure("", badWrite)
	}
	w, err := writeOf(c)
	if err != nil {
		return failure("", "%s", err)
	}
	if strings.HasSuffix(w.name, "/") {
		return failure("", folderName, tool.Clip(w.name))
	}
	rel, refused, ok := v.resolve(ctx, w.name, true)
	if !ok {
		return refused
	}
	r := v.put(ctx, rel, w)
	if w.structured && r.OK {
		r.Text += "\n" + contentWasJSON
	}
	if w.others > 0 && r.OK {
		r.Text += "\n" + fmt.Sprintf(oneFileWritten, w.others)
	}
	return r
}

func writeOf(c call) (w writeCall, err error) {
	others := 0
	if w.name, others, err = c.path(); err != nil {
		return w, err
	}
	if w.name == "" {
		return w, badArgument(noPathWrite)
	}
	if others > 0 {
		return w, badArgument(severalPaths)
	}
	w.others = c.Others
	v, err := c.pick(1, contentKeys())
	if err != nil {
		return w, err
	}
	if v == nil {
		return w, badArgument(noContent, tool.Clip(w.name))
	}
	w.structured = v.Kind() != '"'
	if w.content, err = whole(v, "content"); err != nil {
		return w, err
	}
	over, err := c.pick(2, overwriteKeys())
	w.overwrite = tool.IsTrue(over)
	return w, err
}

// put writes a whole file.
func (v visit) put(ctx context.Context, rel string, w writeCall) journal.Result {
	data := []byte(w.content)
	if int64(len(data)) > v.fileSize {
		return failure(rel, contentLarge, len(data), v.fileSize)
	}
	old, err := v.load(rel)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return v.create(ctx, rel, data)
	case err != nil:
		return v.unreadable(rel, err)
	case bytes.Equal(old.data, data):
		v.w.Seen.Whole(rel, data)
		return journal.Result{Text: fmt.Sprintf(alreadyHolds, v.name(rel), count(data)), OK: true, Detail: rel}
	case !w.overwrite && len(old.data) > 0:
		return v.exists(rel, old.data, data)
	}
	return v.replace(ctx, rel, old, data)
}

// create makes a file that is not there. What has come to be there meanwhile stays.
func (v visit) create(ctx context.Context, rel string, data []byte) journal.Result {
	if r, ok := v.hasRoom(ctx, rel, int64(len(data))); !ok {
		return r
	}
	nested := v.nested(rel)
	if err := v.add(rel, data, fileMode); err != nil {
		return v.unwritable(rel, err)
	}
	v.w.Seen.Whole(rel, data)
	said := fmt.Sprintf(created, v.name(rel), count(data))
	if v.w.Current() != "." {
		said = fmt.Sprintf(createdBelow, v.name(rel), rel, count(data))
	}
	r := v.wrote(ctx, said, "", holdsSent, rel, data)
	r.Text += nested
	return r
}

// add makes a file and the folders above it.
func (v visit) add(rel string, data []byte, mode fs.FileMode) error {
	if dir := path.Dir(rel); dir != "." {
		if err := v.root.MkdirAll(dir, folderMode); err != nil {
			return err
		}
	}
	return v.root.AddFile(rel, data, mode)
}

// replace puts a content in the place of another.
func (v visit) replace(ctx context.Context, rel string, old held, data []byte) journal.Result {
	if r, ok := v.hasRoom(ctx, rel, int64(len(data)-len(old.data))); !ok {
		return r
	}
	known := v.knows(rel, old.data)
	if err := v.swap(rel, old, data); err != nil {
		return v.unwritable(rel, err)
	}
	v.w.Seen.Whole(rel, data)
	said, note := replaced, ""
	if len(old.data) == 0 {
		said = filled
	} else {
		note = diagnose.Rewrites([]diagnose.Rewrite{{Path: v.name(rel), Before: old.data, After: data}}, v.otherBytes)
		if known == workspace.Unread || known == workspace.Stale {
			note = strings.TrimPrefix(note+"\n"+fmt.Sprintf(oldIsGone, workspace.Lines(old.data)), "\n")
		}
	}
	return v.wrote(ctx, fmt.Sprintf(said, v.name(rel), count(data)), note, holdsSent, rel, data)
}

// errChanged says that a file is not any more what was read of it.
var errChanged = errors.New("something else has changed it meanwhile: read it again")

// swap writes a file in the place of what was read of it.
func (v visit) swap(rel string, old held, data []byte) error {
	now, err := v.load(rel)
	if err != nil {
		return err
	}
	if !bytes.Equal(now.data, old.data) {
		return errChanged
	}
	return v.root.WriteFile(rel, data, old.mode)
}

// hasRoom refuses what the workspace has no room for.
func (v visit) hasRoom(ctx context.Context, rel string, more int64) (journal.Result, bool) {
	full, err := v.grow(ctx, more)
	switch {
	case err != nil:
		return failure(rel, "%s", wasStopped), false
	case full != "":
		return failure(rel, "%s", full), false
	}
	return journal.Result{}, true
}

// unwritable is the answer to a file that could not be written.
func (v visit) unwritable(rel string, err error) journal.Result {
	if errors.Is(err, fs.ErrExist) {
		return failure(rel, appeared, v.name(rel), shellWord(v.name(rel)))
	}
	return failure(rel, notWritten, v.name(rel), reason(err))
}

// wrote is the answer to a file that was written: what was done, then what is to be
// said of it and whether it parses, or if there is neither that all is well, and what
// was kept of it (B1 11.7, 11.10).
func (v visit) wrote(ctx context.Context, text, note, well, rel string, data []byte) journal.Result {
	if n := strings.Count(string(data), `\n`); n > 2 && !bytes.Contains(data, []byte("\n")) {
		note += fmt.Sprintf(escapedBreaks, n)
	}
	if note != "" {
		text += "\n" + strings.TrimSuffix(note, "\n")
	}
	syntax := v.syntax(ctx, []tool.Written{{Path: rel, Shown: v.w.Shown(rel), Data: data}})
	switch {
	case syntax != "":
		text += "\n" + syntax
	case note == "":
		text += " " + well
	}
	return v.kept(ctx, journal.Result{Text: text, OK: true, Detail: rel}, []string{rel})
}

// kept adds what was kept of files that were just written.
func (v visit) kept(ctx context.Context, r journal.Result, paths []string) journal.Result {
	if len(paths) == 0 {
		return r
	}
	text, files := v.keep(ctx, paths)
	if text != "" {
		r.Text += "\n" + text
	}
	r.Files = files
	return r
}

// count is how many lines a file has, in words.
func count(data []byte) string {
	n := lineCount(decode(data).text)
	if n == 1 {
		return oneLine
	}
	return fmt.Sprintf(manyLines, n)
}

// exists is the answer to a content for a path that holds another.
func (v visit) exists(rel string, old, sent []byte) journal.Result {
	was, is := decode(old), decode(sent)
	if was.isBinary() {
		return failure(rel, existsBinary, v.name(rel))
	}
	difference := firstDifference(was.text, is.text)
	if difference == "" {
		return failure(rel, existsInEnds, v.name(rel))
	}
	return failure(rel, existsAlready, v.name(rel), difference)
}

// firstDifference says where a text begins to differ from the one that was sent; empty
// when only its line breaks do.
func firstDifference(was, sent string) string {
	was, sent = strings.TrimSuffix(unix(was), "\n"), strings.TrimSuffix(unix(sent), "\n")
	at := commonPrefix(was, sent)
	line := strings.Count(was[:at], "\n") + 1
	switch {
	case was == sent:
		return ""
	case at == len(was) && sent[at] == '\n' && was != "":
		return fmt.Sprintf(differsAfter, line)
	case at == len(sent) && was[at] == '\n' && sent != "":
		return fmt.Sprintf(differsBefore, line, lineCount(was))
	}
	return fmt.Sprintf(differsAt, line, tool.Clip(lineAround(was, at)), tool.Clip(lineAround(sent, at)))
}

// lineAround is the line of a text that holds a place.
func lineAround(text string, at int) string {
	line, _, _ := strings.Cut(text[strings.LastIndexByte(text[:at], '\n')+1:], "\n")
	return line
}
