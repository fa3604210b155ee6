package launch

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/sandbox/native"
)

// trial has a backend hold a canary that tries to get out in five ways. A backend that
// looks right and is not is worse than none, so each is tried at every start. That it
// runs anything at all, `true`, each backend tried when it was found.
func (o Options) trial(ctx context.Context, b sandbox.Backend) error {
	t, err := newTrial(ctx, o)
	if err != nil {
		return t.failed(b, "prepare a trial", err)
	}
	defer t.close()
	return t.failed(b, "hold a program that tries to get out", t.canary(ctx, b))
}

type trial struct {
	o        Options
	dir      string // holds work, and beside it what must stay out of reach
	work     string
	secret   string
	listener net.Listener
	reached  atomic.Int64
	done     chan struct{}
}

func newTrial(ctx context.Context, o Options) (*trial, error) {
	t := &trial{o: o, secret: rand.Text(), done: make(chan struct{})}
	root, err := filepath.EvalSymlinks(o.Scratch)
	if err != nil {
		return t, err
	}
	if t.dir, err = os.MkdirTemp(root, "trial-"); err != nil {
		return t, err
	}
	t.work = filepath.Join(t.dir, "work")
	// A launch of root's may have a user of its own, who passes here.
	err = errors.Join(os.Chmod(t.dir, 0o711), os.Mkdir(t.work, 0o700), os.Mkdir(t.outside(""), 0o700),
		os.WriteFile(t.outside("secret"), []byte(t.secret), 0o600))
	if err == nil {
		var lc net.ListenConfig
		t.listener, err = lc.Listen(ctx, "tcp4", "127.0.0.1:0")
	}
	if err != nil {
		_ = os.RemoveAll(t.dir) // err is what matters
		return t, err
	}
	go t.count()
	return t, nil
}

func (t *trial) outside(name string) string { return filepath.Join(t.dir, "outside", name) }

// count counts who reaches the host's own loopback.
func (t *trial) count() {
	defer close(t.done)
	for {
		conn, err := t.listener.Accept()
		if err != nil {
			return
		}
		t.reached.Add(1)
		_ = conn.Close()
	}
}

func (t *trial) close() {
	_ = t.listener.Close()
	<-t.done
	_ = os.RemoveAll(t.dir) // the next start sweeps what is left
}

func (t *trial) launch(argv ...string) sandbox.Launch {
	return sandbox.Launch{
		Purpose: sandbox.Canary, Argv: argv, Dir: t.work, Write: []string{t.work},
		Env:      []string{"PATH=/usr/bin:/bin", "HOME=" + t.work},
		Deadline: t.o.Limits.Duration(config.SandboxSetUp), Output: t.o.Limits.Get(config.ScriptOutput),
		Memory: t.o.Limits.Get(config.SandboxMemory), Processes: t.o.Limits.Get(config.SandboxProcs), Disk: t.o.Limits.Get(config.SandboxDisk),
	}
}

func (t *trial) canary(ctx context.Context, b sandbox.Backend) error {
	exe, err := os.Executable()
	if err == nil {
		exe, err = filepath.EvalSymlinks(exe)
	}
	if err != nil {
		return err
	}
	l := t.launch(native.Canary(exe, t.outside("secret"), t.outside("written"), t.listener.Addr().String())...)
	l.Read = []string{exe}
	r, err := sandbox.Run(ctx, b, l)
	if err != nil {
		return err
	}
	said := r.Stdout.Text()
	if !strings.Contains(said, native.CanaryDone) {
		return fmt.Errorf("it did not end: it %s with status %d: %s", r.Ended, r.Exit, r.Stderr.Text())
	}
	if got := t.escapes(said); len(got) > 0 {
		return errors.New("it got out: " + strings.Join(got, ", "))
	}
	return nil
}

// escapes are the ways in which the canary got out: by its own word, and by what
// this side sees.
func (t *trial) escapes(said string) []string {
	var got []string
	if strings.Contains(said, t.secret) || strings.Contains(said, native.CanaryRead) {
		got = append(got, "it read a file outside")
	}
	if _, err := os.Lstat(t.outside("written")); err == nil || strings.Contains(said, native.CanaryWrote) {
		got = append(got, "it wrote a file outside")
	}
	if t.reached.Load() > 0 || strings.Contains(said, native.CanaryConnected) {
		got = append(got, "it reached this host's network")
	}
	if strings.Contains(said, native.CanaryVsock) {
		got = append(got, "it made a socket to the machine's host")
	}
	if strings.Contains(said, native.CanaryNamespace) {
		got = append(got, "it may make user namespaces")
	}
	return got
}

func (t *trial) failed(b sandbox.Backend, what string, err error) error {
	if err == nil {
		return nil
	}
	if u, ok := errors.AsType[*sandbox.Unavailable](err); ok {
		return u // it names the step and the remedy
	}
	return &sandbox.Unavailable{Backend: b.Name(), Step: what, Err: err}
}
