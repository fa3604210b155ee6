package direct

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/metier-run/metier/test/tasks/task"
)

// Missing is the first program of the tasks that is not on this host; "" when all
// are there.
func Missing() string {
	for _, name := range []string{"bash", "timeout", "python3", "node", "go"} {
		if _, err := exec.LookPath(name); err != nil {
			return name
		}
	}
	return ""
}

// PythonPath is the host's PATH with the folder of the real python3 first. Some
// hosts have a script in its place that looks for the interpreter anew each time,
// which costs more than most of the tasks.
func PythonPath(ctx context.Context) (string, error) {
	host := os.Getenv("PATH")
	output, exit, err := task.Bare(ctx, ".", []string{"PATH=" + host, "HOME=" + os.Getenv("HOME")}, []string{"python3", "-c", "import sys; print(sys.executable)"})
	if err != nil || exit != 0 {
		return "", fmt.Errorf("ask python3 where it is: status %d: %w", exit, err)
	}
	return filepath.Dir(strings.TrimSpace(string(output))) + string(filepath.ListSeparator) + host, nil
}
