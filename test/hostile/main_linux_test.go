package hostile

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"go.uber.org/goleak"

	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/sandbox/bwrap"
	"github.com/metier-run/metier/internal/sandbox/native"
	"github.com/metier-run/metier/internal/sandbox/oci"
)

var (
	update = flag.Bool("update", false, "write the table of results into docs/sandbox.md")
	only   = flag.String("rows", "", "run the rows whose backend/user/row this expression matches")
)

// ordinary is the user as whom root runs everything a second time: nobody's.
const ordinary = 64207

// The variables by which a test process tells another one of itself what to do.
const (
	envHost    = "HOSTILE_HOST"    // be a host that is going to be killed: the backend's name
	envFamily  = "HOSTILE_FAMILY"  // the folder that root prepared for the ordinary user
	envResults = "HOSTILE_RESULTS" // where the results go
)

func TestMain(m *testing.M) {
	if name := os.Getenv(envHost); name != "" {
		os.Exit(doomedHost(name))
	}
	goleak.VerifyTestMain(m)
}

// setUpTime bounds the start of one launch on a busy machine.
const setUpTime = 20 * time.Second

// backends are the control and every backend of this machine. A backend that
// is not there is said in the log; its cells of the table stay as they are.
func backends(t *testing.T) []sandbox.Backend {
	t.Helper()
	all := []sandbox.Backend{control{}}
	for _, k := range kinds() {
		if k.slow && short() {
			continue
		}
		for _, f := range k.find(t.Context()) {
			if f.Backend == nil {
				t.Logf("%s is not tried: %v", f.Name, f.Problem)
				continue
			}
			all = append(all, f.Backend)
			t.Cleanup(func() {
				if err := f.Backend.Close(); err != nil {
					t.Errorf("close %s: %v", f.Name, err)
				}
			})
		}
	}
	return all
}

// short reports whether to leave out what takes long: as asked, and under the race
// detector, which has nothing to find in what runs beside the house.
func short() bool { return testing.Short() || raceDetector }

// finder finds backends of one kind. Short runs leave the slow ones out.
type finder struct {
	slow bool
	find func(context.Context) []sandbox.Finding
}

func kinds() []finder {
	return []finder{
		{false, func(ctx context.Context) []sandbox.Finding {
			return []sandbox.Finding{native.Find(ctx, native.Options{SetUp: setUpTime})}
		}},
		{true, func(ctx context.Context) []sandbox.Finding {
			return []sandbox.Finding{native.FindLandlock(ctx, native.Options{SetUp: setUpTime})}
		}},
		{true, func(ctx context.Context) []sandbox.Finding {
			return []sandbox.Finding{bwrap.Find(ctx, bwrap.Options{SetUp: setUpTime})}
		}},
		{true, func(ctx context.Context) (all []sandbox.Finding) {
			for _, name := range oci.Names() {
				all = append(all, oci.Find(ctx, name, oci.Options{SetUp: setUpTime}))
			}
			return all
		}},
	}
}

// named finds one backend by its name; nil if it is not here.
func named(ctx context.Context, name string) sandbox.Backend {
	if name == bareControl {
		return control{}
	}
	for _, k := range kinds() {
		for _, f := range k.find(ctx) {
			if f.Backend != nil && f.Name == name {
				return f.Backend
			}
		}
	}
	return nil
}

// confined are the backends that confine. There is no proof without one.
func confined(t *testing.T) []sandbox.Backend {
	t.Helper()
	all := backends(t)[1:]
	if len(all) == 0 {
		t.Fatal("no backend of this machine confines anything: the log says why")
	}
	return all
}

// user is "root" or "user", as the table has it.
func user() string {
	if os.Geteuid() == 0 {
		return "root"
	}
	return "user"
}

// asUser runs tests of this binary again as the ordinary user, in a copy that this
// user can start. It hands the results of rows out.
func asUser(t *testing.T, tests string) []cell {
	t.Helper()
	r := newRig(t)
	dir, err := os.MkdirTemp("", "hostile-user-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remove(t, dir) })
	exe := filepath.Join(dir, "hostile.test")
	copyFile(t, "/proc/self/exe", exe)
	results := filepath.Join(dir, "results")
	for _, name := range []string{"tmp", "home", "results"} {
		sub := filepath.Join(dir, name)
		if err := errors.Join(os.Mkdir(sub, 0o700), os.Chown(sub, ordinary, ordinary)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	args := []string{"-test.run", tests, "-test.timeout", "10m", "-rows", *only}
	if short() {
		args = append(args, "-test.short")
	}
	if testing.Verbose() {
		args = append(args, "-test.v")
	}
	cmd := exec.CommandContext(t.Context(), exe, args...)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(dir, "home"), "TMPDIR=" + filepath.Join(dir, "tmp"),
		"GORACE=atexit_sleep_ms=0", envFamily + "=" + r.tools, envResults + "=" + filepath.Join(results, "cells"),
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: ordinary, Gid: ordinary}, Pdeathsig: syscall.SIGKILL}
	text, err := cmd.CombinedOutput()
	cells := readCells(t, filepath.Join(results, "cells"))
	if err != nil {
		t.Errorf("as user %d: %v\n%s", ordinary, err, text)
	} else {
		t.Logf("as user %d:\n%s", ordinary, text)
	}
	return cells
}

func readCells(t *testing.T, name string) []cell {
	t.Helper()
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []cell
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var c cell
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	return all
}

// note writes a result where the process that started this one reads it.
func note(t *testing.T, c cell) {
	t.Helper()
	name := os.Getenv(envResults)
	if name == "" {
		return
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(f, "%s\n", data); err != nil {
		t.Fatal(err)
	}
}

// doomedHost starts a launch that does not end by itself and waits to be killed.
func doomedHost(name string) int {
	var o order
	if err := json.UnmarshalRead(os.Stdin, &o); err != nil {
		fmt.Println("read the launch:", err)
		return 1
	}
	b := named(context.Background(), name)
	if b == nil {
		fmt.Println("there is no backend", name)
		return 1
	}
	if _, err := b.Start(context.Background(), o.launch()); err != nil {
		fmt.Println("start the launch:", err)
		return 1
	}
	fmt.Println("started")
	select {} // killed here
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, data, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(to, 0o755); err != nil {
		t.Fatal(err)
	}
}

// remove deletes a folder although a launch may have taken rights away.
func remove(t *testing.T, dir string) {
	t.Helper()
	_ = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(name, 0o700) // what cannot be changed shows below
		}
		return nil
	})
	if err := os.RemoveAll(dir); err != nil && !strings.Contains(err.Error(), "no such file") {
		t.Errorf("left behind: %v", err)
	}
}
