package rules

import "go/ast"

// capped are the calls whose last argument is a limit, by import path and name.
func capped(importPath, name string) bool {
	switch importPath + "." + name {
	case "io.LimitReader", "net/http.MaxBytesReader", "net/http.MaxBytesHandler", "context.WithTimeout":
		return true
	}
	return false
}

// checkCaps: a limit of the program is a row of the table in config. A number
// written where a reader is cut or a wait ends has no name, no flag and no error
// code. Tests cut as they like.
func checkCaps(t *Tree) []Problem {
	var found []Problem
	for _, p := range t.Packages {
		if p.support() {
			continue
		}
		for _, u := range t.infosOf(p) {
			for _, f := range u.files {
				if f.Test {
					continue
				}
				scans := importsOf(f)["bufio"] != nil
				ast.Inspect(f.Syntax, func(n ast.Node) bool {
					if e := u.capOf(n, scans); e != nil && u.written(e) {
						found = append(found, t.at(e.Pos(), "this limit is written into the code: make it a row of Limits in internal/config and pass its value in"))
					}
					return true
				})
			}
		}
	}
	return found
}

// capOf is the expression that cuts a reader at a node, if one does.
func (u unit) capOf(n ast.Node, scans bool) ast.Expr {
	switch n := n.(type) {
	case *ast.CallExpr:
		if len(n.Args) == 0 {
			return nil
		}
		last := n.Args[len(n.Args)-1]
		if from, name, ok := u.callee(n); ok {
			if capped(from, name) {
				return last
			}
			return nil
		}
		sel, ok := n.Fun.(*ast.SelectorExpr)
		if ok && scans && sel.Sel.Name == "Buffer" && len(n.Args) == 2 {
			return last
		}
	case *ast.CompositeLit:
		return u.limitedReader(n)
	}
	return nil
}

// limitedReader is the N of an io.LimitedReader literal.
func (u unit) limitedReader(lit *ast.CompositeLit) ast.Expr {
	sel, ok := lit.Type.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != "LimitedReader" {
		return nil
	}
	if from, ok := u.packageName(sel.X); !ok || from != "io" {
		return nil
	}
	for i, e := range lit.Elts {
		kv, keyed := e.(*ast.KeyValueExpr)
		if !keyed && i == 1 {
			return e
		}
		if keyed {
			if key, ok := kv.Key.(*ast.Ident); ok && key.Name == "N" {
				return kv.Value
			}
		}
	}
	return nil
}

// written says whether an expression has its value from the source: a number, a
// constant, or a sum of those with the units of package time. An expression with
// a value that was passed in is none.
func (u unit) written(e ast.Expr) bool {
	if u.info.Types[e].Value != nil {
		return true
	}
	switch e := e.(type) {
	case *ast.ParenExpr:
		return u.written(e.X)
	case *ast.BinaryExpr:
		return u.written(e.X) && u.written(e.Y)
	case *ast.SelectorExpr:
		from, ok := u.packageName(e.X)
		return ok && from == "time"
	}
	return false
}
