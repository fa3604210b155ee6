package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/patch"
	"github.com/metier-run/metier/internal/tool"
	"github.com/metier-run/metier/internal/workspace"
)

// editCall is what a call of edit_file asks for.
type editCall struct {
	name, old, fresh string
	all              bool
	others           int
}

// edit answers edit_file and its kin, which models were trained on and nobody declares
// (B1 11.8). Some of them read and write files by the argument command.
func (v visit) edit(ctx context.Context, arguments string, e tool.Env) journal.Result {
	c, err := parse(arguments)
	if err != nil {
		return failure("", badEdit)
	}
	command, err := c.pick(-1, []string{"command"})
	if err != nil {
		return failure("", "%s", err)
	}
	switch tool.Key(tool.Exact(command)) {
	case "view":
		return v.read(ctx, arguments, e)
	case "create":
		return v.write(ctx, arguments)
	case "", "strreplace":
	default:
		return failure("", otherCommand, tool.Clip(tool.Exact(command)))
	}
	w, err := editOf(c)
	if err != nil {
		return failure("", "%s", err)
	}
	rel, refused, ok := v.resolve(ctx, w.name, w.old == "")
	if !ok {
		return refused
	}
	r := v.change(ctx, rel, w)
	if w.others > 0 && r.OK {
		r.Text += "\n" + fmt.Sprintf(oneEdit, w.others)
	}
	return r
}

func editOf(c call) (w editCall, err error) {
	paths := 0
	if w.name, paths, err = c.path(); err != nil {
		return w, err
	}
	old, err := c.pick(1, oldKeys())
	if err != nil {
		return w, err
	}
	fresh, err := c.pick(2, newKeys())
	if err != nil {
		return w, err
	}
	all, err := c.pick(3, allKeys())
	if err != nil {
		return w, err
	}
	switch {
	case w.name == "":
		return w, badArgument(noPathEdit)
	case paths > 0:
		return w, badArgument(severalPaths)
	case old == nil:
		return w, badArgument(noOld)
	case fresh == nil:
		return w, badArgument(noNew)
	}
	w.all, w.others = tool.IsTrue(all), c.Others
	if w.old, w.fresh, err = texts(old, fresh); err != nil {
		return w, err
	}
	if w.old == w.fresh {
		return w, badArgument(sameStrings)
	}
	return w, nil
}

func texts(old, fresh jsontext.Value) (string, string, error) {
	o, err := whole(old, "old_string")
	if err != nil {
		return "", "", err
	}
	f, err := whole(fresh, "new_string")
	return o, f, err
}

// change replaces a text in a file.
func (v visit) change(ctx context.Context, rel string, w editCall) journal.Result {
	h, err := v.load(rel)
	switch {
	case errors.Is(err, fs.ErrNotExist) && w.old == "":
		return v.put(ctx, rel, writeCall{content: w.fresh})
	case errors.Is(err, fs.ErrNotExist):
		return v.missing(ctx, rel)
	case err != nil:
		return v.unreadable(rel, err)
	case w.old == "" && len(h.data) == 0:
		return v.put(ctx, rel, writeCall{content: w.fresh})
	case w.old == "":
		return failure(rel, emptyOld, v.name(rel))
	}
	c := decode(h.data)
	if c.isBinary() || !c.faithful {
		return failure(rel, binaryFile, v.name(rel), len(h.data))
	}
	for _, r := range ladder(w.old, w.fresh) {
		n, places := r.find(c.text)
		switch {
		case n == 0:
		case n > 1 && !w.all:
			return failure(rel, severalPlaces, n, v.name(rel), linesOfPlaces(c.text, n, places))
		case n > 1 && v.knows(rel, h.data) != workspace.Fresh:
			return failure(rel, notAllSeen, v.name(rel), v.name(rel))
		default:
			return v.rewrite(ctx, rel, h, c, r)
		}
	}
	return v.miss(ctx, rel, c.text, w)
}

// rewrite makes the changes of an edit.
func (v visit) rewrite(ctx context.Context, rel string, h held, c content, r rung) journal.Result {
	if !utf8.ValidString(c.text) && strings.IndexFunc(r.fresh, func(r rune) bool { return r >= utf8.RuneSelf }) >= 0 {
		return failure(rel, onlyASCII, v.name(rel))
	}
	text, ok := r.applied(c.text, int(v.fileSize))
	if !ok {
		return failure(rel, resultLarge, v.fileSize)
	}
	if text == c.text {
		return failure(rel, sameBytes, v.name(rel))
	}
	data := patch.Encode(text, c.enc)
	if int64(len(data)) > v.fileSize {
		return failure(rel, resultLarge, v.fileSize)
	}
	if r, ok := v.hasRoom(ctx, rel, int64(len(data)-len(h.data))); !ok {
		return r
	}
	if err := v.swap(rel, h, data); err != nil {
		return v.unwritable(rel, err)
	}
	v.learned(rel, rel, h.data, data, 0, 0) // of the lines it may know only what it sent
	n, places := r.find(c.text)
	said := fmt.Sprintf(edited, v.name(rel), linesOfPlaces(c.text, n, places))
	if r.note != "" {
		said += " " + r.note
	}
	return v.wrote(ctx, said, "", restKept, rel, data)
}

// applied is a text with all replacements made; false when it would be far larger than
// most bytes in any encoding.
func (r rung) applied(text string, most int) (string, bool) {
	_, places := r.find(text)
	var b strings.Builder
	at, breaks := 0, newBreaks(text)
	for p := range places {
		b.WriteString(text[at:p[0]])
		b.WriteString(r.restyled(breaks, p))
		at = p[1]
		if b.Len() > 2*most {
			return "", false
		}
	}
	b.WriteString(text[at:])
	return b.String(), true
}

// placesShown is how many places a sentence lists.
const placesShown = 12

// linesOfPlaces names the lines in which places of a text begin.
func linesOfPlaces(text string, n int, places iter.Seq[[2]int]) string {
	var numbers []string
	line, at := 1, 0
	for p := range places {
		line += strings.Count(text[at:p[0]], "\n")
		at = p[0]
		if numbers = append(numbers, strconv.Itoa(line)); len(numbers) == placesShown {
			break
		}
	}
	switch {
	case n > placesShown:
		return fmt.Sprintf(linesAndMore, strings.Join(numbers, ", "), n-placesShown)
	case n == 1:
		return fmt.Sprintf(inLine, numbers[0])
	}
	return fmt.Sprintf(inLines, strings.Join(numbers, ", "))
}
