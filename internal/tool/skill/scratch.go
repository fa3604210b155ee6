package skill

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/metier-run/metier/internal/workspace"
)

// tempName is the folder for temporary files in a working directory. Its dot keeps
// what is left in it out of the files that are kept of a launch.
const tempName = ".tmp"

// makeScratch makes the working directory of one call below dir, links resolved.
func makeScratch(dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make a working directory: %w", err)
	}
	real, err := canonical(dir)
	if err != nil {
		return "", fmt.Errorf("make a working directory: %w", err)
	}
	scratch, err := os.MkdirTemp(real, "run-") // of mode 0700
	if err != nil {
		return "", fmt.Errorf("make a working directory: %w", err)
	}
	if err := os.Mkdir(filepath.Join(scratch, tempName), 0o700); err != nil {
		return "", errors.Join(fmt.Errorf("make a working directory: %w", err), workspace.Remove(scratch))
	}
	return scratch, nil
}
