package shell

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/sandbox"
)

// kinds are the facts that occur, each by what tells it apart.
func kinds() []struct {
	name  string
	facts Facts
} {
	var all []struct {
		name  string
		facts Facts
	}
	add := func(name string, change func(*Facts)) {
		f := facts()
		change(&f)
		all = append(all, struct {
			name  string
			facts Facts
		}{name, f})
	}
	add("usual", func(*Facts) {})
	add("no installs", func(f *Facts) { f.Installs = false })
	add("listed packages, links, programs", func(f *Facts) {
		f.Packages, f.Links, f.Programs = []string{"numpy", "pandas"}, true, []string{"python3", "node", "git"}
	})
	add("network open", func(f *Facts) { f.Network = sandbox.NetworkOpen })
	add("network proxied", func(f *Facts) {
		f.Network, f.Domains = sandbox.NetworkProxied, []string{"example.com", "*.example.org"}
	})
	add("network not limited", func(f *Facts) { f.Holds, f.Backend, f.Policy = false, "bare", "no confinement" })
	add("no workspace", func(f *Facts) { f.Files, f.Dialect = false, "sh" })
	add("PowerShell", func(f *Facts) { f.Dialect, f.System = "PowerShell", "windows/amd64" })
	add("PowerShell without a workspace", func(f *Facts) { f.Dialect, f.System, f.Files = "PowerShell", "windows/amd64", false })
	return all
}

// TestDeclaration pins what a model is told (B1 3.4): a function of the facts, with
// parameters that are flat.
func TestDeclaration(t *testing.T) {
	var b strings.Builder
	for _, k := range kinds() {
		d := Declaration(k.facts)
		if !d.Parameters.IsValid() {
			t.Errorf("%s: %s", k.name, d.Parameters)
		}
		if again := Declaration(k.facts); again.Description != d.Description || string(again.Parameters) != string(d.Parameters) {
			t.Errorf("%s: it changes", k.name)
		}
		shown := d.Parameters.Clone()
		check(t, shown.Indent(jsontext.WithIndent("  ")))
		fmt.Fprintf(&b, "== %s ==\n%s\n%s\n\n", k.name, d.Description, shown)
	}
	golden(t, "declarations.txt", b.String())
}

// TestOffer: always the same bytes, in order, never run twice.
func TestOffer(t *testing.T) {
	b := newBench(t, nil)
	first, second := b.Offer(journal.Path{}), b.Offer(journal.Path{})
	if len(first.Declared) != 1 || first.Declared[0].Name != Name || first.Declared[0].Description != second.Declared[0].Description {
		t.Errorf("%+v", first)
	}
	if !b.Ordered(Name) || b.Replay(Name) != journal.Never {
		t.Error("commands run in order, and once")
	}
}

// TestFindPrograms: what runs, in the order of the list.
func TestFindPrograms(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the modes of files say nothing there")
	}
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"node": 0o755, "git": 0o755, "jq": 0o644, "unheard-of": 0o755} {
		check(t, os.WriteFile(filepath.Join(dir, name), nil, mode))
	}
	check(t, os.Mkdir(filepath.Join(dir, "tar"), 0o755))
	if got := strings.Join(FindPrograms([]string{t.TempDir(), dir}), " "); got != "node git" {
		t.Error(got)
	}
	if System() != runtime.GOOS+"/"+runtime.GOARCH {
		t.Error(System())
	}
}
