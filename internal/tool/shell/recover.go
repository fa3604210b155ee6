package shell

import (
	"context"
	"iter"
	"path/filepath"
	"strings"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/interpreter"
	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/workspace"
	"github.com/metier-run/metier/internal/workspace/diagnose"
)

func filepathJoin(dir, rel string) string { return filepath.Join(dir, filepath.FromSlash(rel)) }

// target is a file that the command redirects into, as it was before.
type target struct {
	rel    string
	shown  string
	append bool
	before []byte // nil when there was none
}

// targets are the files that the line writes by redirection, as they are before it
// runs (B1 10.8, 10.11).
func (r *run) targets() []target {
	var found []target
	for _, d := range diagnose.Redirects(r.args.command) {
		if len(found) == r.limits.Int(config.SeenFiles) {
			break
		}
		rel, err := r.relative(d.Path)
		if err != nil {
			continue
		}
		t := target{rel: rel, shown: d.Path, append: d.Append}
		if data, err := r.read(rel); err == nil && int64(len(data)) <= r.limits.Get(config.SeenBytes) {
			t.before = data
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
		Dialect: diagnose.Dialect(strings.ToLower(r.o.Facts.Dialect)), Network: r.o.Facts.Network == sandbox.NetworkOpen, Installs: r.o.Installer != nil,
		Installed: func(t diagnose.Tool, name string) bool { return r.hasDistribution(interpreterOf(t), name) },
		Refused:   func(t diagnose.Tool, name string) (string, bool) { return r.refusedBefore(interpreterOf(t), name) },
		Files:     w.files(),
		Program:   r.finds,
	}
	if i, err := r.o.Workspace.Interpreter(interpreter.Python); err == nil {
		facts.Python = i.Version
	}
	return diagnose.Read(w.output(), facts)
}

// finds reports whether a command can find a program.
func (r *run) finds(name string) bool {
	l := r.o.Workspace.Launch(sandbox.Shell, ".", workspace.Extra{})
	for _, e := range l.Env {
		if dirs, ok := strings.CutPrefix(e, "PATH="); ok {
			return name == filepath.Base(name) && runs(filepath.SplitList(dirs), name)
		}
	}
	return false
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
		ran := w.ran()
		left := w.run.limits.Int(config.ArtifactEntries)
		for e, err := range root.Walk(context.Background(), workspace.Skips) {
			if left--; left < 0 {
				return
			}
			if err != nil || e.Info.IsDir() {
				continue
			}
			rel, err := filepath.Rel(filepath.FromSlash(ran), filepath.FromSlash(e.Path))
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
	failed := !w.ok()
	if failed && w.out.Ended == sandbox.Exited {
		r.coach(ctx, w)
	}
	if warning := r.attempts.Record(r.args.command, failed); warning != "" {
		w.add(warning)
	}
	var rewrites []diagnose.Rewrite
	var files []Written
	for _, t := range written {
		data, err := r.read(t.rel)
		if err != nil || string(data) == string(t.before) {
			continue
		}
		if !t.append && t.before != nil {
			rewrites = append(rewrites, diagnose.Rewrite{Path: t.shown, Before: t.before, After: data})
		}
		files = append(files, Written{Path: t.rel, Shown: t.shown, Data: data})
	}
	if r.o.Facts.Files {
		w.add(diagnose.Rewrites(rewrites, r.limits.Get(config.SeenBytes)))
	}
	if !failed && r.o.Syntax != nil && len(files) > 0 {
		w.add(r.o.Syntax(ctx, files))
	}
}

// coach says what a failure comes from and what to do.
func (r *run) coach(ctx context.Context, w *went) {
	f := w.read()
	if f.Class == diagnose.APIMiss {
		if found := r.probe(ctx, w, f.Miss); found != "" {
			w.add(found)
		}
	}
	w.add(f.Coach())
	if r.o.Facts.Files && (f.Class == diagnose.Code || f.Class == diagnose.APIMiss) {
		w.add(w.repair())
	}
}

// repair shows the place that an error comes from (B1 10.12). What it shows, the model
// has seen.
func (w *went) repair() string {
	r := w.run
	read := func(name string) ([]byte, bool) {
		rel, err := r.relativeTo(w.ran(), name)
		if err != nil {
			return nil, false
		}
		data, err := r.read(rel)
		return data, err == nil
	}
	hint, ok := diagnose.Repair(w.output(), read)
	if !ok {
		return ""
	}
	if rel, err := r.relativeTo(w.ran(), hint.Path); err == nil {
		if data, err := r.read(rel); err == nil {
			for _, n := range hint.Shown {
				r.o.Workspace.Seen.Some(rel, data, n, n)
			}
		}
	}
	return hint.Sentence()
}

// probe looks what a library has in place of a name that it has not (B1 10.6). It is
// silent on any failure.
func (r *run) probe(ctx context.Context, w *went, m diagnose.Miss) string {
	if r.o.Runner == nil {
		return ""
	}
	read := func(name string) ([]byte, bool) {
		rel, err := r.relativeTo(w.ran(), name)
		if err != nil {
			return nil, false
		}
		data, err := r.read(rel)
		return data, err == nil && int64(len(data)) <= r.limits.Get(config.SeenBytes)
	}
	limit := r.limits.Duration(config.ProbeTime)
	program, ok := m.Probe(r.line, read, limit)
	if !ok {
		return ""
	}
	with, err := r.o.Workspace.Interpreter(program.Kind)
	if err != nil {
		return ""
	}
	l := r.o.Workspace.Launch(sandbox.Probe, w.ran(), workspace.Extra{})
	l.Argv = append([]string{with.Path}, program.Argv()...)
	l.Deadline, l.Output = limit, r.limits.Get(config.ProbeOutput)
	out, err := r.o.Runner.Run(ctx, l)
	if err != nil {
		return ""
	}
	return diagnose.ReadProbe(m, string(out.Stdout.Head)+string(out.Stdout.Tail))
}

// ingest notes what the model has seen of the files that its command wrote: what stands
// in the command word for word (B1 11.6).
func (r *run) ingest(written []target) {
	for _, t := range written {
		data, err := r.read(t.rel)
		if err != nil || len(data) == 0 || int64(len(data)) > r.limits.Get(config.SeenBytes) {
			continue
		}
		if !t.append && strings.Contains(r.args.command, string(data)) {
			r.o.Workspace.Seen.Whole(t.rel, data)
		}
	}
}
