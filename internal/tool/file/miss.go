package file

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/tool"
)

// What a miss quotes: lines that were sent, and lines of the file around the place that
// resembles them.
const (
	sentShown   = 6
	aroundShown = 3
)

// miss is the answer to a text that is not in the file: what was looked for, why it was
// not found, and what stands there instead (B1 11.8).
func (v visit) miss(ctx context.Context, rel, text string, w editCall) journal.Result {
	old := unix(w.old)
	var b strings.Builder
	fmt.Fprintf(&b, notFound, v.name(rel), quoted(old))
	at, n := -1, 0
	var all []string
	// What is larger is not looked at: it would take long, and mean little.
	if most := v.otherBytes; int64(len(text)) <= most && int64(len(old)) <= most {
		var cause string
		all = splitLines(text)
		at, n, cause = locate(all, splitLines(old))
		b.WriteString(cause)
	}
	if at >= 0 {
		fmt.Fprintf(&b, realLines, region(all, at, n))
		b.WriteString(copyLines)
	} else if other := v.elsewhere(ctx, rel, w.old); other != "" {
		fmt.Fprintf(&b, inOtherFile, v.name(other))
	} else {
		fmt.Fprintf(&b, readFirst, v.name(rel))
	}
	return failure(rel, "%s", strings.TrimSpace(b.String()))
}

// quoted shows lines that were sent.
func quoted(sent string) string {
	var b strings.Builder
	for _, l := range linesAt(sent, 1, sentShown) {
		b.WriteString("  " + tool.Clip(l) + "\n")
	}
	if more := lineCount(sent) - sentShown; more > 0 {
		fmt.Fprintf(&b, sentMore, more)
	}
	return b.String()
}

// locate finds what resembles the lines that were sent: the same lines but for the
// white space around them, or the line that is like one of them. It gives the first of
// n lines from 0, or -1, and the cause as a sentence.
func locate(all, sent []string) (at, n int, cause string) {
	if at := sameTrimmed(all, sent); at >= 0 {
		return at, len(sent), indentCause(all[at:at+len(sent)], sent)
	}
	first := map[string]int{}
	for j, have := range all {
		if have = strings.TrimSpace(have); len(have) >= worthFinding {
			if _, ok := first[have]; !ok {
				first[have] = j
			}
		}
	}
	for i, l := range sent {
		if j, ok := first[strings.TrimSpace(l)]; ok {
			return max(0, j-i), len(sent), fmt.Sprintf(oneLineIsThere, i+1, j+1)
		}
	}
	return mostAlike(all, sent)
}

// worthFinding is the length of a line that tells something, in bytes: a bracket alone
// stands everywhere.
const worthFinding = 4

// sameTrimmed is where the lines stand if white space around them is left out.
func sameTrimmed(all, sent []string) int {
	have, want := trimmed(all), trimmed(sent)
	if strings.TrimSpace(want) == "" {
		return -1
	}
	at := strings.Index(have, want)
	if at < 0 {
		return -1
	}
	return strings.Count(have[:at], "\n")
}

// trimmed are lines without white space around, each between line breaks.
func trimmed(lines []string) string {
	var b strings.Builder
	b.WriteString("\n")
	for _, l := range lines {
		b.WriteString(strings.TrimSpace(l) + "\n")
	}
	return b.String()
}

// indentCause says how the white space differs in the first line in which it does.
func indentCause(have, sent []string) string {
	for i := range sent {
		a, b := indentation(have[i]), indentation(sent[i])
		if a != b {
			return fmt.Sprintf(indentDiffers, spelled(a), spelled(b))
		}
	}
	return endsDiffer
}

func indentation(l string) string { return l[:len(l)-len(strings.TrimLeft(l, " \t"))] }

// spelled says what an indentation consists of.
func spelled(indent string) string {
	tabs, spaces := strings.Count(indent, "\t"), strings.Count(indent, " ")
	switch {
	case tabs > 0 && spaces > 0:
		return fmt.Sprintf(tabsAndSpaces, tabs, spaces)
	case tabs > 0:
		return fmt.Sprintf(tabsOnly, tabs)
	case spaces > 0:
		return fmt.Sprintf(spacesOnly, spaces)
	}
	return noIndent
}

// comparedLines is how many lines of a file are compared letter by letter, and
// comparedBytes how long these are at most.
const (
	comparedLines = 2000
	comparedBytes = 160
)

// mostAlike is the line that is spelled most like the first line that was sent and
// tells something.
func mostAlike(all, sent []string) (at, n int, cause string) {
	for i, l := range sent {
		want := strings.TrimSpace(l)
		if len(want) < worthFinding || len(want) > comparedBytes {
			continue
		}
		best, least := -1, len([]rune(want))/3+1
		for j, have := range all[:min(len(all), comparedLines)] {
			if have = strings.TrimSpace(have); len(have) <= comparedBytes {
				if d := tool.Edits(want, have, least); d < least {
					best, least = j, d
				}
			}
		}
		if best >= 0 {
			return max(0, best-i), len(sent), fmt.Sprintf(almostThere, i+1, best+1)
		}
		break
	}
	return -1, 0, nothingAlike
}

// region shows lines of a file with some around them.
func region(all []string, at, n int) string {
	from, to := max(0, at-aroundShown), min(len(all), at+min(n, sentShown)+aroundShown)
	width := len(strconv.Itoa(to))
	var b strings.Builder
	for i := from; i < to; i++ {
		fmt.Fprintf(&b, numbered, width, i+1, tool.Clip(all[i]))
	}
	return b.String()
}

// elsewhere is the file of the workspace that holds exactly the text, if it is the only
// one that does. Not all files are looked at.
func (v visit) elsewhere(ctx context.Context, rel, old string) string {
	found := ""
	left, entries := v.otherFiles, v.entries
	for e, err := range v.root.Walk(ctx, passed) {
		if entries--; entries < 0 || left == 0 || ctx.Err() != nil {
			break
		}
		if err != nil || e.Link != "" || !e.Info.Mode().IsRegular() || e.Info.Size() > v.otherBytes || e.Path == rel {
			continue
		}
		left--
		h, err := v.load(e.Path)
		if err != nil || !strings.Contains(unix(decode(h.data).text), unix(old)) {
			continue
		}
		if found != "" {
			return ""
		}
		found = e.Path
	}
	return found
}
