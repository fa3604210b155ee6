package rules

import (
	"go/ast"
	"slices"
)

// The sizes that a reader can take in at once, in lines. The p90 is the size
// that nine of ten stay below.
const (
	maxFileLines = 800
	p90FileLines = 450
	maxFuncLines = 80
	p90FuncLines = 40
)

// checkFileSize: no Go file is over the limit, and nine of ten stay under the
// lower one.
func checkFileSize(t *Tree) []Problem {
	var found []Problem
	var sizes []int
	for _, p := range t.Packages {
		for _, f := range p.All() {
			sizes = append(sizes, f.Lines)
			if f.Lines > maxFileLines {
				found = append(found, in(f.Path, "the file has %d lines, more than %d: split it by idea", f.Lines, maxFileLines))
			}
		}
	}
	return append(found, tooManyLong(sizes, p90FileLines, "files")...)
}

// checkFuncSize: no function outside of tests is over the limit, and nine of ten
// stay under the lower one. The lines of composite literals are not counted: a
// table is as long as it is.
func checkFuncSize(t *Tree) []Problem {
	var found []Problem
	var sizes []int
	for _, p := range t.Packages {
		for _, f := range p.Files {
			for _, fn := range functions(f) {
				n := t.funcLines(fn)
				sizes = append(sizes, n)
				if n > maxFuncLines {
					found = append(found, t.at(fn.Pos(), "%s has %d lines, more than %d: name its steps and make them functions", fn.Name.Name, n, maxFuncLines))
				}
			}
		}
	}
	return append(found, tooManyLong(sizes, p90FuncLines, "functions")...)
}

func tooManyLong(sizes []int, limit int, what string) []Problem {
	if n := p90(sizes); n >= limit {
		return []Problem{in(".", "the p90 of the lengths of %s must be under %d lines and is %d: split the longest", what, limit, n)}
	}
	return nil
}

// p90 is the smallest size that at least nine of ten do not exceed.
func p90(sizes []int) int {
	if len(sizes) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(sizes))
	return sorted[(len(sorted)*9+9)/10-1]
}

// funcLines counts a function's lines from func to its closing brace, less those
// that a composite literal spans after its first. The lines of a function
// literal count again, wherever it stands: a command's body hides in a struct.
func (t *Tree) funcLines(fn *ast.FuncDecl) int {
	first := t.Fset.Position(fn.Pos()).Line
	counted := make([]bool, t.Fset.Position(fn.End()).Line-first+1)
	mark := func(n ast.Node, skip int, value bool) {
		for l := t.Fset.Position(n.Pos()).Line + skip; l <= t.Fset.Position(n.End()).Line; l++ {
			counted[l-first] = value
		}
	}
	mark(fn, 0, true)
	ast.Inspect(fn, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			mark(n, 1, false)
		case *ast.FuncLit:
			mark(n, 0, true)
		}
		return true
	})
	lines := 0
	for _, c := range counted {
		if c {
			lines++
		}
	}
	return lines
}
