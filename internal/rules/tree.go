package rules

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Tree is a module's Go files, parsed, and the names of all its files. It is
// for one goroutine.
type Tree struct {
	// Root is the folder of go.mod.
	Root string
	// Module is the module's path.
	Module string
	// Fset places the files by their path relative to Root.
	Fset *token.FileSet
	// Packages are sorted by folder. Nested modules and testdata are not among
	// them.
	Packages []*Package
	// GoMods are all go.mod files, those of nested modules too.
	GoMods []string
	// Texts are the files that are committed or would be, as git sees them;
	// without git, all files.
	Texts []string
	// ModCache is where the licences of dependencies are read; empty: nowhere.
	ModCache string

	checked typeCache
}

// Package is the Go files of one folder.
type Package struct {
	// Dir is relative to the root, with slashes; "." is the root.
	Dir string
	// Name is the package's name, without a _test suffix.
	Name string
	// Files are the files that are built, Tests the _test.go files, both by
	// name.
	Files, Tests []*File
}

// File is one parsed Go file.
type File struct {
	// Path is relative to the root, with slashes.
	Path string
	// Lines counts its lines.
	Lines int
	// Test is set for _test.go files.
	Test bool
	// Syntax is the file with its comments.
	Syntax *ast.File
}

// All is the built files, then the tests.
func (p *Package) All() []*File { return slices.Concat(p.Files, p.Tests) }

// functions are a file's functions and methods.
func functions(f *File) []*ast.FuncDecl {
	var found []*ast.FuncDecl
	for _, d := range f.Syntax.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok {
			found = append(found, fn)
		}
	}
	return found
}

// support says whether a package only serves tests: a folder below test/, one
// whose name ends in "test", as llmtest does, and the scripted upstream.
func (p *Package) support() bool {
	return p.Dir == "internal/llm/scripted" || p.Dir == "test" || strings.HasPrefix(p.Dir, "test/") || strings.HasSuffix(path.Base(p.Dir), "test")
}

// FindRoot walks up from dir to the nearest go.mod.
func FindRoot(dir string) (string, error) {
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, "go.mod")); err == nil {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("find the module's root: no go.mod in %s or above: run inside the module", dir)
		}
	}
}

// Load parses the module whose go.mod lies in root. A file that does not parse
// is an error: no rule can speak about it.
func Load(root string) (*Tree, error) {
	t := &Tree{Root: root, Fset: token.NewFileSet()}
	mod, err := readGoMod(filepath.Join(root, "go.mod"))
	if err != nil {
		return nil, err
	}
	t.Module = mod.Module.Path
	if err := filepath.WalkDir(root, t.visit); err != nil {
		return nil, fmt.Errorf("load %s: %w", root, err)
	}
	if t.Texts, err = listTexts(root); err != nil {
		return nil, fmt.Errorf("load %s: %w", root, err)
	}
	return t, nil
}

// skippedDir says whether a folder holds nothing of the module's own.
func skippedDir(name string) bool {
	switch name {
	case "testdata", "node_modules", "vendor", "bin":
		return true
	}
	return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")
}

func (t *Tree) visit(name string, d fs.DirEntry, err error) error {
	if err != nil {
		return err
	}
	rel, err := filepath.Rel(t.Root, name)
	if err != nil {
		return err
	}
	rel = filepath.ToSlash(rel)
	switch {
	case d.IsDir() && rel != "." && skippedDir(d.Name()):
		return fs.SkipDir
	case d.IsDir():
		return nil
	case d.Name() == "go.mod":
		t.GoMods = append(t.GoMods, rel)
		return nil
	case strings.HasSuffix(d.Name(), ".go") && !t.nested(path.Dir(rel)):
		return t.parse(name, rel)
	}
	return nil
}

// nested says whether a folder is part of another module. The walk meets a
// folder's go.mod before its subfolders but not always before its own files,
// so the disk is asked.
func (t *Tree) nested(dir string) bool {
	for ; dir != "."; dir = path.Dir(dir) {
		if _, err := os.Stat(filepath.Join(t.Root, filepath.FromSlash(dir), "go.mod")); err == nil {
			return true
		}
	}
	return false
}

func (t *Tree) parse(name, rel string) error {
	src, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	syntax, err := parser.ParseFile(t.Fset, rel, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	if ast.IsGenerated(syntax) {
		return nil
	}
	f := &File{
		Path:   rel,
		Lines:  strings.Count(string(src), "\n"),
		Test:   strings.HasSuffix(rel, "_test.go"),
		Syntax: syntax,
	}
	p := t.packageOf(path.Dir(rel), syntax.Name.Name, f.Test)
	if f.Test {
		p.Tests = append(p.Tests, f)
	} else {
		p.Files = append(p.Files, f)
	}
	return nil
}

// packageOf is the package of a folder, added if it is new. A built file's name
// for it wins over a test's.
func (t *Tree) packageOf(dir, name string, test bool) *Package {
	name = strings.TrimSuffix(name, "_test")
	if p := t.byDir(dir); p != nil {
		if !test {
			p.Name = name
		}
		return p
	}
	p := &Package{Dir: dir, Name: name}
	t.Packages = append(t.Packages, p)
	slices.SortFunc(t.Packages, func(a, b *Package) int { return strings.Compare(a.Dir, b.Dir) })
	return p
}

func (t *Tree) byDir(dir string) *Package {
	for _, p := range t.Packages {
		if p.Dir == dir {
			return p
		}
	}
	return nil
}

// dirOf is the folder of an import path of the module itself.
func (t *Tree) dirOf(importPath string) (string, bool) {
	if importPath == t.Module {
		return ".", true
	}
	return strings.CutPrefix(importPath, t.Module+"/")
}
