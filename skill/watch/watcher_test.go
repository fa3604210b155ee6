package watch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metier-run/metier/skill"
)

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestWaitsUntilItIsQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := folder(t)
		write(t, dir, "a/SKILL.md", manifest("a"))
		g := start(t, dir)
		pass(2 * settle)
		g.want("a")
		g.write("b/SKILL.md", manifest("b"))
		pass(settle - 1)
		g.want("a")
		g.write("b/x.md", "x")
		pass(settle - 1)
		g.want("a")
		pass(2)
		g.want("a b")
		if g.changes.Load() != 1 || g.changed.Load() != g.registry.Snapshot() {
			t.Errorf("Changed was called %d times", g.changes.Load())
		}
		before := g.registry.Snapshot()
		pass(10 * settle)
		if g.registry.Snapshot() == before {
			return
		}
		// The new folder was watched only after the scan, so there was another.
		before = g.registry.Snapshot()
		pass(10 * settle)
		if g.registry.Snapshot() != before || g.changes.Load() != 1 {
			t.Error("it goes on scanning")
		}
	})
}

func TestHalfWrittenSkills(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := folder(t)
		write(t, dir, "old/SKILL.md", manifest("old"))
		g := start(t, dir)
		pass(2 * settle)
		for _, piece := range []string{"---\n", "---\nname: x", "---\nname: x\n---\n", "# nothing\n"} {
			g.write("old/SKILL.md", piece)
			g.write("new/SKILL.md", piece)
			pass(settle / 2)
			g.want("old")
			if len(g.registry.Snapshot().Errors()) > 0 {
				t.Error(g.registry.Snapshot().Errors())
			}
		}
		pass(settle)
		g.want("")
		if len(g.registry.Snapshot().Errors()) != 2 {
			t.Errorf("an error that stays is no error: %v", g.registry.Snapshot().Errors())
		}
		g.write("new/SKILL.md", manifest("new"))
		check(t, os.RemoveAll(filepath.Join(dir, "old")))
		g.tell(written, "old/SKILL.md")
		g.tell(written, "old")
		pass(2 * settle)
		g.want("new")
	})
}

func TestReplacedSkillStaysMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := folder(t)
		write(t, dir, "a/SKILL.md", manifest("a"))
		g := start(t, dir)
		pass(2 * settle)
		held := g.registry.Snapshot()
		check(t, os.RemoveAll(filepath.Join(dir, "a")))
		g.tell(written, "a")
		g.write("z/SKILL.md", manifest("z"))
		pass(settle / 2)
		g.write("a/other.md", "x")
		pass(settle / 2) // z is quiet, a is not
		g.tell(lost, "")
		g.want("a")
		g.write("a/SKILL.md", manifest("a"))
		pass(3 * settle)
		g.want("a z")
		if a, _ := g.registry.Snapshot().Find("a"); len(a.Files) != 2 {
			t.Errorf("%+v", a.Files)
		}
		if names(held) != "a" {
			t.Error("a snapshot that a reader holds has changed")
		}
	})
}

// TestBusyFolder: one folder that is always written to holds no other up.
func TestBusyFolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := folder(t)
		write(t, dir, "log/SKILL.md", manifest("log"))
		g := start(t, dir)
		pass(2 * settle)
		g.write("b/SKILL.md", manifest("b"))
		for i := range 4 * (patience + 1) {
			pass(settle / 4)
			g.write("log/out.txt", strings.Repeat("x", i))
		}
		g.want("b log")
		if k, _ := g.registry.Snapshot().Find("log"); len(k.Files) != 1 || len(g.registry.Snapshot().Pending()) != 1 {
			t.Errorf("the busy skill was taken: %v", k.Files)
		}
		pass(2 * settle)
		if k, _ := g.registry.Snapshot().Find("log"); len(k.Files) != 2 || len(g.registry.Snapshot().Pending()) != 0 {
			t.Errorf("the busy skill was not taken when it was quiet: %v", k.Files)
		}
	})
}

func TestWhatMatters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := folder(t)
		write(t, dir, "root/a/SKILL.md", manifest("a"))
		write(t, dir, "root/a/.git/HEAD", "x")
		root := filepath.Join(dir, "root")
		g := start(t, dir, skill.Root{Dir: root}, skill.Root{Dir: filepath.Join(dir, "x/y/later"), Optional: true})
		pass(5 * settle)
		if g.src.watches(filepath.Join(root, "a/.git")) || !g.src.watches(filepath.Join(root, "a")) || !g.src.watches(dir) {
			t.Errorf("watched: %v", g.src.added)
		}
		for _, tt := range []struct {
			kind    kind
			path    string
			rescans bool
		}{
			{written, "root/a/.git", false},
			{created, "root/node_modules", false},
			{written, "unrelated", false},
			{created, "later", false},
			{touched, "root/a/SKILL.md", true},
			{written, "root/a/SKILL.md", true},
			{written, "root", true},
			{created, "x", true},
			{lost, "", true},
		} {
			before := g.registry.Snapshot()
			g.tell(tt.kind, tt.path)
			pass(5 * settle)
			if (g.registry.Snapshot() != before) != tt.rescans {
				t.Errorf("%v of %s: rescan %v, want %v", tt.kind, tt.path, !tt.rescans, tt.rescans)
			}
		}
		g.write("x/y/later/b/SKILL.md", manifest("b"))
		g.tell(created, "x")
		pass(5 * settle)
		g.want("a b")
		if !g.src.watches(filepath.Join(dir, "x/y/later/b")) {
			t.Error("the root that has come is not watched")
		}
	})
}

func TestFailedRescan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := folder(t)
		write(t, dir, "root/a/SKILL.md", manifest("a"))
		g := start(t, dir, skill.Root{Dir: filepath.Join(dir, "root")})
		pass(2 * settle)
		check(t, os.Rename(filepath.Join(dir, "root"), filepath.Join(dir, "away")))
		g.tell(written, "root")
		pass(5 * settle)
		g.want("a")
		check(t, os.Rename(filepath.Join(dir, "away"), filepath.Join(dir, "root")))
		write(t, dir, "root/b/SKILL.md", manifest("b"))
		g.tell(created, "root")
		pass(5 * settle)
		g.want("a b")
		if !g.src.watches(filepath.Join(dir, "root/b")) {
			t.Error("what is in the new root is not watched")
		}
	})
}

// TestNewFolderIsReadAgain: what comes into a folder after it was read and
// before it is watched makes no event.
func TestNewFolderIsReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := folder(t)
		g := start(t, dir)
		pass(2 * settle)
		g.src.onAdd = func(at string) {
			if filepath.Base(at) == "group" {
				write(t, at, "b/SKILL.md", manifest("b"))
			}
		}
		check(t, os.Mkdir(filepath.Join(dir, "group"), 0o755))
		g.tell(touched, "x") // the event of the new folder itself was lost
		pass(5 * settle)
		g.want("b")
	})
}

func TestLostEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatcher(openRegistry(t), Options{Settle: settle}, newFake())
		w.note(event{kind: lost}, time.Now())
		if !w.writing("anywhere") || w.wait(time.Now()) != settle {
			t.Error("a folder is taken although its events may be lost")
		}
		pass(settle)
		if w.writing("anywhere") || w.wait(time.Now()) != 0 {
			t.Error("lost events are never forgotten")
		}
	})
}

// TestFallsBackToPolling: a host that watches no more folders, or none at all,
// costs time and no changes, and the log says so.
func TestFallsBackToPolling(t *testing.T) {
	full := newFake()
	full.full = true
	hosts := map[string]func() (source, error){
		"full":   func() (source, error) { return full, nil },
		"broken": func() (source, error) { return nil, errors.New("too many open files") },
	}
	for name, host := range hosts {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := folder(t)
				r := openRegistry(t, skill.Root{Dir: dir})
				var log bytes.Buffer
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() {
					o := Options{Settle: settle, Poll: settle, Logger: slog.New(slog.NewTextHandler(&log, nil))}
					done <- run(ctx, r, o, host)
				}()
				pass(5 * settle)
				write(t, dir, "a/SKILL.md", manifest("a"))
				pass(time.Minute)
				if names(r.Snapshot()) != "a" {
					t.Errorf("the skills are %q", names(r.Snapshot()))
				}
				cancel()
				check(t, <-done)
				if !strings.Contains(log.String(), "looked at from time to time") {
					t.Errorf("the log says %s", log.String())
				}
			})
		})
	}
}

func TestRunRefuses(t *testing.T) {
	for _, o := range []Options{{Settle: -1}, {Poll: -1}} {
		if err := Run(t.Context(), openRegistry(t), o); err == nil {
			t.Errorf("%+v: no error", o)
		}
	}
}

// TestNoHalfSkill: a writer writes skills piece by piece, with pauses shorter
// than the time to settle, and renames others into place. No snapshot at any
// moment holds files of two generations.
func TestNoHalfSkill(t *testing.T) {
	const generations = 150
	synctest.Test(t, func(t *testing.T) {
		dir := folder(t)
		random := rand.New(rand.NewPCG(1, 2))
		for _, name := range []string{"in-place", "renamed"} {
			for file, text := range pieces(name, 0) {
				write(t, dir, name+"/"+file, text)
			}
		}
		g := start(t, dir)
		pass(2 * settle)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for n := range generations {
				for file, text := range pieces("in-place", n+1) {
					g.write("in-place/"+file, text)
					<-time.After(time.Duration(random.Int64N(int64(settle))))
				}
				for file, text := range pieces("renamed", n+1) {
					g.write(fmt.Sprintf(".git/%d/%s", n, file), text)
				}
				check(t, os.RemoveAll(filepath.Join(dir, "renamed")))
				g.tell(written, "renamed")
				<-time.After(time.Duration(random.Int64N(int64(settle))))
				check(t, os.Rename(filepath.Join(dir, ".git", fmt.Sprint(n)), filepath.Join(dir, "renamed")))
				g.tell(created, "renamed")
				<-time.After(time.Duration(random.Int64N(int64(3 * settle))))
			}
		}()
		seen := map[string]bool{}
		for running := true; running; {
			select {
			case <-done:
				running = false
			case <-time.After(settle / 50):
			}
			check(t, judge(g.registry.Snapshot(), seen))
		}
		pass(3 * settle)
		check(t, judge(g.registry.Snapshot(), seen))
		for _, name := range []string{"in-place", "renamed"} {
			if !seen[fmt.Sprintf("%s %d", name, generations)] {
				t.Errorf("the last generation of %s did not appear", name)
			}
		}
		if len(seen) < generations/4 {
			t.Errorf("only %d generations were seen", len(seen))
		}
	})
}

// pieces are the files of one generation, in no order.
func pieces(name string, generation int) map[string]string {
	text := strings.Repeat("x", generation)
	return map[string]string{
		"SKILL.md":        fmt.Sprintf("---\nname: %s\ndescription: d\nmetadata: {generation: \"%d\"}\n---\n", name, generation),
		"a.md":            text,
		"references/b.md": text,
		"scripts/c.py":    text,
	}
}

// judge finds a skill that is missing or of two generations.
func judge(s *skill.Snapshot, seen map[string]bool) error {
	if names(s) != "in-place renamed" || len(s.Errors()) > 0 {
		return fmt.Errorf("the skills are %q, errors %v", names(s), s.Errors())
	}
	for _, k := range s.Skills() {
		generation := k.Metadata["generation"]
		seen[k.Name+" "+generation] = true
		for _, f := range k.Files {
			if f.Kind != skill.KindManifest && fmt.Sprint(f.Bytes) != generation {
				return fmt.Errorf("%s of generation %s has the file %s of generation %d", k.Name, generation, f.Path, f.Bytes)
			}
		}
		if len(k.Files) != 4 {
			return fmt.Errorf("%s of generation %s has the files %v", k.Name, generation, k.Files)
		}
	}
	return nil
}

func TestPolling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := folder(t)
		write(t, dir, "a/SKILL.md", manifest("a"))
		r := openRegistry(t, skill.Root{Dir: dir})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		defer func() {
			cancel()
			check(t, <-done)
		}()
		var last atomic.Pointer[skill.Snapshot]
		go func() {
			done <- Run(ctx, r, Options{Polling: true, Changed: last.Store})
		}()
		pass(time.Minute)
		for _, step := range []struct {
			do   func()
			want string
		}{
			{func() { write(t, dir, "b/SKILL.md", manifest("b")) }, "a b"},
			{func() { write(t, dir, "b/SKILL.md", manifest("bb")) }, "a b"},
			{func() { check(t, os.Rename(filepath.Join(dir, "b"), filepath.Join(dir, "c"))) }, "a c"},
			{func() { check(t, os.RemoveAll(filepath.Join(dir, "a"))) }, "c"},
			{func() { write(t, dir, "c/x/y/z.md", "z") }, "c"},
		} {
			before := last.Load()
			step.do()
			pass(time.Minute)
			if after := last.Load(); after == before || names(after) != step.want || names(r.Snapshot()) != step.want {
				t.Errorf("got %q, want %q", names(r.Snapshot()), step.want)
			}
		}
		// Half a minute of pieces, each two seconds after the last.
		for n := range 15 {
			write(t, dir, "d/SKILL.md", "---\n"+strings.Repeat("x", n))
			pass(DefaultPoll)
			if s := r.Snapshot(); names(s) != "c" || len(s.Errors()) > 0 {
				t.Fatalf("a half skill: %q, %v", names(s), s.Errors())
			}
		}
	})
}
