package install

import (
	"cmp"
	"slices"
	"strings"

	"github.com/metier-run/metier/internal/bash"
)

// edit is a piece of a script that is replaced.
type edit struct {
	from, to int
	request  int // which result it stands for, if inner is nil
	// keep are redirections between from and to: they are the shell's and stay.
	keep []span
	// fold is where the pipeline ends that the install feeds; 0 when it feeds
	// none, or that cannot be taken out. Without it a failed install would hide
	// behind the status of a tail.
	fold int
	// shows says that the rest of the pipeline only shows what the install
	// writes, so it goes with a performed install as well: on nothing, grep -v
	// fails.
	shows bool
	inner *script // of a sh -c
	// program runs what is installed, in place of a runner that would fetch it.
	program string
}

type span struct{ from, to int }

// Line is the line that is left to run, with each install replaced by true or
// false, and by false where a result is missing (B1 13.10). Lines are not
// renumbered: a replaced newline is escaped.
func (r Reading) Line(results []bool) string { return r.script.render(results) }

func (s script) render(results []bool) string {
	edits := slices.SortedFunc(slices.Values(s.edits), func(a, b edit) int { return cmp.Compare(a.from, b.from) })
	var out strings.Builder
	at := 0
	for _, e := range edits {
		if e.from < at {
			continue // inside of what a failed install took with it
		}
		text, end := e.render(s.text, results)
		out.WriteString(s.text[at:e.from])
		out.WriteString(text)
		lines := strings.Count(s.text[e.from:end], "\n") - strings.Count(text, "\n")
		out.WriteString(strings.Repeat(" \\\n", max(0, lines)))
		at = end
	}
	out.WriteString(s.text[at:])
	return out.String()
}

// render is what comes in an edit's place, and where that place ends.
func (e edit) render(in string, results []bool) (string, int) {
	done := e.request < len(results) && results[e.request]
	text, end := "false", e.to
	switch {
	case e.program != "":
		return e.program, e.to
	case e.inner != nil:
		text = bash.Quote(e.inner.render(results))
	case done:
		text = "true"
	}
	if e.fold > 0 && (!done || e.shows) {
		end = e.fold
	}
	for _, k := range e.keep {
		if k.from < end {
			text += " " + in[k.from:k.to]
		}
	}
	return text, end
}
