package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// process is a child that serves on a port.
type process struct {
	name string
	url  string
	cmd  *exec.Cmd
	log  string // what it wrote to standard error
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// house holds the programs, the folder they may write in, and every child that
// runs. It is for one goroutine.
type house struct {
	root, dir        string
	metier, upstream string
	self             string
	running          []*process
	progress         io.Writer
}

// newHouse builds the programs. With metier set, that binary is measured.
func newHouse(ctx context.Context, metier string, progress io.Writer) (*house, error) {
	root, err := moduleRoot(ctx)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("bench: find this program: %w", err)
	}
	dir, err := os.MkdirTemp("", "metier-bench-")
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	h := &house{root: root, dir: dir, self: self, metier: metier, progress: progress}
	if h.upstream, err = h.build(ctx, "test/upstream"); err == nil && metier == "" {
		h.metier, err = h.build(ctx, "cmd/metier")
	}
	if err != nil {
		h.close()
		return nil, err
	}
	return h, nil
}

// close ends every child and removes what they wrote.
func (h *house) close() {
	for _, p := range slices.Clone(h.running) {
		h.stop(p)
	}
	_ = os.RemoveAll(h.dir) // it is in the system's temporary folder
}

func (h *house) say(format string, args ...any) { fmt.Fprintf(h.progress, format+"\n", args...) }

func moduleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("bench: find the module: %w", err)
	}
	mod := strings.TrimSpace(string(out))
	if filepath.Base(mod) != "go.mod" {
		return "", fmt.Errorf("bench: find the module: run it inside of the module's folder")
	}
	return filepath.Dir(mod), nil
}

// build compiles a command as make build does.
func (h *house) build(ctx context.Context, pkg string) (string, error) {
	h.say("building %s", pkg)
	bin := filepath.Join(h.dir, filepath.Base(pkg)+exeSuffix)
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", bin, "./"+pkg)
	cmd.Dir = h.root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("bench: build %s: %w\n%s", pkg, err, out)
	}
	return bin, nil
}

// startTime bounds how long a child may take until it listens.
const startTime = 30 * time.Second

// start runs a program and waits until it says where it listens.
func (h *house) start(ctx context.Context, name, program string, args ...string) (*process, error) {
	p := &process{name: name, log: filepath.Join(h.dir, fmt.Sprintf("%s-%d.log", name, time.Now().UnixNano()))}
	log, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p.cmd = exec.Command(program, args...)
	p.cmd.Dir = h.root
	p.cmd.Env = h.environment()
	p.cmd.Stderr = log
	ownGroup(p.cmd)
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	h.running = append(h.running, p)
	if p.url, err = listening(ctx, stdout); err != nil {
		h.stop(p)
		text, _ := os.ReadFile(p.log) // as much as there is
		return nil, fmt.Errorf("start %s: %w\n%s", name, err, bytes.TrimSpace(text))
	}
	return p, nil
}

// environment is the caller's without Metier's own settings, which must not
// change what is measured.
func (h *house) environment() []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "METIER_") })
	return append(env, "METIER_HOME="+filepath.Join(h.dir, "home"))
}

func listening(ctx context.Context, r io.Reader) (string, error) {
	first := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(r).ReadString('\n') // a child that ends says nothing
		first <- line
	}()
	select {
	case line := <-first:
		url, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
		if !ok {
			return "", fmt.Errorf("it said %q where it should say its address", line)
		}
		return url, nil
	case <-time.After(startTime):
		return "", fmt.Errorf("it did not listen within %s", startTime)
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// stop kills a child with all that it started.
func (h *house) stop(p *process) {
	h.running = slices.DeleteFunc(h.running, func(q *process) bool { return q == p })
	killGroup(p.cmd)
	_ = p.cmd.Wait() // it was killed, which is no news
}

// pause waits; it is how a load lets time pass.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
