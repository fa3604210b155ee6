package oci

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/sandbox/program"
)

// The parts of a bundle beside the skeleton of the root.
const (
	configFile = "config.json" // the specification's name
	stateDir   = "state"       // the runtime's records
	pidFile    = "pid"
	logFile    = "log"
)

// encode is a description as the runtime reads it.
func encode(c config) ([]byte, error) {
	return json.Marshal(c, jsontext.WithIndent("  "), json.Deterministic(true))
}

// makeBundle fills a new directory. The launch's user has to come through it, and
// owns nothing in it.
func makeBundle(dir string, r recipe, etc []program.File) error {
	text, err := encode(r.describe())
	if err != nil {
		return fmt.Errorf("describe the container: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, configFile), text, 0o600); err != nil {
		return err
	}
	for name, mode := range map[string]fs.FileMode{stateDir: 0o700, skeleton: 0o755} {
		if err := os.Mkdir(filepath.Join(dir, name), mode); err != nil {
			return err
		}
	}
	root, err := os.OpenRoot(filepath.Join(dir, skeleton))
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	return makeSkeleton(root, r, etc)
}

// makeSkeleton makes everything that is mounted over, and the files and links that
// are not. What lies below something that is mounted is there already, or made by
// the runtime.
func makeSkeleton(root *os.Root, r recipe, etc []program.File) error {
	var places []program.Place
	for _, p := range r.places {
		places = append(places, p.Place)
	}
	for _, d := range append(program.Dirs(), "/proc", "/dev", "/tmp", "/etc") {
		if err := root.MkdirAll(inside(d), 0o755); err != nil {
			return err
		}
	}
	for _, l := range append(program.Links(places), r.system.Links...) {
		if err := link(root, l); err != nil {
			return err
		}
	}
	for _, p := range r.system.Shown {
		if err := mountPoint(root, p.Path, p.Dir); err != nil {
			return err
		}
	}
	for _, f := range etc {
		if err := root.WriteFile(inside(f.Path), []byte(f.Text), 0o444); err != nil {
			return err
		}
	}
	for _, p := range places {
		if p.Under != program.Hidden {
			continue
		}
		if err := mountPoint(root, p.Path, p.Dir); err != nil {
			return err
		}
	}
	return nil
}

// inside is a path of the launch below its root.
func inside(path string) string {
	if path == "/" {
		return "."
	}
	return strings.TrimPrefix(path, "/")
}

func link(root *os.Root, l program.Link) error {
	if err := root.MkdirAll(inside(filepath.Dir(l.Path)), 0o755); err != nil {
		return err
	}
	return root.Symlink(l.Target, inside(l.Path))
}

func mountPoint(root *os.Root, path string, dir bool) error {
	if dir {
		return root.MkdirAll(inside(path), 0o755)
	}
	if err := root.MkdirAll(inside(filepath.Dir(path)), 0o755); err != nil {
		return err
	}
	return root.WriteFile(inside(path), nil, 0o444)
}
