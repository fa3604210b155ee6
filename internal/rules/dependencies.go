package rules

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// The list of dependencies and what bounds it.
const (
	dependencyList = "docs/dependencies.md"
	toolsModule    = "tools/go.mod"
	maxDirect      = 45
	minReason      = 3 // words
)

// The sections of the list.
const (
	sectionProgram = "Program"
	sectionTests   = "Tests"
	sectionTools   = "Tools"
)

// dependency is a row of the list.
type dependency struct {
	module, licence, reason, section string
	line                             int
}

// dependencyRow is | `module` | licence | reason |.
var dependencyRow = regexp.MustCompile("^\\|\\s*`([^`]+)`\\s*\\|\\s*([^|]*?)\\s*\\|\\s*([^|]*?)\\s*\\|\\s*$")

// checkDependencies: docs/dependencies.md lists each direct dependency with its
// licence and the reason for it, and nothing else.
func checkDependencies(t *Tree) []Problem {
	mod, err := readGoMod(filepath.Join(t.Root, "go.mod"))
	if err != nil {
		return []Problem{in("go.mod", "%v", err)}
	}
	text, err := os.ReadFile(filepath.Join(t.Root, filepath.FromSlash(dependencyList)))
	if err != nil {
		return []Problem{in(dependencyList, "cannot be read: %v", err)}
	}
	rows := parseDependencies(string(text))
	return slices.Concat(
		checkRows(rows),
		t.checkListed(mod, rows),
		t.checkUsed(mod, rows),
		t.checkTools(rows),
		t.checkLicences(mod, rows),
	)
}

func parseDependencies(text string) []dependency {
	var rows []dependency
	section, line := "", 0
	for l := range strings.Lines(text) {
		line++
		l = strings.TrimRight(l, "\n")
		if title, ok := strings.CutPrefix(l, "## "); ok {
			section = title
		}
		if m := dependencyRow.FindStringSubmatch(l); m != nil {
			rows = append(rows, dependency{m[1], m[2], m[3], section, line})
		}
	}
	return rows
}

// checkRows checks each row by itself, and their number.
func checkRows(rows []dependency) []Problem {
	var found []Problem
	seen := map[string]bool{}
	program := 0
	for _, d := range rows {
		say := func(text string) {
			found = append(found, Problem{File: dependencyList, Line: d.line, Text: d.module + " " + text})
		}
		if d.section == sectionProgram {
			program++
		}
		if seen[d.module] {
			say("is listed twice: keep one row")
		}
		seen[d.module] = true
		if !slices.Contains([]string{sectionProgram, sectionTests, sectionTools}, d.section) {
			say("stands under no section: move it to Program, Tests or Tools")
		}
		if !slices.Contains(allowedLicences(), d.licence) {
			say("has the licence " + cmp.Or(d.licence, "(none)") + ", which is none of " + strings.Join(allowedLicences(), ", "))
		}
		if len(strings.Fields(d.reason)) < minReason {
			say("has no reason: say what it is for and why not our own code")
		}
	}
	if program > maxDirect {
		found = append(found, in(dependencyList, "%d direct dependencies, more than %d: take one out before another comes in", program, maxDirect))
	}
	return found
}

// checkListed: what go.mod requires directly, or a package imports, is listed.
func (t *Tree) checkListed(mod goMod, rows []dependency) []Problem {
	used := t.usedModules(mod)
	var found []Problem
	for _, r := range mod.Require {
		if r.Indirect && used[r.Path] == unused || slices.ContainsFunc(rows, func(d dependency) bool { return d.module == r.Path && d.section != sectionTools }) {
			continue
		}
		found = append(found, in("go.mod", "%s is a direct dependency and not in %s: add its licence and the reason for it", r.Path, dependencyList))
	}
	return found
}

// checkUsed: what is listed is required and imported, in the program if it is
// listed for the program and only in tests if it is listed for tests.
func (t *Tree) checkUsed(mod goMod, rows []dependency) []Problem {
	used := t.usedModules(mod)
	var found []Problem
	for _, d := range rows {
		if d.section == sectionTools {
			continue
		}
		say := func(text string) {
			found = append(found, Problem{File: dependencyList, Line: d.line, Text: d.module + " " + text})
		}
		required := slices.ContainsFunc(mod.Require, func(r requirement) bool { return r.Path == d.module })
		switch use := used[d.module]; {
		case !required:
			say("is not required by go.mod: take the row out")
		case use == unused:
			say("is imported by no package: take the row out and run go mod tidy")
		case use == inTests && d.section == sectionProgram:
			say("is imported by tests only: move the row to " + sectionTests)
		case use == inProgram && d.section == sectionTests:
			say("is imported by the program: move the row to " + sectionProgram)
		}
	}
	return found
}

// use is where a module is imported.
type use int

const (
	unused use = iota
	inTests
	inProgram
)

// usedModules says where each required module is imported. Rooms that no room of
// the program may import count as tests.
func (t *Tree) usedModules(mod goMod) map[string]use {
	used := map[string]use{}
	for _, p := range t.Packages {
		rank, known := rankOf(p.Dir)
		for _, f := range p.All() {
			where := inProgram
			if f.Test || p.support() || known && rank == exempt {
				where = inTests
			}
			for importPath := range importsOf(f) {
				if m := moduleOf(mod, importPath); m != "" {
					used[m] = max(used[m], where)
				}
			}
		}
	}
	return used
}

// moduleOf is the required module that an import path belongs to: the longest
// that fits.
func moduleOf(mod goMod, importPath string) string {
	longest := ""
	for _, r := range mod.Require {
		if (importPath == r.Path || strings.HasPrefix(importPath, r.Path+"/")) && len(r.Path) > len(longest) {
			longest = r.Path
		}
	}
	return longest
}

// checkTools: the list names the modules of the tools that the build calls.
func (t *Tree) checkTools(rows []dependency) []Problem {
	var tools goMod
	if slices.Contains(t.GoMods, toolsModule) {
		var err error
		if tools, err = readGoMod(filepath.Join(t.Root, filepath.FromSlash(toolsModule))); err != nil {
			return []Problem{in(toolsModule, "%v", err)}
		}
	}
	called := map[string]bool{}
	for _, tool := range tools.Tool {
		called[moduleOf(tools, tool.Path)] = true
	}
	var found []Problem
	for _, d := range rows {
		if d.section != sectionTools {
			continue
		}
		if !called[d.module] {
			found = append(found, Problem{File: dependencyList, Line: d.line, Text: d.module + " is no tool of " + toolsModule + ": take the row out"})
		}
		delete(called, d.module)
	}
	for m := range called {
		found = append(found, in(toolsModule, "%s is a tool and not in %s: add its licence and the reason for it", m, dependencyList))
	}
	return found
}
