package code

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/interpreter"
	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/tool"
	toolshell "github.com/metier-run/metier/internal/tool/shell"
	"github.com/metier-run/metier/internal/workspace"
	"github.com/metier-run/metier/internal/workspace/shell"
)

// played is a launcher that runs nothing.
type played struct {
	mu       sync.Mutex
	launches []sandbox.Launch
}

func (p *played) Start(_ context.Context, l sandbox.Launch) (sandbox.Job, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.launches = append(p.launches, l)
	return over{}, nil
}

func (p *played) Run(ctx context.Context, l sandbox.Launch) (sandbox.Result, error) {
	job, err := p.Start(ctx, l)
	if err != nil {
		return sandbox.Result{}, err
	}
	return job.Wait(), nil
}

func (p *played) Capabilities() sandbox.Capabilities { return sandbox.Capabilities{Backend: "played"} }

// over is a launch that has ended.
type over struct{}

func (over) Wait() sandbox.Result { return sandbox.Result{Ended: sandbox.Exited} }
func (over) Stop()                {}

type bench struct {
	*Service
	*played
	area string
}

func newBench(t *testing.T, change func(*Options)) bench {
	t.Helper()
	b := bench{played: &played{}, area: t.TempDir()}
	o := Options{
		Workspaces: workspace.Options{Area: b.area, Interpreters: interpreter.Options{Path: "/none"}}, Launcher: b.played,
		Shell: shell.Program{Dialect: shell.Bash, Argv: []string{"/bin/bash"}},
		Facts: toolshell.Facts{Dialect: "bash", System: "Linux", Backend: "played", Files: true, Timeout: 1, Longest: 1},
	}
	if change != nil {
		change(&o)
	}
	b.Service = New(o)
	return b
}

func (b bench) there(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(b.area, "*", "work", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range found {
		found[i] = filepath.Base(name)
	}
	return found
}

func (b bench) rooms(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir(b.area)
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func invoke(t *testing.T, s tool.Set, name, arguments string) journal.Result {
	t.Helper()
	r, err := s.Invoke(t.Context(), llm.Call{ID: "call_1", Name: name, Arguments: arguments}, tool.Env{Offer: s.Offer(journal.Path{})})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// others is a set of another room.
type others struct{ tool.Set }

func (others) Offer(journal.Path) journal.Offer {
	return journal.Offer{Declared: []llm.Declaration{{Name: "skills_read"}}}
}

func (others) Invoke(_ context.Context, c llm.Call, _ tool.Env) (journal.Result, error) {
	return journal.Result{Text: "others: " + c.Name}, nil
}
func (others) Ordered(string) bool          { return false }
func (others) Replay(string) journal.Replay { return journal.Again }

// TestOffer: the tools of skills stand first, ours behind them, always with the same
// bytes; and a call goes to whose tool it is, under the names that models have for it.
func TestOffer(t *testing.T) {
	b := newBench(t, nil)
	c := b.Open("", nil)
	defer func() { _ = c.Close(t.Context()) }()
	s := c.Tools(others{})
	var names []string
	for _, d := range s.Offer(journal.Path{}).Declared {
		names = append(names, d.Name)
	}
	if diff := cmp.Diff([]string{"skills_read", "read_file", "apply_patch", "write_file", "shell"}, names); diff != "" {
		t.Error(diff)
	}
	again := newBench(t, nil).Open("else", nil).Tools(others{}).Offer(journal.Path{})
	for i, d := range s.Offer(journal.Path{}).Declared {
		if e := again.Declared[i]; d.Description != e.Description || !bytes.Equal(d.Parameters, e.Parameters) {
			t.Errorf("%s has other words in another process", d.Name)
		}
	}
	for _, tt := range []struct {
		name    string
		ours    bool
		replay  journal.Replay
		ordered bool
	}{
		{"read_file", true, journal.Again, true},
		{"write_file", true, journal.Never, true},
		{"str_replace", true, journal.Never, true},
		{"shell", true, journal.Never, true},
		{"Bash", true, journal.Never, true},
		{"skills_read", false, journal.Again, false},
		{"no_such", false, journal.Again, false},
	} {
		r := invoke(t, s, tt.name, `{"command":"true"}`)
		if theirs := strings.HasPrefix(r.Text, "others: "); theirs == tt.ours || r.Workspace != tt.ours {
			t.Errorf("%s went to the wrong set: %+v", tt.name, r)
		}
		if s.Replay(tt.name) != tt.replay || s.Ordered(tt.name) != tt.ordered {
			t.Errorf("%s: replay %v, ordered %v", tt.name, s.Replay(tt.name), s.Ordered(tt.name))
		}
	}
	if r := invoke(t, c.Tools(nil), "skills_read", `{}`); r.OK || !strings.Contains(r.Text, "no tool is called") {
		t.Errorf("without skills: %+v", r)
	}
}

// TestWithoutFiles: a shell alone is the only tool.
func TestWithoutFiles(t *testing.T) {
	b := newBench(t, func(o *Options) { o.Facts.Files = false })
	c := b.Open("", nil)
	defer func() { _ = c.Close(t.Context()) }()
	s := c.Tools(nil)
	if declared := s.Offer(journal.Path{}).Declared; len(declared) != 1 || declared[0].Name != "shell" {
		t.Errorf("declared: %+v", declared)
	}
	if r := invoke(t, s, "write_file", `{"path":"a","content":"b"}`); r.OK || b.rooms(t) != 0 {
		t.Errorf("write_file: %+v, %d workspaces", r, b.rooms(t))
	}
	none := func(string) bool { return false }
	if f := b.FileTools(none); f.Read || f.Patch || f.Write || !f.Shell {
		t.Errorf("told: %+v", f)
	}
	if f := newBench(t, nil).FileTools(func(name string) bool { return name == "read_file" }); f.Read || !f.Patch || !f.Write || !f.Shell {
		t.Errorf("told beside a caller's read_file: %+v", f)
	}
}

// TestNothingUntilCalled: a conversation without a call has nothing on the disk, and
// decodes nothing that its messages bring (B1 6.4).
func TestNothingUntilCalled(t *testing.T) {
	b := newBench(t, nil)
	decoded := 0
	f := sent("a.txt", "", "one")
	f.Data = func() ([]byte, error) { decoded++; return []byte("one"), nil }
	files := b.Attachments()
	files.Add([]llm.Attachment{f})
	c := b.Open("", files)
	s := c.Tools(nil)
	s.Offer(journal.Path{})
	if b.rooms(t) != 0 || decoded != 0 {
		t.Errorf("%d workspaces, decoded %d times", b.rooms(t), decoded)
	}
	for range 2 {
		if r := invoke(t, s, "read_file", `{"path":"a.txt","offset":1}`); !r.OK || !strings.Contains(r.Text, "one") {
			t.Errorf("the file is %+v", r)
		}
	}
	if decoded != 1 {
		t.Errorf("decoded %d times", decoded)
	}
	if err := c.Close(t.Context()); err != nil || b.rooms(t) != 0 {
		t.Errorf("closed: %v, %d workspaces", err, b.rooms(t))
	}
}

// TestConversation: files come with later messages, too; what could not be put there is
// told once; a new beginning has none of it; and after the end nothing works.
func TestConversation(t *testing.T) {
	b := newBench(t, nil)
	c := b.Open("", nil)
	s := c.Tools(nil)
	if note := c.Attach([]llm.Attachment{sent("a.txt", "", "one")}); !strings.Contains(note, "a.txt (3 bytes)") {
		t.Errorf("note: %q", note)
	}
	invoke(t, s, "write_file", `{"path":"own.txt","content":"own"}`)
	broken := sent("broken.txt", "", "")
	broken.Data = func() ([]byte, error) { return nil, errors.New("its base64 is broken") }
	note := c.Attach([]llm.Attachment{sent("a.txt", "", "two"), broken, sent("own.txt", "", "not mine")})
	if !strings.Contains(note, "a-2.txt (3 bytes)") || !strings.Contains(note, "own-2.txt (8 bytes)") {
		t.Errorf("note: %q", note)
	}
	for i := range 2 {
		r := invoke(t, s, "shell", `{"command":"true"}`)
		if told := strings.HasPrefix(r.Text, "Note: the attached file broken.txt is not in the working directory: its base64 is broken.\n"); told != (i == 0) {
			t.Errorf("call %d: %q", i, r.Text)
		}
	}
	if diff := cmp.Diff([]string{"a-2.txt", "a.txt", "own-2.txt", "own.txt"}, b.there(t)); diff != "" {
		t.Error(diff)
	}
	if err := c.Reset(t.Context()); err != nil || b.rooms(t) != 0 {
		t.Errorf("reset: %v, %d workspaces", err, b.rooms(t))
	}
	invoke(t, s, "write_file", `{"path":"new.txt","content":"new"}`)
	if diff := cmp.Diff([]string{"new.txt"}, b.there(t)); diff != "" {
		t.Error(diff)
	}
	for range 2 {
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if _, err := s.Invoke(t.Context(), llm.Call{Name: "shell", Arguments: `{"command":"true"}`}, tool.Env{}); !errors.Is(err, errClosed) || b.rooms(t) != 0 {
		t.Errorf("after the end: %v, %d workspaces", err, b.rooms(t))
	}
}

// TestAttachedBeside: a file that is attached never takes the place of one that came
// to have its name; that it is not there is told.
func TestAttachedBeside(t *testing.T) {
	b := newBench(t, nil)
	c := b.Open("", nil)
	defer func() { _ = c.Close(t.Context()) }()
	s := c.Tools(nil)
	invoke(t, s, "shell", `{"command":"true"}`)
	c.Attach([]llm.Attachment{sent("a.txt", "", "attached")})
	made := filepath.Join(c.room.workspace.Work(), "a.txt")
	if err := os.WriteFile(made, []byte("made"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := invoke(t, s, "read_file", `{"path":"a.txt","offset":1}`)
	if !strings.HasPrefix(r.Text, "Note: the attached file a.txt is not in the working directory: ") || !strings.Contains(r.Text, "1 | made") || strings.Contains(r.Text, b.area) {
		t.Errorf("the result is %q", r.Text)
	}
}

// TestCommandRoom: a command may fill the workspace, or what the operator leaves a
// launch if that is less.
func TestCommandRoom(t *testing.T) {
	for _, tt := range []struct {
		set  map[config.Name]int64
		want int64
	}{
		{nil, 1 << 30},
		{map[config.Name]int64{config.WorkspaceBytes: 4 << 30}, 4 << 30},
		{map[config.Name]int64{config.WorkspaceBytes: 4 << 20}, 4 << 20},
		{map[config.Name]int64{config.WorkspaceBytes: 4 << 30, config.SandboxDisk: 1 << 20}, 1 << 20},
		{map[config.Name]int64{config.SandboxDisk: 2 << 30}, 1 << 30},
	} {
		b := newBench(t, func(o *Options) {
			for name, value := range tt.set {
				limits, err := o.Workspaces.Limits.Set(name, value)
				if err != nil {
					t.Fatal(err)
				}
				o.Workspaces.Limits = limits
			}
		})
		c := b.Open("", nil)
		invoke(t, c.Tools(nil), "shell", `{"command":"true"}`)
		if len(b.launches) != 1 || b.launches[0].Disk != tt.want || b.launches[0].Purpose != sandbox.Shell {
			t.Errorf("%v: %+v, want %d", tt.set, b.launches, tt.want)
		}
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// TestCodeAtOnce: calls, attachments and the end of a conversation may come at once.
func TestCodeAtOnce(t *testing.T) {
	b := newBench(t, nil)
	c := b.Open("", nil)
	s := c.Tools(nil)
	var calls sync.WaitGroup
	for range 8 {
		calls.Go(func() {
			c.Attach([]llm.Attachment{sent("a.txt", "", "one")})
			_, err := s.Invoke(t.Context(), llm.Call{Name: "shell", Arguments: `{"command":"true"}`}, tool.Env{})
			if err != nil && !errors.Is(err, errClosed) {
				t.Log(err) // the workspace went under it
			}
		})
	}
	if err := c.Close(t.Context()); err != nil {
		t.Error(err)
	}
	calls.Wait()
	if b.rooms(t) != 0 {
		t.Errorf("%d workspaces are left", b.rooms(t))
	}
}
