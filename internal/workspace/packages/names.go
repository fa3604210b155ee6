package packages

import (
	"bufio"
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/metier-run/metier/internal/sandbox/registry"
)

// installed lists what a tree holds, by the notes that installers leave in it.
func installed(kind registry.Kind, dir string) ([]Installed, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	var all []Installed
	if kind == registry.Npm {
		all, err = installedNode(root.FS())
	} else {
		all, err = installedPython(root.FS())
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	slices.SortFunc(all, func(a, b Installed) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version))
	})
	return slices.Compact(all), err
}

// installedPython reads the head of each METADATA.
func installedPython(tree fs.FS) ([]Installed, error) {
	infos, err := fs.Glob(tree, "*.dist-info/METADATA")
	if err != nil {
		return nil, err
	}
	var all []Installed
	for _, name := range infos {
		one, err := readMetadata(tree, name)
		if err != nil {
			return nil, err
		}
		if one.Name != "" {
			all = append(all, one)
		}
	}
	return all, nil
}

func readMetadata(tree fs.FS, name string) (Installed, error) {
	f, err := tree.Open(name)
	if err != nil {
		return Installed{}, err
	}
	defer f.Close()
	var one Installed
	for scan := bufio.NewScanner(f); scan.Scan(); {
		line := scan.Text()
		if line == "" {
			break
		}
		key, value, _ := strings.Cut(line, ":")
		switch strings.ToLower(key) {
		case "name":
			one.Name = cmp.Or(one.Name, clip(strings.TrimSpace(value)))
		case "version":
			one.Version = cmp.Or(one.Version, clip(strings.TrimSpace(value)))
		}
	}
	return one, nil
}

// installedNode reads the manifests at the top of node_modules.
func installedNode(tree fs.FS) ([]Installed, error) {
	var all []Installed
	for _, pattern := range []string{"node_modules/*/package.json", "node_modules/@*/*/package.json"} {
		found, err := fs.Glob(tree, pattern)
		if err != nil {
			return nil, err
		}
		for _, name := range found {
			data, err := fs.ReadFile(tree, name)
			if err != nil {
				return nil, err
			}
			var one Installed
			if json.Unmarshal(data, &one) != nil {
				continue // it is there, and what it is cannot be told
			}
			// The folder is the name under which it is imported.
			one.Name = strings.TrimPrefix(path.Dir(name), "node_modules/")
			one.Version = clip(one.Version)
			all = append(all, one)
		}
	}
	return all, nil
}
