package rules

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"

	"github.com/go-json-experiment/json"
)

// goMod is a go.mod as the go command reads it.
type goMod struct {
	Module  struct{ Path string }
	Require []requirement
	Replace []struct{ Old module }
	Tool    []module
}

type module struct{ Path, Version string }

type requirement struct {
	Path, Version string
	Indirect      bool
}

// readGoMod asks the go command, which is there when tests run, so that the
// format is read by its owner.
func readGoMod(file string) (goMod, error) {
	out, err := exec.CommandContext(context.Background(), "go", "mod", "edit", "-json", file).Output()
	if err != nil {
		return goMod{}, fmt.Errorf("read %s: go mod edit: %w", file, err)
	}
	var mod goMod
	if err := json.Unmarshal(out, &mod); err != nil {
		return goMod{}, fmt.Errorf("read %s: %w", file, err)
	}
	return mod, nil
}

// checkReplace: no go.mod replaces a module. Users who install the program
// would get another one than is tested.
func checkReplace(t *Tree) []Problem {
	var found []Problem
	for _, name := range t.GoMods {
		mod, err := readGoMod(filepath.Join(t.Root, filepath.FromSlash(name)))
		if err != nil {
			found = append(found, in(name, "%v", err))
			continue
		}
		for _, r := range mod.Replace {
			found = append(found, in(name, "replaces %s: go install ignores that, so users get what was never tested; require a version that works", r.Old.Path))
		}
	}
	return found
}
