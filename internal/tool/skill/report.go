package skill

import (
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/tool"
)

// report is everything that is told of a run.
type report struct {
	script
	scratch      string
	ended        sandbox.Result
	capabilities sandbox.Capabilities
	network      sandbox.NetworkMode
	domains      []string
	deadline     time.Duration
	// files is what was kept, ready to show.
	files  string
	others int
	room   int
}

// render writes how it went, what was not confined, the output, what the host knows
// of a failure, and the files, in this order (B1 5.7). The output gets what room is
// left by the rest: that is the host's own and stays whole.
func (r report) render() string {
	paths := r.hostPaths(r.scratch)
	rewrite := func(text string) string { return shorten(text, paths) }
	stdout, stderr := tool.NewStream(r.ended.Stdout, rewrite), tool.NewStream(r.ended.Stderr, rewrite)
	head, tail := r.head(), r.tail(stdout, stderr)
	if r.room > 0 {
		left := max(r.room-len(head)-len(tail)-streamFrame, smallestStream)
		half := max(left/2, left-len(stderr.Head)-len(stderr.Tail))
		stdout = stdout.Clip(half)
		stderr = stderr.Clip(left - min(half, len(stdout.Head)+len(stdout.Tail)))
	}
	var b strings.Builder
	if !r.ended.OK() {
		b.WriteString(failed)
	}
	b.WriteString(head + "\n\n")
	fence := tool.FenceFor(stdout, stderr)
	stdout.Render(&b, runStdout, fence)
	stderr.Render(&b, runStderr, fence)
	if stdout.Empty() && stderr.Empty() {
		b.WriteString(runNoOutput + "\n")
	}
	if tail != "" {
		b.WriteString("\n" + tail)
	}
	return strings.TrimRight(b.String(), "\n")
}

// streamFrame is more than what stands around both streams takes, and smallestStream
// what they get however little room there is, in bytes.
const (
	streamFrame    = 256
	smallestStream = 512
)

// head says how it went.
func (r report) head() string {
	lines := []string{r.outcome()}
	if gaps := r.capabilities.Gaps(sandbox.Network{Mode: r.network}); len(gaps) > 0 {
		lines = append(lines, fmt.Sprintf(runGaps, strings.Join(gaps, "; ")))
	}
	switch r.network {
	case sandbox.NetworkOpen:
		lines = append(lines, runOpen)
	case sandbox.NetworkProxied:
		lines = append(lines, fmt.Sprintf(runProxied, strings.Join(r.domains, ", ")))
	}
	return strings.Join(lines, "\n")
}

func (r report) outcome() string {
	name, wall, by := r.name(), seconds(r.ended.Wall), r.capabilities.Backend
	switch r.ended.Ended {
	case sandbox.Exited:
		return fmt.Sprintf(runExit, name, r.ended.Exit, wall, by)
	case sandbox.Signalled:
		return fmt.Sprintf(runSignalled, name, r.ended.Signal, wall, by)
	case sandbox.TimedOut:
		return fmt.Sprintf(runTimedOut, name, seconds(r.deadline), by)
	case sandbox.OutOfMem:
		return fmt.Sprintf(runOutOfMem, name, wall, by)
	case sandbox.TooMany:
		return fmt.Sprintf(runTooMany, name, wall, by)
	case sandbox.OutOfRoom:
		return fmt.Sprintf(runOutOfRoom, name, wall, by)
	}
	return fmt.Sprintf(runEnded, name, r.ended.Ended, wall, by)
}

// seconds is a time as a person reads it.
func seconds(d time.Duration) string {
	if d%time.Second == 0 && d > 0 {
		return fmt.Sprintf("%d s", d/time.Second)
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

// tail is what the host adds behind the output.
func (r report) tail(stdout, stderr tool.Stream) string {
	var parts []string
	if !r.ended.OK() {
		f := failedRun{script: r.script, scratch: r.scratch, output: stdout.Text() + "\n" + stderr.Text(), network: r.network}
		parts = append(parts, f.hints()...)
	}
	if r.others > 0 {
		parts = append(parts, fmt.Sprintf(runOneCall, r.others))
	}
	if r.files != "" {
		parts = append(parts, r.files)
	}
	return strings.Join(parts, "\n")
}

// exampleCall is the arguments of a call of skills_run as JSON. It cannot fail:
// strings are made valid.
func exampleCall(name, path string, args []string) string {
	quoted := make([]string, len(args))
	for i, arg := range args {
		quoted[i] = jsonString(arg)
	}
	return fmt.Sprintf(`{"skill": %s, "path": %s, "args": [%s]}`, jsonString(name), jsonString(path), strings.Join(quoted, ", "))
}

func jsonString(s string) string {
	b, err := json.Marshal(strings.ToValidUTF8(s, "\ufffd"), jsontext.EscapeForHTML(false))
	if err != nil {
		return `""`
	}
	return string(b)
}
