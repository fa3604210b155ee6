package rules

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// initRoom is the one room with an init: a child process that the sandbox has
// started from the same binary must leave for its job before main begins.
const initRoom = "internal/sandbox/native"

// checkInit: nothing happens before main.
func checkInit(t *Tree) []Problem {
	var found []Problem
	for _, p := range t.Packages {
		if p.Dir == initRoom {
			continue
		}
		for _, f := range p.All() {
			for _, fn := range functions(f) {
				if fn.Recv == nil && fn.Name.Name == "init" {
					found = append(found, t.at(fn.Pos(), "init runs unasked, before any error can be reported: do it in a constructor that main calls"))
				}
			}
		}
	}
	return found
}

// stamped is the variable that the linker sets to the version.
func stamped(dir, name string) bool { return dir == "cmd/metier" && name == "version" }

// fixedMakers make values that nobody can change and that are safe to share,
// by import path and name.
func fixedMakers() []string {
	return []string{
		"errors.New", "fmt.Errorf", "regexp.MustCompile", "strings.NewReplacer",
		"net/netip.MustParseAddr", "net/netip.MustParsePrefix",
	}
}

// checkVars: a package variable is an error, a compiled expression, an assertion
// that a type has an interface, or embedded files, and nothing assigns to it.
func checkVars(t *Tree) []Problem {
	var found []Problem
	changed := t.changedVars()
	for _, p := range t.Packages {
		for _, u := range t.infosOf(p) {
			for _, f := range u.files {
				for _, d := range f.Syntax.Decls {
					if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.VAR {
						found = append(found, t.checkVarGroup(p, u, f, g, changed)...)
					}
				}
			}
		}
	}
	return found
}

func (t *Tree) checkVarGroup(p *Package, u unit, f *File, g *ast.GenDecl, changed map[token.Pos]token.Pos) []Problem {
	var found []Problem
	for _, spec := range g.Specs {
		s, ok := spec.(*ast.ValueSpec)
		if !ok {
			continue
		}
		for i, name := range s.Names {
			if where, ok := changed[name.Pos()]; ok {
				found = append(found, t.at(where, "the package variable %s is changed here: put what changes into a struct, or pass it in", name.Name))
				continue
			}
			if name.Name == "_" || embeds(g, s) || stamped(p.Dir, name.Name) || i < len(s.Values) && u.fixed(s.Values[i], f.Test) {
				continue
			}
			found = append(found, t.at(name.Pos(), "the package variable %s can be changed from anywhere: make it a constant, a function that returns the value, or a field; allowed are errors, compiled expressions, interface assertions and embedded files", name.Name))
		}
	}
	return found
}

// fixed says whether an initial value is of a kind that nobody can change.
// Tests may declare flags besides, such as -update.
func (u unit) fixed(e ast.Expr, test bool) bool {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok {
		return false
	}
	importPath, name, ok := u.callee(call)
	if !ok {
		return false
	}
	return test && importPath == "flag" || slices.Contains(fixedMakers(), importPath+"."+name)
}

func embeds(g *ast.GenDecl, s *ast.ValueSpec) bool {
	for _, doc := range []*ast.CommentGroup{g.Doc, s.Doc} {
		if doc == nil {
			continue
		}
		for _, c := range doc.List {
			if strings.HasPrefix(c.Text, "//go:embed ") {
				return true
			}
		}
	}
	return false
}

// changedVars maps the package variables that some code of the module assigns
// to, or takes the address of, to a place that does. Variables are known by
// where they are declared.
func (t *Tree) changedVars() map[token.Pos]token.Pos {
	changed := map[token.Pos]token.Pos{}
	for _, p := range t.Packages {
		for _, u := range t.infosOf(p) {
			for _, f := range u.files {
				ast.Inspect(f.Syntax, func(n ast.Node) bool {
					for _, e := range targets(n) {
						if v := u.packageVar(e); v != nil && !changed[v.Pos()].IsValid() {
							changed[v.Pos()] = e.Pos()
						}
					}
					return true
				})
			}
		}
	}
	return changed
}

// targets are the expressions that a node assigns to or gives away by address. A
// name that the node declares is among them; it is no package variable.
func targets(n ast.Node) []ast.Expr {
	switch n := n.(type) {
	case *ast.AssignStmt:
		return n.Lhs
	case *ast.IncDecStmt:
		return []ast.Expr{n.X}
	case *ast.RangeStmt:
		return []ast.Expr{n.Key, n.Value}
	case *ast.UnaryExpr:
		if n.Op == token.AND {
			return []ast.Expr{n.X}
		}
	}
	return nil
}

// packageVar is the package variable that an expression is or is part of.
func (u unit) packageVar(e ast.Expr) *types.Var {
	for {
		switch x := e.(type) {
		case *ast.ParenExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.SelectorExpr:
			if _, ok := u.packageName(x.X); ok {
				return u.global(x.Sel)
			}
			e = x.X
		case *ast.Ident:
			return u.global(x)
		default:
			return nil
		}
	}
}

func (u unit) global(id *ast.Ident) *types.Var {
	v, ok := u.info.Uses[id].(*types.Var)
	if !ok || v.Pkg() == nil || v.Parent() != v.Pkg().Scope() {
		return nil
	}
	return v
}
