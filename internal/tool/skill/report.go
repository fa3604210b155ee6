package skill

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/interpreter"
	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/tool"
	"github.com/metier-run/metier/internal/workspace/diagnose"
)

// report is everything that is told of a run.
type report struct {
	script
	site
	ended          sandbox.Result
	stdout, stderr tool.Stream
	capabilities   sandbox.Capabilities
	network        sandbox.NetworkMode
	domains        []string
	deadline       time.Duration
	// notes are told before the outcome.
	notes []string
	// hinted is what the host knows of a failure, repair the way to a copy of the script,
	// and files what was kept, ready to show.
	hinted []string
	repair string
	files  string
	room   int
}

// report gathers what is known of a script that has ended.
func (s *Set) report(c script, at site, ended sandbox.Result, e tool.Env) report {
	r := report{script: c, site: at, ended: ended, room: e.Room, capabilities: s.runner.Capabilities(), deadline: s.scripts.Limits.Duration(config.ScriptTime)}
	r.network, r.domains = s.runner.Network()
	rewrite := c.paths(at).Rewrite
	r.stdout, r.stderr = tool.NewStream(ended.Stdout, rewrite), tool.NewStream(ended.Stderr, rewrite)
	return r
}

// result is the answer to the call, with the files that were kept.
func (r report) result(files []journal.File) journal.Result {
	return journal.Result{Text: r.render(), OK: r.ended.OK(), Skill: r.skill.Name, Detail: r.file.Path, Files: files}
}

// paths are what the host's paths become (seed 1, "recovers instead of reporting"; B1
// 10.10): the skill is called by its name.
func (c script) paths(at site) diagnose.Paths {
	p := diagnose.Paths{Root: at.root, Dir: at.cwd, Places: []diagnose.Named{{Path: c.dir, Name: c.skill.Name}}}
	add := func(dir, name string) { p.Places = append(p.Places, diagnose.Named{Path: dir, Name: name}) }
	if dir := c.skill.Dir(); filepath.IsAbs(dir) && dir != c.dir {
		add(dir, c.skill.Name)
	}
	for _, i := range c.interpreters() {
		for _, dir := range i.Read {
			add(dir, "<"+string(i.Kind)+">")
		}
	}
	if at.place == nil {
		return p
	}
	add(at.place.Workspace.Temp(), "$TMPDIR")
	add(at.place.Workspace.State(), stateName)
	for _, kind := range []interpreter.Kind{interpreter.Python, interpreter.Node} {
		if set, ok := at.place.Workspace.Packages(kind); ok {
			add(set.Dir, fmt.Sprintf("<%s packages>", kind))
		}
	}
	return p
}

// output is all that was said, for finding out what went wrong.
func (r report) output() string { return r.stdout.Text() + "\n" + r.stderr.Text() }

// render writes how it went, what was not confined, the output, what the host knows
// of a failure, and the files, in this order (B1 5.7). What was done before a script
// comes first; but a failure begins with what failed. The output gets what room is
// left by the rest: that is the host's own and stays whole.
func (r report) render() string {
	stdout, stderr := r.stdout, r.stderr
	head, tail := r.head(), r.tail()
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
	lines := slices.Concat(r.notes, []string{r.outcome()})
	if !r.ended.OK() {
		lines = slices.Concat([]string{r.outcome()}, r.notes)
	}
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
	name, wall, by := r.name(), tool.Seconds(r.ended.Wall), r.capabilities.Backend
	switch r.ended.Ended {
	case sandbox.Exited:
		return fmt.Sprintf(runExit, name, r.ended.Exit, wall, by)
	case sandbox.Signalled:
		return fmt.Sprintf(runSignalled, name, r.ended.Signal, wall, by)
	case sandbox.TimedOut:
		return fmt.Sprintf(runTimedOut, name, tool.Seconds(r.deadline), by)
	case sandbox.OutOfMem:
		return fmt.Sprintf(runOutOfMem, name, wall, by)
	case sandbox.TooMany:
		return fmt.Sprintf(runTooMany, name, wall, by)
	case sandbox.OutOfRoom:
		return fmt.Sprintf(runOutOfRoom, name, wall, by)
	}
	return fmt.Sprintf(runEnded, name, r.ended.Ended, wall, by)
}

// tail is what the host adds behind the output.
func (r report) tail() string {
	parts := slices.Clone(r.hinted)
	if r.repair != "" {
		parts = append(parts, r.repair)
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
