package shell

import (
	"context"
	_ "embed"
	"strings"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/interpreter"
	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/sandbox/registry"
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
