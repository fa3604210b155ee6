package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/metier-run/metier/test/tasks/direct"
	"github.com/metier-run/metier/test/tasks/task"
)

// narrowPath leaves those folders out of this process's PATH that have a program named
// python, so that the host is one of those that lack it, unless nothing else has
// python3. It stays for the whole process: the checkers and the hosts under test find
// the same programs.
func narrowPath(ctx context.Context) error {
	host := os.Getenv("PATH")
	dirs := slices.DeleteFunc(filepath.SplitList(host), hasPython)
	if err := setPath(joined(dirs)); err != nil || direct.Missing() == "" {
		return err
	}
	if err := setPath(host); err != nil {
		return err
	}
	path, err := direct.PythonPath(ctx)
	if err != nil {
		return err
	}
	return setPath(path)
}

// spells says whether programs find python under that name by themselves.
func spells() bool { return slices.ContainsFunc(filepath.SplitList(os.Getenv("PATH")), hasPython) }

func hasPython(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "python"))
	return err == nil
}

func joined(dirs []string) string {
	text := ""
	for _, dir := range dirs {
		text += dir + string(filepath.ListSeparator)
	}
	return text[:max(0, len(text)-1)]
}

func setPath(path string) error {
	if err := os.Setenv("PATH", path); err != nil {
		return fmt.Errorf("set PATH: %w", err)
	}
	return nil
}

// warm has go build what the Go tasks need of its standard library, once: in each of
// hundreds of workspaces it would take longer than all else.
func (p *place) warm(ctx context.Context) error {
	cache := filepath.Join(p.temp, "go-cache")
	for _, k := range p.tasks {
		if !isGo(k) {
			continue
		}
		dir := filepath.Join(p.temp, "warm-"+k.Name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			return fmt.Errorf("warm go: %w", err)
		}
		if err := k.Lay(dir); err != nil {
			return err
		}
		env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GOCACHE=" + cache, "GOPROXY=off", "GOTOOLCHAIN=local"}
		for _, argv := range [][]string{{"go", "build", "-o", os.DevNull, "sort"}, {"go", "build", "-o", os.DevNull, "./..."}, {"go", "test", "-vet=off", "-run=^$", "./..."}} {
			output, exit, err := task.Bare(ctx, dir, env, argv)
			if err == nil && exit != 0 {
				err = errors.New(string(output))
			}
			if err != nil {
				return fmt.Errorf("warm go: %v: %w", argv, err)
			}
		}
	}
	p.cache = cache
	return nil
}

// isGo says whether a task's program is one of Go.
func isGo(k task.Task) bool {
	_, err := os.Stat(filepath.Join(k.Dir, "files", "go.mod"))
	return err == nil
}
