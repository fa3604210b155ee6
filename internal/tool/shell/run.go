package shell

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/interpreter"
	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/tool"
	"github.com/metier-run/metier/internal/workspace/artifact"
	"github.com/metier-run/metier/internal/workspace/diagnose"
	"github.com/metier-run/metier/internal/workspace/packages"
	"github.com/metier-run/metier/internal/workspace/shell"
)

// foreground runs a command to its end and tells how it went.
func (r *run) foreground(ctx context.Context) (journal.Result, error) {
	before, keeps, err := r.before(ctx)
	if err != nil {
		return journal.Result{}, err
	}
	written := r.targets()
	began, timeout := time.Now(), r.o.Session.Timeout(r.args.timeout)
	out, err := r.o.Session.Run(ctx, r.command(timeout))
	if err != nil {
		return r.notStarted(ctx, err)
	}
	w := r.ended(out)
	if !r.o.NoRecovery {
		if err := r.autoInstall(ctx, w, began.Add(timeout)); err != nil {
			return journal.Result{}, err
		}
	}
	if ctx.Err() != nil {
		return journal.Result{}, fmt.Errorf("%s: %w", Name, context.Cause(ctx))
	}
	r.recover(ctx, w, written)
	result := journal.Result{OK: w.ok() && !r.failed, Detail: detail(r.args.command)}
	if keeps {
		w.kept, result.Files = r.o.Artifacts.Keep(ctx, before)
	}
	result.Text = w.render()
	return result, nil
}

// before looks at the workspace before a command.
func (r *run) before(ctx context.Context) (snapshot artifact.Snapshot, keeps bool, err error) {
	if r.o.Artifacts == nil {
		return snapshot, false, nil
	}
	if snapshot, err = r.o.Artifacts.Before(ctx); err != nil {
		return snapshot, false, fmt.Errorf("%s: %w", Name, err)
	}
	return snapshot, true, nil
}

// notStarted tells of a command of which nothing ran. A second one in a row tells that
// the shell itself is broken (B1 9.14).
func (r *run) notStarted(ctx context.Context, err error) (journal.Result, error) {
	failed, isHost := errors.AsType[*shell.NotStartedError](err)
	switch {
	case ctx.Err() != nil:
		return journal.Result{}, fmt.Errorf("%s: %w", Name, err)
	case errors.Is(err, sandbox.ErrBusy):
		return journal.Result{Text: busy}, nil
	case errors.Is(err, shell.ErrJobs):
		return journal.Result{Text: fmt.Sprintf(manyJobs, r.limits.Int(config.JobsAtOnce))}, nil
	case !isHost:
		return journal.Result{Text: fmt.Sprintf(cannotRun, strings.TrimPrefix(err.Error(), "run a command: "))}, nil
	}
	r.o.Logger.ErrorContext(ctx, "command not started", "error", err)
	why := r.paths(shell.Outcome{}).Rewrite(tool.Clip(failed.Err.Error()))
	text := fmt.Sprintf(notStarted, why)
	if failed.InARow > 1 {
		text += fmt.Sprintf(shellBroken, failed.InARow) + " "
		if r.o.Facts.Files {
			text += brokenWithFiles
		} else {
			text += brokenAlone
		}
	}
	return journal.Result{Text: joined(append(r.notes, text)...)}, nil
}

// ended is what is known of a command that has run.
func (r *run) ended(out shell.Outcome) *went {
	w := &went{run: r, out: out, paths: r.paths(out)}
	w.stdout, w.stderr = tool.NewStream(out.Stdout, w.paths.Rewrite), tool.NewStream(out.Stderr, w.paths.Rewrite)
	if out.Ended == sandbox.Exited {
		w.benign, _ = diagnose.Benign(r.line, out.Exit, w.stderr.Text())
	}
	return w
}

// paths are what the host's paths become where the command ran (B1 10.10).
func (r *run) paths(out shell.Outcome) diagnose.Paths {
	ws := r.o.Workspace
	ran := out.Ran
	if ran == "" {
		ran = "."
	}
	p := diagnose.Paths{
		Root: ws.Work(), Dir: filepathJoin(ws.Work(), ran), Wrapper: out.Script.Path, Marker: out.Script.Lines,
		Places: []diagnose.Named{{Path: ws.Temp(), Name: "$TMPDIR"}, {Path: ws.State(), Name: "(the host's state)"}},
	}
	for _, kind := range []interpreter.Kind{interpreter.Python, interpreter.Node} {
		if set, ok := ws.Packages(kind); ok {
			p.Places = append(p.Places, diagnose.Named{Path: set.Dir, Name: fmt.Sprintf("<%s packages>", kind)})
		}
	}
	return p
}

// autoInstall installs what a command misses and runs it again, within the call's own
// time (B1 10.1).
func (r *run) autoInstall(ctx context.Context, w *went, until time.Time) error {
	tried := map[string]bool{}
	for range r.limits.Int(config.InstallAuto) {
		m, ok := w.missing()
		if !ok || tried[m.Distribution] {
			return nil
		}
		tried[m.Distribution] = true
		kind := interpreterOf(m.Tool)
		if r.o.Installer == nil || r.hasDistribution(kind, m.Distribution) || !r.allowed(m.Distribution) {
			return nil
		}
		if _, failed := r.refusedBefore(kind, m.Distribution); failed {
			return nil
		}
		names, reason, err := r.install(ctx, kind, []packages.Spec{{Name: m.Distribution}})
		if err != nil {
			return err
		}
		if reason != "" {
			r.notes = append(r.notes, fmt.Sprintf(autoFailed, m.Name, m.Distribution, reason))
			return nil
		}
		left := time.Until(until)
		if left <= 0 {
			r.notes = append(r.notes, fmt.Sprintf(autoLate, m.Name, strings.Join(names, ", ")))
			return nil
		}
		r.notes = append(r.notes, fmt.Sprintf(autoInstalled, m.Name, strings.Join(names, ", ")))
		out, err := r.o.Session.Run(ctx, r.command(left))
		if err != nil {
			return fmt.Errorf("%s: run again: %w", Name, err)
		}
		*w = *r.ended(out)
	}
	return nil
}

func interpreterOf(t diagnose.Tool) interpreter.Kind {
	if t == diagnose.Npm {
		return interpreter.Node
	}
	return interpreter.Python
}

// allowed reports whether the operator's list of packages has a name.
func (r *run) allowed(distribution string) bool {
	if len(r.o.Facts.Packages) == 0 {
		return true
	}
	for _, name := range r.o.Facts.Packages {
		if sameName(interpreter.Python, name, distribution) {
			return true
		}
	}
	return false
}
