package app_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/app"
	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/llm/scripted"
	"github.com/metier-run/metier/internal/wire"
)

// twoRounds reads a skill and answers. Both rounds wait until the test lets them go
// on, and tell that CACHED tokens of the prompt were in the slot.
const twoRounds = `A read and an answer, each held back.

-- 1.when --
lacks: "role":"tool"
-- 1.answer --
@stall 1s
200
Content-Type: text/event-stream
-- 1.body --
data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"skills_read","arguments":"{\"skill\":\"release-notes\",\"path\":\"SKILL.md\"}"}}]},"finish_reason":null}]}

data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}

data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":100,"completion_tokens":5,"total_tokens":105,"prompt_tokens_details":{"cached_tokens":CACHED}}}

data: [DONE]

-- 2.answer --
@stall 1s
200
Content-Type: text/event-stream
-- 2.body --
data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"Done."},"finish_reason":null}]}

data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}

data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":200,"completion_tokens":5,"total_tokens":205},"timings":{"cache_n":CACHED}}

data: [DONE]

`

// halted is a Metier before an upstream whose rounds wait for the test.
type halted struct {
	t   *testing.T
	url string
	h   *scripted.Handler
	// waits has what lets a round go on, one for each that has begun.
	waits   chan chan struct{}
	held    []chan struct{}
	clients sync.WaitGroup
}

func newHalted(t *testing.T, kind scripted.Kind, cached string, limits config.Values) *halted {
	t.Helper()
	e := &halted{t: t, waits: make(chan chan struct{})}
	var err error
	e.h, err = scripted.New(scripted.Options{
		Kind: kind, FS: fstest.MapFS{"m.txtar": {Data: []byte(strings.ReplaceAll(twoRounds, "CACHED", cached))}},
		Sleep: func(ctx context.Context, _ time.Duration) error {
			release := make(chan struct{})
			e.waits <- release
			select {
			case <-release:
			case <-ctx.Done():
			}
			return ctx.Err()
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	up := httptest.NewServer(e.h)
	t.Cleanup(up.Close)
	e.url = serve(t, app.Settings{Home: t.TempDir(), SkillsDirs: []string{"../../examples/skills"}, Upstream: app.Upstream{URL: up.URL}, Limits: limits})
	return e
}

// ask begins a turn with members of the body, and waits until its first round has
// begun.
func (e *halted) ask(members string) {
	e.clients.Go(func() {
		res, err := http.Post(e.url+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"m",`+members+`}`))
		if err != nil {
			e.t.Error(err)
			return
		}
		defer res.Body.Close()
		if b, err := io.ReadAll(res.Body); err != nil || res.StatusCode != http.StatusOK {
			e.t.Errorf("%d %v %s", res.StatusCode, err, b)
		}
	})
	e.hold()
}

// hold waits for a round to begin.
func (e *halted) hold() {
	select {
	case release := <-e.waits:
		e.held = append(e.held, release)
	case <-time.After(10 * time.Second):
		e.t.Fatal("no round has begun")
	}
}

// next lets the oldest round end, whose turn has another one.
func (e *halted) next() {
	close(e.held[0])
	e.held = e.held[1:]
	e.hold()
}

// finish lets all rounds end, which are their turns' last, and waits for the
// clients.
func (e *halted) finish() {
	for _, release := range e.held {
		close(release)
	}
	e.held = nil
	e.clients.Wait()
}

// got is, for each round upstream, who asked (the first letter of the first
// message) and the values of id_slot.
func (e *halted) got() []string {
	var got []string
	for _, r := range e.h.Requests() {
		line := ""
		for c := wire.Object(r.Body); c.Next(); {
			switch {
			case c.Is("id_slot"):
				line += "@" + string(c.Value)
			case c.Is("messages"):
				_, first, _ := strings.Cut(string(c.Value), `"content":"user `)
				line = first[:1] + line
			}
		}
		got = append(got, line)
	}
	e.h.Reset()
	return got
}

func (e *halted) want(rounds ...string) {
	e.t.Helper()
	if d := cmp.Diff(rounds, e.got()); d != "" {
		e.t.Error(d)
	}
}

func first(name string) string {
	return `"messages":[{"role":"user","content":"user ` + name + ` asks"}]`
}

func later(name string) string {
	return `"messages":[{"role":"user","content":"user ` + name + ` asks"},{"role":"assistant","content":"Done."},{"role":"user","content":"more"}]`
}

// TestSlotAffinity: rounds of interleaved turns come back to their slots, so do
// later turns, and what a client says itself is left alone.
func TestSlotAffinity(t *testing.T) {
	e := newHalted(t, scripted.LlamaCPP, "50", config.Values{})
	e.ask(first("a"))
	e.ask(first("b"))
	e.next() // a's second round
	e.next() // b's
	e.finish()
	e.want("a@0", "b@1", "a@0", "b@1")

	e.ask(first("c"))
	e.ask(later("a")) // its skill is put back: one round
	e.next()
	e.finish()
	e.want("c@2", "a@0", "c@2")

	e.ask(first("b") + `,"id_slot":3`)
	e.next()
	e.finish()
	e.want("b@3", "b@3")
}

// TestSlotsThatAreEmptied: an upstream that clears a slot when it begins with
// another one is left to choose by itself.
func TestSlotsThatAreEmptied(t *testing.T) {
	e := newHalted(t, scripted.LlamaCPP, "0", config.Values{})
	e.ask(first("a"))
	e.next()
	e.finish()
	e.ask(first("b"))
	e.next()
	e.finish()
	e.want("a@0", "a@0", "b", "b")
}

// TestNoSlots: no other upstream gets one, nor llama.cpp when that is turned off.
func TestNoSlots(t *testing.T) {
	off, err := config.Values{}.Set(config.UpstreamSlots, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range scripted.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			var limits config.Values
			if kind == scripted.LlamaCPP {
				limits = off
			}
			e := newHalted(t, kind, "50", limits)
			e.ask(first("a"))
			e.next()
			e.finish()
			e.want("a", "a")
		})
	}
}
