// Package direct carries out the calls of a recorded trajectory by plain file
// operations and bash. It proves that the tasks are right before anything of
// metier is under test, and that the checkers say no when they should.
//
// It confines nothing, recovers nothing and understands only calls that are
// written as declared: give it recorded calls alone, never a model's.
//
// A [Host] runs one call at a time. Start at [New].
package direct

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/metier-run/metier/test/tasks/task"
)

// longest is how many seconds a command runs that sets no timeout.
const longest = 240

// Host is one workspace.
type Host struct {
	// Work is the folder of the files.
	Work string

	base, index string
	env         []string
	jobs        []*exec.Cmd
}

// Result is what a call led to.
type Result struct {
	Text string
	// OK is false for a refusal and for a command that ends with another status than 0.
	OK bool
}

// New makes a workspace below base, an empty folder, with what pip and npm would
// install taken from the folder index.
func New(base, index string) (*Host, error) {
	h := &Host{Work: filepath.Join(base, "work"), base: base, index: index}
	for _, dir := range []string{"work", "tmp", "env", "bin", "node_modules"} {
		if err := os.Mkdir(filepath.Join(base, dir), 0o700); err != nil {
			return nil, fmt.Errorf("make workspace: %w", err)
		}
	}
	for name, script := range map[string]string{"pip": pipScript, "npm": npmScript} {
		if err := os.WriteFile(filepath.Join(base, "bin", name), []byte(script), 0o700); err != nil {
			return nil, fmt.Errorf("make workspace: %w", err)
		}
	}
	h.env = append(task.Environ(h.Work, filepath.Join(base, "tmp")),
		"DIRECT_BASE="+base, "DIRECT_INDEX="+index, "PYTHONPATH="+filepath.Join(base, "env"),
		"PATH="+filepath.Join(base, "bin")+string(filepath.ListSeparator)+os.Getenv("PATH"))
	return h, nil
}

// Close stops what runs in the background.
func (h *Host) Close() {
	for _, job := range h.jobs {
		_ = job.Process.Signal(syscall.SIGTERM) // it may have ended by itself
		_ = job.Wait()                          // how it ended is nobody's concern
	}
	h.jobs = nil
}

// Do carries out one call. An error is a fault of this host; what the call does
// wrong is in the result.
func (h *Host) Do(ctx context.Context, c task.Call) (Result, error) {
	switch c.Tool {
	case task.Shell:
		return h.shell(ctx, c)
	case task.ReadFile:
		data, err := os.ReadFile(h.path(c.Text("path")))
		return Result{Text: string(data), OK: err == nil}, nil
	case task.WriteFile:
		return h.write(c)
	case task.ApplyPatch:
		return h.patch(c.Text("patch"))
	}
	return Result{Text: "there is no tool " + c.Tool}, nil
}

// here is the folder that the last command ended in.
func (h *Host) here() string {
	data, err := os.ReadFile(filepath.Join(h.base, "cwd"))
	if err != nil {
		return h.Work
	}
	return strings.TrimSpace(string(data))
}

func (h *Host) path(name string) string {
	return filepath.Join(h.here(), filepath.FromSlash(name))
}

func (h *Host) write(c task.Call) (Result, error) {
	name := h.path(c.Text("path"))
	if _, err := os.Stat(name); err == nil {
		return Result{Text: "no change was made: " + c.Text("path") + " exists, use apply_patch"}, nil
	}
	if err := put(name, []byte(c.Text("content"))); err != nil {
		return Result{}, err
	}
	return Result{Text: "Created " + c.Text("path"), OK: true}, nil
}

func put(name string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return fmt.Errorf("write file: %w", err)
	}
	if err := os.WriteFile(name, data, 0o600); err != nil {
		return fmt.Errorf("write file: %w", err)
	}
	return nil
}

// Tree reads the files of a workspace.
func Tree(dir string) (task.Tree, error) {
	tree := task.Tree{}
	root := os.DirFS(dir)
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		tree[name], err = fs.ReadFile(root, name)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read workspace: %w", err)
	}
	return tree, nil
}

func (h *Host) patch(text string) (Result, error) {
	tree, err := Tree(h.here())
	if err != nil {
		return Result{}, err
	}
	before := maps.Clone(tree)
	if err := tree.Apply(text); err != nil {
		return Result{Text: "no change was made: " + err.Error()}, nil
	}
	for name := range before {
		if _, ok := tree[name]; !ok {
			if err := os.Remove(h.path(name)); err != nil {
				return Result{}, fmt.Errorf("apply patch: %w", err)
			}
		}
	}
	for name, data := range tree {
		if old, ok := before[name]; ok && string(old) == string(data) {
			continue
		}
		if err := put(h.path(name), data); err != nil {
			return Result{}, err
		}
	}
	return Result{Text: "Patched (+1 -1)", OK: true}, nil
}

func (h *Host) shell(ctx context.Context, c task.Call) (Result, error) {
	script := filepath.Join(h.base, "command")
	text := fmt.Sprintf(wrapper, filepath.Join(h.base, "env.sh"), filepath.Join(h.base, "cwd"), c.Text("command"))
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
		return Result{}, fmt.Errorf("write command: %w", err)
	}
	seconds := float64(longest)
	if ms, ok := c.Args["timeout_ms"].(float64); ok {
		seconds = ms / 1000
	}
	argv := []string{"timeout", "-k", "1", strconv.FormatFloat(seconds, 'f', 3, 64), "bash", script}
	if background, _ := c.Args["run_in_background"].(bool); background {
		return h.background(ctx, script, argv)
	}
	output, exit, err := task.Bare(ctx, h.here(), h.env, argv)
	if err != nil {
		return Result{}, err
	}
	return Result{Text: fmt.Sprintf("exit %d (sandbox: none)\n\n%s", exit, output), OK: exit == 0}, nil
}

func (h *Host) background(ctx context.Context, script string, argv []string) (Result, error) {
	// The next command overwrites the script; a job keeps its own.
	own := fmt.Sprintf("%s-%d", script, len(h.jobs)+1)
	if err := os.Rename(script, own); err != nil {
		return Result{}, fmt.Errorf("start job: %w", err)
	}
	argv[len(argv)-1] = own
	// A job outlives its call, and ends with Close: to kill timeout would leave what it
	// watches over.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = h.here(), h.env
	if err := cmd.Start(); err != nil {
		return Result{}, fmt.Errorf("start job: %w", err)
	}
	h.jobs = append(h.jobs, cmd)
	return Result{Text: fmt.Sprintf("job-%d started", len(h.jobs)), OK: true}, nil
}

// Play carries out rounds in order. A call that is recorded to fail must fail, and
// any other must not.
func (h *Host) Play(ctx context.Context, rounds []task.Round) error {
	for i, round := range rounds {
		for _, c := range round {
			r, err := h.Do(ctx, c)
			if err != nil {
				return fmt.Errorf("round %d: %w", i+1, err)
			}
			if r.OK == (c.Fails || c.Benign) {
				return fmt.Errorf("round %d does not end as recorded: %s %v: %s", i+1, c.Tool, c.Args, r.Text)
			}
		}
	}
	return nil
}
