package responses_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/continuity"
	"github.com/metier-run/metier/internal/wire"
)

func remembering() continuity.Store {
	return continuity.NewMemory(continuity.Bounds{Bytes: 1 << 20, Entries: 1 << 10, Age: time.Hour}, time.Now)
}

// history is how a client sends an item of ours back.
type history struct {
	name string
	item func(v jsontext.Value) string // empty: not at all
}

func histories() []history {
	return []history{
		{"whole items", func(v jsontext.Value) string { return string(v) }},
		{"Codex: no ids, no status", func(v jsontext.Value) string {
			switch member(v, "type") {
			case "message":
				return `{"type":"message","role":"assistant","content":[{"type":"output_text","text":` + quote(itemText(v)) + `}]}`
			case "function_call":
				return string(wire.Remove(wire.Remove(v, "id"), "status"))
			}
			return string(wire.Remove(wire.Remove(v, "id"), "content"))
		}},
		{"plain texts, no reasoning, arguments written again", func(v jsontext.Value) string {
			switch member(v, "type") {
			case "message":
				return `{"role":"assistant","content":` + quote(itemText(v)) + `}`
			case "reasoning":
				return ""
			}
			return strings.ReplaceAll(string(v), `{\"city\":\"Oslo\"}`, `{ \"city\" : \"Oslo\" }`)
		}},
	}
}

// talk is a client that keeps the conversation itself.
type talk struct {
	rig     *rig
	history history
	items   []string
	stream  bool
}

func (c *talk) say(t *testing.T, item string) jsontext.Value {
	t.Helper()
	c.items = append(c.items, item)
	body := `{"model":"m","store":false,"input":[` + strings.Join(c.items, ",") + `]` + weather
	var response jsontext.Value
	if c.stream {
		_, answer := c.rig.post(t, body+streamed+`}`)
		response = listen(t, answer)
	} else {
		response = c.rig.made(t, body+`}`)
	}
	for a := wire.Array(wire.Member(response, "output")); a.Next(); {
		if back := c.history.item(a.Value); back != "" {
			c.items = append(c.items, back)
		}
	}
	return response
}

func user(text string) string { return `{"role":"user","content":` + quote(text) + `}` }

// TestSixTurns: a skill that was read in the first turn is read once, in every spelling, and
// each turn's prompt begins with the bytes of the one before.
func TestSixTurns(t *testing.T) {
	for _, h := range histories() {
		for _, stream := range []bool{false, true} {
			for _, keep := range []bool{true, false} {
				t.Run(fmt.Sprint(h.name, " stream ", stream, " remember ", keep), func(t *testing.T) {
					o := rigOptions{upstream: &reader{}}
					if keep {
						o.continuity = remembering()
					}
					c := &talk{rig: newRig(t, o), history: h, stream: stream}
					for i := range 6 {
						if got := c.say(t, user(fmt.Sprintf("question %d", i+1))); !strings.Contains(textOf(got), "answer") {
							t.Errorf("turn %d says %q", i, textOf(got))
						}
					}
					checkRounds(t, c.rig.up.sent(), keep)
				})
			}
		}
	}
}

func checkRounds(t *testing.T, bodies []string, remembered bool) {
	t.Helper()
	want, lost := 12, 0
	if remembered {
		want = 7 // six answers and one read
	}
	for i := 1; i < len(bodies); i++ {
		lost += prefixLost(bodies[i-1], bodies[i])
	}
	if len(bodies) != want || (lost == 0) != remembered {
		t.Errorf("%d rounds for six turns, want %d; %d bytes of the prompts' prefix lost", len(bodies), want, lost)
	}
}

// prefixLost is how many bytes of the messages that the upstream has seen it has to read
// again.
func prefixLost(before, now string) int {
	a := strings.TrimSuffix(string(wire.Member(jsontext.Value(before), "messages")), "]")
	b := string(wire.Member(jsontext.Value(now), "messages"))
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return len(a) - n
}

// TestSixTurnsKept: the same by previous_response_id, where the host keeps the conversation.
func TestSixTurnsKept(t *testing.T) {
	r := newRig(t, rigOptions{upstream: &reader{}, continuity: remembering()})
	previous := ""
	for i := range 6 {
		response := r.made(t, `{"model":"m","input":`+quote(fmt.Sprintf("question %d", i+1))+previous+weather+`}`)
		previous = `,"previous_response_id":` + quote(member(response, "id"))
	}
	checkRounds(t, r.up.sent(), true)
}

// TestMixedRoundGoesOn: after the caller's results come back, the host's own are beside
// them, in call order, and the calls are those that the model made.
func TestMixedRoundGoesOn(t *testing.T) {
	for _, h := range histories() {
		t.Run(h.name, func(t *testing.T) {
			c := &talk{rig: newRig(t, rigOptions{upstream: &reader{}, continuity: remembering()}), history: h}
			got := c.say(t, user("the weather, please"))
			if kinds(got) != "reasoning message function_call" {
				t.Fatalf("items %s", kinds(got))
			}
			c.say(t, `{"type":"function_call_output","call_id":"call_w1","output":"sunny"}`)
			bodies := c.rig.up.sent()
			if len(bodies) != 2 {
				t.Fatalf("%d rounds, want 2: the skill was read already", len(bodies))
			}
			if got := roles(bodies[1]); got != "system user assistant toolcall_r1 toolcall_w1" {
				t.Errorf("the second round was sent %s", got)
			}
			if !strings.Contains(bodies[1], `"arguments":"{\"skill\": \"release-notes\"}"`) {
				t.Error("the model's own bytes were lost")
			}
		})
	}
}

// roles are the roles of a request's messages, with the calls that they answer.
func roles(body string) string {
	var out []string
	for a := wire.Array(wire.Member(jsontext.Value(body), "messages")); a.Next(); {
		out = append(out, member(a.Value, "role")+strings.Trim(member(a.Value, "tool_call_id"), `"`))
	}
	return strings.Join(out, " ")
}
