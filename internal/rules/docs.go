package rules

import (
	"go/ast"
	"go/token"
	"regexp"
	"strings"
)

// minSentences is how many sentences a package comment has at least: what the
// package is for, and what it never does or where to start.
const minSentences = 2

// sentenceEnd is the end of a sentence; "e.g." and "i.e." are taken out before.
var sentenceEnd = regexp.MustCompile(`[.!?][)"']?(\s|$)`)

// checkPackageDocs: a package has one package comment, of two sentences or more,
// that begins as go doc expects.
func checkPackageDocs(t *Tree) []Problem {
	var found []Problem
	for _, p := range t.Packages {
		files := p.Files
		if len(files) == 0 {
			files = p.Tests
		}
		found = append(found, t.checkPackageDoc(p, files)...)
	}
	return found
}

func (t *Tree) checkPackageDoc(p *Package, files []*File) []Problem {
	var found []Problem
	var doc *ast.CommentGroup
	for _, f := range files {
		switch {
		case f.Syntax.Doc == nil:
		case doc != nil:
			found = append(found, t.at(f.Syntax.Doc.Pos(), "package %s has a second package comment: keep one, in doc.go or the file of the main type", p.Name))
		default:
			doc = f.Syntax.Doc
		}
	}
	if doc == nil {
		return append(found, in(p.Dir, "package %s has no package comment: say what it is for, what it never does and where to start", p.Name))
	}
	text := doc.Text()
	if p.Name != "main" && !strings.HasPrefix(text, "Package "+p.Name+" ") {
		found = append(found, t.at(doc.Pos(), "the package comment does not begin with %q", "Package "+p.Name))
	}
	if n := sentences(text); n < minSentences {
		found = append(found, t.at(doc.Pos(), "the comment of package %s has fewer than %d sentences: say what it is for, what it never does and where to start", p.Name, minSentences))
	}
	return found
}

func sentences(text string) int {
	text = strings.NewReplacer("e.g.", "", "i.e.", "").Replace(text)
	return len(sentenceEnd.FindAllString(text, -1))
}

// checkExportedDocs: every exported name of a built file is documented. In a
// group the group's comment is enough.
func checkExportedDocs(t *Tree) []Problem {
	var found []Problem
	for _, p := range t.Packages {
		for _, f := range p.Files {
			for _, d := range f.Syntax.Decls {
				found = append(found, t.checkDeclDoc(d)...)
			}
		}
	}
	return found
}

func (t *Tree) checkDeclDoc(d ast.Decl) []Problem {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && d.Doc == nil && exportedReceiver(d) {
			return []Problem{t.undocumented(d.Name)}
		}
	case *ast.GenDecl:
		return t.checkGroupDoc(d)
	}
	return nil
}

func (t *Tree) checkGroupDoc(d *ast.GenDecl) []Problem {
	if d.Tok == token.IMPORT || d.Doc != nil {
		return nil
	}
	var found []Problem
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			if s.Name.IsExported() && s.Doc == nil && s.Comment == nil {
				found = append(found, t.undocumented(s.Name))
			}
		case *ast.ValueSpec:
			for _, name := range s.Names {
				if name.IsExported() && s.Doc == nil && s.Comment == nil {
					found = append(found, t.undocumented(name))
				}
			}
		}
	}
	return found
}

func (t *Tree) undocumented(name *ast.Ident) Problem {
	return t.at(name.Pos(), "%s is exported and has no comment: say what it is, its units, limits and errors", name.Name)
}

// exportedReceiver says whether a function is no method, or one of an exported
// type.
func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return true
	}
	e := d.Recv.List[0].Type
	for {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.IndexListExpr:
			e = x.X
		case *ast.Ident:
			return x.IsExported()
		default:
			return true
		}
	}
}
