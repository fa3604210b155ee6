package rules

import (
	"go/ast"
	"strings"
)

// checkSleep: no test sleeps. It is either slow or wrong: wait for the thing
// itself, or use the clock of a synctest bubble.
func checkSleep(t *Tree) []Problem {
	var found []Problem
	for _, p := range t.Packages {
		for _, u := range t.infosOf(p) {
			for _, f := range u.files {
				if !f.Test && !p.support() {
					continue
				}
				ast.Inspect(f.Syntax, func(n ast.Node) bool {
					if sel, ok := n.(*ast.SelectorExpr); ok && sel.Sel.Name == "Sleep" {
						if from, ok := u.packageName(sel.X); ok && from == "time" {
							found = append(found, t.at(sel.Pos(), "a test that sleeps is slow or wrong: wait for the event itself, or let a synctest bubble's clock run (<-time.After there)"))
						}
					}
					return true
				})
			}
		}
	}
	return found
}

const goleak = "go.uber.org/goleak"

// checkGoleak: a room that starts goroutines has a test that none is left.
func checkGoleak(t *Tree) []Problem {
	var found []Problem
	for _, p := range t.Packages {
		if p.Name == "main" || p.support() || p.leakTested() {
			continue
		}
		for _, f := range p.Files {
			if n := firstGo(f.Syntax); n != nil {
				found = append(found, t.at(n.Pos(), "package %s starts a goroutine and has no test that it ends: call goleak.VerifyTestMain in a TestMain of %s", p.Name, p.Dir))
				break
			}
		}
	}
	return found
}

func (p *Package) leakTested() bool {
	for _, f := range p.Tests {
		if importsOf(f)[goleak] != nil {
			return true
		}
	}
	return false
}

// firstGo is the first go statement, or call of a group's Go with a function.
func firstGo(f *ast.File) ast.Node {
	var first ast.Node
	ast.Inspect(f, func(n ast.Node) bool {
		if first != nil {
			return false
		}
		switch n := n.(type) {
		case *ast.GoStmt:
			first = n
		case *ast.CallExpr:
			sel, ok := n.Fun.(*ast.SelectorExpr)
			if ok && sel.Sel.Name == "Go" && len(n.Args) == 1 {
				first = n
			}
		}
		return first == nil
	})
	return first
}

// unfinishedMarks are spelled in two halves, so that this file passes.
func unfinishedMarks() []string {
	return []string{"TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK"}
}

// checkUnfinished: no comment says that the work is not done. What is left open
// is an issue, not a comment.
func checkUnfinished(t *Tree) []Problem {
	var found []Problem
	for _, p := range t.Packages {
		for _, f := range p.All() {
			for _, group := range f.Syntax.Comments {
				for _, c := range group.List {
					if mark := markIn(c.Text); mark != "" {
						found = append(found, t.at(c.Pos(), "the comment says %s: finish it, or file an issue and take the comment out", mark))
					}
				}
			}
		}
	}
	return found
}

func markIn(comment string) string {
	words := strings.FieldsFunc(comment, func(r rune) bool { return r < 'A' || r > 'Z' && r < 'a' || r > 'z' })
	for _, w := range words {
		for _, mark := range unfinishedMarks() {
			if w == mark {
				return mark
			}
		}
	}
	return ""
}
