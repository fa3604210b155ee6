package workspace

import (
	"fmt"
	"io"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/guard"
)

// cwdName is the file in the saved folder that holds where the shell is.
const cwdName = "cwd"

// Current is where the shell is, relative to the work folder with "/" between names;
// "." at its top. What the shell left is not believed: a directory that is not there
// or not inside counts as the top (B1 9.3, 9.7).
func (w *Workspace) Current() string {
	text, err := w.ReadSaved(cwdName)
	if err != nil {
		return "."
	}
	rel, ok := w.inside(strings.TrimRight(string(text), "\r\n"))
	if !ok {
		return "."
	}
	root, err := w.Files()
	if err != nil {
		return "."
	}
	defer root.Close()
	if info, err := root.Stat(rel); err != nil || !info.IsDir() {
		return "."
	}
	return rel
}

// ReadSaved reads a file that the shell left: a regular one that is no link, and no
// longer than code-exec-state (B1 9.6).
func (w *Workspace) ReadSaved(name string) ([]byte, error) {
	root, err := guard.OpenRoot(w.Saved())
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := root.OpenPlain(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	most := w.o.Limits.Get(config.CodeState)
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("read what the shell remembers: it is longer than %d bytes", most)
	}
	return data, err
}

// inside is a path of this host relative to the work folder, if it lies there by its
// spelling.
func (w *Workspace) inside(name string) (string, bool) {
	rel, err := filepath.Rel(w.Work(), name)
	if !filepath.IsAbs(name) || err != nil || !filepath.IsLocal(rel) {
		return "", false
	}
	return filepath.ToSlash(rel), true
}

// Resolve leads a path that a model wrote to the work folder: relative to where the
// shell is, or to HOME if it begins with "~/", or absolute if it lies inside. The
// result is relative to the work folder and clean. It fails with a
// [*guard.PathError] (B1 11.1).
//
// Only the spelling is judged. Links are judged when the path is opened, by [guard].
func (w *Workspace) Resolve(name string) (string, error) {
	name = strings.TrimSpace(name)
	if runtime.GOOS != "windows" {
		name = strings.TrimPrefix(name, "file://")
	}
	if rel, ok := w.inside(name); ok {
		return guard.Clean(rel)
	}
	if name == "~" {
		return ".", nil
	}
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		return guard.Clean(cleaned(rest))
	}
	current := w.Current()
	if name == "" || path.IsAbs(name) {
		return guard.Clean(name)
	}
	// "../a" in a folder of the workspace is as good as "a" at its top: the guard sees
	// the path from the top.
	joined := path.Join(current, name)
	if joined == ".." || strings.HasPrefix(joined, "../") {
		return guard.Clean(name)
	}
	return guard.Clean(joined)
}

// cleaned is a path without "." and "..", as far as that can be told from its
// spelling.
func cleaned(name string) string {
	if name == "" {
		return "."
	}
	return path.Clean(name)
}

// Shown is a path of the work folder as a model would write it where the shell is.
func (w *Workspace) Shown(rel string) string { return shown(w.Current(), rel) }

func shown(current, rel string) string {
	out, err := filepath.Rel(filepath.FromSlash(current), filepath.FromSlash(rel))
	if err != nil {
		return rel
	}
	return filepath.ToSlash(out)
}
