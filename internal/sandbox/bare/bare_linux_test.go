package bare

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/metier-run/metier/internal/sandbox"
)

// patience is longer than anything here takes on a busy machine.
const patience = 30 * time.Second

// line is a launch of a shell's line in a new directory.
func line(t *testing.T, text string) sandbox.Launch {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return sandbox.Launch{
		Purpose: sandbox.Shell, Line: text, Dir: dir, Write: []string{dir},
		Env: []string{"PATH=/usr/bin:/bin"}, Output: 64 << 10, Deadline: patience,
	}
}

func start(t *testing.T, ctx context.Context, l sandbox.Launch) sandbox.Job {
	t.Helper()
	job, err := New(Options{}).Start(ctx, l)
	if err != nil {
		t.Fatal(err)
	}
	return job
}

func run(t *testing.T, l sandbox.Launch) sandbox.Result {
	t.Helper()
	r := start(t, t.Context(), l).Wait()
	if r.Ended == sandbox.TimedOut && l.Deadline == patience {
		t.Errorf("it hung: %q", l.Line)
	}
	return r
}

// eventually waits until ok is true.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	end := time.After(patience)
	for !ok() {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// lasting is a sleep that nobody else on this machine sleeps.
func lasting() string { return fmt.Sprintf("sleep %d.%09d", 9000+rand.IntN(900), rand.IntN(1e9)) }

// running counts the processes with a command line.
func running(t *testing.T, command string) int {
	t.Helper()
	want := strings.ReplaceAll(command, " ", "\x00") + "\x00"
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, f := range files {
		if text, err := os.ReadFile(f); err == nil && string(text) == want {
			n++
		}
	}
	return n
}

func TestFindRunsIt(t *testing.T) {
	f := Find(t.Context())
	if f.Problem != nil || f.Backend == nil || f.Name != sandbox.Bare {
		t.Errorf("finding is %+v", f)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if f := Find(ended); f.Problem == nil || f.Backend != nil {
		t.Errorf("found without a trial: %+v", f)
	}
}

func TestEnd(t *testing.T) {
	type end struct {
		Ended  sandbox.Ended
		Exit   int
		Signal string
		Out    string
	}
	for text, want := range map[string]end{
		"true":                          {sandbox.Exited, 0, "", ""},
		"exit 7":                        {sandbox.Exited, 7, "", ""},
		"exit 137":                      {sandbox.Exited, 137, "", ""},
		"kill -TERM $$":                 {sandbox.Signalled, 143, "term", ""},
		"kill -SEGV $$":                 {sandbox.Signalled, 139, "segv", ""},
		"kill -40 $$":                   {sandbox.Signalled, 168, "40", ""},
		"nosuchcommand 2>&-":            {sandbox.Exited, 127, "", ""},
		"cat; readlink /proc/self/fd/0": {sandbox.Exited, 0, "", "/dev/null\n"},
		"pwd -P | sed 's:.*/::'":        {sandbox.Exited, 0, "", "001\n"},
		"echo a; echo b >&2; false":     {sandbox.Exited, 1, "", "a\nb\n"},
	} {
		t.Run(text, func(t *testing.T) {
			r := run(t, line(t, text))
			got := end{r.Ended, r.Exit, r.Signal, r.Stdout.Text() + r.Stderr.Text()}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if r.Wall <= 0 || r.Killing != 0 {
				t.Errorf("wall %s, killing %s", r.Wall, r.Killing)
			}
		})
	}
}

func TestArgumentsAreData(t *testing.T) {
	l := line(t, "")
	l.Argv = []string{"/usr/bin/printf", "%s|", "a b", "$(id)", "`id`", ";", "*", "'\"\n", ""}
	want := strings.Join(l.Argv[2:], "|") + "|"
	if got := run(t, l).Stdout.Text(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestEnvironmentIsExact(t *testing.T) {
	t.Setenv("METIER_TEST_SECRET", "1")
	for _, env := range [][]string{nil, {"A=1", "PATH=/nowhere", "B=x=y\nz"}} {
		l := line(t, "")
		l.Argv, l.Env = []string{"/usr/bin/env", "-0"}, env
		got := strings.Split(strings.TrimSuffix(run(t, l).Stdout.Text(), "\x00"), "\x00")
		if want := append([]string{}, env...); strings.Join(got, "\x00") != strings.Join(want, "\x00") {
			t.Errorf("environment is %q, want %q", got, want)
		}
	}
}

func TestNoDescriptorOfTheHost(t *testing.T) {
	fd, err := unix.Open("/etc/hostname", unix.O_RDONLY, 0) // without O_CLOEXEC, as a parent may leave one
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	l := line(t, "")
	l.Argv = []string{"/bin/ls", "/proc/self/fd"}
	if got := strings.Fields(run(t, l).Stdout.Text()); strings.Join(got, " ") != "0 1 2 3" { // 3 lists the directory
		t.Errorf("descriptors %q", got)
	}
}

func TestProgramThatIsNotThere(t *testing.T) {
	l := line(t, "")
	l.Argv = []string{filepath.Join(l.Dir, "nothing")}
	_, err := New(Options{}).Start(t.Context(), l)
	if _, ok := errors.AsType[*sandbox.Unavailable](err); !ok || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error is %v", err)
	}
}

func TestOutputIsBounded(t *testing.T) {
	const total = 200_000_000
	l := line(t, fmt.Sprintf("head -c %d /dev/zero; echo end; head -c 1000 /dev/zero >&2", total))
	l.Output = 1000
	r := run(t, l)
	if got := r.Stdout.Total; got != total+4 {
		t.Errorf("counted %d bytes", got)
	}
	if kept := len(r.Stdout.Head) + len(r.Stdout.Tail); kept != 1000 || !strings.HasSuffix(r.Stdout.Text(), "end\n") {
		t.Errorf("kept %d bytes, the last are %q", kept, r.Stdout.Tail[len(r.Stdout.Tail)-4:])
	}
	if r.Stderr.Dropped() != 0 || r.Stderr.Total != 1000 || !r.OK() {
		t.Errorf("stderr %d, dropped %d, ended %s", r.Stderr.Total, r.Stderr.Dropped(), r.Ended)
	}
}

// trees are lines that leave processes in every way, each running what the verb
// stands for.
func trees() map[string]string {
	return map[string]string{
		"child":                  `%s & `,
		"group":                  `set -m; %s & `,
		"session":                `setsid %s & `,
		"daemon":                 `(setsid bash -c '%s & exit' &) ; `,
		"daemon, no output":      `(setsid bash -c '%s <&- >&- 2>&- & exit' &) ; `,
		"daemon, no environment": `(env -i setsid /bin/bash -c '/usr/bin/env -i /usr/bin/setsid /bin/bash -c "exec -a sleep /usr/bin/%s" &' &) ; `,
		"ignoring signals":       `(trap '' TERM HUP INT; setsid %s &) ; `,
		"stopped":                `setsid %s & while read -r c < /proc/$!/comm && test "$c" != sleep; do :; done; kill -STOP $!; `,
		"holds the output":       `(trap '' HUP; %s) & disown; `,
	}
}

func TestTreeIsGone(t *testing.T) {
	for name, text := range trees() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ways := map[string]func(t *testing.T, l sandbox.Launch, up func() bool) (sandbox.Result, sandbox.Ended){
				"exit": func(t *testing.T, l sandbox.Launch, up func() bool) (sandbox.Result, sandbox.Ended) {
					l.Line += "while ! test -e go; do sleep 0.01; done"
					job := start(t, t.Context(), l)
					eventually(t, "the child to run", up)
					if err := os.WriteFile(filepath.Join(l.Dir, "go"), nil, 0o600); err != nil {
						t.Error(err)
					}
					return job.Wait(), sandbox.Exited
				},
				"deadline": func(t *testing.T, l sandbox.Launch, up func() bool) (sandbox.Result, sandbox.Ended) {
					l.Line += "sleep 600"
					l.Deadline = 3 * time.Second
					job := start(t, t.Context(), l)
					eventually(t, "the child to run", up)
					return job.Wait(), sandbox.TimedOut
				},
				"cancel": func(t *testing.T, l sandbox.Launch, up func() bool) (sandbox.Result, sandbox.Ended) {
					l.Line += "sleep 600"
					ctx, cancel := context.WithCancel(t.Context())
					job := start(t, ctx, l)
					eventually(t, "the child to run", up)
					cancel()
					return job.Wait(), sandbox.Cancelled
				},
				"stop": func(t *testing.T, l sandbox.Launch, up func() bool) (sandbox.Result, sandbox.Ended) {
					l.Line += "sleep 600"
					job := start(t, t.Context(), l)
					eventually(t, "the child to run", up)
					job.Stop()
					job.Stop()
					return job.Wait(), sandbox.Cancelled
				},
			}
			if name == "group" || name == "session" || name == "holds the output" || name == "stopped" {
				delete(ways, "deadline") // the others show it, and each takes its whole time
			}
			for way, do := range ways {
				command := lasting()
				r, want := do(t, line(t, fmt.Sprintf(text, command)), func() bool { return running(t, command) > 0 })
				if n := running(t, command); n != 0 {
					t.Errorf("%s: %d processes are left", way, n)
				}
				if r.Ended != want {
					t.Errorf("%s: ended %q, want %q", way, r.Ended, want)
				}
				if want != sandbox.Exited && (r.Exit != 137 || r.Signal != "kill") {
					t.Errorf("%s: status %d, signal %q", way, r.Exit, r.Signal)
				}
				if want != sandbox.Exited && r.Killing <= 0 || r.Killing > r.Wall {
					t.Errorf("%s: killing took %s of %s", way, r.Killing, r.Wall)
				}
			}
		})
	}
}

func TestDeadlineIsKept(t *testing.T) {
	l := line(t, "while :; do :; done")
	l.Deadline = 300 * time.Millisecond
	r := run(t, l)
	if r.Ended != sandbox.TimedOut || r.Wall < l.Deadline || r.Wall-r.Killing > l.Deadline+5*time.Second {
		t.Errorf("ended %s after %s, killing %s", r.Ended, r.Wall, r.Killing)
	}
}

func TestOutputUntilTheEndIsKept(t *testing.T) {
	l := line(t, "echo before; touch said; sleep 600")
	job := start(t, t.Context(), l)
	eventually(t, "the output", func() bool { _, err := os.Stat(filepath.Join(l.Dir, "said")); return err == nil })
	job.Stop()
	if got := job.Wait().Stdout.Text(); got != "before\n" {
		t.Errorf("output is %q", got)
	}
}

func TestWaitFromManySides(t *testing.T) {
	job := start(t, t.Context(), line(t, "echo one; exit 3"))
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			if r := job.Wait(); r.Exit != 3 || r.Stdout.Text() != "one\n" {
				t.Errorf("result is %+v", r)
			}
		})
	}
	all.Wait()
	job.Stop() // after the end: nothing
	if r := job.Wait(); r.Ended != sandbox.Exited {
		t.Errorf("ended %s", r.Ended)
	}
}

func TestCancelledBeforeItStarts(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l := line(t, "touch ran")
	if _, err := New(Options{}).Start(ctx, l); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
	if _, err := os.Stat(filepath.Join(l.Dir, "ran")); err == nil {
		t.Error("it ran")
	}
}

func TestLimits(t *testing.T) {
	l := line(t, "ulimit -c; ulimit -f; ulimit -d")
	l.Disk, l.Memory = 8<<20, 256<<20
	if got, want := run(t, l).Stdout.Text(), "0\n8192\n262144\n"; got != want {
		t.Errorf("limits are %q, want %q", got, want)
	}
}

func TestOneLargeFile(t *testing.T) {
	l := line(t, "exec head -c 20000000 /dev/zero > large")
	l.Disk = 8 << 20
	if r := run(t, l); r.OK() {
		t.Errorf("it ended %s, status %d", r.Ended, r.Exit)
	}
	if info, err := os.Stat(filepath.Join(l.Dir, "large")); err != nil || info.Size() > l.Disk {
		t.Errorf("file %v, %v", info, err)
	}
}

func TestManyFiles(t *testing.T) {
	l := line(t, "i=0; while :; do head -c 100000 /dev/zero > f$i; i=$((i+1)); done")
	l.Disk = 2 << 20
	r := run(t, l)
	if r.Ended != sandbox.OutOfRoom || r.Exit != 137 {
		t.Errorf("ended %s, status %d", r.Ended, r.Exit)
	}
}

// TestHost is no test: it is the host that TestHostIsKilled kills.
func TestHost(t *testing.T) {
	command := os.Getenv("METIER_TEST_HOST")
	if command == "" {
		t.Skip("this is the other process of TestHostIsKilled")
	}
	job := start(t, t.Context(), line(t, "exec "+command))
	eventually(t, "the program", func() bool { return running(t, command) == 1 })
	fmt.Println("started")
	job.Wait()
}

func TestHostIsKilled(t *testing.T) {
	command := lasting()
	host := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestHost$")
	host.Env = append(os.Environ(), "METIER_TEST_HOST="+command)
	out, err := host.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	text, _ := bufio.NewReader(out).ReadString('\n')
	if text != "started\n" {
		t.Errorf("the host said %q", text)
	}
	if err := host.Process.Signal(syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	_ = host.Wait() // it was killed
	eventually(t, "the program to follow its host", func() bool { return running(t, command) == 0 })
}

func TestNothingIsLeft(t *testing.T) {
	count := func() int {
		fds, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		children, err := os.ReadFile("/proc/self/task/" + strconv.Itoa(os.Getpid()) + "/children")
		if err != nil {
			t.Fatal(err)
		}
		return len(fds) + 1000*len(strings.Fields(string(children)))
	}
	run(t, line(t, "true")) // what is made once is made now
	before := count()
	for range 20 {
		var all sync.WaitGroup
		for range 5 {
			l := line(t, "sleep 60 & exit 0")
			all.Go(func() {
				if r := run(t, l); !r.OK() {
					t.Errorf("it ended %s after %s", r.Ended, r.Wall)
				}
			})
		}
		all.Wait()
	}
	if after := count(); after != before {
		t.Errorf("descriptors and children went from %d to %d", before, after)
	}
}
