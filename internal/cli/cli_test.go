package cli_test

import (
	"context"
	"flag"
	"net/http/httptest"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"

	"github.com/metier-run/metier/internal/cli"
	"github.com/metier-run/metier/internal/launch"
	"github.com/metier-run/metier/internal/llm/scripted"
	"github.com/metier-run/metier/internal/sandbox"
)

var update = flag.Bool("update", false, "rewrite the expectations of the scripts")

func TestMain(m *testing.M) {
	// The command itself is a process of its own: what it leaves running ends
	// with it. What the tests leave is looked for.
	testscript.Main(leaks{m}, map[string]func(){"metier": metier})
}

type leaks struct{ m *testing.M }

func (l leaks) Run() int {
	code := l.m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		os.Stderr.WriteString(err.Error() + "\n")
		return 1
	}
	return code
}

func metier() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	os.Exit(cli.Main(ctx, cli.IO{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}, "v0-test", os.Args[1:]))
}

func TestScripts(t *testing.T) {
	upstream, err := scripted.New(scripted.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(upstream)
	t.Cleanup(s.Close)
	own, err := scripted.New(scripted.Options{FS: os.DirFS("testdata/scenarios")})
	if err != nil {
		t.Fatal(err)
	}
	calls := httptest.NewServer(own)
	t.Cleanup(calls.Close)
	examples, err := filepath.Abs("../../examples/skills")
	if err != nil {
		t.Fatal(err)
	}
	able := confines(t)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", UpdateScripts: *update, RequireExplicitExec: true, RequireUniqueNames: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("UPSTREAM", s.URL+"/v1")
			e.Setenv("CALLS", calls.URL+"/v1")
			e.Setenv("EXAMPLES", examples)
			e.Setenv("METIER_HOME", e.WorkDir+"/home")
			e.Setenv("NO_PROXY", "*")
			e.Setenv("GORACE", "atexit_sleep_ms=0") // a second at each exit, for nothing here
			return nil
		},
		Condition: func(cond string) (bool, error) { return cond == "confined" && able, nil },
	})
}

// confines reports whether this host confines scripts fully.
func confines(t *testing.T) bool {
	t.Helper()
	return launch.Look(t.Context(), launch.Options{Policy: sandbox.DefaultPolicy(), Scratch: t.TempDir()}).Problem == nil
}
