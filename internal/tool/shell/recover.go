package shell

import (
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/interpreter"
	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/tool"
	"github.com/metier-run/metier/internal/workspace"
	"github.com/metier-run/metier/internal/workspace/diagnose"
)

// target is a file that the command redirects into, as it was before.
type target struct {
	rel    string
	shown  string
	append bool
	before []byte // nil when there was none
	fresh  bool   // the model knew all of it
}

// targets are the files that the line writes by redirection, as they are before it
// runs (B1 10.8, 10.11).
func (r *run) targets() []target {
	var found []target
	for _, d := range diagnose.Redirects(r.args.command) {
		if len(found) == r.limits.Int(config.SeenFiles) {
			break
		}
		rel, err := r.relativeTo(r.began, d.Path)
		if err != nil {
			continue
		}
		t := target{rel: rel, shown: d.Path, append: d.Append}
		if data, err := r.read(rel); err == nil && int64(len(data)) <= r.limits.Get(config.SeenBytes) {
			t.before = data
			t.fresh = r.o.Workspace.Seen.Know(rel, data) == workspace.Fresh
		}
		found = append(found, t)
	}
	return found
}

// missing is the package that the command failed for, if it is one that the host may
// install.
func (w *went) missing() (diagnose.Module, bool) {
	if w.ok() || w.out.Ended != sandbox.Exited || w.stdout.Empty() && w.stderr.Empty() {
		return diagnose.Module{}, false
	}
	f := w.read()
	return f.Module, f.Class == diagnose.MissingModule && f.Module.Distribution != ""
}

// read says what the output of a failed command means.
func (w *went) read() diagnose.Failure {
	r := w.run
	facts := diagnose.Facts{
		PowerShell: r.o.Facts.powerShell(), Network: r.o.Facts.Network == sandbox.NetworkOpen, Installs: r.o.Installer != nil,
		Installed: func(t diagnose.Tool, name string) bool { return r.hasDistribution(t.Interpreter(), name) },
		Refused:   r.refused,
		Files:     w.files(),
		Program:   r.finds,
	}
	if i, err := r.o.Workspace.Interpreter(interpreter.Python); err == nil {
		facts.Python = i.Version
	}
	return diagnose.Read(w.output(), facts)
}

// refused is why a distribution cannot be had.
func (r *run) refused(t diagnose.Tool, name string) (string, bool) {
	kind := t.Interpreter()
	if r.o.Installer != nil && !r.listed(kind, name) {
		return fmt.Sprintf(onlyListed, strings.Join(r.o.Facts.Packages, ", ")), true
	}
	before, failed := r.lostBefore(kind, name)
	return before.reason, failed
}

// finds reports whether a command can find a program.
func (r *run) finds(name string) bool {
	if name != filepath.Base(name) {
		return false
	}
	l := r.o.Workspace.Launch(sandbox.Shell, ".", workspace.Extra{})
	for _, e := range l.Env {
		if dirs, ok := strings.CutPrefix(e, "PATH="); ok {
			return slices.ContainsFunc(filepath.SplitList(dirs), func(dir string) bool { return r.hasProgram(dir, name) })
		}
	}
	return false
}

// hasProgram reports whether a directory of PATH has a program. One that commands can write
// is looked at through the guard.
func (r *run) hasProgram(dir, name string) bool {
	rel, err := filepath.Rel(r.o.Workspace.Work(), dir)
	if err != nil || !filepath.IsLocal(rel) {
		return runs([]string{dir}, name)
	}
	return r.runsOwn(filepath.ToSlash(filepath.Join(rel, name)))
}

// files are those of the workspace near where the command ran, by their paths from
// there.
func (w *went) files() iter.Seq[string] {
	return func(yield func(string) bool) {
		root, err := w.run.o.Workspace.Files()
		if err != nil {
			return
		}
		defer root.Close()
		left := w.run.limits.Int(config.ArtifactEntries)
		for e, err := range root.Walk(context.Background(), workspace.Skips) {
			if left--; left < 0 {
				return
			}
			if err != nil || e.Info.IsDir() {
				continue
			}
			rel, err := filepath.Rel(filepath.FromSlash(w.at), filepath.FromSlash(e.Path))
			if err == nil && !yield(filepath.ToSlash(rel)) {
				return
			}
		}
	}
}

// recover gathers what the host adds to an outcome (seed 1, "When the model gets it
// wrong"; the order is that of B1 9.11).
func (r *run) recover(ctx context.Context, w *went, written []target) {
	r.ingest(written)
	if r.o.NoRecovery {
		return
	}
	if !w.ok() && w.out.Ended == sandbox.Exited && !w.settled {
		r.coach(ctx, w)
	}
	if !w.settled {
		w.add(r.attempts.Record(r.args.command, !w.ok() || r.failed))
	}
	var rewrites []diagnose.Rewrite
	var files []tool.Written
	for _, t := range written {
		data, err := r.read(t.rel)
		if err != nil || t.before != nil && string(data) == string(t.before) {
			continue
		}
		if !t.append && t.before != nil {
			rewrites = append(rewrites, diagnose.Rewrite{Path: t.shown, Before: t.before, After: data})
		}
		files = append(files, tool.Written{Path: t.rel, Shown: t.shown, Data: data})
	}
	if r.o.Facts.Files {
		w.add(diagnose.Rewrites(rewrites, r.limits.Get(config.SeenBytes)))
	}
	if w.ok() && r.o.Syntax != nil && len(files) > 0 {
		w.add(r.o.Syntax(ctx, files))
	}
}

// coach says what a failure comes from and what to do. The place of an error is shown
// with what a library has, too: the repair needs its lines.
func (r *run) coach(ctx context.Context, w *went) {
	f := w.read()
	if f.Class == diagnose.APIMiss {
		w.add(r.probe(ctx, w, f.Miss))
	}
	w.add(f.Coach())
	if r.o.Facts.Files && (f.Class == diagnose.Code || f.Class == diagnose.APIMiss) {
		w.add(w.repair())
	}
}

// find reads a file by the path that an output or a line has for it: from where the
// command was in the end, or else from where it began.
func (w *went) find(name string) (rel string, data []byte, ok bool) {
	for _, dir := range []string{w.at, w.out.Ran} {
		rel, err := w.run.relativeTo(dir, name)
		if err != nil {
			continue
		}
		if data, err := w.run.read(rel); err == nil {
			return rel, data, true
		}
	}
	return "", nil, false
}

// repair shows the place that an error comes from (B1 10.12). What it shows, the model
// has seen.
func (w *went) repair() string {
	hint, ok := diagnose.Repair(w.output(), func(name string) ([]byte, bool) {
		_, data, ok := w.find(name)
		return data, ok
	})
	if !ok {
		return ""
	}
	ws := w.run.o.Workspace
	rel, data, ok := w.find(hint.Path)
	if !ok {
		return hint.Sentence()
	}
	for _, n := range hint.Shown {
		ws.Seen.Some(rel, data, n, n)
	}
	if name := ws.Shown(rel); name != hint.Path {
		return hint.Sentence() + " " + fmt.Sprintf(fileIs, name)
	}
	return hint.Sentence()
}

// probe looks what a library has in place of a name that it has not (B1 10.6). It is
// silent on any failure.
func (r *run) probe(ctx context.Context, w *went, m diagnose.Miss) string {
	if r.o.Runner == nil {
		return ""
	}
	limit := r.limits.Duration(config.ProbeTime)
	program, ok := m.Probe(r.line, func(name string) ([]byte, bool) {
		_, data, ok := w.find(name)
		return data, ok && int64(len(data)) <= r.limits.Get(config.SeenBytes)
	}, limit)
	if !ok {
		return ""
	}
	with, own := r.o.Workspace.Own(program.Kind)
	if !own {
		var err error
		if with, err = r.o.Workspace.Interpreter(program.Kind); err != nil {
			return ""
		}
	}
	// The host's variables: what the model exported could lead to code of its own.
	l := r.o.Workspace.Launch(sandbox.Probe, w.at, workspace.Extra{})
	l.Argv = append([]string{with.Path}, program.Argv()...)
	l.Deadline, l.Output = limit, r.limits.Get(config.ProbeOutput)
	out, err := r.o.Runner.Run(ctx, l)
	if err != nil {
		return ""
	}
	return diagnose.ReadProbe(m, string(out.Stdout.Head)+string(out.Stdout.Tail))
}

// ingest notes what the model has seen of the files that its command wrote: those that
// hold the text of a heredoc word for word (B1 11.6). A program's output does not count.
func (r *run) ingest(written []target) {
	for _, t := range written {
		data, err := r.read(t.rel)
		if err != nil || int64(len(data)) > r.limits.Get(config.SeenBytes) {
			continue
		}
		known := slices.ContainsFunc(r.shape.bodies, func(body string) bool {
			if t.append {
				return t.fresh && string(data) == string(t.before)+body
			}
			return string(data) == body
		})
		if known {
			r.o.Workspace.Seen.Whole(t.rel, data)
		}
	}
}
