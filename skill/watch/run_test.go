package watch

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/metier-run/metier/skill"
)

// live is a watcher over the host's own events.
type live struct {
	t        *testing.T
	dir      string
	registry *skill.Registry
	changed  chan *skill.Snapshot
	log      *bytes.Buffer // to be read after stop
	stop     func()
}

// patienceOfTests ends a test that waits for what never comes.
const patienceOfTests = 30 * time.Second

func runLive(t *testing.T, dir string, o Options, roots ...skill.Root) *live {
	t.Helper()
	l := &live{t: t, dir: dir, registry: openRegistry(t, roots...), changed: make(chan *skill.Snapshot, 100), log: new(bytes.Buffer)}
	o.Logger = slog.New(slog.NewTextHandler(l.log, nil))
	o.Changed = func(s *skill.Snapshot) { l.changed <- s }
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Run(ctx, l.registry, o) }()
	l.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(l.stop)
	return l
}

// until waits for a snapshot that is as wanted.
func (l *live) until(what string, ok func(*skill.Snapshot) bool) {
	l.t.Helper()
	late := time.After(patienceOfTests)
	for !ok(l.registry.Snapshot()) {
		select {
		case <-l.changed:
		case <-late:
			l.t.Fatalf("%s: the skills are %q, errors %v, pending %v", what, names(l.registry.Snapshot()), l.registry.Snapshot().Errors(), l.registry.Snapshot().Pending())
		}
	}
}

func (l *live) untilNames(want string) {
	l.t.Helper()
	l.until(want, func(s *skill.Snapshot) bool { return names(s) == want })
}

func (l *live) rename(from, to string) {
	l.t.Helper()
	check(l.t, os.Rename(filepath.Join(l.dir, from), filepath.Join(l.dir, to)))
}

func files(s *skill.Snapshot, name string) int {
	k, _ := s.Find(name)
	return len(k.Files)
}

func TestRun(t *testing.T) {
	for _, polling := range []bool{false, true} {
		t.Run(fmt.Sprintf("polling %v", polling), func(t *testing.T) {
			dir := folder(t)
			write(t, dir, "root/a/SKILL.md", manifest("a"))
			o := Options{Settle: 30 * time.Millisecond, Poll: 30 * time.Millisecond, Polling: polling}
			l := runLive(t, dir, o, skill.Root{Dir: filepath.Join(dir, "root")}, skill.Root{Dir: filepath.Join(dir, "x/y/skills"), Optional: true})

			write(t, dir, "root/b/SKILL.md", manifest("b"))
			l.untilNames("a b")
			write(t, dir, "root/b/deep/er/x.md", "x")
			l.until("a file in new folders", func(s *skill.Snapshot) bool { return files(s, "b") == 2 })
			write(t, dir, "root/b/deep/er/y.md", "y")
			l.until("a file in a folder that was new", func(s *skill.Snapshot) bool { return files(s, "b") == 3 })
			l.rename("root/b", "root/c")
			l.untilNames("a c")
			write(t, dir, "root/c/deep/er/z.md", "z")
			l.until("a file below a renamed folder", func(s *skill.Snapshot) bool { return files(s, "c") == 4 })
			write(t, dir, "root/c/SKILL.md", "# broken")
			l.until("an error", func(s *skill.Snapshot) bool { return names(s) == "a" && len(s.Errors()) == 1 })
			write(t, dir, "root/c/SKILL.md", manifest("c"))
			l.untilNames("a c")
			check(t, os.RemoveAll(filepath.Join(dir, "root/a")))
			l.untilNames("c")
			write(t, dir, "x/y/skills/later/SKILL.md", manifest("later"))
			l.untilNames("c later")
			write(t, dir, "x/y/skills/later/two.md", "2")
			l.until("a file in a root that came later", func(s *skill.Snapshot) bool { return files(s, "later") == 2 })
			l.rename("root", "old")
			write(t, dir, "next/n/SKILL.md", manifest("n"))
			l.rename("next", "root")
			l.untilNames("later n")
			write(t, dir, "root/n/x.md", "x")
			l.until("a file in a root that was replaced", func(s *skill.Snapshot) bool { return files(s, "n") == 2 })
			check(t, os.RemoveAll(filepath.Join(dir, "x")))
			l.untilNames("n")
			l.stop()
			for _, want := range []string{`msg="skills have changed"`, "new=b", "gone=later", `msg="a skill is not loaded"`, "there is no front matter"} {
				if !strings.Contains(l.log.String(), want) {
					t.Errorf("the log does not say %s:\n%s", want, l.log)
				}
			}
		})
	}
}

func TestRunSeesASwappedLink(t *testing.T) {
	dir := folder(t)
	write(t, dir, "v1/a/SKILL.md", manifest("a"))
	write(t, dir, "v2/b/SKILL.md", manifest("b"))
	link := filepath.Join(dir, "current")
	if err := os.Symlink("v1", link); err != nil {
		t.Skipf("this host makes no symbolic links: %v", err)
	}
	l := runLive(t, dir, Options{Settle: 30 * time.Millisecond}, skill.Root{Dir: link})
	l.untilNames("a")
	check(t, os.Symlink("v2", link+".next"))
	l.rename("current.next", "current")
	l.untilNames("b")
	write(t, dir, "v2/c/SKILL.md", manifest("c"))
	l.untilNames("b c")
}

// TestRunUnderLoad: readers take snapshots all the time, while skills are
// written in pieces and renamed into place on a real file system.
func TestRunUnderLoad(t *testing.T) {
	const generations = 6
	dir := folder(t)
	put := func(below, name string, n int) {
		for file, text := range pieces(name, n) {
			write(t, dir, below+"/"+file, text)
		}
	}
	put("root/in-place", "in-place", 0)
	put("root/renamed", "renamed", 0)
	l := runLive(t, dir, Options{}, skill.Root{Dir: filepath.Join(dir, "root")})
	done := make(chan struct{})
	var reading sync.WaitGroup
	reading.Go(func() {
		seen := map[string]bool{}
		for {
			select {
			case <-done:
				return
			default:
			}
			if err := judge(l.registry.Snapshot(), seen); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for n := 1; n <= generations; n++ {
		for range 20 { // over and over, so that there is something to run into
			put("root/in-place", "in-place", n)
		}
		put("next", "renamed", n)
		check(t, os.RemoveAll(filepath.Join(dir, "root/renamed")))
		l.rename("next", "root/renamed")
		l.until(fmt.Sprintf("generation %d", n), func(s *skill.Snapshot) bool {
			for _, k := range s.Skills() {
				if k.Metadata["generation"] != fmt.Sprint(n) {
					return false
				}
			}
			return true
		})
	}
	close(done)
	reading.Wait()
}
