package rules

import (
	"fmt"
	"go/ast"
	"go/types"
	"slices"
	"strconv"
	"strings"
)

// typeCache keeps what has been type-checked, by import path.
type typeCache struct {
	infos map[string]*types.Info
	done  map[string]*types.Package
	open  map[string]bool
}

// Import gives the type checker the module's own packages and nothing else:
// reading the standard library and the dependencies would cost seconds, and the
// rules need only know which package a name comes from, which the import says.
func (t *Tree) Import(importPath string) (*types.Package, error) {
	dir, ours := t.dirOf(importPath)
	if !ours {
		return nil, fmt.Errorf("import %s: outside of the module", importPath)
	}
	p := t.byDir(dir)
	if p == nil || len(p.Files) == 0 || t.checked.open[importPath] {
		return nil, fmt.Errorf("import %s: no such package", importPath)
	}
	pkg, _ := t.check(importPath, p.Files)
	return pkg, nil
}

// infosOf is what is known of a package's files: those that are built with the
// tests inside the package, then the tests outside of it.
func (t *Tree) infosOf(p *Package) []unit {
	base := t.Module + "/" + p.Dir
	var inside, outside []*File
	for _, f := range p.Tests {
		if strings.HasSuffix(f.Syntax.Name.Name, "_test") {
			outside = append(outside, f)
		} else {
			inside = append(inside, f)
		}
	}
	var units []unit
	if files := slices.Concat(p.Files, inside); len(files) > 0 {
		_, info := t.check(base+" [test]", files)
		units = append(units, unit{files, info})
	}
	if len(outside) > 0 {
		_, info := t.check(base+"_test", outside)
		units = append(units, unit{outside, info})
	}
	return units
}

// unit is files that are compiled together and what is known of them.
type unit struct {
	files []*File
	info  *types.Info
}

// check type-checks files, errors aside: a rule reads what could be resolved.
func (t *Tree) check(key string, files []*File) (*types.Package, *types.Info) {
	c := &t.checked
	if c.done == nil {
		c.infos, c.done, c.open = map[string]*types.Info{}, map[string]*types.Package{}, map[string]bool{}
	}
	if pkg, ok := c.done[key]; ok {
		return pkg, c.infos[key]
	}
	c.open[key] = true
	defer delete(c.open, key)
	info := &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{},
		Uses:  map[*ast.Ident]types.Object{},
		Defs:  map[*ast.Ident]types.Object{},
	}
	conf := types.Config{Importer: t, Error: func(error) {}, FakeImportC: true, DisableUnusedImportCheck: true}
	syntax := make([]*ast.File, len(files))
	for i, f := range files {
		syntax[i] = f.Syntax
	}
	// The error is the first of those that Error has had.
	pkg, _ := conf.Check(key, t.Fset, syntax, info)
	c.done[key], c.infos[key] = pkg, info
	return pkg, info
}

// callee is the import path and the name of the function that a call names by
// its package: net/http and MaxBytesReader. ok is false for any other call.
func (u unit) callee(call *ast.CallExpr) (importPath, name string, ok bool) {
	sel, isSel := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !isSel {
		return "", "", false
	}
	importPath, ok = u.packageName(sel.X)
	return importPath, sel.Sel.Name, ok
}

// packageName is the import path that an expression stands for.
func (u unit) packageName(e ast.Expr) (string, bool) {
	id, isIdent := e.(*ast.Ident)
	if !isIdent {
		return "", false
	}
	pkg, isPkg := u.info.Uses[id].(*types.PkgName)
	if !isPkg {
		return "", false
	}
	return pkg.Imported().Path(), true
}

// importsOf lists a file's import paths with their specs.
func importsOf(f *File) map[string]*ast.ImportSpec {
	found := map[string]*ast.ImportSpec{}
	for _, spec := range f.Syntax.Imports {
		if p, err := strconv.Unquote(spec.Path.Value); err == nil {
			found[p] = spec
		}
	}
	return found
}
