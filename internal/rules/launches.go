package rules

import (
	"go/ast"
	"slices"
	"strings"
)

// launchRoom holds the only rooms that start processes.
const launchRoom = "internal/sandbox"

// starters are the functions that start a process, by import path and name; os/exec
// does nothing else.
func starters() []string {
	return []string{"os.StartProcess", "syscall.ForkExec", "syscall.StartProcess", "syscall.Exec", "golang.org/x/sys/unix.Exec"}
}

// checkLaunches: whatever is started goes through one seam (seed 1, "Launch
// backends"). What serves the house itself, its rules, tests and bench, may start
// what it likes.
func checkLaunches(t *Tree) []Problem {
	var found []Problem
	for _, p := range t.Packages {
		if rank, known := rankOf(p.Dir); p.support() || known && rank == exempt || p.Dir == launchRoom || strings.HasPrefix(p.Dir, launchRoom+"/") {
			continue
		}
		for _, u := range t.infosOf(p) {
			for _, f := range u.files {
				if !f.Test {
					found = append(found, t.launchesIn(u, f)...)
				}
			}
		}
	}
	return found
}

func (t *Tree) launchesIn(u unit, f *File) []Problem {
	const text = "this starts a process outside of " + launchRoom + ": describe a sandbox.Launch and give it to internal/launch"
	var found []Problem
	if spec := importsOf(f)["os/exec"]; spec != nil {
		found = append(found, t.at(spec.Pos(), text))
	}
	ast.Inspect(f.Syntax, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if from, ok := u.packageName(sel.X); ok && slices.Contains(starters(), from+"."+sel.Sel.Name) {
			found = append(found, t.at(sel.Pos(), text))
		}
		return true
	})
	return found
}
