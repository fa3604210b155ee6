package oci

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

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
			Links:  []program.Link{{Path: "/bin", Target: "usr/bin"}},
			Masked: []string{"/proc/kcore"},
			Frozen: []string{"/proc/sys"},
		},
		launch: sandbox.Launch{Dir: "/home/a/work", Env: []string{"PATH=/usr/bin", "A=b=c"}, Disk: 1 << 20, Memory: 1 << 30, Processes: 64},
		vector: []string{"/usr/bin/python3", "run.py"},
		places: []place{
			{Place: program.Place{Path: "/home/a/skills", Kind: program.Hidden, Dir: true}, source: "/home/a/skills"},
			{Place: program.Place{Path: "/home/a/work", Kind: program.Writable, Dir: true}, source: "/home/a/work"},
			{Place: program.Place{Path: "/home/a/skills/pdf", Kind: program.Readable, Dir: true}, source: "/home/a/skills/pdf"},
		},
		limits: []limit{{"RLIMIT_CORE", 0, 0}, {"RLIMIT_FSIZE", 1 << 20, 1 << 20}},
	}
}

func TestDescribe(t *testing.T) {
	user := sample()
	user.uidMaps, user.gidMaps = []mapping{{0, 501, 1}}, []mapping{{0, 20, 1}}
	root := sample()
	root.uid, root.gid = insideTest, insideTest
	root.uidMaps = []mapping{{0, 7000, 1}, {insideTest, 7001, 1}}
	root.gidMaps = root.uidMaps
	root.groups, root.id = true, "metier-runc-1-2"
	root.places[1].uids, root.places[1].gids = []mapping{{0, 7001, 1}}, []mapping{{5, 7001, 1}}
	strong := sample()
	strong.strong, strong.launch.Network.Mode, strong.launch.Env, strong.launch.Disk = true, sandbox.NetworkOpen, nil, 0
	filtered := recipe{filter: filterFor("amd64")}
	for _, tt := range []struct {
		name   string
		recipe recipe
	}{{"user", user}, {"root", root}, {"strong", strong}, {"filter", filtered}} {
		t.Run(tt.name, func(t *testing.T) {
			text, err := encode(tt.recipe.describe())
			if err != nil {
				t.Fatal(err)
			}
			golden(t, tt.name+".json", string(text)+"\n")
		})
	}
}

// insideTest is the id that a launch of root has.
const insideTest = 1000

func TestCommands(t *testing.T) {
	var b strings.Builder
	for _, r := range runtimes() {
		for _, h := range []host{{path: "/usr/bin/" + r.name, root: true}, {path: "/usr/bin/" + r.name, extra: []string{"--extra"}}} {
			b.WriteString(strings.Join(r.runArgs(h, "/tmp/metier-runc-1-2", sandbox.NetworkDenied), " ") + "\n")
			b.WriteString(strings.Join(r.deleteArgs(h, "/tmp/metier-runc-1-2"), " ") + "\n")
		}
		b.WriteString(strings.Join(r.runArgs(host{path: r.name}, "/tmp/x", sandbox.NetworkOpen), " ") + "\n")
	}
	golden(t, "commands.txt", b.String())
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
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

func TestFilterArchitectures(t *testing.T) {
	for arch, want := range map[string]string{"amd64": "SCMP_ARCH_X86_64", "arm64": "SCMP_ARCH_AARCH64"} {
		if f := filterFor(arch); f == nil || !slices.Equal(f.Architectures, []string{want}) {
			t.Errorf("%s: %+v", arch, f)
		}
	}
	if f := filterFor("riscv64"); f != nil {
		t.Errorf("%+v", f)
	}
}

func TestSkeleton(t *testing.T) {
	dir := t.TempDir()
	r := sample()
	outside := filepath.Join(dir, "outside")
	if err := os.Mkdir(outside, 0o755); err != nil {
		t.Fatal(err)
	}
	// A link of the system must not lead a mount point out of the skeleton.
	r.system.Links = append(r.system.Links, program.Link{Path: "/lib", Target: outside})
	r.places = append(r.places, place{Place: program.Place{Path: "/lib/x", Kind: program.Readable, Dir: true}})
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	if err := makeSkeleton(root, r, nil); err == nil {
		t.Error("a link led out of the skeleton")
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
		t.Errorf("%v, %v", entries, err)
	}
	for name, want := range map[string]bool{"usr": true, "home/a/work": true, "proc": true, "etc/ld.so.cache": false} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.IsDir() != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}
