package web

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/turn"
)

// TestSeconds: each phase of each call has a clock of its own; names of tools are those
// that are declared, and any bytes make a frame.
func TestSeconds(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	f := newFrames("s", func() time.Time { return now })
	a, b := llm.Call{ID: "a", Name: "bash"}, llm.Call{ID: "b", Name: "run_skill"}
	sent := func(name, text string) llm.Call { return llm.Call{Name: name, Arguments: text} }
	var got string
	for _, s := range []struct {
		after  time.Duration
		signal turn.Signal
	}{
		{0, turn.Signal{Kind: turn.RoundStarted, Round: 1}},
		{0, turn.Signal{Kind: turn.CallWriting, Round: 1, Call: sent("bash", ""), Text: "{"}},
		{1500 * time.Millisecond, turn.Signal{Kind: turn.CallWriting, Round: 1, Call: sent("bash", ""), Text: "}"}},
		{time.Second, turn.Signal{Kind: turn.RoundEnded, Round: 1}},
		{0, turn.Signal{Kind: turn.CallStarted, Round: 1, Call: a}},
		{time.Second, turn.Signal{Kind: turn.CallStarted, Round: 1, Call: b}},
		{time.Second, turn.Signal{Kind: turn.CallRunning, Round: 1, Call: a, Text: "a\xff\n"}},
		{time.Second, turn.Signal{Kind: turn.CallEnded, Round: 1, Call: b, Result: journal.Result{Skill: "pdf", Detail: "scripts/x.py"}}},
		{0, turn.Signal{Kind: turn.CallEnded, Round: 1, Call: a, Result: journal.Result{OK: true, Detail: "ls", Files: []journal.File{{Name: "o", Bytes: 2, URL: "/u"}}}}},
		{time.Second, turn.Signal{Kind: turn.CallWriting, Round: 2, Call: sent("bash", ""), Text: "{}"}},
	} {
		now = now.Add(s.after)
		got += string(f.signal(s.signal))
	}
	now = now.Add(500 * time.Millisecond)
	got += string(f.end(turn.Outcome{Reason: turn.Answered, Usage: llm.Usage{Input: 3, Cached: 1, Output: 20}}, nil))
	want := `data: {"tool_progress":"writing","tool":"shell","text":"{","seconds":0,"detail":"","agents":null}

data: {"tool_progress":"writing","tool":"shell","text":"}","seconds":1.5,"detail":"","agents":null}

data: {"tool_progress":"running","tool":"shell","text":"","seconds":0,"detail":"","agents":null}

data: {"tool_progress":"running","tool":"skills_run","text":"","seconds":0,"detail":"","agents":null}

data: {"tool_progress":"running","tool":"shell","text":"a` + "\ufffd" + `\n","seconds":2,"detail":"","agents":null}

data: {"tool_progress":"finished","tool":"skills_run","text":"","seconds":2,"detail":"scripts/x.py","agents":null}

data: {"skill_step":"skills_run","agent_id":"/root","skill":"pdf","detail":"scripts/x.py","ok":false,"round":1}

data: {"tool_progress":"finished","tool":"shell","text":"","seconds":3,"detail":"ls","agents":null,"files":[{"name":"o","bytes":2,"url":"/u"}]}

data: {"skill_step":"shell","agent_id":"/root","skill":"","detail":"ls","ok":true,"round":1,"files":[{"name":"o","bytes":2,"url":"/u"}]}

data: {"tool_progress":"writing","tool":"shell","text":"{}","seconds":0,"detail":"","agents":null}

data: {"done":true,"tokenCount":20,"elapsed":7,"tokPerSec":2.9,"aborted":false,"truncated":false,"error":null,"sessionId":"s","promptTokens":3,"kvReusedTokens":1,"kvReusePercent":33.3}

`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
