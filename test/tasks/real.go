package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/metier-run/metier/internal/app"
	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/interpreter"
	"github.com/metier-run/metier/internal/launch"
	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/turn"
	"github.com/metier-run/metier/test/tasks/task"
)

// real gives the tasks to a real model, one after the other, and tells what it made of
// them. That a model fails a task is no failure of the command.
func (p *place) real(ctx context.Context, o options, out io.Writer) error {
	p.upstream = app.Upstream{URL: o.upstream, Key: config.NewSecret(os.Getenv(o.keyEnv))}
	exec, stop, err := p.confine(ctx)
	if err != nil {
		return err
	}
	defer stop()
	p.exec = exec
	b, err := p.open(ctx, !o.off)
	if err != nil {
		return err
	}
	defer b.close()
	done, all := 0, count{}
	for _, k := range p.tasks {
		b.begin(ctx, k)
		began := time.Now()
		c, err := b.chat(ctx, o.model, k.Prompt, func(o turn.Outcome) bool { return o.OutOfRounds })
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil {
			err = b.verdict
		}
		word := "done"
		if err != nil {
			word = "failed: " + strings.ReplaceAll(err.Error(), "\n", " ")
		} else {
			done++
		}
		all.rounds, all.calls = all.rounds+c.rounds, all.calls+c.calls
		fmt.Fprintf(out, "%-28s %3d rounds %3d calls %4.0f s  %s\n", k.Name, c.rounds, c.calls, time.Since(began).Seconds(), word)
	}
	fmt.Fprintf(out, "%s: %d of %d tasks done, %d rounds, %d calls\n", o.model, done, len(p.tasks), all.rounds, all.calls)
	return nil
}

// checkTime and checkOutput bound a checker: what a real model wrote may run for ever.
const (
	checkTime   = 5 * time.Minute
	checkOutput = 64 << 10
)

// confine runs checkers in a sandbox, because they run what a real model wrote.
func (p *place) confine(ctx context.Context) (exec task.Exec, stop func(), err error) {
	data, err := filepath.Abs(p.data)
	if err != nil {
		return nil, nil, fmt.Errorf("confine the checkers: %w", err)
	}
	l, err := launch.Open(ctx, launch.Options{
		Policy:  sandbox.Policy{Mode: sandbox.Required, Minimum: sandbox.TierFull},
		Scratch: filepath.Join(p.temp, "scratch"), Search: os.Getenv("PATH"),
	})
	if err == nil {
		err = l.Problem()
	}
	if err != nil {
		return nil, nil, fmt.Errorf("confine the checkers: %w", err)
	}
	find := app.Scripts{}.FromEnvironment().Interpreters
	python, err := find.Find(interpreter.Python)
	if err != nil {
		return nil, nil, fmt.Errorf("confine the checkers: %w", err)
	}
	found := []interpreter.Interpreter{python}
	if node, err := find.Find(interpreter.Node); err == nil {
		found = append(found, node)
	}
	read := []string{data}
	for _, i := range found {
		read = append(read, i.Read...)
	}
	path := "PATH=" + joined(find.Search(found...))
	exec = func(ctx context.Context, dir string, env, argv []string) ([]byte, int, error) {
		env, temp := confinedEnv(env, dir)
		r, err := l.Run(ctx, sandbox.Launch{
			Purpose: sandbox.Script, Argv: append([]string{python.Path}, argv[1:]...), Dir: dir, Env: append(env, path),
			Write: []string{dir, temp}, Read: read, Deadline: checkTime, Output: checkOutput,
		})
		if err != nil {
			return nil, -1, err
		}
		output := slices.Concat(r.Stdout.Head, r.Stdout.Tail, r.Stderr.Head, r.Stderr.Tail)
		if r.Ended != sandbox.Exited {
			return output, -1, errors.New("the checker did not end by itself: " + string(r.Ended))
		}
		return output, r.Exit, nil
	}
	return exec, func() { _ = l.Close() }, nil // nothing is waited for
}

// confinedEnv is a checker's environment without the PATH of this host, with go's cache
// in the workspace, and the folder for temporary files in it.
func confinedEnv(env []string, work string) (kept []string, temp string) {
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		switch name {
		case "PATH":
			continue
		case "GOCACHE":
			e = "GOCACHE=" + filepath.Join(work, ".cache", "go-build")
		case "TMPDIR":
			temp = value
		}
		kept = append(kept, e)
	}
	return kept, temp
}
