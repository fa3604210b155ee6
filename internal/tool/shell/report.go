package shell

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/metier-run/metier/internal/guard"
	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/tool"
	"github.com/metier-run/metier/internal/workspace/diagnose"
	"github.com/metier-run/metier/internal/workspace/shell"
)

// went is how a command went, and what the host adds.
type went struct {
	run            *run
	out            shell.Outcome
	paths          diagnose.Paths
	stdout, stderr tool.Stream
	benign         string // the command whose status is an answer
	added          []string
	kept           string
}

// ok reports a success: also a status that is an answer and no failure.
func (w *went) ok() bool { return w.out.OK() || w.benign != "" }

// ran is where the command began, relative to the work folder.
func (w *went) ran() string {
	if w.out.Ran == "" {
		return "."
	}
	return w.out.Ran
}

// output is all that was said, for finding out what went wrong.
func (w *went) output() string { return w.stdout.Text() + "\n" + w.stderr.Text() }

func (w *went) add(text string) {
	if text != "" {
		w.added = append(w.added, text)
	}
}

// relativeTo is a path as an output names it, from a folder of the workspace.
func (r *run) relativeTo(dir, name string) (string, error) {
	if filepath.IsAbs(name) {
		return r.o.Workspace.Resolve(name)
	}
	return guard.Clean(path.Join(dir, name))
}

// render puts the result together, in the order of B1 9.11. The output is what is cut
// when there is little room: what the host says stays whole.
func (w *went) render() string {
	head, tail := w.head(), w.tail()
	body := w.merged(0)
	if room := w.run.env.Room; room > 0 {
		left := max(room-len(head)-len(tail)-frame, smallest)
		body = w.merged(left)
	}
	parts := []string{head, body}
	if tail != "" {
		parts = append(parts, tail)
	}
	return strings.Join(parts, "\n\n")
}

// frame is more than what stands around the output takes, and smallest what it gets
// however little room there is, in bytes.
const (
	frame    = 64
	smallest = 512
)

// merged is stdout and then stderr, in about n bytes if that is not 0.
func (w *went) merged(n int) string {
	stdout, stderr := w.stdout, w.stderr
	if n > 0 {
		half := max(n/2, n-len(stderr.Head)-len(stderr.Tail))
		stdout = stdout.Clip(half)
		stderr = stderr.Clip(n - min(half, len(stdout.Head)+len(stdout.Tail)))
	}
	var b strings.Builder
	for _, s := range []tool.Stream{stdout, stderr} {
		if s.Empty() {
			continue
		}
		if b.Len() > 0 && !strings.HasSuffix(b.String(), "\n") {
			b.WriteByte('\n')
		}
		b.WriteString(s.Head)
		if s.Cut {
			if !strings.HasSuffix(s.Head, "\n") {
				b.WriteByte('\n')
			}
			fmt.Fprintf(&b, dropped, max(s.Total-int64(len(s.Head)+len(s.Tail)), 0))
			b.WriteString(s.Tail)
		}
	}
	text := strings.TrimRight(b.String(), "\n")
	if text == "" {
		return noOutput
	}
	return text
}

// head says how it went.
func (w *went) head() string {
	lines := append([]string(nil), w.run.notes...)
	if w.run.failed {
		lines = append(lines, installFailed)
	}
	lines = append(lines, w.outcome())
	if w.out.Moved {
		lines = append(lines, fmt.Sprintf(movedTo, w.out.Dir))
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

func (w *went) outcome() string {
	wall, by := seconds(w.out.Wall), w.run.o.Capabilities.Backend
	switch w.out.Ended {
	case sandbox.Exited:
		line := fmt.Sprintf(exit, w.out.Exit, wall, by)
		if w.benign != "" {
			line += fmt.Sprintf(benignExit, diagnose.BenignMeaning(w.benign))
		}
		return line
	case sandbox.TimedOut:
		return fmt.Sprintf(timedOut, seconds(w.run.o.Session.Timeout(w.run.args.timeout)), by)
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
	parts := w.added
	if w.kept != "" {
		parts = append(parts, w.kept)
	}
	return strings.Join(parts, "\n\n")
}

// seconds is a time as a person reads it.
func seconds(d time.Duration) string {
	if d%time.Second == 0 && d > 0 {
		return fmt.Sprintf("%d s", d/time.Second)
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

// joined are paragraphs, without the empty ones.
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
