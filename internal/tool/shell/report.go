package shell

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/metier-run/metier/internal/interpreter"
	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/tool"
	"github.com/metier-run/metier/internal/workspace/diagnose"
	"github.com/metier-run/metier/internal/workspace/shell"
)

// went is how a command went, and what the host adds.
type went struct {
	run            *run
	out            shell.Outcome
	at             string        // the folder that its paths are seen from
	had            time.Duration // the time that it could take
	stdout, stderr tool.Stream
	benign         string // the command whose status is an answer
	settled        bool   // what it failed for is settled, so no more is to be said about it
	added          []string
	kept           string
}

// ok reports a success: also a status that is an answer and no failure.
func (w *went) ok() bool { return w.out.OK() || w.benign != "" }

// output is all that was said, for finding out what went wrong.
func (w *went) output() string { return w.stdout.Text() + "\n" + w.stderr.Text() }

func (w *went) add(text string) {
	if text != "" {
		w.added = append(w.added, text)
	}
}

// path is a folder of the workspace on this host.
func (r *run) path(rel string) string {
	return filepath.Join(r.o.Workspace.Work(), filepath.FromSlash(rel))
}

// paths are what the host's paths become where the command ran (B1 10.10): relative to
// a folder, so that they can be used.
func (r *run) paths(at string, out shell.Outcome) diagnose.Paths {
	if r.o.NoRecovery {
		return diagnose.Paths{}
	}
	ws := r.o.Workspace
	p := diagnose.Paths{
		Root: filepath.Dir(ws.Work()), Dir: r.path(at), Wrapper: out.Script.Path, Marker: out.Script.Lines,
		Places: []diagnose.Named{{Path: ws.Temp(), Name: "$TMPDIR"}},
	}
	for _, kind := range []interpreter.Kind{interpreter.Python, interpreter.Node} {
		if set, ok := ws.Packages(kind); ok {
			for _, dir := range set.Imports {
				p.Places = append(p.Places, diagnose.Named{Path: dir, Name: packagesName(kind)})
			}
			p.Places = append(p.Places, diagnose.Named{Path: set.Dir, Name: "(packages)"})
		}
	}
	return p
}

// packagesName is what the directory of installed packages is called in an output: as
// it is on every host, so that a reader knows what lies there.
func packagesName(kind interpreter.Kind) string {
	if kind == interpreter.Node {
		return "(packages)/node_modules"
	}
	return "(packages)/site-packages"
}

// say is a result that has nothing of a command's own: behind the notes, what the host
// says.
func (r *run) say(ok bool, text string) journal.Result {
	return journal.Result{Text: joined(append(r.notesFirst(), text)...), OK: ok, Detail: detail(r.args.command), Workspace: true}
}

// notesFirst is what is said before all else (B1 9.11).
func (r *run) notesFirst() []string {
	notes := append([]string(nil), r.notes...)
	if r.lostFiles {
		notes = append(notes, noteLost)
	}
	return notes
}

// render puts the result together, in the order of B1 9.11. The output is what is cut
// when there is little room: what the host says stays whole.
func (w *went) render() string {
	head, tail := w.head(), w.tail()
	room := 0
	if w.run.env.Room > 0 {
		room = max(w.run.env.Room-len(head)-len(tail)-len("\n\n\n\n"), smallest)
	}
	parts := []string{head, w.merged(room)}
	if tail != "" {
		parts = append(parts, tail)
	}
	return strings.Join(parts, "\n\n")
}

// smallest is what an output gets however little room there is, and marks what the
// sentences in it take that tell of a cut, in bytes.
const (
	smallest = 512
	marks    = 128
)

// merged is stdout and then stderr, in no more than n bytes if that is not 0. What
// fits leaves its room to the other.
func (w *went) merged(n int) string {
	stdout, stderr := w.stdout, w.stderr
	var cutOut, cutErr int64
	if size := func(s tool.Stream) int { return len(s.Head) + len(s.Tail) }; n > 0 && size(stdout)+size(stderr)+marks > n {
		n -= marks
		half := max(n/2, n-size(stderr))
		before := size(stdout)
		stdout = stdout.Clip(half)
		cutOut = int64(before - size(stdout))
		before = size(stderr)
		stderr = stderr.Clip(n - min(half, size(stdout)))
		cutErr = int64(before - size(stderr))
	}
	var b strings.Builder
	write(&b, stdout, cutOut+w.out.Stdout.Dropped())
	write(&b, stderr, cutErr+w.out.Stderr.Dropped())
	text := strings.TrimRight(b.String(), "\n")
	if text == "" {
		return noOutput
	}
	return text
}

// write writes a stream behind another, and says in its middle how much is left out.
func write(b *strings.Builder, s tool.Stream, left int64) {
	if s.Empty() {
		return
	}
	newLine(b)
	b.WriteString(s.Head)
	if s.Cut {
		newLine(b)
		fmt.Fprintf(b, dropped, left)
		b.WriteString(s.Tail)
	}
}

func newLine(b *strings.Builder) {
	if text := b.String(); text != "" && text[len(text)-1] != '\n' {
		b.WriteByte('\n')
	}
}

// head says how it went.
func (w *went) head() string {
	lines := w.run.notesFirst()
	if w.run.failed {
		lines = append(lines, installFailed)
	}
	lines = append(lines, w.outcome())
	switch {
	case w.out.Dir != "" && w.out.Dir != ".":
		lines = append(lines, fmt.Sprintf(directoryIs, w.out.Dir))
	case w.out.Moved:
		lines = append(lines, directoryTop)
	}
	if w.out.Outside {
		lines = append(lines, movedOutside)
	}
	if w.out.Reset {
		lines = append(lines, exportsReset)
	}
	facts := w.run.o.Facts
	if gaps := w.run.o.Capabilities.Gaps(sandbox.Network{Mode: facts.Network}); len(gaps) > 0 {
		lines = append(lines, fmt.Sprintf(gapsAre, strings.Join(gaps, "; ")))
	}
	switch facts.Network {
	case sandbox.NetworkOpen:
		lines = append(lines, networkOpen)
	case sandbox.NetworkProxied:
		lines = append(lines, fmt.Sprintf(networkOnly, strings.Join(facts.Domains, ", ")))
	}
	return strings.Join(lines, "\n")
}

// outcome is the line that says how the command ended.
func (w *went) outcome() string {
	wall, by := tool.Seconds(w.out.Wall), w.run.o.Capabilities.Backend
	switch w.out.Ended {
	case sandbox.Exited:
		switch {
		case w.benign != "":
			return fmt.Sprintf(exit, w.out.Exit, wall, by) + fmt.Sprintf(benignExit, diagnose.BenignMeaning(w.benign))
		case w.run.failed:
			return fmt.Sprintf(exitOfRest, w.out.Exit, wall, by)
		}
		return fmt.Sprintf(exit, w.out.Exit, wall, by)
	case sandbox.TimedOut:
		switch {
		case w.had < w.run.o.Session.Timeout(w.run.args.timeout):
			return fmt.Sprintf(timedOutRest, tool.Seconds(w.had), by)
		case w.run.o.Facts.Files:
			return fmt.Sprintf(timedOut, tool.Seconds(w.had), by)
		}
		return fmt.Sprintf(timedOutOnly, tool.Seconds(w.had), by)
	case sandbox.OutOfMem:
		return fmt.Sprintf(outOfMemory, wall, by)
	case sandbox.OutOfRoom:
		return fmt.Sprintf(outOfRoom, wall, by)
	case sandbox.TooMany:
		return fmt.Sprintf(tooMany, wall, by)
	case sandbox.Signalled:
		return fmt.Sprintf(signalled, w.out.Signal, wall, by)
	}
	return fmt.Sprintf(otherEnd, w.out.Ended, wall, by)
}

// tail is what the host adds behind the output.
func (w *went) tail() string {
	parts := append([]string(nil), w.added...)
	if w.kept != "" {
		parts = append(parts, w.kept)
	}
	return strings.Join(parts, "\n\n")
}

// joined are lines, without the empty ones.
func joined(parts ...string) string {
	var b strings.Builder
	for _, p := range parts {
		if p == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(p)
	}
	return b.String()
}

// detail is a command as logs and terminals show it.
func detail(command string) string { return tool.Clip(strings.TrimSpace(command)) }
