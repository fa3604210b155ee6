package rules

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/metier-run/metier/internal/config"
)

// TestRules runs every rule over the module that this package is part of.
func TestRules(t *testing.T) {
	root, err := FindRoot(workingDir(t))
	if err != nil {
		t.Fatal(err)
	}
	tree, err := Load(root)
	if err != nil {
		t.Fatal(err)
	}
	tree.ModCache = modCache(t)
	if len(tree.Packages) < 5 || len(tree.Texts) < 10 {
		t.Fatalf("Load(%s) found %d packages and %d files, too few to be the module", root, len(tree.Packages), len(tree.Texts))
	}
	for _, r := range All() {
		t.Run(r.Name, func(t *testing.T) {
			for _, p := range r.Run(tree) {
				t.Error(p)
			}
		})
	}
}

func TestLimitsTable(t *testing.T) {
	for _, p := range checkLimits(config.Limits()) {
		t.Error(p)
	}
}

func TestCheckLimits(t *testing.T) {
	good := config.Limit{Name: "a-b", Default: 2, Min: 1, Max: 3, Unit: config.Count, Flag: "a-b", Help: "things"}
	with := func(change func(*config.Limit)) config.Limit {
		l := good
		l.Name, l.Flag = "other", "other"
		change(&l)
		return l
	}
	tests := []struct {
		name string
		row  config.Limit
		want string
	}{
		{"good", with(func(*config.Limit) {}), ""},
		{"fixed", with(func(l *config.Limit) { l.Flag = "" }), ""},
		{"same name", with(func(l *config.Limit) { l.Name = good.Name }), "two rows have the name"},
		{"same flag", with(func(l *config.Limit) { l.Flag = good.Flag }), "two rows have the flag"},
		{"bad name", with(func(l *config.Limit) { l.Name = "Other Name" }), "the name is not"},
		{"dashed flag", with(func(l *config.Limit) { l.Flag = "--other" }), "the flag"},
		{"default too low", with(func(l *config.Limit) { l.Default = 0 }), "not from 1 to 3"},
		{"default too high", with(func(l *config.Limit) { l.Default = 4 }), "not from 1 to 3"},
		{"no unit", with(func(l *config.Limit) { l.Unit = "" }), "the unit"},
		{"no help", with(func(l *config.Limit) { l.Help = " " }), "no help"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			found := checkLimits([]config.Limit{good, tt.row})
			switch {
			case tt.want == "" && len(found) != 0:
				t.Errorf("checkLimits found %v in a good table", found)
			case tt.want != "" && (len(found) != 1 || !strings.Contains(found[0].Text, tt.want)):
				t.Errorf("checkLimits found %v, want one problem with %q", found, tt.want)
			}
		})
	}
}

// modCache is the module cache, where the licences lie.
func modCache(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatalf("go env GOMODCACHE: %v", err)
	}
	return strings.TrimSpace(string(out))
}
