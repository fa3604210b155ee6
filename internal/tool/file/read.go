package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strings"

	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/patch"
	"github.com/metier-run/metier/internal/tool"
	"github.com/metier-run/metier/internal/workspace"
)

// smallestPage is what a page still makes sense with, in bytes.
const smallestPage = 1024

// read answers read_file with one page of one file (B1 11.3).
func (v visit) read(ctx context.Context, arguments string, e tool.Env) journal.Result {
	c, err := parse(arguments)
	if err != nil {
		return failure("", badRead)
	}
	name, others, err := c.path()
	if err != nil {
		return failure("", "%s", err)
	}
	if name == "" {
		return failure("", "%s", noPathRead+" "+v.around("."))
	}
	want, said, err := c.lines()
	if err != nil {
		return failure("", "%s", err)
	}
	rel, refused, ok := v.resolve(ctx, name, false)
	if !ok {
		return refused
	}
	r := v.show(ctx, rel, want, said, e)
	if more := others + c.Others; more > 0 && r.OK {
		r.Text += fmt.Sprintf(oneFileRead, more)
	}
	return r
}

// show is a page of a file, and notes that the model has seen it.
func (v visit) show(ctx context.Context, rel string, want lines, said bool, e tool.Env) journal.Result {
	h, err := v.load(rel)
	if errors.Is(err, fs.ErrNotExist) {
		return v.missing(ctx, rel)
	}
	if err != nil {
		return v.unreadable(rel, err)
	}
	c := decode(h.data)
	total := lineCount(c.text)
	first := int(min(max(want.first, 1), math.MaxInt32))
	switch {
	case c.isBinary():
		return failure(rel, binaryFile, v.name(rel), len(h.data))
	case total == 0:
		v.w.Seen.Whole(rel, h.data)
		return journal.Result{Text: fmt.Sprintf(emptyFile, v.name(rel)), OK: true, Detail: rel}
	case first > total:
		return failure(rel, pastTheEnd, v.name(rel), total, first)
	case !said && e.Attempt <= 1 && v.knows(rel, h.data) == workspace.Fresh:
		return journal.Result{Text: fmt.Sprintf(unchanged, v.name(rel), total, v.name(rel)), OK: true, Detail: rel}
	}
	n := want.n
	if n == 0 {
		n = int64(v.pageLines)
	}
	p := paginate(c.text, first, total, n, v.budget(rel, e))
	v.saw(rel, h.data, first, p, total)
	head := fmt.Sprintf(readHeader, v.name(rel), first, p.last, total)
	text := strings.TrimSuffix(head+p.text+v.foot(rel, c, p, total), "\n")
	return journal.Result{Text: text, OK: true, Detail: rel}
}

// budget is how many bytes of lines fit into a result beside what stands around them.
func (v visit) budget(rel string, e tool.Env) int {
	if e.Room <= 0 {
		return v.pageBytes
	}
	frame := len(readHeader) + len(moreLines) + len(clippedLine) + len(mixedEndings) + len(notUTF8) + 3*len(v.name(rel))
	return min(v.pageBytes, max(e.Room-frame, smallestPage))
}

// saw notes the lines that were shown whole. The ledger counts lines in the bytes of
// the file, which in UTF-16 can be more than are shown: the last page ends them.
func (v visit) saw(rel string, data []byte, first int, p page, total int) {
	last := p.last
	if p.clipped > 0 { // which is alone on its page
		return
	}
	if last == total {
		last = max(last, workspace.Lines(data))
	}
	v.w.Seen.Some(rel, data, first, last)
}

// foot is what follows a page: what of it is not as it seems, and how to go on.
func (v visit) foot(rel string, c content, p page, total int) string {
	var b strings.Builder
	if p.clipped > 0 {
		fmt.Fprintf(&b, clippedLine, p.clipped, p.hidden, p.clipped, shellWord(v.name(rel)), p.shown+1, p.shown+v.pageBytes/2)
	}
	crlf, lf := endings(c.text)
	switch {
	case crlf > 0 && lf > 0:
		fmt.Fprintf(&b, mixedEndings, crlf, lf)
	case crlf > 0:
		b.WriteString(crlfEndings)
	}
	switch {
	case c.enc == patch.Little || c.enc == patch.Big:
		b.WriteString(utf16File)
	case strings.ToValidUTF8(c.text, "") != c.text:
		b.WriteString(notUTF8)
	}
	switch left := total - p.last; left {
	case 0:
	case 1:
		fmt.Fprintf(&b, moreLines, oneMore, v.name(rel), p.last+1)
	default:
		fmt.Fprintf(&b, moreLines, fmt.Sprintf(manyMore, left), v.name(rel), p.last+1)
	}
	return b.String()
}

// shellWord is a path as a word of a command line.
func shellWord(name string) string {
	if strings.ContainsAny(name, " \t'\"$`\\*?[]{}&;|<>()#!~") {
		return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
	}
	return name
}
