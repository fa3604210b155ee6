package packages

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/sandbox/registry"
)

func kindOf(text string) registry.Kind { return registry.Kind(text) }

// TestInstall: what came is kept, read-only, under its digest, and described.
func TestInstall(t *testing.T) {
	r := newRig(t, nil)
	set := r.install(t, "", "demo==1.0")
	defer set.Close()
	tree := filepath.Join(set.Dir, "tree")
	want := Set{Dir: set.Dir, Python: []string{tree}, Bin: []string{filepath.Join(tree, "bin")}, Names: []Installed{{"demo", "1.0"}}}
	if diff := cmp.Diff(want, set, cmp.AllowUnexported(Set{}), cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".release" }, cmp.Ignore())); diff != "" {
		t.Error(diff)
	}
	if runtime.GOOS != "windows" {
		for name, mode := range map[string]os.FileMode{"": 0o555 | os.ModeDir, "demo/__init__.py": 0o444, "bin/demo": 0o555, "demo": 0o555 | os.ModeDir} {
			if info, err := os.Stat(filepath.Join(tree, name)); err != nil || info.Mode() != mode {
				t.Errorf("%s: %v %v", name, info.Mode(), err)
			}
		}
	}
	if left := r.there(t, "stages"); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestLaunchShape: the installer gets an argument vector and an environment that the
// host has built, and nothing of its own.
func TestLaunchShape(t *testing.T) {
	t.Setenv("SECRET_CANARY", "do not tell")
	r := newRig(t, nil)
	r.opts.Hide = []string{"/hidden"}
	r.reopen(t)
	var got []string
	play := r.play
	r.play = func(ctx context.Context, l sandbox.Launch, tree string) (sandbox.Result, error) {
		stage := filepath.Dir(tree)
		clean := func(text string) string {
			for from, to := range map[string]string{stage: "STAGE"} {
				text = strings.ReplaceAll(text, from, to)
			}
			if at := strings.Index(text, "3128/"); at >= 0 {
				text = text[:at+5] + "TOKEN" + text[at+5+26:]
			}
			return text
		}
		got = append(got, fmt.Sprintf("%s in %s, write %v, read %v, hide %v, %s, network %d, disk %d", l.Purpose, clean(l.Dir), clean(fmt.Sprint(l.Write)), l.Read, l.Hide, l.Deadline, l.Network.Mode, l.Disk))
		for _, a := range l.Argv {
			got = append(got, "  "+clean(a))
		}
		for _, e := range l.Env {
			if !strings.HasPrefix(e, "SystemRoot=") {
				got = append(got, "  "+clean(e))
			}
		}
		return play(ctx, l, tree)
	}
	set := r.install(t, "b>=1 a", "c[x]==1 B<2")
	set.Close()
	node := python()
	node.Path, node.Version = "/opt/py/bin/node", "20"
	p := plan{kind: registry.Npm, use: node, npm: "/opt/npm/bin/npm-cli.js", read: []string{"/opt/npm"}, specs: []Spec{{Name: "@a/b", Version: "^1"}}}
	l := r.command(p, stage{dir: "/s"})
	l.Network = sandbox.Network{Mode: sandbox.NetworkProxied}
	l.Env = append(l.Env, "npm_config_registry=http://127.0.0.1:3128/abcdefghijklmnopqrstuvwxyz/npm/")
	_, _ = r.play(t.Context(), l, filepath.Join(tempDir(t), "tree"))
	if runtime.GOOS == "linux" {
		golden(t, "launches.txt", strings.ReplaceAll(strings.Join(got, "\n"), "/s/", "STAGE/")+"\n")
	}
	if strings.Contains(strings.Join(got, " "), "CANARY") {
		t.Error("the host's environment is handed on")
	}
}

// TestFresh: an install is answered from what is kept for its time, in whatever order
// its packages are named, and for nothing else.
func TestFresh(t *testing.T) {
	r := newRig(t, map[config.Name]int64{config.PackagesFresh: 60})
	steps := []struct {
		have, add string
		after     time.Duration
		runs      int64
	}{
		{"", "demo a", 0, 1},
		{"", "a Demo", 30 * time.Second, 1},
		{"demo", "a", 29 * time.Second, 1},
		{"a demo==2", "demo a", 0, 1},
		{"", "demo==1 a", 0, 2},
		{"", "demo a", time.Second, 3},
		{"", "demo a", 0, 3},
	}
	for i, s := range steps {
		r.now = r.now.Add(s.after)
		r.install(t, s.have, s.add).Close()
		if got := r.runs.Load(); got != s.runs {
			t.Errorf("step %d: %d runs, want %d", i, got, s.runs)
		}
	}
	other := pipRequest("", "demo a")
	other.Use.Version = "3.13"
	set, err := r.Install(t.Context(), other)
	check(t, err)
	set.Close()
	if got := r.runs.Load(); got != 4 {
		t.Errorf("another Python gets the packages of the first: %d runs", got)
	}
	r.opts.Front = front(t, "PIP_INDEX_URL=https://other.test/simple")
	r.reopen(t)
	r.install(t, "", "demo a").Close()
	if got := r.runs.Load(); got != 5 {
		t.Errorf("another registry's packages are taken: %d runs", got)
	}
	if sets := r.there(t, "sets"); len(sets) != 1 {
		t.Errorf("the same content is kept as %v", sets)
	}
}

// TestStale: what is too old serves when no registry answers, and only then.
func TestStale(t *testing.T) {
	r := newRig(t, map[config.Name]int64{config.PackagesFresh: 0})
	first := r.install(t, "", "demo")
	first.Close()
	// Nobody listens there.
	r.opts.Front = front(t, "PIP_INDEX_URL=http://127.0.0.1:1/simple")
	r.reopen(t)
	set := r.install(t, "", "demo")
	set.Close()
	if r.runs.Load() != 2 {
		t.Fatalf("%d runs", r.runs.Load())
	}
	r.play = func(_ context.Context, l sandbox.Launch, _ string) (sandbox.Result, error) {
		ask(t, l, "demo")
		return ended(sandbox.Exited, none("demo")), nil
	}
	set = r.install(t, "", "demo")
	if set.Dir != first.Dir || r.runs.Load() != 3 {
		t.Errorf("%s after %d runs", set.Dir, r.runs.Load())
	}
	set.Close()
	_, err := r.Install(t.Context(), pipRequest("demo", "other"))
	if f, ok := errors.AsType[*Failure](err); !ok || f.Reason != NoAnswer {
		t.Error(err)
	}
	r.play = func(context.Context, sandbox.Launch, string) (sandbox.Result, error) {
		return ended(sandbox.Exited, none("demo")), nil
	}
	_, err = r.Install(t.Context(), pipRequest("", "demo"))
	if f, ok := errors.AsType[*Failure](err); !ok || f.Reason != NoPackage {
		t.Errorf("a registry that has it no more: %v", err)
	}
	if len(r.leases) != 0 {
		t.Errorf("in use: %v", r.leases)
	}
}

// TestOnce: those who want the same at the same time wait for one install, and share how
// it ended; one that gives up is not held back by the others.
func TestOnce(t *testing.T) {
	for _, ok := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, map[config.Name]int64{config.PackagesFresh: 0})
			release := make(chan struct{})
			play := r.play
			r.play = func(ctx context.Context, l sandbox.Launch, tree string) (sandbox.Result, error) {
				<-release
				if !ok {
					return ended(sandbox.Exited, none("demo")), nil
				}
				return play(ctx, l, tree)
			}
			var wg sync.WaitGroup
			for range 5 {
				wg.Go(func() {
					set, err := r.Install(t.Context(), pipRequest("", "demo"))
					set.Close()
					if f, bad := errors.AsType[*Failure](err); bad == ok || bad && f.Reason != NoPackage || err != nil && !bad {
						t.Error(err)
					}
				})
			}
			synctest.Wait()
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := r.Install(ctx, pipRequest("", "demo")); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			close(release)
			wg.Wait()
			if runs := r.runs.Load(); runs != 1 || len(r.under) != 0 || len(r.leases) != 0 {
				t.Errorf("%d runs; under way still: %v, in use: %v", runs, r.under, r.leases)
			}
		})
	}
}

// TestOldest: what was used last stays, whenever it was made.
func TestOldest(t *testing.T) {
	r := newRig(t, map[config.Name]int64{config.PackagesTotal: 1 << 20})
	r.play = func(_ context.Context, l sandbox.Launch, tree string) (sandbox.Result, error) {
		write(t, tree, map[string]string{"f": strings.Repeat(l.Argv[len(l.Argv)-1], 300_000)})
		return sandbox.Result{Ended: sandbox.Exited}, nil
	}
	var sets []Set
	for _, name := range []string{"a", "b", "c", "a", "d"} {
		set := r.install(t, "", name)
		set.Close()
		sets = append(sets, set)
		r.now = r.now.Add(time.Minute)
	}
	for i, want := range []bool{true, false, true, true, true} {
		if _, err := os.Stat(sets[i].Dir); (err == nil) != want {
			t.Errorf("%d: %v", i, err)
		}
	}
}

// TestRoom: sets that nobody uses go, those unused the longest first; one in use stays,
// also one that another store uses.
func TestRoom(t *testing.T) {
	r := newRig(t, map[config.Name]int64{config.PackagesTotal: 1 << 20, config.PackagesFresh: 0})
	r.play = func(_ context.Context, l sandbox.Launch, tree string) (sandbox.Result, error) {
		write(t, tree, map[string]string{"f": strings.Repeat(l.Argv[len(l.Argv)-1], 300_000)[:300_000]})
		return sandbox.Result{Ended: sandbox.Exited}, nil
	}
	a := r.install(t, "", "a")
	r.now = r.now.Add(time.Minute)
	b := r.install(t, "", "b")
	r.now = r.now.Add(time.Minute)
	c := r.install(t, "", "c")
	b.Close()
	c.Close()
	b.Close()
	r.now = r.now.Add(time.Minute)
	other, err := Open(r.opts)
	check(t, err)
	held, err := other.hold(filepath.Base(c.Dir))
	check(t, err)
	d := r.install(t, "", "d")
	gone := func(s Set) bool { _, err := os.Stat(s.Dir); return err != nil }
	if gone(a) || !gone(b) || gone(c) || gone(d) {
		t.Errorf("a %v b %v c %v d %v", gone(a), gone(b), gone(c), gone(d))
	}
	_, err = r.Install(t.Context(), pipRequest("", "e"))
	if f, ok := errors.AsType[*Failure](err); !ok || f.Reason != NoRoom {
		t.Error(err)
	}
	held.Close()
	e := r.install(t, "", "e")
	if gone(a) || !gone(c) || gone(e) {
		t.Errorf("a %v c %v e %v", gone(a), gone(c), gone(e))
	}
	for _, s := range []Set{a, d, e} {
		s.Close()
	}
	r.play = func(_ context.Context, _ sandbox.Launch, tree string) (sandbox.Result, error) {
		write(t, tree, map[string]string{"f": strings.Repeat("x", 2<<20)})
		return sandbox.Result{Ended: sandbox.Exited}, nil
	}
	_, err = r.Install(t.Context(), pipRequest("", "huge"))
	if f, ok := errors.AsType[*Failure](err); !ok || f.Reason != NoRoom || gone(a) {
		t.Errorf("%v, and what cannot be kept has pushed others out: %v", err, gone(a))
	}
	if left := r.there(t, "stages"); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestDamage: a set that is not as it was is made again.
func TestDamage(t *testing.T) {
	for name, harm := range map[string]func(dir string) error{
		"a file is gone": func(dir string) error { return os.Remove(filepath.Join(dir, "tree", "demo", "__init__.py")) },
		"a file is longer": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "tree", "demo", "__init__.py"), []byte("import os\n#"), 0o600)
		},
		"one more": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "tree", "sitecustomize.py"), nil, 0o600)
		},
		"no record":     func(dir string) error { return os.Remove(filepath.Join(dir, recordName)) },
		"half a record": func(dir string) error { return os.Truncate(filepath.Join(dir, recordName), 3) },
		"all is gone":   func(dir string) error { return os.Rename(dir, dir+".moved") },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			set := r.install(t, "", "demo")
			set.Close()
			for _, dir := range []string{"tree", "tree/demo"} {
				check(t, os.Chmod(filepath.Join(set.Dir, dir), 0o755))
			}
			_ = os.Chmod(filepath.Join(set.Dir, "tree", "demo", "__init__.py"), 0o644)
			check(t, harm(set.Dir))
			again := r.install(t, "", "demo")
			defer again.Close()
			text, err := os.ReadFile(filepath.Join(again.Python[0], "demo", "__init__.py"))
			if r.runs.Load() != 2 || again.Dir != set.Dir || err != nil || string(text) != "x = 1\n" {
				t.Errorf("%d runs, %s, %q, %v", r.runs.Load(), again.Dir, text, err)
			}
		})
	}
}

// TestTidy: a new process removes what a dead one left, and nothing that lives.
func TestTidy(t *testing.T) {
	r := newRig(t, nil)
	set := r.install(t, "", "demo")
	set.Close()
	dead := filepath.Join(r.opts.Dir, "stages", "new-dead")
	check(t, os.MkdirAll(filepath.Join(dead, "tree", "x"), 0o700))
	live, err := r.stage()
	check(t, err)
	check(t, os.WriteFile(filepath.Join(r.opts.Dir, "index", "0123.json"), []byte(`{"digest":"`+strings.Repeat("0", 40)+`"}`), 0o600))
	r.reopen(t)
	if runtime.GOOS != "windows" {
		if got := r.there(t, "stages"); len(got) != 1 || got[0] != filepath.Base(live.dir) {
			t.Errorf("there is %v", got)
		}
	}
	if got := r.there(t, "index"); len(got) != 1 {
		t.Errorf("there is %v", got)
	}
	live.drop()
	r.install(t, "", "demo").Close()
	if r.runs.Load() != 1 {
		t.Error("what was kept is forgotten")
	}
}

// TestRefusals: what ends badly leaves nothing, and says so in its own way.
func TestRefusals(t *testing.T) {
	link := func(_ context.Context, _ sandbox.Launch, tree string) (sandbox.Result, error) {
		return sandbox.Result{Ended: sandbox.Exited}, os.Symlink("/etc/passwd", filepath.Join(tree, "x.py"))
	}
	tests := map[string]struct {
		play   func(context.Context, sandbox.Launch, string) (sandbox.Result, error)
		add    string
		reason Reason
		text   string
	}{
		"a link out": {link, "demo", Refused, "x.py is a link that leads out"},
		"busy": {func(context.Context, sandbox.Launch, string) (sandbox.Result, error) {
			return sandbox.Result{}, fmt.Errorf("launch: %w", sandbox.ErrBusy)
		}, "demo", Busy, "Too many"},
		"late": {func(context.Context, sandbox.Launch, string) (sandbox.Result, error) {
			return sandbox.Result{Ended: sandbox.TimedOut}, nil
		}, "demo", Late, "120 s"},
		"no backend": {func(context.Context, sandbox.Launch, string) (sandbox.Result, error) {
			return sandbox.Result{}, errors.New("nothing confines here")
		}, "demo", "", "start the installer: nothing confines here"},
		"nothing":    {link, "", Refused, "no package"},
		"an option":  {link, "--pre", Refused, "is no package"},
		"an address": {link, "http://x", Refused, "is no package"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			r.play = tt.play
			set, err := r.Install(t.Context(), pipRequest("", tt.add))
			var reason Reason
			if f, ok := errors.AsType[*Failure](err); ok {
				reason = f.Reason
			}
			if err == nil || reason != tt.reason || !strings.Contains(err.Error(), tt.text) || set.Dir != "" {
				t.Errorf("%q: %v", reason, err)
			}
			if left := len(r.there(t, "stages")) + len(r.there(t, "sets")) + len(r.there(t, "index")); left != 0 {
				t.Errorf("%d things are left", left)
			}
		})
	}
}

// TestCancelled: a caller that is gone gets no failure that would be told to a model.
func TestCancelled(t *testing.T) {
	r := newRig(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	r.play = func(context.Context, sandbox.Launch, string) (sandbox.Result, error) {
		cancel()
		return sandbox.Result{Ended: sandbox.Cancelled}, nil
	}
	_, err := r.Install(ctx, pipRequest("", "demo"))
	if _, ok := errors.AsType[*Failure](err); ok || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestOpenNetwork: where nothing limits a network, the front is on the host's loopback,
// behind a word that only the installer has, and gone when the install is.
func TestOpenNetwork(t *testing.T) {
	r := newRig(t, nil)
	r.opts.Open = true
	r.reopen(t)
	var at string
	r.play = func(_ context.Context, l sandbox.Launch, _ string) (sandbox.Result, error) {
		for _, e := range l.Env {
			if url, found := strings.CutPrefix(e, "PIP_INDEX_URL="); found {
				at = url
			}
		}
		if l.Network.Mode != sandbox.NetworkOpen || l.Network.Serve != nil {
			t.Errorf("%+v", l.Network)
		}
		host := strings.Split(strings.TrimPrefix(at, "http://"), "/")[0]
		resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get("http://" + host + "/pip/0/demo/")
		check(t, err)
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusNotFound {
			t.Errorf("without the word: %s", resp.Status)
		}
		return ended(sandbox.Exited, none("demo")), nil
	}
	_, err := r.Install(t.Context(), pipRequest("", "demo"))
	if f, ok := errors.AsType[*Failure](err); !ok || f.Reason != NoPackage {
		t.Error(err)
	}
	if _, err := http.Get(at); err == nil {
		t.Error("the front is there still")
	}
}

func TestUnion(t *testing.T) {
	got, err := union(registry.Pip, []Spec{{Name: "b", Version: "==1"}, {Name: "A.b", Extras: []string{"x"}}}, []Spec{{Name: "a-b", Extras: []string{"w"}, Version: ">2"}})
	check(t, err)
	if diff := cmp.Diff([]Spec{{Name: "a-b", Extras: []string{"w", "x"}, Version: ">2"}, {Name: "b", Version: "==1"}}, got); diff != "" {
		t.Error(diff)
	}
	if _, err := Open(Options{Dir: "relative"}); err == nil {
		t.Error("a path that is not whole is taken")
	}
}
