package packages

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/metier-run/metier/internal/interpreter"
	"github.com/metier-run/metier/internal/sandbox/registry"
)

// plan is a request that can be carried out.
type plan struct {
	kind  registry.Kind
	specs []Spec
	use   interpreter.Interpreter
	npm   string   // npm's own program, for Node to run
	read  []string // what the installer must see
	key   string
}

// plan finds the interpreter and the key under which the result is remembered.
func (s *Store) plan(r Request) (plan, error) {
	p := plan{kind: registry.Pip, use: r.Use}
	if r.Kind == interpreter.Node {
		p.kind = registry.Npm
	}
	var err error
	if p.specs, err = union(p.kind, r.Have, r.Add); err != nil {
		return plan{}, err
	}
	if len(p.specs) == 0 {
		return plan{}, failure(Refused, "no package is named: name at least one.")
	}
	if p.use.Path == "" {
		if p.use, err = s.o.Interpreters.Find(r.Kind); err != nil {
			return plan{}, failure(NoInstaller, noInterpreter(p.kind))
		}
	}
	p.read = append(p.read, p.use.Read...)
	p.read = append(p.read, p.use.Packages...)
	if p.kind == registry.Npm {
		if err := s.findNpm(&p); err != nil {
			return plan{}, err
		}
	}
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s %s\n%s/%s\n%s\n", p.kind, p.use.Version, p.use.Path, runtime.GOOS, runtime.GOARCH, s.o.Front.Origin(p.kind))
	for _, x := range p.specs {
		fmt.Fprintf(h, "%s\n", x.argument(p.kind))
	}
	p.key = hex.EncodeToString(h.Sum(nil)[:16])
	return p, nil
}

// findNpm looks for npm beside the Node that is used, then beside the host's. Either is
// run by the Node that is used.
func (s *Store) findNpm(p *plan) error {
	nodes := []interpreter.Interpreter{p.use}
	if own, err := s.o.Interpreters.Find(interpreter.Node); err == nil {
		nodes = append(nodes, own)
	}
	for i, node := range nodes {
		for _, dir := range node.Bin {
			program, err := npmProgram(dir)
			if err != nil {
				continue
			}
			p.npm = program
			p.read = append(p.read, filepath.Dir(filepath.Dir(program)))
			if i > 0 {
				p.read = append(p.read, node.Read...)
			}
			return nil
		}
	}
	return failure(NoInstaller, noNpm)
}

// npmProgram is the script that npm is, from a directory of programs.
func npmProgram(dir string) (string, error) {
	for _, at := range []string{
		filepath.Join(dir, "npm"),
		filepath.Join(dir, "node_modules", "npm", "bin", "npm-cli.js"),
		filepath.Join(dir, "..", "lib", "node_modules", "npm", "bin", "npm-cli.js"),
	} {
		real, err := filepath.EvalSymlinks(at)
		if err != nil || !strings.HasSuffix(real, ".js") {
			continue
		}
		if info, err := os.Stat(real); err == nil && info.Mode().IsRegular() {
			return real, nil
		}
	}
	return "", errors.New("no npm")
}
