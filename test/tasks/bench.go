package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/metier-run/metier/internal/app"
	"github.com/metier-run/metier/test/tasks/index"
	"github.com/metier-run/metier/test/tasks/task"
)

// place is what all hosts under test share: the tasks, and the servers around a host.
type place struct {
	// data is the folder testdata, temp one for everything that goes.
	data, temp string
	tasks      []task.Task
	// upstream is where the model is, and index the address of the packages.
	upstream app.Upstream
	index    string
	// cache is what go keeps of a build of the Go tasks.
	cache string
	// exec runs the checkers.
	exec task.Exec
	log  io.Writer
}

// bench is a host under test: metier in this process. It plays one run at a time, so
// that it knows whose files it is asked for.
type bench struct {
	p    *place
	app  *app.App
	url  string
	stop func()

	ctx context.Context // of the run
	now *task.Task
	// verdict is what the checker says; errUntouched until it was asked.
	verdict error
}

// errUntouched is the verdict of a run in which no tool was called.
var errUntouched = errors.New("the model never worked in the workspace")

// open starts a host with the recovery on or off.
func (p *place) open(ctx context.Context, recovery bool) (*bench, error) {
	home, err := os.MkdirTemp(p.temp, "home-")
	if err != nil {
		return nil, fmt.Errorf("open a host: %w", err)
	}
	b := &bench{p: p}
	s := app.Settings{
		Home: home, NoSkills: true, Scripts: app.Scripts{}.FromEnvironment(),
		Upstream: p.upstream,
		Code: app.Code{
			Allowed: true, Install: true, Index: p.index + index.PipPath,
			NoRecovery: !recovery, Prepare: b.prepare, Inspect: b.inspect,
		},
	}
	s.Scripts.Environ = append(s.Scripts.Environ, "NPM_CONFIG_REGISTRY="+p.index+index.NpmPath)
	if b.app, err = app.Open(ctx, s, slog.New(slog.NewTextHandler(p.log, nil))); err != nil {
		return nil, fmt.Errorf("open a host: %w", err)
	}
	if c, _ := b.app.CodeConfinement(); c.Problem != nil {
		b.app.Close()
		return nil, fmt.Errorf("open a host: %w", c.Problem)
	}
	url, stop, err := serve(ctx, b.app.Server(true))
	if err != nil {
		b.app.Close()
		return nil, err
	}
	b.url, b.stop = url, stop
	return b, nil
}

// close ends the host and removes what it kept.
func (b *bench) close() {
	b.stop()
	b.app.Close()
	_ = os.RemoveAll(b.app.Settings.Home) // the whole folder goes in the end
}

// prepare lays the files of the task out.
func (b *bench) prepare(dir string) error {
	if err := b.now.Lay(dir); err != nil {
		return err
	}
	if !isGo(*b.now) || b.p.cache == "" {
		return nil
	}
	cache := filepath.Join(dir, ".cache", "go-build")
	if err := os.MkdirAll(filepath.Dir(cache), 0o755); err != nil {
		return fmt.Errorf("lay out the cache of go: %w", err)
	}
	if err := os.CopyFS(cache, os.DirFS(b.p.cache)); err != nil {
		return fmt.Errorf("lay out the cache of go: %w", err)
	}
	return nil
}

// inspect has the checker look at the finished workspace.
func (b *bench) inspect(dir string) { b.verdict = b.now.Check(b.ctx, b.p.exec, dir) }

// begin says which run comes next.
func (b *bench) begin(ctx context.Context, k task.Task) {
	b.ctx, b.now, b.verdict = ctx, &k, errUntouched
}

// serve answers on a free port of this machine until stop.
func serve(ctx context.Context, h http.Handler) (url string, stop func(), err error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("listen: %w", err)
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(l) // it ends with stop
	}()
	return "http://" + l.Addr().String(), func() { _ = s.Close(); <-done }, nil
}
