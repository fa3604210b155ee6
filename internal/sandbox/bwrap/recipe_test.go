package bwrap

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/sandbox/program"
)

var update = flag.Bool("update", false, "write the golden files anew")

// sample is a launch with something of everything.
func sample() recipe {
	return recipe{
		system: program.System{
			Shown:  []program.Shown{{Path: "/usr", Dir: true}, {Path: "/etc/ld.so.cache"}},
			Links:  []program.Link{{Path: "/bin", Target: "usr/bin"}, {Path: "/etc/localtime", Target: "/usr/share/zoneinfo/UTC"}},
			Masked: []string{"/proc/kcore"},
			Frozen: []string{"/proc/sys"},
		},
		etc: program.Etc(1000, 1000, sandbox.NetworkDenied),
		places: []program.Place{
			{Path: "/home/a/skills", Kind: program.Hidden, Dir: true},
			{Path: "/srv/tool", Kind: program.Readable},
			{Path: "/tmp/work", Kind: program.Writable, Dir: true},
			{Path: "/home/a/skills/pdf", Kind: program.Readable, Dir: true},
			{Path: "/home/a/skills/pdf/out", Kind: program.Writable, Dir: true, Under: program.Readable},
			{Path: "/home/a/skills/pdf/keys", Kind: program.Hidden, Dir: true, Under: program.Readable},
		},
		launch: sandbox.Launch{
			Dir: "/tmp/work", Env: []string{"PATH=/usr/bin", "A=b=c", "EMPTY="}, Disk: 1 << 20, Memory: 1 << 30, Deadline: time.Minute,
		},
		vector: []string{"/usr/bin/python3", "run.py", "--flag"},
		uid:    1000, gid: 1000,
	}
}

func TestArguments(t *testing.T) {
	root := sample()
	root.as, root.late = true, true
	open := sample()
	open.launch.Network.Mode = sandbox.NetworkOpen
	beside := sample()
	beside.places = []program.Place{{Path: "/var/tmp/work", Kind: program.Writable, Dir: true}}
	beside.launch.Dir, beside.launch.Disk = "/var/tmp/work", 0
	for _, tt := range []struct {
		name   string
		recipe recipe
	}{{"user", sample()}, {"root", root}, {"open", open}, {"var-tmp", beside}} {
		t.Run(tt.name, func(t *testing.T) {
			args, texts, binds := tt.recipe.arguments(order())
			var b strings.Builder
			b.WriteString(strings.Join(tt.recipe.command("/usr/bin/bwrap", order()), " ") + "\n\n")
			for _, a := range args {
				if strings.HasPrefix(a, "--") && b.Len() > 0 {
					b.WriteString("\n")
				}
				b.WriteString(a + " ")
			}
			b.WriteString("\n")
			for _, text := range texts {
				b.WriteString("\n[text]\n" + text)
			}
			for _, p := range binds {
				b.WriteString("\n[handle] " + p.Path)
			}
			golden(t, tt.name, b.String()+"\n")
		})
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("run with -update if this is meant:\n%s", diff)
	}
}

// TestEnvironmentHidden sees that no variable stands on the command line.
func TestEnvironmentHidden(t *testing.T) {
	r := sample()
	r.launch.Env = []string{"TOKEN=secret"}
	if line := strings.Join(r.command("/usr/bin/bwrap", order()), " "); strings.Contains(line, "secret") {
		t.Error(line)
	}
}

func FuzzChildPID(f *testing.F) {
	for _, seed := range []string{`{ "child-pid": 12, "mnt-namespace": 1 }`, `{"child-pid": 1}`, `{"child-pid": -4}`, `{"child-pid": "7"}`, ``, `{`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if pid, err := childPID(text); err == nil && pid <= 1 {
			t.Errorf("%q gives %d", text, pid)
		}
	})
}
