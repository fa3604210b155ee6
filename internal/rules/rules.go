// Package rules holds the project to its own rules: each one that a program can
// check is a check here, and a test runs all of them over the module's tree, so
// that breaking one fails the build with a sentence that says what to do.
//
// It is never linked into the program, it changes no file, and it asks no
// network. It reads the tree as it lies on disk, also what is not committed yet.
//
// Start at [All]. A rule is one file here, with fixtures that break it in
// testdata, one folder a rule.
package rules

import (
	"cmp"
	"fmt"
	"go/token"
	"slices"
)

// Problem is one breach of a rule.
type Problem struct {
	// File is relative to the root of the tree, with slashes.
	File string
	// Line counts from 1; 0 stands for the whole file.
	Line int
	// Text says what is wrong and what to do about it.
	Text string
}

// String is the problem as compilers print one.
func (p Problem) String() string {
	if p.Line == 0 {
		return fmt.Sprintf("%s: %s", p.File, p.Text)
	}
	return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Text)
}

// Rule is one rule and the check that holds it.
type Rule struct {
	// Name is the name of its test and of its folder of fixtures.
	Name string
	// Check lists the breaches in a tree, in any order.
	Check func(*Tree) []Problem
}

// All lists the rules.
func All() []Rule {
	return []Rule{
		{"ranks", checkRanks},
		{"pkgdoc", checkPackageDocs},
		{"exported", checkExportedDocs},
		{"filesize", checkFileSize},
		{"funcsize", checkFuncSize},
		{"names", checkNames},
		{"init", checkInit},
		{"vars", checkVars},
		{"sleep", checkSleep},
		{"goleak", checkGoleak},
		{"imports", checkImports},
		{"launches", checkLaunches},
		{"caps", checkCaps},
		{"unfinished", checkUnfinished},
		{"places", checkPlaces},
		{"replace", checkReplace},
		{"dependencies", checkDependencies},
		{"threats", checkThreats},
	}
}

// Run is what the rule finds in the tree, sorted by place.
func (r Rule) Run(t *Tree) []Problem {
	found := r.Check(t)
	slices.SortFunc(found, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Text, b.Text))
	})
	return found
}

// at is a problem at a position of a parsed file.
func (t *Tree) at(pos token.Pos, format string, args ...any) Problem {
	p := t.Fset.Position(pos)
	return Problem{File: p.Filename, Line: p.Line, Text: fmt.Sprintf(format, args...)}
}

// in is a problem of a whole file or folder.
func in(file, format string, args ...any) Problem {
	return Problem{File: file, Text: fmt.Sprintf(format, args...)}
}
