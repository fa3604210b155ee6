package openai_test

import (
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/continuity"
	"github.com/metier-run/metier/internal/store"
	"github.com/metier-run/metier/internal/store/storetest"
	"github.com/metier-run/metier/internal/wire"
)

func bounds() continuity.Bounds {
	return continuity.Bounds{Bytes: 1 << 20, Entries: 1 << 10, Age: time.Hour}
}

// memories makes what remembers, empty, for a test.
type memories func(t *testing.T) continuity.Store

func inMemory(*testing.T) continuity.Store { return continuity.NewMemory(bounds(), time.Now) }

// inDatabase remembers in a database that is opened again for each test.
func inDatabase(url func(*testing.T) string) memories {
	return func(t *testing.T) continuity.Store {
		t.Helper()
		db, err := store.Open(t.Context(), store.Options{
			URL: config.NewSecret(url(t)), Now: time.Now, NewID: rand.Text, Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		c := db.NewContinuity(bounds())
		t.Cleanup(func() {
			c.Close()
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		})
		return c
	}
}

// eachMemory runs a test with everything that remembers.
func eachMemory(t *testing.T, test func(t *testing.T, m memories)) {
	t.Run("memory", func(t *testing.T) { test(t, inMemory) })
	t.Run("sqlite", func(t *testing.T) {
		test(t, inDatabase(func(t *testing.T) string { return filepath.Join(t.TempDir(), "metier.db") }))
	})
	t.Run("postgres", func(t *testing.T) {
		test(t, inDatabase(func(t *testing.T) string { return storetest.Postgres(t) }))
	})
}

// reader is an upstream over HTTP with a rule of its own: it reads release-notes
// when nothing in the conversation shows that it has, and then answers. When the
// user asks for the weather it calls the caller's tool beside that.
type reader struct {
	mu     sync.Mutex
	bodies []string
}

func (u *reader) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	body := string(b)
	u.mu.Lock()
	u.bodies = append(u.bodies, body)
	n := len(u.bodies)
	u.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	last := wire.Array(wire.Member(jsontext.Value(b), "messages"))
	var tail string
	for last.Next() {
		tail = string(last.Value)
	}
	calls := []string{}
	if !strings.Contains(body, "ticket in square brackets") && strings.Contains(body, `"name":"skills_read"`) {
		calls = append(calls, fmt.Sprintf(`{"index":0,"id":"call_r%d","type":"function","function":{"name":"skills_read","arguments":"{\"skill\": \"release-notes\"}"}}`, n))
	}
	if strings.Contains(tail, "weather") && strings.Contains(body, "get_weather") {
		calls = append(calls, fmt.Sprintf(`{"index":%d,"id":"call_w%d","type":"function","function":{"name":"get_weather","arguments":"{\"city\":\"Oslo\"}"}}`, len(calls), n))
	}
	delta, finish := fmt.Sprintf(`{"role":"assistant","content":"answer %d. "}`, n), "stop"
	if len(calls) > 0 {
		delta, finish = `{"role":"assistant","content":"Let me look. ","tool_calls":[`+strings.Join(calls, ",")+`]}`, "tool_calls"
	}
	fmt.Fprintf(w, "data: {\"id\":\"c%d\",\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":null}]}\n\n", n, delta)
	fmt.Fprintf(w, "data: {\"id\":\"c%d\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":%q}]}\n\ndata: [DONE]\n\n", n, finish)
}

// sent lists what the upstream got, in order.
func (u *reader) sent() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.bodies)
}

// history is a client's side of a conversation, in one SDK's spelling.
type history struct {
	name string
	// assistant spells a message that the client got.
	assistant func(text string, calls string) string
}

func histories() []history {
	return []history{
		{"Go: content as it came", func(text, calls string) string {
			if calls == "" {
				return `{"content":` + quote(text) + `,"role":"assistant"}`
			}
			return `{"tool_calls":` + calls + `,"content":` + quote(text) + `,"role":"assistant"}`
		}},
		{"Node: refusal and null members", func(text, calls string) string {
			m := `{"role":"assistant","content":` + quote(text) + `,"refusal":null,"annotations":[]`
			if calls != "" {
				m += `,"tool_calls":` + calls
			}
			return m + `}`
		}},
		{"Python: model_dump with function_call and audio", func(text, calls string) string {
			m := `{"content":` + quote(text) + `,"refusal":null,"role":"assistant","annotations":null,"audio":null,"function_call":null,"tool_calls":`
			if calls == "" {
				return m + `null}`
			}
			return m + strings.ReplaceAll(calls, `{\"city\":\"Oslo\"}`, `{ \"city\" : \"Oslo\" }`) + `}`
		}},
		{"AI SDK: parts, trimmed, reasoning beside", func(text, calls string) string {
			m := `{"role":"assistant","reasoning_content":"made up","content":[{"type":"text","text":` + quote(strings.TrimSpace(text)) + `}]`
			if calls != "" {
				m += `,"tool_calls":` + calls
			}
			return m + `}`
		}},
	}
}

func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// talk is a client that holds its own history.
type talk struct {
	rig      *rig
	history  history
	messages []string
	more     string
	header   []string
}

func (c *talk) say(t *testing.T, message string) completion {
	t.Helper()
	c.messages = append(c.messages, message)
	body := `{"model":"m","messages":[` + strings.Join(c.messages, ",") + `]` + c.more + `}`
	res, answer := c.rig.post(t, body, c.header...)
	if res.StatusCode != http.StatusOK {
		t.Fatalf("%d %s", res.StatusCode, answer)
	}
	got := readBuffered(t, answer)
	calls := ""
	if len(got.Calls) > 0 {
		var all []string
		for _, x := range got.Calls {
			all = append(all, fmt.Sprintf(`{"id":%s,"type":"function","function":{"name":%s,"arguments":%s}}`, quote(x.ID), quote(x.Name), quote(x.Arguments)))
		}
		calls = "[" + strings.Join(all, ",") + "]"
	}
	c.messages = append(c.messages, c.history.assistant(got.Text, calls))
	return got
}

func user(text string) string { return `{"role":"user","content":` + quote(text) + `}` }

const weather = `,"tools":[` + weatherTool + `]`

// TestSixTurns: a skill that was read in the first turn is read once, in every
// SDK's spelling, and each turn's prompt begins with the bytes of the one before.
func TestSixTurns(t *testing.T) { eachMemory(t, sixTurns) }

func sixTurns(t *testing.T, remember memories) {
	for _, h := range histories() {
		t.Run(h.name, func(t *testing.T) {
			for _, remembering := range []bool{true, false} {
				up := &reader{}
				o := rigOptions{upstream: up}
				if remembering {
					o.continuity = remember(t)
				}
				c := &talk{rig: newRig(t, o), history: h}
				for i := range 6 {
					c.say(t, user(fmt.Sprintf("question %d", i+1)))
				}
				bodies := up.sent()
				want := 7 // six answers and one read
				if !remembering {
					want = 12
				}
				if len(bodies) != want {
					t.Errorf("remembering %v: %d rounds for six turns, want %d", remembering, len(bodies), want)
				}
				lost := 0
				for i := 1; i < len(bodies); i++ {
					lost += prefixLost(t, bodies[i-1], bodies[i])
				}
				t.Logf("remembering %v: %d bytes of prefix lost over %d rounds", remembering, lost, len(bodies))
				if remembering && lost != 0 {
					t.Errorf("%d bytes of the prompts' prefix were lost", lost)
				}
				if !remembering && lost == 0 {
					t.Error("the control lost nothing, so the test shows nothing")
				}
			}
		})
	}
}

// prefixLost is how many bytes of the messages that the upstream has seen it has
// to read again.
func prefixLost(t *testing.T, before, now string) int {
	t.Helper()
	a := strings.TrimSuffix(messagesOf(t, []byte(before)), "]")
	b := messagesOf(t, []byte(now))
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return len(a) - n
}

// TestMixedRoundGoesOn: after the caller's results come back, the host's own are
// beside them, in call order, and the calls are those that the model made.
func TestMixedRoundGoesOn(t *testing.T) { eachMemory(t, mixedRoundGoesOn) }

func mixedRoundGoesOn(t *testing.T, remember memories) {
	for _, h := range histories() {
		t.Run(h.name, func(t *testing.T) {
			up := &reader{}
			c := &talk{rig: newRig(t, rigOptions{upstream: up, continuity: remember(t)}), history: h, more: weather}
			got := c.say(t, user("the weather, please"))
			if len(got.Calls) != 1 || got.Calls[0].Name != "get_weather" {
				t.Fatalf("calls %+v", got.Calls)
			}
			c.say(t, `{"role":"tool","tool_call_id":`+quote(got.Calls[0].ID)+`,"content":"sunny"}`)
			bodies := up.sent()
			if len(bodies) != 2 {
				t.Fatalf("%d rounds, want 2: the skill was read already", len(bodies))
			}
			var roles []string
			for a := wire.Array(wire.Member(jsontext.Value(bodies[1]), "messages")); a.Next(); {
				role, _ := wire.String(wire.Member(a.Value, "role"))
				id, _ := wire.String(wire.Member(a.Value, "tool_call_id"))
				roles = append(roles, role+id)
			}
			if got := strings.Join(roles, " "); got != "system user assistant toolcall_r1 toolcall_w1" {
				t.Errorf("the second round was sent %s", got)
			}
			if !strings.Contains(bodies[1], `"arguments":"{\"skill\": \"release-notes\"}"`) {
				t.Error("the model's own bytes were lost")
			}
		})
	}
}

// TestForgets: a conversation is continued only in its own scope.
func TestForgets(t *testing.T) { eachMemory(t, forgets) }

func forgets(t *testing.T, remember memories) {
	for _, c := range []struct {
		name  string
		first talk
		then  func(*talk)
		reads bool // the skill is read again
	}{
		{"the same", talk{}, func(*talk) {}, false},
		{"another end user", talk{more: `,"user":"ann"`}, func(c *talk) { c.more = `,"user":"bob"` }, true},
		{"no end user any more", talk{more: `,"user":"ann"`}, func(c *talk) { c.more = "" }, true},
		{"a narrower selection", talk{more: `,"skills":["release-notes","meeting-minutes"]`}, func(c *talk) { c.more = `,"skills":["release-notes"]` }, true},
		{"discovery off", talk{more: `,"skills":["release-notes"]`}, func(c *talk) { c.more = `,"skills":["release-notes"],"skills_discovery":false` }, true},
		{"another key for the upstream", talk{header: []string{"Authorization", "Bearer ann"}}, func(c *talk) { c.header = []string{"Authorization", "Bearer bob"} }, true},
		{"the same key for the upstream", talk{header: []string{"Authorization", "Bearer ann"}}, func(*talk) {}, false},
		{"an edited first message", talk{}, func(c *talk) { c.messages[0] = user("question one, edited") }, true},
		{"an edited answer", talk{}, func(c *talk) { c.messages[1] = c.history.assistant("something else", "") }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			up := &reader{}
			client := c.first
			client.rig, client.history = newRig(t, rigOptions{upstream: up, continuity: remember(t)}), histories()[0]
			client.say(t, user("question 1"))
			before := len(up.sent())
			c.then(&client)
			client.say(t, user("question 2"))
			want := 1
			if c.reads {
				want = 2
			}
			if got := len(up.sent()) - before; got != want {
				t.Errorf("the second turn took %d rounds, want %d", got, want)
			}
			if log := client.rig.log.String(); strings.Contains(log, "bearer:") || !strings.Contains(log, "msg=turn") {
				t.Errorf("the log tells what a key is known by, or nothing: %s", log)
			}
		})
	}
}

// TestFork: two continuations of one conversation both know what it read.
func TestFork(t *testing.T) { eachMemory(t, fork) }

func fork(t *testing.T, remember memories) {
	up := &reader{}
	root := talk{rig: newRig(t, rigOptions{upstream: up, continuity: remember(t)}), history: histories()[1]}
	root.say(t, user("question 1"))
	for _, text := range []string{"left", "right"} {
		fork := root
		fork.messages = slices.Clone(root.messages)
		before := len(up.sent())
		fork.say(t, user(text))
		fork.say(t, user(text+" again"))
		if got := len(up.sent()) - before; got != 2 {
			t.Errorf("%s: two turns took %d rounds, want 2", text, got)
		}
	}
}
