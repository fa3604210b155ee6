package packages

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/metier-run/metier/internal/sandbox"
)

// TestLook: regular files, folders, and links that stay inside are taken; nothing else is.
func TestLook(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	check(t, os.WriteFile(outside, []byte("x"), 0o600))
	tests := []struct {
		name string
		make func(dir string) error
		want string // empty: it is taken
	}{
		{"a file", func(dir string) error { return os.WriteFile(filepath.Join(dir, "b"), nil, 0o600) }, ""},
		{"a link beside", func(dir string) error { return os.Symlink("../a", filepath.Join(dir, "d", "l")) }, ""},
		{"a link to a folder", func(dir string) error { return os.Symlink("d", filepath.Join(dir, "l")) }, ""},
		{"a link out", func(dir string) error { return os.Symlink("../../outside", filepath.Join(dir, "l")) }, "leads out"},
		{"a whole link", func(dir string) error { return os.Symlink(outside, filepath.Join(dir, "l")) }, "leads out"},
		{"a whole link that stays", func(dir string) error { return os.Symlink(filepath.Join(dir, "a"), filepath.Join(dir, "l")) }, "leads out"},
		{"a link nowhere", func(dir string) error { return os.Symlink("none", filepath.Join(dir, "l")) }, "nowhere"},
		{"a link over a link", func(dir string) error {
			return errors.Join(os.Symlink("..", filepath.Join(dir, "d", "up")), os.Symlink("d/up/../../outside", filepath.Join(dir, "l")))
		}, "leads out"},
		{"a loop", func(dir string) error { return os.Symlink("l", filepath.Join(dir, "l")) }, "nowhere"},
		{"a second name", func(dir string) error { return os.Link(outside, filepath.Join(dir, "h")) }, "second name"},
		{"set-user-id", func(dir string) error { return os.Chmod(filepath.Join(dir, "a"), 0o755|fs.ModeSetuid) }, "rights of its owner"},
		{"set-group-id", func(dir string) error { return os.Chmod(filepath.Join(dir, "a"), 0o755|fs.ModeSetgid) }, "rights of its owner"},
		{"a pipe", func(dir string) error { return fifo(filepath.Join(dir, "p")) }, "neither a file nor a folder"},
		{"too much", func(dir string) error { return os.Truncate(filepath.Join(dir, "a"), 1<<21) }, "beyond"},
		{"too many", func(dir string) error {
			for i := range 300 {
				if err := os.Mkdir(filepath.Join(dir, strings.Repeat("n", i%200+1)+string(rune('a'+i/200))), 0o700); err != nil {
					return err
				}
			}
			return nil
		}, "beyond"},
		{"too deep", func(dir string) error { return os.MkdirAll(filepath.Join(dir, strings.Repeat("n/", 70)), 0o700) }, "too deep"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(tempDir(t), "tree")
			write(t, dir, map[string]string{"a": "1", "d/b": "2"})
			if err := tt.make(dir); err != nil {
				t.Skip(err)
			}
			_, err := look(t.Context(), dir, 1<<20)
			f, bad := errors.AsType[*treeError](err)
			if bad != (tt.want != "") || bad && !strings.Contains(f.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// TestDigest: a digest is the same for the same names, rights and bytes, and another for
// any other.
func TestDigest(t *testing.T) {
	digest := func(files map[string]string, change func(dir string)) string {
		dir := filepath.Join(tempDir(t), "tree")
		write(t, dir, files)
		if change != nil {
			change(dir)
		}
		s, err := look(t.Context(), dir, 1<<30)
		check(t, err)
		return s.digest
	}
	base := map[string]string{"a/b": "12", "c": "3"}
	first := digest(base, nil)
	seen := map[string]string{first: "the first"}
	if got := digest(base, func(dir string) { check(t, os.Chmod(filepath.Join(dir, "c"), 0o600)) }); got != first {
		t.Error("who may read is in the digest")
	}
	for name, d := range map[string]string{
		"a byte":          digest(map[string]string{"a/b": "12", "c": "4"}, nil),
		"a border":        digest(map[string]string{"a/b": "1", "c": "23"}, nil),
		"a name":          digest(map[string]string{"a/c": "12", "c": "3"}, nil),
		"a level":         digest(map[string]string{"a": "12", "c": "3"}, nil),
		"one more":        digest(map[string]string{"a/b": "12", "c": "3", "d": ""}, nil),
		"an empty folder": digest(base, func(dir string) { check(t, os.Mkdir(filepath.Join(dir, "e"), 0o700)) }),
		"a right":         digest(base, func(dir string) { check(t, os.Chmod(filepath.Join(dir, "c"), 0o755)) }),
		"a link":          digest(map[string]string{"a/b": "12"}, func(dir string) { check(t, os.Symlink("a/b", filepath.Join(dir, "c"))) }),
	} {
		if other := seen[d]; other != "" {
			t.Errorf("%s has the digest of %s", name, other)
		}
		seen[d] = name
	}
}

// TestSpecs: nothing that passes for a spec could be an option, a path or an address.
func TestSpecs(t *testing.T) {
	good := []struct {
		kind string
		spec Spec
		want string
	}{
		{"pip", Spec{Name: "Demo.App", Extras: []string{"b", "a"}, Version: ">=1.0,<2,!=1.5.*"}, "Demo.App[b,a]>=1.0,<2,!=1.5.*"},
		{"pip", Spec{Name: "x", Version: "===1.0+local"}, "x===1.0+local"},
		{"pip", Spec{Name: "x", Marker: `python_version < "3.12"`}, `x ; python_version < "3.12"`},
		{"npm", Spec{Name: "@corp/x", Version: "^1.2.3-beta.1"}, "@corp/x@^1.2.3-beta.1"},
		{"npm", Spec{Name: "JSONStream", Version: ">=1 <2 || 3.x"}, "JSONStream@>=1 <2 || 3.x"},
		{"npm", Spec{Name: "x", Version: "latest"}, "x@latest"},
	}
	for _, g := range good {
		kind := kindOf(g.kind)
		if !g.spec.check(kind) || g.spec.argument(kind) != g.want {
			t.Errorf("%+v: %v %q", g.spec, g.spec.check(kind), g.spec.argument(kind))
		}
	}
	bad := []Spec{
		{Name: ""},
		{Name: "-x"},
		{Name: "--target=/"},
		{Name: "a b"},
		{Name: "./x"},
		{Name: "../x"},
		{Name: "/x"},
		{Name: "x/y"},
		{Name: "git+https://x"},
		{Name: "x\ny"},
		{Name: "x", Version: "@ https://h/x.whl"},
		{Name: "x", Version: "file:../y"},
		{Name: "x", Version: "npm:y@1"},
		{Name: "x", Version: "github:a/b"},
		{Name: "x", Version: "-g"},
		{Name: "x", Version: "http://h"},
		{Name: "x", Version: "~/y"},
		{Name: "x", Version: "==1 --index-url=h"},
		{Name: "x", Extras: []string{"a]b"}},
		{Name: "x", Marker: "a\n-r x"},
		{Name: "x", Marker: "a @ h://x"},
	}
	for _, b := range bad {
		for _, kind := range []string{"pip", "npm"} {
			if b.check(kindOf(kind)) {
				t.Errorf("%s takes %+v", kind, b)
			}
		}
	}
}

func TestAnySpec(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := Spec{Name: rapid.String().Draw(t, "name"), Version: rapid.StringMatching(`[-a-z0-9=<>~^:/@. ]{0,8}`).Draw(t, "version")}
		for _, kind := range []string{"pip", "npm"} {
			if !x.check(kindOf(kind)) {
				continue
			}
			text := x.argument(kindOf(kind))
			if strings.HasPrefix(text, "-") || strings.Contains(text, ":") || strings.HasPrefix(text, ".") || strings.Contains(x.Version, "/") || strings.Contains(x.Name, "..") && kind == "npm" && strings.Contains(x.Name, "/..") {
				t.Errorf("%s takes %q", kind, text)
			}
		}
	})
}

// TestTreeSwapped: an installer that puts a link in the place of what it was to fill
// makes no set, and nothing behind the link is read, removed or changed.
func TestTreeSwapped(t *testing.T) {
	r := newRig(t, nil)
	outside := t.TempDir()
	notes := filepath.Join(outside, "node_modules", ".package-lock.json")
	swap := func(what func(tree string) string) func(context.Context, sandbox.Launch, string) (sandbox.Result, error) {
		return func(_ context.Context, _ sandbox.Launch, tree string) (sandbox.Result, error) {
			at := what(tree)
			return sandbox.Result{Ended: sandbox.Exited}, errors.Join(os.RemoveAll(at), os.Symlink(outside, at))
		}
	}
	write(t, outside, map[string]string{"node_modules/.package-lock.json": "{}", "secretlib-7.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: secretlib\nVersion: 7.0\n"})
	for name, at := range map[string]func(string) string{
		"tree":         func(tree string) string { return tree },
		"node_modules": func(tree string) string { return filepath.Join(tree, "node_modules") },
	} {
		r.play = swap(at)
		set, err := r.Install(t.Context(), pipRequest("", "demo"))
		if bad, ok := errors.AsType[*Failure](err); !ok || bad.Reason != Refused || strings.Contains(err.Error(), "secretlib") {
			t.Errorf("%s: %+v, %v", name, set, err)
		}
	}
	if _, err := os.Stat(notes); err != nil {
		t.Errorf("a file behind the link is gone: %v", err)
	}
}
