package file

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// page is a part of a file as it is shown.
type page struct {
	text string
	// last is the last line shown, from 1; it is before the first when there is none.
	last int
	// clipped is the line of which only the beginning is shown, 0 for none; shown and
	// hidden count its bytes.
	clipped, shown, hidden int
}

// paginate shows lines of a text from first on, which is one of its total, as many as
// are asked for and fit into budget bytes. A line that is longer than all of that is
// shown in part, so that there is always progress.
func paginate(text string, first, total int, n int64, budget int) page {
	width := len(strconv.Itoa(total))
	p := page{last: first - 1}
	var b strings.Builder
	// Each line takes a byte at least, so no more than budget can be shown.
	for i, l := range linesAt(text, first, int(min(n, int64(budget)))) {
		line := fmt.Sprintf(numbered, width, first+i, strings.ToValidUTF8(l, "\ufffd"))
		if b.Len()+len(line) <= budget {
			b.WriteString(line)
			p.last = first + i
			continue
		}
		if p.last < first {
			cut := budget
			for cut > 0 && !utf8.RuneStart(line[cut]) {
				cut--
			}
			b.WriteString(line[:cut] + "\n")
			p.last, p.clipped, p.shown, p.hidden = first, first, max(0, cut-(len(line)-1-len(l))), len(line)-1-cut
		}
		break
	}
	p.text = b.String()
	return p
}
