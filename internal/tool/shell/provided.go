package shell

import (
	"context"
	_ "embed"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/interpreter"
	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/sandbox/registry"
	"github.com/metier-run/metier/internal/tool"
	"github.com/metier-run/metier/internal/workspace"
	"github.com/metier-run/metier/internal/workspace/install"
)

//go:embed provided.py
var providedProgram string

// providedMark begins what the program prints.
const providedMark = "metier-packages 1\n"

// provides says whether this host's Python has a package by itself, so that it needs no
// install and an install of it is no mistake where none may be made (B1 13.16). It is
// looked up when a line first asks, in one confined launch: only an interpreter knows
// where it looks. Node has no packages of its own.
func (r *run) provides(ctx context.Context) func(install.Kind, string) bool {
	return func(kind install.Kind, name string) bool {
		return kind == install.Pip && r.ofHost(ctx)[name]
	}
}

// ofHost are the names, as [registry.Fold] folds them; none if they cannot be known.
func (r *run) ofHost(ctx context.Context) map[string]bool {
	if _, own := r.o.Workspace.Own(interpreter.Python); own || r.o.Runner == nil {
		return nil // commands run another Python
	}
	r.mu.Lock()
	found := r.provided
	r.mu.Unlock()
	if found != nil {
		return found
	}
	with, err := r.o.Workspace.Interpreter(interpreter.Python)
	if err != nil {
		return nil
	}
	l := r.o.Workspace.Launch(sandbox.Probe, ".", workspace.Extra{})
	// Isolated: nothing that the model has put into its folders is looked at.
	l.Argv = append([]string{with.Path, "-I", "-B", "-c", providedProgram}, with.Packages...)
	l.Deadline, l.Output = r.limits.Duration(config.ProbeTime), r.limits.Get(config.CodeOutput)
	out, err := r.o.Runner.Run(ctx, l)
	if err != nil || !out.OK() {
		return nil // asked again the next time
	}
	found = map[string]bool{}
	_, names, _ := strings.Cut(string(out.Stdout.Head), providedMark)
	for name := range strings.Lines(names) {
		found[registry.Fold(strings.TrimSpace(name))] = true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.provided = found
	return found
}

// isHost reports whether a program that a line names by its whole path, or by a name
// with a version in it, is of the Python of this host that packages are for.
func (r *run) isHost(program string) bool {
	with, err := r.o.Workspace.Interpreter(interpreter.Python)
	if err != nil {
		return false
	}
	if !strings.Contains(program, "/") {
		m := versionedProgram.FindStringSubmatch(program)
		return m != nil && strings.HasPrefix(with.Version+".", m[1]+".")
	}
	// The folder, and not where a link of the model's own leads to.
	dir, err := filepath.EvalSymlinks(filepath.Dir(program))
	if err != nil || !slices.Contains(with.Bin, dir) {
		return false
	}
	if strings.HasPrefix(filepath.Base(program), "pip") {
		return true
	}
	real, err := filepath.EvalSymlinks(program)
	return err == nil && real == with.Path
}

// environments says where packages went that were asked for in a virtual environment or
// for another Python, and whether that can use them.
func (r *run) environments(requests []install.Request, results []bool) []string {
	var notes []string
	for i, request := range requests {
		if !request.Own || !results[i] {
			continue
		}
		if len(notes) == 0 {
			notes = append(notes, environmentKept)
		}
		with, err := r.o.Workspace.Interpreter(interpreter.Python)
		host := minor(with.Version)
		if err != nil || host == "" {
			continue
		}
		if request.Program != "" {
			notes = append(notes, fmt.Sprintf(programOther, tool.Clip(request.Program), host))
		}
		if version := r.environmentVersion(request.Environment); version != "" && version != host {
			notes = append(notes, fmt.Sprintf(environmentOther, tool.Clip(request.Environment), version, host))
		}
	}
	return notes
}

// environmentVersion is the version of the Python of a virtual environment, such as
// "3.11"; empty if it is not known.
func (r *run) environmentVersion(dir string) string {
	if dir == "" {
		return ""
	}
	rel, err := r.relativeTo(r.began, path.Join(dir, "pyvenv.cfg"))
	if err != nil {
		return ""
	}
	data, err := r.read(rel)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(data)) {
		key, value, _ := strings.Cut(line, "=")
		if key = strings.TrimSpace(key); key == "version" || key == "version_info" {
			return minor(strings.TrimSpace(value))
		}
	}
	return ""
}

// versionedProgram is the name of a Python, or of its pip, that says which version it has.
var versionedProgram = regexp.MustCompile(`^(?:python|pip)(\d+(?:\.\d+)*)(?:\.exe)?$`)

var minorVersion = regexp.MustCompile(`^\d{1,3}\.\d{1,3}`)

// minor is a version without what stands behind its second number.
func minor(version string) string { return minorVersion.FindString(version) }

// program reports whether a program is there for a line to run: by its name one of the
// packages that are installed, by a path one of the workspace.
func (r *run) program(name string) bool {
	if !strings.Contains(name, "/") {
		var dirs []string
		for _, kind := range []interpreter.Kind{interpreter.Python, interpreter.Node} {
			if set, ok := r.o.Workspace.Packages(kind); ok {
				dirs = append(dirs, set.Bin...)
			}
		}
		return runs(dirs, name)
	}
	rel, err := r.relativeTo(r.began, name)
	return err == nil && r.runsOwn(rel)
}

// runsOwn reports whether a file of the work folder is a program.
func (r *run) runsOwn(rel string) bool {
	root, err := r.o.Workspace.Files()
	if err != nil {
		return false
	}
	defer root.Close()
	info, err := root.Stat(rel)
	return err == nil && runnable(info)
}
