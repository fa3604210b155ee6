package interpreter

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/pelletier/go-toml/v2"
)

// shims is the root of the version manager whose shim a file is: the folder above
// its folder "shims".
func shims(file string) (string, bool) {
	dir, err := filepath.EvalSymlinks(filepath.Dir(file))
	if err != nil || filepath.Base(dir) != "shims" {
		return "", false
	}
	return filepath.Dir(dir), true
}

// behind is the file that a shim would start.
func (o Options) behind(k Kind, name, root string) (string, error) {
	switch {
	case isDir(filepath.Join(root, "versions")):
		return behindVersions(name, root)
	case isDir(filepath.Join(root, "installs")):
		return o.behindInstalls(k, name, root)
	case k == Python && isDir(filepath.Join(o.PyenvRoot, "versions")) && filepath.IsAbs(o.PyenvRoot):
		return behindVersions(name, o.PyenvRoot)
	}
	for _, root := range []string{o.AsdfData, o.MiseData} {
		if filepath.IsAbs(root) && isDir(filepath.Join(root, "installs")) {
			return o.behindInstalls(k, name, root)
		}
	}
	return "", errShim
}

// behindVersions is for pyenv, nodenv and their kin: the file "version" names what
// is used, and "versions" holds what is installed.
func behindVersions(name, root string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, "version"))
	if err != nil {
		text = nil // nothing was chosen
	}
	wanted := strings.FieldsFunc(string(text), func(r rune) bool { return r == ':' || r <= ' ' })
	return choose(filepath.Join(root, "versions"), name, wanted)
}

// behindInstalls is for asdf and mise: files in the home name what is used.
func (o Options) behindInstalls(k Kind, name, root string) (string, error) {
	failure := errShim
	for _, tool := range k.tools() {
		dir := filepath.Join(root, "installs", tool)
		if !isDir(dir) {
			continue
		}
		file, err := choose(dir, name, o.wanted(k))
		if err == nil {
			return file, nil
		}
		failure = err
	}
	return "", failure
}

// tools are the names of a kind among the version managers' tools.
func (k Kind) tools() []string {
	if k == Node {
		return []string{"nodejs", "node"}
	}
	return []string{string(k)}
}

// wanted is what the operator's own files say is used: .tool-versions first, as
// both managers do, then mise's own file.
func (o Options) wanted(k Kind) []string {
	if o.Home == "" {
		return nil
	}
	text, err := os.ReadFile(filepath.Join(o.Home, ".tool-versions"))
	if err == nil {
		for line := range strings.Lines(string(text)) {
			line, _, _ = strings.Cut(line, "#")
			words := strings.Fields(line)
			if len(words) > 1 && slices.Contains(k.tools(), words[0]) {
				return words[1:]
			}
		}
	}
	var config struct {
		Tools map[string]any `toml:"tools"`
	}
	text, err = os.ReadFile(filepath.Join(o.Home, ".config", "mise", "config.toml"))
	if err != nil || toml.Unmarshal(text, &config) != nil {
		return nil
	}
	for _, tool := range k.tools() {
		if words := versions(config.Tools[tool]); len(words) > 0 {
			return words
		}
	}
	return nil
}

// versions are the versions in a value of mise's file: a text, a list, or a table
// with a version.
func versions(v any) []string {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		var all []string
		for _, e := range v {
			all = append(all, versions(e)...)
		}
		return all
	case map[string]any:
		return versions(v["version"])
	}
	return nil
}

// choose is the program of the first wanted version that is installed below dir,
// or of the newest. A name that holds a version itself, such as python3.12, only
// works for wanted versions, as in a shell.
func choose(dir, name string, wanted []string) (string, error) {
	for _, want := range wanted {
		if want == "system" {
			return "", errSystem
		}
		for _, folder := range installed(dir, want) {
			if file, ok := programIn(filepath.Join(dir, folder), name); ok {
				return file, nil
			}
		}
	}
	if strings.Contains(name, ".") {
		return "", errShim
	}
	for _, folder := range newestFirst(dir) {
		if file, ok := programIn(filepath.Join(dir, folder), name); ok {
			return file, nil
		}
	}
	return "", errShim
}

func programIn(folder, name string) (string, bool) {
	file := filepath.Join(folder, "bin", name+exe())
	info, err := os.Stat(file)
	return file, err == nil && info.Mode().IsRegular()
}

// installed are the folders that an entry names: itself, or the newest of which it
// is the beginning.
func installed(dir, want string) []string {
	if want == "" || want != filepath.Base(want) || want[0] == '.' {
		return nil
	}
	if isDir(filepath.Join(dir, want)) {
		return []string{want}
	}
	return slices.DeleteFunc(newestFirst(dir), func(folder string) bool {
		return !strings.HasPrefix(folder, want+".")
	})
}

// newestFirst lists the folders that are named for a finished version.
func newestFirst(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var folders []string
	for _, e := range entries {
		if e.IsDir() && numbers(e.Name()) != nil {
			folders = append(folders, e.Name())
		}
	}
	slices.SortFunc(folders, func(a, b string) int { return slices.Compare(numbers(b), numbers(a)) })
	return folders
}

// numbers are the parts of a version, or nil when a name is none.
func numbers(name string) []int {
	var parts []int
	for part := range strings.SplitSeq(strings.TrimPrefix(name, "v"), ".") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 {
			return nil
		}
		parts = append(parts, n)
	}
	return parts
}

// volta is the program that Volta's one shim starts outside of a project.
func (o Options) volta(k Kind) (string, error) {
	root := cmp.Or(o.VoltaHome, filepath.Join(o.Home, ".volta"))
	if k != Node || !filepath.IsAbs(root) {
		return "", errShim
	}
	var platform struct {
		Node struct {
			Runtime string `json:"runtime"`
		} `json:"node"`
	}
	var wanted []string
	text, err := os.ReadFile(filepath.Join(root, "tools", "user", "platform.json"))
	if err == nil && json.Unmarshal(text, &platform) == nil {
		wanted = []string{platform.Node.Runtime}
	}
	file, err := choose(filepath.Join(root, "tools", "image", "node"), "node", wanted)
	if err != nil {
		return "", err
	}
	if file, err = filepath.EvalSymlinks(file); err != nil {
		return "", broken(err)
	}
	return file, nil
}

var (
	inName   = regexp.MustCompile(`^(?:python|pypy)(\d+\.\d+)`)
	inFolder = regexp.MustCompile(`(?:^|[-@])v?(\d+\.\d+(?:\.\d+)?)(?:$|[-+])`)
)

// levels is how many folders above a program may be named for its version.
const levels = 4

// version is what a path tells of the version of a program.
func version(real string) string {
	if m := inName.FindStringSubmatch(filepath.Base(real)); m != nil {
		return m[1]
	}
	at := filepath.Dir(real)
	for range levels {
		if m := inFolder.FindStringSubmatch(filepath.Base(at)); m != nil {
			return m[1]
		}
		at = filepath.Dir(at)
	}
	return ""
}

func isDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}
