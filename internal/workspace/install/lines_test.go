package install

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// files is a workspace.
func files() map[string]string {
	return map[string]string{
		"requirements.txt":         "# what it needs\nnumpy>=1.20  # arrays\n\npandas==2.1.*\r\nuvicorn[standard] ~= 0.30\nimportlib-metadata>=4 ; python_version < \"3.8\"\nlong\\\n-name\n",
		"app/requirements.txt":     "flask\n",
		"options.txt":              "numpy\n--extra-index-url https://user:secret@example.test/simple\n",
		"hashes.txt":               "numpy==1.26.4 --hash=sha256:abcdef\n",
		"more.txt":                 "-r requirements.txt\n",
		"url.txt":                  "numpy\nfoo @ https://user:secret@example.test/foo.whl\n",
		"empty.txt":                "# nothing\n",
		"many.txt":                 strings.Repeat("numpy\n", 17),
		"package.json":             `{"name":"x","dependencies":{"express":"^4.18.0","@types/node":"*","left-pad":""},"devDependencies":{"jest":"~29.7.0","express":"1.0.0"}}`,
		"package-lock.json":        `{"lockfileVersion":3,"packages":{"":{},"node_modules/express":{"version":"4.19.2"},"node_modules/@types/node":{"version":"20.1.0"},"node_modules/left-pad":{"version":"1.3.0"},"node_modules/jest":{"version":"29.7.0"}}}`,
		"git/package.json":         `{"dependencies":{"a":"git+https://user:secret@example.test/a.git"}}`,
		"alias/package.json":       `{"dependencies":{"a":"npm:b@1"}}`,
		"file/package.json":        `{"dependencies":{"a":"file:../a"}}`,
		"workspaces/package.json":  `{"workspaces":["packages/*"]}`,
		"bad/package.json":         `{"dependencies":`,
		"nothing/package.json":     "\ufeff{}",
		"lockless/package.json":    `{"dependencies":{"a":"1"}}`,
		"half/package.json":        `{"dependencies":{"a":"1"}}`,
		"half/package-lock.json":   `{"packages":{"node_modules/a":{"version":"file:../a"}}}`,
		"my files/requirements.in": "six\n",
	}
}

func manifest(path string) ([]byte, error) {
	text, ok := files()[path]
	switch {
	case ok:
		return []byte(text), nil
	case path == "locked.txt":
		return nil, &fs.PathError{Op: "open", Path: "/home/operator/state/locked.txt", Err: fs.ErrPermission}
	}
	return nil, fmt.Errorf("open: %w", fs.ErrNotExist)
}

// setting is a set of options with the lines that are read under it.
type setting struct {
	name    string
	options Options
	lines   []string
}

// settings are what operators allow. Every file is there, and the host has numpy
// and typescript.
func settings() []setting {
	provided := func(kind Kind, name string) bool {
		return kind == Pip && (name == "numpy" || name == "python-dateutil") || kind == Npm && name == "typescript"
	}
	host := func(program string) bool { return program == "/usr/bin/python3" || program == "pip3.11" }
	program := func(name string) bool {
		return slices.Contains([]string{"tsc", "ruff", "node_modules/.bin/eslint", "app/node_modules/.bin/vite", "/work/app/node_modules/.bin/jest"}, name)
	}
	brings := func(kind Kind, program string) string {
		return map[Kind]map[string]string{Npm: {"prettier": "prettier", "ng": "@angular/cli"}, Pip: {"black": "black"}}[kind][program]
	}
	return []setting{
		{"allowed", Options{Allowed: true, Manifest: manifest}, allowedLines()},
		{"off", Options{Manifest: manifest, Provided: provided}, offLines()},
		{"built-in", Options{Allowed: true, Manifest: manifest, Provided: provided}, builtInLines()},
		{"listed", Options{Allowed: true, Network: true, Manifest: manifest, Provided: provided, Packages: []string{"Ruamel_YAML", "pandas", "lodash", "JSONStream"}}, listedLines()},
		{"network", Options{Allowed: true, Network: true, Manifest: manifest}, networkLines()},
		{"network-off", Options{Network: true, Manifest: manifest}, networkOffLines()},
		{"environments", Options{Allowed: true, Manifest: manifest, Provided: provided, Host: host}, environmentLines()},
		{"environments-off", Options{Provided: provided, Host: host}, environmentLines()[:5]},
		{"programs", Options{Allowed: true, Manifest: manifest, Program: program, Brings: brings}, programLines()},
		{"programs-off", Options{Program: program, Brings: brings}, programOffLines()},
		{"programs-free", Options{Allowed: true, Network: true, Program: program}, programFreeLines()},
		{"no-files", Options{Allowed: true, Most: 2}, noFilesLines()},
	}
}

// TestLines pins what is read out of lines as models write them. Each golden
// file was read by a person against B1 13; a change in it is a change of
// behaviour.
func TestLines(t *testing.T) {
	total := 0
	for _, s := range settings() {
		t.Run(s.name, func(t *testing.T) {
			var out strings.Builder
			for _, line := range s.lines {
				out.WriteString(describe(line, Read(line, s.options)))
			}
			golden(t, s.name+".txt", out.String())
		})
		total += len(s.lines)
	}
	if total < 150 {
		t.Errorf("the tables have %d lines, want 150 at least", total)
	}
}

func describe(line string, r Reading) string {
	var out strings.Builder
	shown := line
	if len(shown) > 500 {
		shown = shown[:20] + "..." + shown[len(shown)-20:]
	}
	fmt.Fprintf(&out, "$ %s\n", strings.ReplaceAll(shown, "\n", "\n> "))
	if r.Refusal != "" {
		fmt.Fprintf(&out, "  refused: %s\n\n", r.Refusal)
		return out.String()
	}
	for _, q := range r.Requests {
		out.WriteString("  " + string(q.Kind))
		if q.Manifest {
			out.WriteString(" package.json")
		}
		for _, s := range q.Specs {
			fmt.Fprintf(&out, " {%s}", s.Text(q.Kind))
			if s.Provided {
				out.WriteString("here")
			}
		}
		if q.Own {
			fmt.Fprintf(&out, " own %q", q.Environment+q.Program)
		}
		if q.Fallback {
			out.WriteString(" fallback")
		}
		out.WriteString("\n")
	}
	if len(r.Requests) == 0 {
		out.WriteString("  nothing asked\n")
		if left := r.Line(nil); left != line {
			fmt.Fprintf(&out, "  runs:   %q\n", left)
		}
		out.WriteString("\n")
		return out.String()
	}
	yes := make([]bool, len(r.Requests))
	for i := range yes {
		yes[i] = true
	}
	if r.Only {
		out.WriteString("  only\n")
	}
	fmt.Fprintf(&out, "  done:   %q\n  failed: %q\n\n", r.Line(yes), r.Line(nil))
	return out.String()
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		check(t, os.MkdirAll("testdata", 0o755))
		check(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	check(t, err)
	if diff := cmp.Diff(strings.ReplaceAll(string(want), "\r\n", "\n"), got); diff != "" {
		t.Error(diff)
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
