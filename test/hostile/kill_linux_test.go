package hostile

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/metier-run/metier/internal/sandbox"
)

// hard are trees that do not want to end.
func hard() []string {
	return []string{"bomb", "spin", "plain", "daemon", "ignore", "clone", "stopped"}
}

// ends are the ways to end a launch before its time.
func ends() []string { return []string{"deadline", "client gone", "stop"} }

// killing bounds how long the end of a tree may take on a busy machine.
const killing = 10 * time.Second

// TestKilling: the whole tree is gone when Wait returns, however the launch ends and
// whatever it does against it.
func TestKilling(t *testing.T) {
	r := newRig(t)
	for _, b := range confined(t) {
		for _, how := range hard() {
			for _, end := range ends() {
				t.Run(fmt.Sprintf("%s/%s/%s/%s", b.Name(), user(), how, end), func(t *testing.T) {
					t.Parallel()
					killOne(newTrial(t, r, b), how, end)
				})
			}
		}
	}
}

func killOne(x *trial, how, end string) {
	mark := "hostile-" + random()
	x.clear(mark)
	l := x.l
	l.Deadline = time.Minute
	beat := filepath.Join(x.work, "beat")
	switch how {
	case "bomb", "spin":
		l.Line = fmt.Sprintf("touch %s; exec %s 1 %s %s", beat, x.attack(), how, mark)
	default:
		l.Argv = []string{x.attack(), "1", "stay", beat, how, mark, "endless"}
	}
	if end == "deadline" {
		l.Deadline = 700 * time.Millisecond
	}
	ctx, leave := context.WithCancel(x.Context())
	defer leave()
	job, err := x.b.Start(ctx, l)
	if err != nil {
		x.Fatal(err)
	}
	if !appears(beat) {
		job.Stop()
		x.Fatalf("it did not start: %+v", job.Wait())
	}
	want := sandbox.Cancelled
	switch end {
	case "deadline":
		want = sandbox.TimedOut
	case "client gone":
		leave()
	default:
		job.Stop()
	}
	result := job.Wait()
	if left := marked(mark); len(left) > 0 {
		x.Errorf("processes are left when Wait returns: %v", left)
	}
	if grows(beat) {
		x.Error("something still writes")
	}
	// A bomb may meet its own bound before its end comes.
	if how == "bomb" && result.Ended == sandbox.TooMany {
		want = sandbox.TooMany
	}
	if result.Ended != want || result.Killing > killing {
		x.Errorf("%s after %s, want %s within %s: %+v", result.Ended, result.Killing, want, killing, result)
	}
	x.Logf("killing took %s", result.Killing.Round(100*time.Microsecond))
}

// remains counts what launches could leave on this machine.
type remains struct {
	processes, mounts, groups, files, descriptors int
}

func look(t *testing.T) remains {
	t.Helper()
	r := remains{processes: descendants(), mounts: lines(t, "/proc/self/mountinfo"), files: temporary(t), descriptors: descriptors(t)}
	own := strconv.Itoa(os.Getpid()) + "-" // other hosts have theirs
	_ = filepath.WalkDir("/sys/fs/cgroup", func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.Contains(d.Name(), own) {
			r.groups++
		}
		return nil // what vanished is not left
	})
	return r
}

// kept is how many user namespaces a backend may keep open: one for each owner and
// each launch at a time, which it uses again.
const kept = 16

// descriptors counts what is open.
func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	open, namespaces := 0, 0
	for _, e := range entries {
		to, err := os.Readlink("/proc/self/fd/" + e.Name())
		switch {
		case err != nil: // the one by which this is read
		case strings.HasPrefix(to, "user:["):
			namespaces++
		default:
			open++
		}
	}
	if namespaces > kept {
		t.Errorf("%d user namespaces are kept open, more than %d", namespaces, kept)
	}
	return open
}

func lines(t *testing.T, name string) int {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(text), "\n")
}

// temporary counts what lies in the folder for temporary files, which is this test's
// own.
func temporary(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir(os.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// descendants counts the processes that this one started, and theirs, zombies too.
func descendants() int {
	names, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0
	}
	parents := map[int]int{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // it ended
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		fields := strings.Fields(string(text)[strings.LastIndexByte(string(text), ')')+1:])
		parents[pid], _ = strconv.Atoi(fields[1])
	}
	n := 0
	for pid := range parents {
		for at := pid; at > 1; at = parents[at] {
			if parents[at] == os.Getpid() {
				n++
				break
			}
		}
	}
	return n
}

// launches is how many there are in all, over both users.
const launches = 1000

// TestNothingLeft: after many launches, of which some are killed, there are no
// more processes, mounts, control groups, files and descriptors than before.
func TestNothingLeft(t *testing.T) {
	r := newRig(t)
	t.Setenv("TMPDIR", folder(t, ""))
	for i, b := range confined(t) {
		n := launches / 2
		if short() || i > 0 { // the first one is the house's own
			n = 40
		}
		t.Run(fmt.Sprintf("%s/%s", b.Name(), user()), func(t *testing.T) {
			x := newTrial(t, r, b)
			many(x, 8) // what a backend holds ready is there before the count
			before := settled(t, remains{})
			began := time.Now()
			many(x, n)
			t.Logf("%d launches in %s", n, time.Since(began).Round(time.Millisecond))
			if after := settled(t, before); after != before {
				t.Errorf("before %+v, after %d launches %+v", before, n, after)
			}
		})
	}
}

// settled looks until what is there equals want, or does not change any more: a
// warm start that is under way is not left behind.
func settled(t *testing.T, want remains) remains {
	t.Helper()
	last := look(t)
	for same := 0; same < 5 && last != want; {
		<-time.After(4 * soon)
		now := look(t)
		if now == last {
			same++
		} else {
			same = 0
		}
		last = now
	}
	return last
}

// many runs launches, four at a time. Every tenth is killed, every fifth leaves a
// detached child.
func many(x *trial, n int) {
	var work sync.WaitGroup
	turns := make(chan int)
	for range 4 {
		l := x.launch(x.scratch())
		work.Go(func() {
			for i := range turns {
				one(x, l, i)
			}
		})
	}
	for i := range n {
		turns <- i
	}
	close(turns)
	work.Wait()
}

func one(x *trial, l sandbox.Launch, i int) {
	ctx, cancel := context.WithCancel(x.Context())
	defer cancel()
	want := sandbox.Exited
	switch {
	case i%10 == 0:
		l.Line, want = "sleep 60", sandbox.Cancelled
	case i%5 == 1:
		l.Line = "setsid sleep 60 & exit 0"
	default:
		l.Argv = []string{x.program("true")}
	}
	job, err := x.b.Start(ctx, l)
	if err != nil {
		x.Errorf("launch %d: %v", i, err)
		return
	}
	if want == sandbox.Cancelled {
		cancel()
	}
	if r := job.Wait(); r.Ended != want || want == sandbox.Exited && r.Exit != 0 {
		x.Errorf("launch %d: %+v", i, r)
	}
}
