package rules

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// binarySample is how many bytes of a file show whether it is text.
const binarySample = 8000

// hosts are the hosts of package registries, in parts, so that this file names
// none.
func hosts() []string {
	parts := [][]string{
		{"proxy", "golang", "org"},
		{"sum", "golang", "org"},
		{"registry", "npmjs", "org"},
		{"registry", "yarnpkg", "com"},
		{"pypi", "org"},
		{"files", "pythonhosted", "org"},
		{"index", "crates", "io"},
		{"static", "crates", "io"},
		{"repo1", "maven", "org"},
		{"repo", "maven", "apache", "org"},
		{"deb", "debian", "org"},
		{"rubygems", "org"},
	}
	names := make([]string, len(parts))
	for i, p := range parts {
		names[i] = strings.Join(p, ".")
	}
	return names
}

// workplace is a path of the machine that the project is written on.
var workplace = regexp.MustCompile(`/wor` + `k/((main|shared)\b|\.[a-z])`)

// outside is a path out of the project; only the build may know one, to test
// with what lies beside the checkout.
const outside = "../" + "shared"

// checkPlaces: no committed file names a place that a reader does not have: a
// path of one machine, a folder beside the checkout, a registry's host.
func checkPlaces(t *Tree) []Problem {
	var found []Problem
	for _, name := range t.Texts {
		data, err := os.ReadFile(filepath.Join(t.Root, filepath.FromSlash(name)))
		if err != nil {
			found = append(found, in(name, "cannot be read: %v", err))
			continue
		}
		if bytes.IndexByte(data[:min(len(data), binarySample)], 0) >= 0 {
			continue
		}
		line := 0
		for text := range strings.Lines(string(data)) {
			line++
			if wrong := placeIn(name, text); wrong != "" {
				found = append(found, Problem{File: name, Line: line, Text: wrong})
			}
		}
	}
	return found
}

func placeIn(name, text string) string {
	if at := workplace.FindString(text); at != "" {
		return "names " + at + ", a path of one machine: use a path inside the project or a temporary folder"
	}
	if strings.Contains(text, outside) && !buildFile(name) {
		return "names " + outside + ", a folder outside of the project: a test brings its own fixtures"
	}
	for _, h := range hosts() {
		if hasHost(text, h) {
			return "names the registry " + h + ": leave the choice of registry to the reader's own settings (npm: omit-lockfile-registry-resolved=true)"
		}
	}
	return ""
}

// hasHost says whether a line names a host, and not one that merely ends in the
// same letters.
func hasHost(text, host string) bool {
	for rest := text; ; {
		i := strings.Index(rest, host)
		if i < 0 {
			return false
		}
		if i == 0 || !isHostByte(rest[i-1]) {
			return true
		}
		rest = rest[i+len(host):]
	}
}

func isHostByte(b byte) bool {
	return b == '-' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
}

func buildFile(name string) bool {
	return name == "Makefile" || strings.HasPrefix(name, ".ci/")
}
