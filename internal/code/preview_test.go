package code

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/tool"
)

// talking is a launcher whose commands say something, in pieces.
type talking struct {
	*played
	say func(l sandbox.Launch) []string
}

func (p talking) Start(ctx context.Context, l sandbox.Launch) (sandbox.Job, error) {
	for _, text := range p.say(l) {
		l.Watch(sandbox.Stderr, []byte(text))
	}
	return p.played.Start(ctx, l)
}

// TestPreview: who watches a command sees no path of this host, in whatever pieces the
// output comes, and all of it when the call ends.
func TestPreview(t *testing.T) {
	b := newBench(t, func(o *Options) {
		o.Launcher = talking{o.Launcher.(*played), func(l sandbox.Launch) []string {
			base := filepath.Dir(l.Dir)
			script := l.Argv[len(l.Argv)-1]
			return []string{
				"plain\n", base[:len(base)/2], base[len(base)/2:] + "/work/a.py\n" + script, ": line 57: foo: command not found\n",
				"no end " + l.Dir + "/b.txt",
			}
		}}
	})
	c := b.Open("", nil)
	defer func() { _ = c.Close(t.Context()) }()
	s := c.Tools(nil)
	var mu sync.Mutex
	var pieces []string
	_, err := s.Invoke(t.Context(), llm.Call{Name: "shell", Arguments: `{"command":"true"}`}, tool.Env{Offer: s.Offer(journal.Path{}), Progress: func(p []byte) {
		mu.Lock()
		defer mu.Unlock()
		pieces = append(pieces, string(p))
	}})
	if err != nil {
		t.Fatal(err)
	}
	want := "plain\na.py\nthe command: foo: command not found\nno end b.txt"
	if got := strings.Join(pieces, ""); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if len(pieces) == 0 || pieces[0] != "plain\n" {
		t.Errorf("a whole line waits: %q", pieces)
	}
}

// TestPreviewKeepsALine: a line without an end is given on when it gets long.
func TestPreviewKeepsALine(t *testing.T) {
	said := 0
	v := &preview{to: func(p []byte) { said += len(p) }, rewrite: func(text string) string { return text }}
	for range 100 {
		v.add([]byte(strings.Repeat("x", 100)))
		if len(v.rest) > longestHeld {
			t.Fatalf("%d bytes are kept", len(v.rest))
		}
	}
	v.add([]byte("50 %\r"))
	if len(v.rest) > 0 {
		t.Errorf("a line that is written anew waits: %q", v.rest)
	}
	v.flush()
	if said != 100*100+5 {
		t.Errorf("%d bytes were given on", said)
	}
}
