package anthropic_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/access"
	"github.com/metier-run/metier/internal/continuity"
	"github.com/metier-run/metier/internal/wire"
)

func inMemory() continuity.Store {
	return continuity.NewMemory(continuity.Bounds{Bytes: 1 << 20, Entries: 1 << 10, Age: time.Hour}, time.Now)
}

// reader is an upstream over HTTP with a rule of its own: it reads release-notes when
// nothing in the conversation shows that it has, and then answers. When the user asks for
// the weather it calls the caller's tool beside that. It speaks this dialect, or OpenAI
// Chat.
type reader struct {
	vendor bool
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
	tail := ""
	for c := wire.Array(wire.Member(jsontext.Value(b), "messages")); c.Next(); {
		tail = string(c.Value)
	}
	reads := !strings.Contains(body, "ticket in square brackets") && strings.Contains(body, `"name":"skills_read"`)
	asks := strings.Contains(tail, "weather") && strings.Contains(body, "get_weather")
	w.Header().Set("Content-Type", "text/event-stream")
	if u.vendor {
		u.speak(w, n, reads, asks)
		return
	}
	u.chat(w, n, reads, asks)
}

func (u *reader) speak(w io.Writer, n int, reads, asks bool) {
	events := round(began(10), thinks(0, fmt.Sprint("thought ", n), fmt.Sprint("sig", n)))
	if !reads && !asks {
		events = round(events, says(1, fmt.Sprintf("answer %d. ", n)), ended("end_turn", 10, 5))
	} else {
		events = round(events, says(1, "Let me look. "))
		at := 2
		if reads {
			events = round(events, calls(at, fmt.Sprint("toolu_r", n), "skills_read", `{"skill": `, `"release-notes"}`))
			at++
		}
		if asks {
			events = round(events, calls(at, fmt.Sprint("toolu_w", n), "get_weather", `{"city":`, `"Oslo"}`))
		}
		events = round(events, ended("tool_use", 10, 5))
	}
	_, _ = io.WriteString(w, framesOf(events))
}

func (u *reader) chat(w io.Writer, n int, reads, asks bool) {
	var all []string
	if reads {
		all = append(all, fmt.Sprintf(`{"index":0,"id":"toolu_r%d","type":"function","function":{"name":"skills_read","arguments":"{\"skill\": \"release-notes\"}"}}`, n))
	}
	if asks {
		all = append(all, fmt.Sprintf(`{"index":%d,"id":"toolu_w%d","type":"function","function":{"name":"get_weather","arguments":"{\"city\":\"Oslo\"}"}}`, len(all), n))
	}
	delta, finish := fmt.Sprintf(`{"role":"assistant","reasoning_content":"thought","content":"answer %d. "}`, n), "stop"
	if len(all) > 0 {
		delta, finish = `{"role":"assistant","reasoning_content":"thought","content":"Let me look. ","tool_calls":[`+strings.Join(all, ",")+`]}`, "tool_calls"
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

func quote(v any) string {
	b, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		panic(err)
	}
	return string(b)
}

// histories is how clients send back the content that they got.
func histories() map[string]func(content []any) string {
	each := func(change func(object) object) func([]any) string {
		return func(content []any) string {
			var out []any
			for _, b := range content {
				if b = change(b.(object)); b.(object) != nil {
					out = append(out, b)
				}
			}
			return quote(out)
		}
	}
	return map[string]func([]any) string{
		"as it came": func(content []any) string { return quote(content) },
		"Node: null members": each(func(b object) object {
			if b["type"] == "text" {
				return object{"citations": nil, "text": b["text"], "type": "text"}
			}
			return b
		}),
		"Go: known members only": each(func(b object) object {
			out := object{}
			for _, name := range []string{"id", "input", "name", "signature", "text", "thinking", "type"} {
				if v, ok := b[name]; ok {
					out[name] = v
				}
			}
			return out
		}),
		"AI SDK: no thoughts, trimmed at the end": func(content []any) string {
			var out []any
			for i, b := range content {
				b := b.(object)
				switch {
				case b["type"] == "thinking":
				case b["type"] == "text" && i == len(content)-1:
					out = append(out, object{"type": "text", "text": strings.TrimSpace(b["text"].(string))})
				default:
					out = append(out, b)
				}
			}
			return quote(out)
		},
		"Claude Code: a cache marker on the last block": func(content []any) string {
			out := slices.Clone(content)
			last := object{"cache_control": object{"type": "ephemeral"}}
			for name, v := range out[len(out)-1].(object) {
				last[name] = v
			}
			out[len(out)-1] = last
			return quote(out)
		},
		"one text where there is nothing else": func(content []any) string {
			m := object{"content": content}
			if len(blocksOf(m, "tool_use")) > 0 {
				return quote(content)
			}
			return quote(textOf(m))
		},
	}
}

// talk is a client that holds its own history.
type talk struct {
	rig      *rig
	history  func(content []any) string
	messages []string
	more     string
	header   []string
}

func user(text string) string { return `{"role":"user","content":` + quote(text) + `}` }

func (c *talk) say(t *testing.T, message string) object {
	t.Helper()
	c.messages = append(c.messages, message)
	res, answer := c.rig.post(t, `{"model":"m","max_tokens":1000,"messages":[`+strings.Join(c.messages, ",")+`]`+c.more+`}`, c.header...)
	if res.StatusCode != http.StatusOK {
		t.Fatalf("%d %s", res.StatusCode, answer)
	}
	m := buffered(t, answer)
	c.messages = append(c.messages, `{"role":"assistant","content":`+c.history(m["content"].([]any))+`}`)
	return m
}

// eachConversation runs a test with every spelling, both versions, and both kinds of
// upstream.
func eachConversation(t *testing.T, more string, test func(t *testing.T, c *talk, up *reader)) {
	for name, h := range histories() {
		for _, vendor := range []bool{false, true} {
			for _, v := range []string{"2023-06-01", "2026-10-21"} {
				t.Run(fmt.Sprintf("%s, vendor %v, %s", name, vendor, v), func(t *testing.T) {
					up := &reader{vendor: vendor}
					r := newRig(t, rigOptions{upstream: up, vendor: vendor, continuity: inMemory()})
					test(t, &talk{rig: r, history: h, more: thinking + more, header: []string{version, v}}, up)
				})
			}
		}
	}
}

// TestSixTurns: a skill that was read in the first turn is read once, and each turn's
// prompt begins with the bytes of the one before.
func TestSixTurns(t *testing.T) {
	eachConversation(t, "", func(t *testing.T, c *talk, up *reader) {
		for i := range 6 {
			c.say(t, user(fmt.Sprintf("question %d", i+1)))
		}
		bodies := up.sent()
		if len(bodies) != 7 { // six answers and one read
			t.Fatalf("%d rounds for six turns, want 7", len(bodies))
		}
		for i := 1; i < len(bodies); i++ {
			before := strings.TrimSuffix(messagesOf(t, bodies[i-1]), "]")
			if now := messagesOf(t, bodies[i]); !strings.HasPrefix(now, before) {
				t.Errorf("round %d does not begin with round %d:\n%s\n%s", i+1, i, before, now)
			}
		}
		if up.vendor && !strings.Contains(bodies[6], `"signature":"sig1"`) {
			t.Error("the signature of a hidden round was lost")
		}
	})
}

func messagesOf(t *testing.T, body string) string {
	t.Helper()
	m := wire.Member(jsontext.Value(body), "messages")
	if m == nil {
		t.Fatalf("no messages in %s", body)
	}
	return string(m)
}

// TestMixedRoundGoesOn: after the caller's result comes back, the host's own is beside it,
// in call order, and the calls are those that the model made.
func TestMixedRoundGoesOn(t *testing.T) {
	eachConversation(t, weather, func(t *testing.T, c *talk, up *reader) {
		m := c.say(t, user("the weather, please"))
		call := blocksOf(m, "tool_use")
		if len(call) != 1 || call[0]["name"] != "get_weather" {
			t.Fatalf("calls %v", call)
		}
		c.say(t, `{"role":"user","content":[{"type":"tool_result","tool_use_id":`+quote(call[0]["id"])+`,"content":"sunny"},{"type":"text","text":"Thanks."}]}`)
		bodies := up.sent()
		if len(bodies) != 2 {
			t.Fatalf("%d rounds, want 2: the skill was read already", len(bodies))
		}
		second := messagesOf(t, bodies[1])
		for _, id := range []string{"toolu_r1", "toolu_w1"} {
			if strings.Count(second, id) != 2 {
				t.Errorf("the call %s and its result are not both there: %s", id, second)
			}
		}
		if results := second[strings.LastIndex(second, "assistant"):]; strings.LastIndex(results, "toolu_r1") > strings.LastIndex(results, "toolu_w1") {
			t.Errorf("the results are not in the order of the calls: %s", results)
		}
		if strings.Count(second, "sunny") != 1 || strings.Count(second, "Thanks.") != 1 {
			t.Errorf("the caller's message is not there once: %s", second)
		}
	})
}

// TestForgets: a conversation is continued only in its own scope.
func TestForgets(t *testing.T) {
	claude := func(session string) string {
		return `,"metadata":{"user_id":` + quote(`{"device_id":"d","account_uuid":"","session_id":"`+session+`"}`) + `}`
	}
	for _, c := range []struct {
		name  string
		first talk
		then  func(*talk)
		reads bool // the skill is read again
	}{
		{"the same", talk{}, func(*talk) {}, false},
		{"another end user", talk{more: `,"metadata":{"user_id":"ann"}`}, func(c *talk) { c.more = `,"metadata":{"user_id":"bob"}` }, true},
		{"no end user any more", talk{more: `,"metadata":{"user_id":"ann"}`}, func(c *talk) { c.more = "" }, true},
		{"another session of the same user", talk{more: claude("one")}, func(c *talk) { c.more = claude("two") }, false},
		{"another session in the older form", talk{more: `,"metadata":{"user_id":"user_a_account_b_session_1"}`}, func(c *talk) { c.more = `,"metadata":{"user_id":"user_a_account_b_session_2"}` }, false},
		{"another device", talk{more: claude("one")}, func(c *talk) { c.more = strings.Replace(claude("one"), `\"d\"`, `\"e\"`, 1) }, true},
		{"another session by header", talk{header: []string{"X-Claude-Code-Session-Id", "one"}}, func(c *talk) { c.header = []string{"X-Claude-Code-Session-Id", "two"} }, false},
		{"a narrower selection", talk{more: `,"skills":["release-notes","meeting-minutes"]`}, func(c *talk) { c.more = `,"skills":["release-notes"]` }, true},
		{"another key for the upstream", talk{header: []string{"X-Api-Key", "ann"}}, func(c *talk) { c.header = []string{"X-Api-Key", "bob"} }, true},
		{"another bearer token for the upstream", talk{header: []string{"Authorization", "Bearer ann"}}, func(c *talk) { c.header = []string{"Authorization", "Bearer bob"} }, true},
		{"the same key in the other header", talk{header: []string{"X-Api-Key", "ann"}}, func(c *talk) { c.header = []string{"Authorization", "Bearer ann"} }, false},
		{"the other version", talk{header: []string{version, "2023-06-01"}}, func(c *talk) { c.header = nil }, false},
		{"an edited answer", talk{}, func(c *talk) { c.messages[1] = `{"role":"assistant","content":"something else"}` }, true},
	} {
		for _, vendor := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, vendor %v", c.name, vendor), func(t *testing.T) {
				up := &reader{vendor: vendor}
				client := c.first
				client.rig = newRig(t, rigOptions{upstream: up, vendor: vendor, continuity: inMemory()})
				client.history = histories()["as it came"]
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
			})
		}
	}
}

// TestKeyedContinuity: one key's hidden rounds are not another's.
func TestKeyedContinuity(t *testing.T) {
	up := &reader{vendor: true}
	o := rigOptions{upstream: up, vendor: true, continuity: inMemory()}
	c := &talk{rig: newRig(t, o), history: histories()["as it came"]}
	c.rig.as(t, o, access.Caller{ID: "ann", Tenant: access.DefaultTenant})
	c.say(t, user("question 1"))
	c.rig.as(t, o, access.Caller{ID: "bob", Tenant: access.DefaultTenant})
	before := len(up.sent())
	c.say(t, user("question 2"))
	if got := len(up.sent()) - before; got != 2 {
		t.Errorf("bob's turn took %d rounds, want 2: what ann's model read is hers", got)
	}
}
