package rules

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// listTexts lists the files that are committed or would be, relative to root.
// Outside of a repository it lists all files.
func listTexts(root string) ([]string, error) {
	if _, err := os.Stat(filepath.Join(root, ".git")); err != nil {
		return walkTexts(root)
	}
	cmd := exec.CommandContext(context.Background(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	cmd.Env = withoutGit(os.Environ())
	out, err := cmd.Output()
	if err != nil {
		// A source archive in a container may have .git and no git.
		return walkTexts(root)
	}
	names := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	return slices.DeleteFunc(names, func(n string) bool {
		info, err := os.Lstat(filepath.Join(root, filepath.FromSlash(n)))
		return err != nil || !info.Mode().IsRegular()
	}), nil
}

// withoutGit drops git's own variables: inside a hook they name another
// repository or another index.
func withoutGit(env []string) []string {
	return slices.DeleteFunc(env, func(e string) bool { return strings.HasPrefix(e, "GIT_") })
}

func walkTexts(root string) ([]string, error) {
	var names []string
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules" || d.Name() == "bin"):
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		names = append(names, filepath.ToSlash(rel))
		return nil
	})
	return names, err
}
