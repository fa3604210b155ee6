package shell

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/metier-run/metier/internal/bash"
	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/interpreter"
	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/tool"
	"github.com/metier-run/metier/internal/workspace"
	"github.com/metier-run/metier/internal/workspace/artifact"
	"github.com/metier-run/metier/internal/workspace/diagnose"
	"github.com/metier-run/metier/internal/workspace/packages"
	"github.com/metier-run/metier/internal/workspace/shell"
)

// foreground runs a command to its end and tells how it went.
func (r *run) foreground(ctx context.Context) (journal.Result, error) {
	before, keeps := r.before(ctx)
	written := r.targets()
	began, timeout := time.Now(), r.o.Session.Timeout(r.args.timeout)
	out, err := r.o.Session.Run(ctx, r.command(r.line, timeout))
	if err != nil {
		return r.notStarted(ctx, err)
	}
	w := r.ended(out, timeout)
	if !r.o.NoRecovery {
		if w, err = r.autoInstall(ctx, w, began.Add(timeout)); err != nil {
			return journal.Result{}, err
		}
	}
	if ctx.Err() != nil {
		return journal.Result{}, fmt.Errorf("%s: %w", Name, context.Cause(ctx))
	}
	r.recover(ctx, w, written)
	result := journal.Result{OK: w.ok() && !r.failed, Detail: detail(r.args.command), Workspace: true}
	switch {
	case keeps:
		w.kept, result.Files = r.o.Artifacts.Keep(ctx, before)
	case r.o.Artifacts != nil:
		w.kept = notKept
	}
	result.Text = w.render()
	return result, nil
}

// before looks at the workspace before a command. A folder that cannot be looked at is
// no reason not to run: the session mends it.
func (r *run) before(ctx context.Context) (snapshot artifact.Snapshot, keeps bool) {
	if r.o.Artifacts == nil {
		return snapshot, false
	}
	snapshot, err := r.o.Artifacts.Before(ctx)
	if err != nil {
		r.o.Logger.WarnContext(ctx, "files of a command are not kept", "error", err)
	}
	return snapshot, err == nil
}

// command is a line as the session runs it.
func (r *run) command(line string, timeout time.Duration) shell.Command {
	c := shell.Command{Line: line, Timeout: timeout, Extra: workspace.Extra{Read: r.readable}}
	if r.args.workdir != "" {
		c.Workdir = r.began
	}
	if r.env.Progress != nil {
		c.Watch = func(_ sandbox.Stream, p []byte) { r.env.Progress(p) }
	}
	return c
}

// background starts a command that outlives its call (B1 9.10).
func (r *run) background(ctx context.Context) (journal.Result, error) {
	line := r.line
	if r.shape.jobs && !r.o.Facts.powerShell() {
		line += "\nwait\n" // else the end of the shell would end what it has started
	}
	job, err := r.o.Session.Background(ctx, r.command(line, 0))
	if err != nil {
		return r.notStarted(ctx, err)
	}
	look := lookTail
	if r.o.Facts.powerShell() {
		look = lookPowerShell
	}
	return r.say(true, joined(fmt.Sprintf(started, job.ID, job.Shown), fmt.Sprintf(look, job.Shown), startedEnds)), nil
}

// notStarted tells of a command of which nothing ran. A second one in a row tells that
// the shell itself is broken (B1 9.14).
func (r *run) notStarted(ctx context.Context, err error) (journal.Result, error) {
	failed, isHost := errors.AsType[*shell.NotStartedError](err)
	switch {
	case ctx.Err() != nil:
		return journal.Result{}, fmt.Errorf("%s: %w", Name, err)
	case errors.Is(err, sandbox.ErrBusy):
		return r.say(false, busy), nil
	case errors.Is(err, shell.ErrJobs):
		if most := r.limits.Int(config.JobsAtOnce); most > 0 {
			return r.say(false, fmt.Sprintf(manyJobs, most)), nil
		}
		return r.say(false, noJobs), nil
	case !isHost:
		return r.say(false, fmt.Sprintf(cannotRun, strings.TrimPrefix(err.Error(), "run a command: "))), nil
	}
	r.o.Logger.ErrorContext(ctx, "command not started", "error", err)
	why := strings.TrimSuffix(r.paths(r.began, shell.Outcome{}).Rewrite(tool.Clip(failed.Err.Error())), ".")
	if failed.InARow < 2 {
		return r.say(false, fmt.Sprintf(notStarted, why)+" "+notStartedOnce), nil
	}
	text := fmt.Sprintf(notStarted, why) + " " + fmt.Sprintf(shellBroken, failed.InARow)
	if r.o.Facts.Files {
		return r.say(false, text+" "+brokenWithFiles), nil
	}
	return r.say(false, text+" "+brokenAlone), nil
}

// ended is what is known of a command that has run, with the time that it had.
func (r *run) ended(out shell.Outcome, had time.Duration) *went {
	if out.Ran == "" {
		out.Ran = r.began
	}
	w := &went{run: r, out: out, at: out.Ran, had: had}
	if out.Moved {
		w.at = out.Dir // what failed ran behind the cd, and there the next call begins
	}
	rewrite := r.paths(w.at, out).Rewrite
	w.stdout, w.stderr = tool.NewStream(out.Stdout, rewrite), tool.NewStream(out.Stderr, rewrite)
	if out.Ended == sandbox.Exited && !r.failed && !r.o.NoRecovery {
		w.benign, _ = diagnose.Benign(r.line, out.Exit, w.stderr.Text())
	}
	return w
}

// autoInstall installs what a command misses and runs it again, within the call's own
// time (B1 10.1). What comes back is how it went in the end.
func (r *run) autoInstall(ctx context.Context, w *went, until time.Time) (*went, error) {
	tried := map[string]bool{}
	for range r.limits.Int(config.InstallAuto) {
		m, ok := w.missing()
		kind := m.Tool.Interpreter()
		if !ok || tried[m.Distribution] || !r.mayInstall(kind, m.Distribution) {
			return w, nil
		}
		tried[m.Distribution] = true
		names, bad, err := r.install(ctx, kind, []packages.Spec{{Name: m.Distribution}})
		switch {
		case err != nil:
			return w, err
		case bad != nil:
			return w, nil // the coaching says why
		}
		came := strings.Join(names, ", ")
		left := time.Until(until)
		if left <= 0 {
			r.notes = append(r.notes, fmt.Sprintf(autoLate, m.Name, came))
			w.settled = true
			return w, nil
		}
		again, err := r.again(ctx, w, left)
		switch {
		case err != nil && ctx.Err() != nil:
			return w, fmt.Errorf("%s: run again: %w", Name, err)
		case err != nil:
			r.o.Logger.WarnContext(ctx, "command not started again", "error", err)
			r.notes = append(r.notes, fmt.Sprintf(autoStuck, m.Name, came))
			w.settled = true
			return w, nil
		}
		r.notes = append(r.notes, fmt.Sprintf(autoInstalled, m.Name, came))
		w = again
	}
	return w, nil
}

// mayInstall reports whether the host installs a distribution unasked.
func (r *run) mayInstall(kind interpreter.Kind, distribution string) bool {
	if r.o.Installer == nil || r.hasDistribution(kind, distribution) || !r.listed(kind, distribution) {
		return false
	}
	before, failed := r.lostBefore(kind, distribution)
	return !failed || before.passing
}

// again runs the command once more from where it began, although it may have moved the
// session before it failed.
func (r *run) again(ctx context.Context, w *went, left time.Duration) (*went, error) {
	line := r.line
	if w.out.Moved {
		back := bash.Argument(r.path(w.out.Ran))
		if r.o.Facts.powerShell() {
			line = "Set-Location -LiteralPath '" + strings.ReplaceAll(r.path(w.out.Ran), "'", "''") + "'; " + line
		} else {
			line = "cd " + back + "; " + line
		}
	}
	out, err := r.o.Session.Run(ctx, r.command(line, left))
	if err != nil {
		return nil, err
	}
	out.Moved = out.Dir != r.was
	out.Reset = out.Reset || w.out.Reset
	out.Ran = w.out.Ran
	next := r.ended(out, left)
	next.settled = out.Ended == sandbox.TimedOut // it is to be run again
	return next, nil
}
