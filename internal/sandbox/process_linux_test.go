package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func shellLaunch(t *testing.T, line string) (Launch, Command) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	l := Launch{Purpose: Shell, Line: line, Dir: dir, Write: []string{dir}, Output: 1 << 10}
	return l, Command{Backend: "test", Path: "/bin/sh", Args: []string{"sh", "-c", line}, Env: []string{"PATH=/usr/bin:/bin"}}
}

func start(t *testing.T, l Launch, cmd Command) Job {
	t.Helper()
	job, err := StartProcess(t.Context(), l, cmd)
	if err != nil {
		t.Fatal(err)
	}
	return job
}

func TestStragglerThatHoldsThePipe(t *testing.T) {
	l, cmd := shellLaunch(t, "echo said")
	var held *os.File
	cmd.Started = func(p *os.Process) (err error) {
		held, err = os.OpenFile(fmt.Sprintf("/proc/%d/fd/1", p.Pid), os.O_WRONLY, 0)
		return err
	}
	began := time.Now()
	r := start(t, l, cmd).Wait()
	defer held.Close()
	if took := time.Since(began); took < drainWait || took > drainWait+10*time.Second {
		t.Errorf("it took %s", took)
	}
	if !r.OK() || r.Stdout.Text() != "said\n" {
		t.Errorf("result is %+v", r)
	}
	if _, err := held.WriteString("more"); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("the pipe is still read: %v", err)
	}
}

func TestStartedRefuses(t *testing.T) {
	l, cmd := shellLaunch(t, "touch ran; sleep 600")
	refusal := errors.New("no")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	kills := 0
	cmd.Listener = listener
	cmd.Started = func(p *os.Process) error {
		pid = p.Pid
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || !strings.Contains(string(text), "(sh) t ") {
			t.Errorf("the program is not held: %s %v", text, err)
		}
		return refusal
	}
	cmd.Kill = func() { kills++ }
	cmd.Finish = func(*Result) { t.Error("there is nothing to finish") }
	_, err = StartProcess(t.Context(), l, cmd)
	if u, ok := errors.AsType[*Unavailable](err); !ok || u.Backend != "test" || !errors.Is(err, refusal) {
		t.Errorf("error is %v", err)
	}
	if _, err := os.Stat(filepath.Join(l.Dir, "ran")); err == nil {
		t.Error("it ran before it was refused")
	}
	if err := unix.Kill(pid, 0); !errors.Is(err, unix.ESRCH) || kills != 1 {
		t.Errorf("process %d is there: %v; killed %d times", pid, err, kills)
	}
	if _, err := listener.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the listener is open: %v", err)
	}
}

func TestHooks(t *testing.T) {
	l, cmd := shellLaunch(t, "exit 4")
	var said []string
	cmd.Started = func(*os.Process) error { said = append(said, "started"); return nil }
	cmd.Kill = func() { said = append(said, "kill") }
	cmd.Finish = func(r *Result) { said = append(said, fmt.Sprint("finish ", r.Exit)); r.Exit = 5 }
	job := start(t, l, cmd)
	if r := job.Wait(); r.Exit != 5 || job.Wait().Exit != 5 {
		t.Errorf("status is %d", r.Exit)
	}
	if diff := cmp.Diff([]string{"started", "kill", "finish 4"}, said); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWatch(t *testing.T) {
	for _, contained := range []bool{false, true} {
		l, cmd := shellLaunch(t, "exec sleep 600")
		cmd.Contained = contained
		cmd.Watch = func(context.Context) Ended { return OutOfMem }
		if r := start(t, l, cmd).Wait(); r.Ended != OutOfMem || r.Signal != "kill" || r.Killing <= 0 {
			t.Errorf("result is %+v", r)
		}
		l, cmd = shellLaunch(t, "true")
		cmd.Watch = func(ctx context.Context) Ended { <-ctx.Done(); return "" }
		if r := start(t, l, cmd).Wait(); !r.OK() {
			t.Errorf("result is %+v", r)
		}
	}
}

func TestListenerIsServedUntilTheEnd(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	l, cmd := shellLaunch(t, "")
	cmd.Path, cmd.Args = "/bin/bash", []string{"bash", "-c", "cat < /dev/tcp/127.0.0.1/" + port}
	cmd.Listener = listener
	ended := false
	l.Network = Network{Mode: NetworkProxied, Serve: func(ctx context.Context, on net.Listener) {
		conn, err := on.Accept()
		if err != nil {
			t.Errorf("accept: %v", err)
			return
		}
		_, _ = io.WriteString(conn, "hello")
		_ = conn.Close()
		_, err = on.Accept()
		ended = errors.Is(err, net.ErrClosed) && ctx.Err() != nil
	}}
	r := start(t, l, cmd).Wait()
	if r.Stdout.Text() != "hello" || !ended {
		t.Errorf("output %q, served to the end: %t, errors %q", r.Stdout.Text(), ended, r.Stderr.Text())
	}
}

func TestUserAndFiles(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root starts programs as another user")
	}
	file, err := os.Open("/etc/hostname")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	l, cmd := shellLaunch(t, "id -u; id -G; test -e /proc/self/fd/3 && echo three; test -e /proc/self/fd/4 || echo no four")
	cmd.Dir, cmd.User, cmd.ExtraFiles = "/", &User{UID: 54321, GID: 54322}, []*os.File{file}
	if got, want := start(t, l, cmd).Wait().Stdout.Text(), "54321\n54322\nthree\nno four\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestParseRow(t *testing.T) {
	const rest = " 0 0 0 0 0 0 0 0 0 0 0 20 0 %d 0 777 0 0"
	for _, test := range []struct {
		text string
		want row
		ok   bool
	}{
		{"5 (sleep) S 4 3 2" + fmt.Sprintf(rest, 1), row{member{5, 777}, 4, 3, 2, false}, true},
		{"5 (a) Z 1 (b) R 4 3 2" + fmt.Sprintf(rest, 1), row{member{5, 777}, 4, 3, 2, false}, true},
		{"5 (z) Z 4 3 2" + fmt.Sprintf(rest, 1), row{member{5, 777}, 4, 3, 2, true}, true},
		{"5 (first thread gone) Z 4 3 2" + fmt.Sprintf(rest, 3), row{member{5, 777}, 4, 3, 2, false}, true},
		{"5 (short) S 4 3 2", row{}, false},
		{"", row{}, false},
	} {
		got, ok := parseRow(5, test.text)
		if got != test.want || ok != test.ok {
			t.Errorf("%q gives %+v, %t", test.text, got, ok)
		}
	}
}

func FuzzParseRow(f *testing.F) {
	f.Add("5 (a) b) S 4 3 2 0 0 0 0 0 0 0 0 0 0 0 20 0 1 0 777")
	f.Add(")")
	f.Fuzz(func(t *testing.T, text string) {
		if r, ok := parseRow(5, text); ok && r.pid != 5 {
			t.Errorf("row %+v", r)
		}
	})
}

func TestFamily(t *testing.T) {
	one := func(pid, parent, session int, dead bool) row {
		return row{member: member{pid: pid}, parent: parent, session: session, dead: dead}
	}
	rows := []row{
		one(9, 8, 9, false), // found through 8, which comes later
		one(8, 7, 8, false),
		one(7, 1, 5, false),
		one(6, 1, 6, false), // a stranger
		one(5, 2, 5, true),
		one(2, 1, 2, false), // the host
	}
	var got []int
	for _, m := range family(rows, func(r row) bool { return r.session == 5 }) {
		got = append(got, m.pid)
	}
	if diff := cmp.Diff([]int{9, 8, 7}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFull(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	write := func(path string, size int) {
		t.Helper()
		if err := os.WriteFile(path, []byte(strings.Repeat("x", size)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(dir, "file"), 100<<10)
	write(filepath.Join(outside, "large"), 900<<10)
	if err := os.Mkdir(filepath.Join(dir, "below"), 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		if err := os.Link(filepath.Join(dir, "file"), filepath.Join(dir, "below", fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	write(filepath.Join(dir, "sparse"), 0)
	if err := os.Truncate(filepath.Join(dir, "sparse"), 1<<30); err != nil {
		t.Fatal(err)
	}
	nested := []string{dir, filepath.Join(dir, "below"), dir}
	if isFull(t, 200<<10, nested...) {
		t.Error("links, holes or nested directories count more than once")
	}
	if !isFull(t, 90<<10, nested...) {
		t.Error("100 KiB are not seen")
	}
	if !isFull(t, 500<<10, dir, outside) {
		t.Error("the second directory is not seen")
	}
	if isFull(t, 0, filepath.Join(dir, "nothing")) {
		t.Error("a directory that is not there is full")
	}
}

func TestVector(t *testing.T) {
	shell := make([]string, 2, 8)
	shell[0], shell[1] = "/bin/sh", "-c"
	got, err := Launch{Line: "a b"}.Vector(shell)
	if err != nil || cmp.Diff([]string{"/bin/sh", "-c", "a b"}, got) != "" || shell[:3][2] != "" {
		t.Errorf("vector %q, %v, shell %q", got, err, shell[:3])
	}
	if got, err := (Launch{Argv: []string{"/x", "y"}}).Vector(nil); err != nil || len(got) != 2 {
		t.Errorf("vector %q, %v", got, err)
	}
	if _, err := (Launch{Line: "a"}).Vector(nil); err == nil {
		t.Error("a line without a shell")
	}
	if FindShell() == nil {
		t.Error("this host has no shell")
	}
}

func TestTrialTellsWhatFailed(t *testing.T) {
	if err := Trial(t.Context(), broken{}, ""); err == nil || !strings.Contains(err.Error(), `status 3: "no such thing"`) {
		t.Errorf("error is %v", err)
	}
}

// broken runs something else than it is told.
type broken struct{ Backend }

func (broken) Name() string { return "broken" }

func (broken) Start(ctx context.Context, l Launch) (Job, error) {
	return StartProcess(ctx, l, Command{Backend: "broken", Path: "/bin/sh", Args: []string{"sh", "-c", "echo no such thing >&2; exit 3"}})
}

func isFull(t *testing.T, limit int64, dirs ...string) bool {
	t.Helper()
	roots := openRoots(dirs)
	defer func() {
		for _, r := range roots {
			_ = r.Close()
		}
	}()
	return full(t.Context(), roots, limit)
}

// TestFullOfWhatHides: a script finds no folder in which it is not counted.
func TestFullOfWhatHides(t *testing.T) {
	const many = 100
	tests := []struct {
		name string
		make func(dir string) error
		want bool
	}{
		{"little", func(dir string) error { return os.WriteFile(filepath.Join(dir, "f"), nil, 0o600) }, false},
		{"many empty files", func(dir string) error {
			for i := range many {
				if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), nil, 0o600); err != nil {
					return err
				}
			}
			return nil
		}, true},
		{"a name that is no text", func(dir string) error {
			below := filepath.Join(dir, "\xff")
			return errors.Join(os.Mkdir(below, 0o700), os.WriteFile(filepath.Join(below, "f"), make([]byte, many<<12), 0o600))
		}, true},
		{"a deep tree", func(dir string) error {
			return os.MkdirAll(filepath.Join(dir, strings.Repeat("d/", diskDepth+1)), 0o700)
		}, true},
		{"a tree that is not too deep", func(dir string) error { return os.MkdirAll(filepath.Join(dir, strings.Repeat("d/", 20)), 0o700) }, false},
		{"a folder that cannot be listed", func(dir string) error { return os.Mkdir(filepath.Join(dir, "closed"), 0o300) }, os.Geteuid() != 0},
	}
	for _, tt := range tests {
		dir := t.TempDir()
		if err := tt.make(dir); err != nil {
			t.Fatal(err)
		}
		if got := isFull(t, many<<11, dir); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

// TestFullKeepsItsDirectory: one that is swapped for a link is not followed, and one
// that was moved is still counted.
func TestFullKeepsItsDirectory(t *testing.T) {
	parent, large := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(large, "f"), make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	work := filepath.Join(parent, "work")
	if err := os.Symlink(large, work); err != nil {
		t.Fatal(err)
	}
	if isFull(t, 1<<10, work) {
		t.Error("a link was followed")
	}
	if err := errors.Join(os.Remove(work), os.Mkdir(work, 0o700)); err != nil {
		t.Fatal(err)
	}
	roots := openRoots([]string{work})
	defer func() { _ = roots[0].Close() }()
	if err := errors.Join(os.Rename(work, work+"2"), os.Symlink(large, work)); err != nil {
		t.Fatal(err)
	}
	if full(t.Context(), roots, 64<<10) {
		t.Error("what took its place is counted")
	}
	if err := os.WriteFile(filepath.Join(work+"2", "f"), make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if !full(t.Context(), roots, 64<<10) {
		t.Error("what was moved is not counted")
	}
}
