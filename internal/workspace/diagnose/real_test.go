package diagnose

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (run with -update if that is right):\n%s", name, diff)
	}
}

// workspace stands for files of 40 lines by every relative name.
func workspace(name string) ([]byte, bool) {
	if strings.HasPrefix(name, "/") || strings.HasPrefix(name, "..") || strings.HasPrefix(name, "node:") {
		return nil, false
	}
	var b strings.Builder
	for n := range 40 {
		fmt.Fprintf(&b, "text of line %d\n", n+1)
	}
	return []byte(b.String()), true
}

// TestReal reads what real programs wrote and pins what was found in it.
func TestReal(t *testing.T) {
	for _, group := range []string{"python", "node", "shells", "compilers"} {
		t.Run(group, func(t *testing.T) {
			archive, err := txtar.ParseFile(filepath.Join("testdata", group+".txtar"))
			if err != nil {
				t.Fatal(err)
			}
			var b strings.Builder
			for _, f := range archive.Files {
				o := Facts{Installs: true, Files: slices.Values([]string{"main.py", "circ.py", "random.py"}), Python: pythonOf(f.Name)}
				b.WriteString(f.Name + ": " + describe(string(f.Data), o) + "\n")
			}
			golden(t, group+".golden", b.String())
		})
	}
}

// pythonOf is the version in the name of an output: "py3.8-missing".
func pythonOf(name string) string {
	version, _, _ := strings.Cut(strings.TrimPrefix(name, "py"), "-")
	return version
}

func describe(output string, o Facts) string {
	f := Read(output, o)
	text := string(f.Class)
	if f.Class == Unknown {
		text = "unknown"
	}
	if f.Module.Name != "" {
		text += fmt.Sprintf(" module=%s/%s/%s", f.Module.Tool, f.Module.Whole, f.Module.Distribution)
	}
	if f.Command != "" {
		text += " command=" + f.Command
	}
	if f.Miss.Name != "" {
		text += fmt.Sprintf(" miss=%s %q has no %q files=%v", f.Miss.Form, f.Miss.Owner, f.Miss.Name, f.Miss.Files)
	}
	if f.detail != "" {
		text += " detail=" + f.detail
	}
	if f.Path != "" {
		text += " path=" + f.Path
	}
	if h, ok := Repair(output, workspace); ok {
		text += fmt.Sprintf(" at=%s:%d", h.Path, h.Line)
	}
	return text
}
