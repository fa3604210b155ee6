package rules

import (
	"path"
	"slices"
)

// bannedNames say nothing about what a package is for, so anything ends up in
// them.
func bannedNames() []string {
	return []string{"util", "utils", "common", "helpers", "types", "models", "misc", "shared", "base"}
}

// checkNames: no package is named after nothing.
func checkNames(t *Tree) []Problem {
	var found []Problem
	for _, p := range t.Packages {
		for _, name := range []string{p.Name, path.Base(p.Dir)} {
			if slices.Contains(bannedNames(), name) {
				found = append(found, in(p.Dir, "a package named %s holds anything: name it after the one idea that it holds", name))
				break
			}
		}
	}
	return found
}
