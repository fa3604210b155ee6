package rules

import "strings"

// ban is a module or package that is not imported, and why.
type ban struct {
	path string
	// why is a clause that ends the sentence "do not import it: ...".
	why string
	// inTest is set when packages that only serve tests may.
	inTest bool
}

func bans() []ban {
	return []ban{
		{"encoding/json", "it takes wrong-case and duplicate names and is slower; use github.com/go-json-experiment/json and its jsontext", false},
		{"gopkg.in/yaml.v2", "it is unmaintained; use go.yaml.in/yaml/v4", false},
		{"gopkg.in/yaml.v3", "it is unmaintained; use go.yaml.in/yaml/v4", false},
		{"github.com/goccy/go-yaml", "it reads version: 1.10 as 1.1; use go.yaml.in/yaml/v4", false},
		{"github.com/stretchr/testify", "comparisons are written with the standard library and github.com/google/go-cmp", false},
		{"io/ioutil", "os and io have it", false},
		{"log", "what is logged is structured; use log/slog with the logger that was passed in", false},
		{"github.com/openai/openai-go", "vendor SDKs are black-box clients of tests, in a module of their own under test/", true},
		{"github.com/anthropics/anthropic-sdk-go", "vendor SDKs are black-box clients of tests, in a module of their own under test/", true},
		{"github.com/ollama/ollama", "vendor SDKs are black-box clients of tests, in a module of their own under test/", true},
	}
}

// checkImports: nothing imports what the project has decided against.
func checkImports(t *Tree) []Problem {
	var found []Problem
	for _, p := range t.Packages {
		for _, f := range p.All() {
			for importPath, spec := range importsOf(f) {
				for _, b := range bans() {
					if under(importPath, b.path) && (!b.inTest || !p.support()) {
						found = append(found, t.at(spec.Pos(), "do not import %s: %s", importPath, b.why))
					}
				}
			}
		}
	}
	return found
}

// under says whether an import path is a banned one, or a package or a later
// major version below it. The standard library's log/slog is not below log.
func under(importPath, banned string) bool {
	if importPath == banned {
		return true
	}
	return strings.Contains(banned, ".") && strings.HasPrefix(importPath, banned+"/")
}
