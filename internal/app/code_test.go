package app_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/metier-run/metier/internal/access"
	"github.com/metier-run/metier/internal/app"
	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/launch"
	"github.com/metier-run/metier/internal/sandbox"
)

// total is a task that goes wrong first.
func total() []step {
	return []step{
		write("total.py", "def total(xs):\n    return sum(x)\n\n\nprint(total([1, 2, 3]))\n"),
		run("python3 total.py"),
		{"apply_patch", map[string]any{"patch": "*** Begin Patch\n*** Update File: total.py\n@@\n def total(xs):\n-    return sum(x)\n+    return sum(xs)\n*** End Patch\n"}},
		run("python3 total.py | tee out.txt"),
	}
}

// wantTotal checks the results of that task.
func wantTotal(t *testing.T, got []string) {
	t.Helper()
	if len(got) != 4 {
		t.Fatalf("there are %d results: %q", len(got), got)
	}
	for i, want := range []string{"Created total.py", "NameError: name 'x' is not defined", "total.py", "\n6"} {
		if !strings.Contains(got[i], want) {
			t.Errorf("result %d lacks %q:\n%s", i, want, got[i])
		}
	}
	if !strings.Contains(got[1], "exit 1 (") || !strings.Contains(got[3], "exit 0 (") {
		t.Errorf("the commands went otherwise:\n%s\n%s", got[1], got[3])
	}
}

// TestCodeTask: a model writes a file, runs it, reads the traceback, patches it and
// runs it again inside one request; the client sees an answer and no call of it.
func TestCodeTask(t *testing.T) {
	t.Parallel()
	mine, mineHash := key("mine")
	other, otherHash := key("other")
	c := newCoder(t, func(s *app.Settings) { s.Keys = []access.Key{mineHash, otherHash} }).able(t)
	status, body := fetch(t, c.request(t.Context(), t, task(total()...)), mine)
	if status != http.StatusOK || strings.Contains(body, "tool_calls") || strings.Count(body, `"finish_reason":"stop"`) != 1 {
		t.Errorf("the client got %d %s", status, body)
	}
	if n := len(c.bodies()); n != 5 {
		t.Errorf("the upstream was asked %d times", n)
	}
	got := c.do(t, mine, total()...)
	wantTotal(t, got)
	link := regexp.MustCompile(`\((/api/code/artifacts/[0-9a-f]{16}/out\.txt)\)`).FindStringSubmatch(got[3])
	if link == nil {
		t.Fatalf("there is no link to the file:\n%s", got[3])
	}
	c.fetches(t, link[1], mine, other)
}

// fetches gets a file that holds "6\n" as its owner, and as somebody else.
func (c coder) fetches(t *testing.T, link, mine, other string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.rig.url+link, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+mine)
	req.Header.Set("Range", "bytes=0-0")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	part := make([]byte, 8)
	n, _ := res.Body.Read(part)
	if res.StatusCode != http.StatusPartialContent || string(part[:n]) != "6" {
		t.Errorf("a part: %d %q", res.StatusCode, part[:n])
	}
	for name, want := range map[string]string{
		"Content-Disposition": `attachment; filename="out.txt"`, "X-Content-Type-Options": "nosniff", "Content-Range": "bytes 0-0/2",
	} {
		if got := res.Header.Get(name); got != want {
			t.Errorf("%s is %q", name, got)
		}
	}
	if kind := res.Header.Get("Content-Type"); strings.Contains(kind, "html") {
		t.Errorf("the file is %s", kind)
	}
	if status, body := c.get(t, link, mine); status != http.StatusOK || body != "6\n" {
		t.Errorf("its owner got %d %q", status, body)
	}
	if status, body := c.get(t, link, other); status != http.StatusNotFound || strings.Contains(body, "6\n") {
		t.Errorf("another caller got %d %q", status, body)
	}
	if status, _ := c.get(t, link, ""); status != http.StatusUnauthorized {
		t.Errorf("a caller without a key got %d", status)
	}
}

// TestCodeTaskStreamed: the same as a stream has one end, and no call of the host.
func TestCodeTaskStreamed(t *testing.T) {
	t.Parallel()
	c := newCoder(t, nil).able(t)
	res, body := c.post(t, `{"model":"m","stream":true,"messages":[{"role":"user","content":`+quoted(task(total()...))+`}]}`)
	if res.StatusCode != http.StatusOK || strings.Contains(body, "tool_calls") {
		t.Errorf("the client got %d %s", res.StatusCode, body)
	}
	for _, end := range []string{`"finish_reason":"stop"`, "data: [DONE]"} {
		if strings.Count(body, end) != 1 {
			t.Errorf("%s stands there %d times", end, strings.Count(body, end))
		}
	}
	if !strings.HasSuffix(body, "data: [DONE]\n\n") || !strings.Contains(body, "NameError") || !strings.Contains(body, "exit 0 (") {
		t.Errorf("the stream is %s", body)
	}
}

// TestWorkspaceGoes: a request's workspace is there while it is answered and gone
// then, also when the upstream breaks.
func TestWorkspaceGoes(t *testing.T) {
	w := newWorker(t)
	c := newFiles(t, w, nil)
	var seen []int
	w.before = func(_ context.Context, _ int) error {
		seen = append(seen, len(c.workspaces(t)))
		return nil
	}
	c.do(t, "", write("a.txt", "one"), write("b.txt", "two"))
	if want := []int{0, 1, 1}; fmt.Sprint(seen) != fmt.Sprint(want) {
		t.Errorf("workspaces by round: %v, want %v", seen, want)
	}
	if left := c.workspaces(t); len(left) > 0 {
		t.Errorf("left after the answer: %q", left)
	}
	w.before = func(_ context.Context, results int) error {
		if results > 0 {
			return errors.New("broken")
		}
		return nil
	}
	if res, body := c.post(t, `{"model":"m","messages":[{"role":"user","content":`+quoted(task(write("a.txt", "one")))+`}]}`); res.StatusCode < 500 {
		t.Errorf("a broken upstream: %d %s", res.StatusCode, body)
	}
	if left := c.workspaces(t); len(left) > 0 {
		t.Errorf("left after the failure: %q", left)
	}
}

// TestWorkspaceSweep: a start removes what a killed process left, and only that.
func TestWorkspaceSweep(t *testing.T) {
	home := t.TempDir()
	dead := filepath.Join(home, "workspaces", "process-deadbeef00", "abc", "work")
	if err := os.MkdirAll(dead, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dead, "left.txt"), []byte("left"), 0o400); err != nil {
		t.Fatal(err)
	}
	living := newFiles(t, newWorker(t), func(s *app.Settings) { s.Home = home })
	if _, err := os.Lstat(dead); err == nil {
		t.Error("the workspace of a dead process is there")
	}
	living.worker.before = func(_ context.Context, results int) error {
		if results == 1 { // a second process starts while the first one works
			newFiles(t, newWorker(t), func(s *app.Settings) { s.Home = home })
		}
		return nil
	}
	got := living.do(t, "", write("a.txt", "one\n"), step{"read_file", map[string]any{"path": "a.txt", "offset": 1}})
	if !strings.Contains(got[1], "1 | one") {
		t.Errorf("the workspace of a living process is gone: %q", got)
	}
}

// meet lets a number of callers go on when all have come.
type meet struct {
	mu    sync.Mutex
	come  int
	all   int
	ready chan struct{}
}

func (m *meet) wait(ctx context.Context) error {
	m.mu.Lock()
	if m.come++; m.come == m.all {
		close(m.ready)
	}
	m.mu.Unlock()
	select {
	case <-m.ready:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TestConversationsApart: many requests at once, each with a workspace that is alive
// while all others are, and none sees a file of another: neither beside its own, nor by
// path, nor by /proc.
func TestConversationsApart(t *testing.T) {
	t.Parallel()
	const all = 20
	w := newWorker(t)
	c := newCoderOf(t, w, func(s *app.Settings) {
		limits, err := s.Limits.Set(config.UpstreamRounds, 2*all)
		if err != nil {
			t.Fatal(err)
		}
		s.Limits = limits
	}).able(t)
	together := &meet{all: all, ready: make(chan struct{})}
	w.before = func(ctx context.Context, results int) error {
		if results == 1 { // all have written, nobody has looked
			return together.wait(ctx)
		}
		return nil
	}
	look := `ls -A; cat ./*.txt; cd "$HOME"; cat ../../*/work/*.txt ../../../*/*/work/*.txt /proc/[0-9]*/cwd/*.txt /proc/[0-9]*/root"$HOME"/*.txt 2>/dev/null | sort -u; ls -d ../../* | wc -l`
	var tasks sync.WaitGroup
	for i := range all {
		tasks.Go(func() {
			got := results(c.run(t, task(write(fmt.Sprintf("own-%02d.txt", i), fmt.Sprintf("canary-%02d\n", i)), run(look)), ""))
			if len(got) != 2 || !strings.Contains(got[1], fmt.Sprintf("own-%02d.txt\ncanary-%02d\n", i, i)) {
				t.Errorf("%d did not work: %q", i, got)
				return
			}
			for _, name := range regexp.MustCompile(`(own|canary)-\d\d`).FindAllString(got[1], -1) {
				if !strings.HasSuffix(name, fmt.Sprintf("-%02d", i)) {
					t.Errorf("%d sees %s:\n%s", i, name, got[1])
				}
			}
		})
	}
	tasks.Wait()
	if left := c.workspaces(t); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// TestLearnedPath: the path of a living workspace is of no use to anybody else,
// neither to a command nor to a file tool.
func TestLearnedPath(t *testing.T) {
	t.Parallel()
	w := newWorker(t)
	c := newCoderOf(t, w, nil).able(t)
	held, release := make(chan struct{}), make(chan struct{})
	var isHeld atomic.Bool
	w.before = func(ctx context.Context, results int) error {
		if results != 2 || isHeld.Swap(true) {
			return nil // the other one
		}
		close(held)
		select {
		case <-release:
		case <-ctx.Done():
		}
		return nil
	}
	var tasks sync.WaitGroup
	var first []string
	tasks.Go(func() {
		// A path of the host is rewritten in a result, so it is turned around.
		first = results(c.run(t, task(write("secret.txt", "canary-1"), run("pwd | rev; sleep 0")), ""))
	})
	<-held
	living := c.workspaces(t)
	if len(living) != 1 {
		t.Fatalf("workspaces: %q", living)
	}
	dir := filepath.Join(living[0], "work")
	got := c.do(t, "",
		run("cat '"+dir+"/secret.txt'; ls '"+dir+"'; echo over > '"+dir+"/secret.txt'; echo new > '"+dir+"/new.txt'; ln -s '"+dir+"' there; cat there/secret.txt"),
		step{"read_file", map[string]any{"path": dir + "/secret.txt"}}, step{"read_file", map[string]any{"path": "there/secret.txt"}},
		write(dir+"/more.txt", "x"), write("there/more.txt", "x"))
	for i, text := range got {
		if strings.Contains(text, "canary") || strings.Contains(text, "Created") {
			t.Errorf("result %d:\n%s", i, text)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("in the first workspace: %v, %v", entries, err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "secret.txt")); string(text) != "canary-1" {
		t.Errorf("the file holds %q, %v", text, err)
	}
	close(release)
	tasks.Wait()
	if len(first) != 2 || !strings.Contains(first[1], reversed(dir)) {
		t.Errorf("the first conversation did not learn %s: %q", dir, first)
	}
}

func reversed(s string) string {
	b := []byte(s)
	for i, j := 0, len(b)-1; i < j; i, j = i+1, j-1 {
		b[i], b[j] = b[j], b[i]
	}
	return string(b)
}

// brokenHost is a host on which nothing confines.
func brokenHost() []launch.Finder {
	return []launch.Finder{{Name: "native", Tier: sandbox.TierFull, Find: func(context.Context, launch.Options) sandbox.Finding {
		return sandbox.Finding{Name: "native", Problem: &sandbox.Unavailable{Backend: "native", Step: "make namespaces", Err: errors.New("not permitted"), Fix: "do this"}}
	}}}
}

// TestCodeRefused: where nothing confines as asked no command runs, and the model and
// the operator get the reason. Files are the host's own work, and go on.
func TestCodeRefused(t *testing.T) {
	for name, change := range map[string]func(*app.Settings){
		"nothing here":       func(s *app.Settings) { s.Scripts.Finders = brokenHost() },
		"bare is not enough": func(s *app.Settings) { s.Scripts.Finders = append(brokenHost(), bare()...) },
		"no limited network": func(s *app.Settings) {
			s.Scripts.Finders, s.Scripts.Policy = bare(), sandbox.Policy{Mode: sandbox.Off}
			s.Code.Network = launch.Network{Domains: []string{"a.example"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCoder(t, change)
			confinement, on := c.app.CodeConfinement()
			if !on || confinement.Problem == nil {
				t.Fatalf("confinement is %+v, %v", confinement, on)
			}
			got := c.do(t, "", run("echo ran > ran.txt"), write("a.py", "print(1\n"),
				step{"apply_patch", map[string]any{"patch": "*** Begin Patch\n*** Update File: a.py\n@@\n-print(1\n+print(2)\n*** End Patch\n"}},
				step{"read_file", map[string]any{"path": "a.py", "offset": 1}}, step{"read_file", map[string]any{"path": "ran.txt"}})
			if !strings.Contains(got[0], "Commands cannot run on this host") || !strings.Contains(got[0], confinement.Problem.Error()) {
				t.Errorf("the problem is %v, the result:\n%s", confinement.Problem, got[0])
			}
			if sent := string(c.bodies()[0]); !strings.Contains(sent, "sandbox none, so every command is refused") {
				t.Errorf("the model is told %s", sent)
			}
			if !strings.Contains(got[1], "Created a.py") || !strings.Contains(got[3], "1 | print(2)") || !strings.Contains(got[4], "There is no file ran.txt") {
				t.Errorf("the files:\n%s", strings.Join(got[1:], between))
			}
		})
	}
}

// TestCodeUnconfined: only by the operator's word, and then each result names what is
// not confined. Scripts keep their own rule.
func TestCodeUnconfined(t *testing.T) {
	c := newCoder(t, func(s *app.Settings) { s.Scripts.Finders, s.Code.Unconfined = bare(), true })
	confinement, _ := c.app.CodeConfinement()
	if len(confinement.Gaps()) == 0 {
		t.Fatal("no gaps are named")
	}
	for i, text := range c.do(t, "", run("echo one"), run("echo two; false")) {
		if !strings.Contains(text, []string{"one", "two"}[i]) || !strings.Contains(text, "Not confined on this host: "+strings.Join(confinement.Gaps(), "; ")) {
			t.Errorf("the result is:\n%s", text)
		}
	}
}

// TestWorkspaceLimit: neither a file tool nor a command makes a workspace larger than
// it may be, whatever a launch may write elsewhere.
func TestWorkspaceLimit(t *testing.T) {
	t.Parallel()
	c := newCoder(t, func(s *app.Settings) {
		limits, err := s.Limits.Set(config.WorkspaceBytes, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		s.Limits = limits
	}).able(t)
	half := strings.Repeat("0123456789abcde\n", 40<<10) // 640 KiB
	got := c.do(t, "", write("one.txt", half), write("two.txt", half), run("ls; cp one.txt three.txt; sleep 20; echo not stopped"), run("rm -f three.txt; ls"), write("four.txt", "x"))
	for i, want := range []string{"Created one.txt", "so there is no room for", "wrote more to the disk than a workspace may hold", "exit 0", "Created four.txt"} {
		if !strings.Contains(got[i], want) {
			t.Errorf("result %d lacks %q: %.600s", i, want, got[i])
		}
	}
	if strings.Contains(got[2], "two.txt") || strings.Contains(got[2], "not stopped") {
		t.Errorf("the command: %.600s", got[2])
	}
}
