// Package task reads the tasks that prove code work: folders with a prompt, the
// files that a conversation begins with, a checker, and the rounds of tool calls
// that do the task right.
//
// It plays nothing: what sends the calls is package model, what carries them out
// is metier, or package direct in tests. A checker runs code that the workspace
// holds, so where a real model wrote that code, give [Task.Check] an [Exec] that
// confines it.
//
// # Folders
//
//	prompt.md         what the user asks
//	files/            the workspace as it is when the task begins
//	check.py          runs in the finished workspace, ends with 0 when all is done
//	trajectory.json   the right rounds, the answer, and a state half done
//
// An argument of a call in trajectory.json that is an array of strings is a
// text of these lines. A checker imports taskcheck from the folder lib beside the
// tasks, and finds the files of the beginning in $TASK_START.
//
// Start at [Load].
package task

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
)

// The tools that a trajectory uses.
const (
	Shell      = "shell"
	ReadFile   = "read_file"
	WriteFile  = "write_file"
	ApplyPatch = "apply_patch"
)

// Call is one call of a tool, by its declared name.
type Call struct {
	Tool string         `json:"tool"`
	Args map[string]any `json:"args"`
	// Fails says of a right shell call that its command fails, as a test does
	// before the bug is fixed.
	Fails bool `json:"fails,omitzero"`
	// Benign says of a right shell call that it ends with 1 and nothing is wrong,
	// as grep that finds nothing.
	Benign bool `json:"benign,omitzero"`
}

// Text is an argument that is a string; "" when there is none.
func (c Call) Text(name string) string {
	text, _ := c.Args[name].(string)
	return text
}

// With is the call with one argument set to another value.
func (c Call) With(name string, value any) Call {
	c.Args = maps.Clone(c.Args)
	c.Args[name] = value
	return c
}

// Round is what the model calls in one generation.
type Round []Call

// Half is a state that looks done and is not: the rounds before After, then Calls.
// The checker must refuse it.
type Half struct {
	After int   `json:"after"`
	Calls Round `json:"calls"`
}

// Trajectory is the right way through a task.
type Trajectory struct {
	Rounds []Round `json:"rounds"`
	Answer string  `json:"answer"`
	Half   Half    `json:"half"`
}

// Task is one folder.
type Task struct {
	// Name is the folder's name, as "09-crlf-settings".
	Name string
	// Dir is the folder, as a path of this host.
	Dir    string
	Prompt string
	Trajectory
}

// Load reads all tasks of a folder, sorted by name. It fails on the first that is
// not whole, and on a folder without any.
func Load(dir string) ([]Task, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("load tasks: %w", err)
	}
	var tasks []Task
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		t, err := Open(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		tasks = append(tasks, t)
	}
	if len(tasks) == 0 {
		return nil, fmt.Errorf("load tasks: %s has none: give a folder of task folders", dir)
	}
	return tasks, nil
}

// Open reads one task.
func Open(dir string) (Task, error) {
	t := Task{Name: filepath.Base(dir), Dir: dir}
	prompt, err := os.ReadFile(filepath.Join(dir, "prompt.md"))
	if err != nil {
		return t, fmt.Errorf("open task: %w", err)
	}
	t.Prompt = string(prompt)
	t.Trajectory, err = ReadTrajectory(filepath.Join(dir, "trajectory.json"))
	if err != nil {
		return t, err
	}
	for _, name := range []string{"check.py", "files"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return t, fmt.Errorf("open task %s: %w", t.Name, err)
		}
	}
	if t.Answer == "" || len(t.Half.Calls) == 0 && t.Half.After >= len(t.Rounds) {
		return t, fmt.Errorf("open task %s: trajectory.json has no answer, or its half state is the whole", t.Name)
	}
	return t, nil
}

// ReadTrajectory reads a file of rounds. Arguments written as lines are joined.
func ReadTrajectory(file string) (Trajectory, error) {
	var t Trajectory
	data, err := os.ReadFile(file)
	if err != nil {
		return t, fmt.Errorf("read trajectory: %w", err)
	}
	if err := json.Unmarshal(data, &t, json.RejectUnknownMembers(true)); err != nil {
		return t, fmt.Errorf("read trajectory %s: %w", file, err)
	}
	for i, r := range append(slices.Clone(t.Rounds), t.Half.Calls) {
		if len(r) == 0 && i < len(t.Rounds) {
			return t, fmt.Errorf("read trajectory %s: round %d has no call", file, i+1)
		}
		for _, c := range r {
			if err := c.join(); err != nil {
				return t, fmt.Errorf("read trajectory %s: round %d: %w", file, i+1, err)
			}
		}
	}
	if len(t.Rounds) == 0 {
		return t, fmt.Errorf("read trajectory %s: it has no rounds", file)
	}
	return t, nil
}

// join turns arguments that are lines into texts.
func (c Call) join() error {
	if !slices.Contains([]string{Shell, ReadFile, WriteFile, ApplyPatch}, c.Tool) {
		return fmt.Errorf("the tool %q is none of a trajectory", c.Tool)
	}
	for name, value := range c.Args {
		list, ok := value.([]any)
		if !ok {
			continue
		}
		lines := make([]string, len(list))
		for i, v := range list {
			line, ok := v.(string)
			if !ok {
				return fmt.Errorf("%s of %s: line %d is no string", name, c.Tool, i+1)
			}
			lines[i] = line
		}
		c.Args[name] = strings.Join(lines, "\n")
	}
	return nil
}

// Files are the files of the beginning, by path with slashes.
func (t Task) Files() (Tree, error) {
	root := os.DirFS(filepath.Join(t.Dir, "files"))
	files := Tree{}
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files[name], err = fs.ReadFile(root, name)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read files of task %s: %w", t.Name, err)
	}
	return files, nil
}

// Lay writes the files of the beginning into a folder that has none of them.
func (t Task) Lay(dir string) error {
	files := os.DirFS(filepath.Join(t.Dir, "files"))
	if err := os.CopyFS(dir, files); err != nil {
		return fmt.Errorf("lay out task %s: %w", t.Name, err)
	}
	return nil
}

// ErrNotDone is what [Task.Check] answers, wrapped, when the checker says no.
var ErrNotDone = errors.New("the task is not done")
