package packages

import (
	"context"
	"flag"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/interpreter"
	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/sandbox/registry"
	"github.com/metier-run/metier/internal/workspace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var update = flag.Bool("update", false, "write the golden files")

func golden(t testing.TB, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		check(t, os.MkdirAll("testdata", 0o755))
		check(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	check(t, err)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s: %s", name, diff)
	}
}

// played is a runner that plays installers.
type played struct {
	runs atomic.Int64
	// play makes what the installer would in tree, and says how it ended.
	play func(ctx context.Context, l sandbox.Launch, tree string) (sandbox.Result, error)
}

func (p *played) Run(ctx context.Context, l sandbox.Launch) (sandbox.Result, error) {
	p.runs.Add(1)
	if err := l.Check(); err != nil {
		return sandbox.Result{}, err
	}
	at := slices.IndexFunc(l.Argv, func(a string) bool { return a == "--target" || a == "--prefix" })
	return p.play(ctx, l, l.Argv[at+1])
}

// rig is a store with a clock that the test turns.
type rig struct {
	*Store
	*played
	now  time.Time
	opts Options
}

func tempDir(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	check(t, err)
	// What is made there may be closed for writing.
	t.Cleanup(func() { _ = workspace.Remove(dir) })
	return dir
}

func front(t testing.TB, environ ...string) *registry.Front {
	t.Helper()
	s, err := registry.ReadSettings(registry.Surroundings{Environ: environ, System: "linux", ReadFile: func(string) ([]byte, error) { return nil, os.ErrNotExist }})
	check(t, err)
	f, err := registry.New(registry.Options{Settings: s})
	check(t, err)
	t.Cleanup(f.Close)
	return f
}

// python and node stand for interpreters that no test starts.
func python() interpreter.Interpreter {
	return interpreter.Interpreter{Kind: interpreter.Python, Path: "/opt/py/bin/python3.12", Version: "3.12", Read: []string{"/opt/py"}, Bin: []string{"/opt/py/bin"}}
}

func newRig(t testing.TB, limits map[config.Name]int64) *rig {
	t.Helper()
	r := &rig{played: &played{}, now: time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC)}
	r.play = func(_ context.Context, _ sandbox.Launch, tree string) (sandbox.Result, error) {
		write(t, tree, map[string]string{"demo/__init__.py": "x = 1\n", "demo-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n\nText\nName: no\n", "bin/demo": "#!/opt/py/bin/python3.12\n"})
		check(t, os.Chmod(filepath.Join(tree, "bin", "demo"), 0o755))
		return sandbox.Result{Ended: sandbox.Exited}, nil
	}
	r.opts = Options{Dir: filepath.Join(tempDir(t), "packages"), Runner: r.played, Front: front(t), Now: func() time.Time { return r.now }}
	for name, value := range limits {
		var err error
		r.opts.Limits, err = r.opts.Limits.Set(name, value)
		check(t, err)
	}
	r.reopen(t)
	return r
}

func (r *rig) reopen(t testing.TB) {
	t.Helper()
	var err error
	r.Store, err = Open(r.opts)
	check(t, err)
}

func (r *rig) install(t testing.TB, have, add string) Set {
	t.Helper()
	set, err := r.Install(t.Context(), pipRequest(have, add))
	check(t, err)
	return set
}

// pipRequest has specs such as "demo==1.0".
func pipRequest(have, add string) Request {
	return Request{Kind: interpreter.Python, Have: specs(have), Add: specs(add), Use: python()}
}

func specs(text string) []Spec {
	var all []Spec
	for word := range strings.FieldsSeq(text) {
		at := strings.IndexAny(word, "=<>~!")
		if at < 0 {
			at = len(word)
		}
		name, extra, found := strings.Cut(strings.TrimSuffix(word[:at], "]"), "[")
		x := Spec{Name: name, Version: word[at:]}
		if found {
			x.Extras = []string{extra}
		}
		all = append(all, x)
	}
	return all
}

func write(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		at := filepath.Join(dir, filepath.FromSlash(name))
		check(t, os.MkdirAll(filepath.Dir(at), 0o755))
		check(t, os.WriteFile(at, []byte(text), 0o644))
	}
}

// ask sends the front one request, as an installer would for a project.
func ask(t testing.TB, l sandbox.Launch, project string) {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	check(t, err)
	served := make(chan struct{})
	go func() { defer close(served); l.Network.Serve(t.Context(), listener) }()
	for _, e := range l.Env {
		if url, found := strings.CutPrefix(e, "PIP_INDEX_URL="); found {
			url = strings.Replace(url, sandbox.ProxyAddress, listener.Addr().String(), 1) + project + "/"
			resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get(url)
			check(t, err)
			_ = resp.Body.Close()
		}
	}
	check(t, listener.Close())
	<-served
}

// there lists a directory of the store.
func (r *rig) there(t testing.TB, name string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(r.opts.Dir, name))
	check(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
