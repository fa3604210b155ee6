package anthropic

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/turn"
	"github.com/metier-run/metier/internal/wire"
)

// order is what a stream of events must be, whatever an upstream says: one beginning, blocks
// one after the other and numbered densely, one end.
type order struct {
	t           *testing.T
	begun, over bool
	open        bool
	blocks      int
	text        string
	arguments   map[string]string // of calls, by their ids
	id          string            // of the open call
}

func (o *order) event(kind string, event []byte) {
	v := jsontext.Value(event)
	if !v.IsValid() {
		o.t.Fatalf("the event is no JSON: %s", event)
	}
	if name, _ := wire.String(wire.Member(v, "type")); name != kind {
		o.t.Fatalf("%s is %s", kind, event)
	}
	if kind == "ping" {
		return
	}
	if o.over || o.begun == (kind == "message_start") {
		o.t.Fatalf("%s is out of order", event)
	}
	index := numberOf(v)
	switch kind {
	case "message_start":
		o.begun = true
	case "content_block_start":
		if o.open || index != o.blocks {
			o.t.Fatalf("block %d begins as %s, another open: %v", o.blocks, event, o.open)
		}
		o.open = true
		o.blocks++
		content := wire.Member(v, "content_block")
		text, _ := wire.String(wire.Member(content, "text"))
		o.text += text
		o.id = ""
		if kind, _ := wire.String(wire.Member(content, "type")); kind == toolBlock {
			o.id, _ = wire.String(wire.Member(content, "id"))
			if _, twice := o.arguments[o.id]; twice {
				o.t.Fatalf("the call %s begins twice", o.id)
			}
			o.arguments[o.id] = ""
		}
	case "content_block_delta":
		if !o.open || index != o.blocks-1 {
			o.t.Fatalf("%s is of no open block", event)
		}
		delta := wire.Member(v, "delta")
		text, _ := wire.String(wire.Member(delta, "text"))
		o.text += text
		if more, ok := wire.String(wire.Member(delta, "partial_json")); ok && o.id != "" {
			o.arguments[o.id] += more
		}
	case "content_block_stop":
		if !o.open || index != o.blocks-1 {
			o.t.Fatalf("%s is of no open block", event)
		}
		o.open = false
	case "message_delta":
		if o.open {
			o.t.Fatal("the end comes inside a block")
		}
	case "message_stop":
		o.over = true
	}
}

// program makes pieces of bytes: neutral ones and events of an upstream of this dialect, in
// any order. It returns the pieces, each with its round, and what must be heard of them.
func program(data []byte) (pieces []llm.Piece, rounds []int, text string, arguments map[string]string) {
	arguments = map[string]string{}
	round, n := 1, 0
	ids := map[int]string{}
	raw := func(format string, args ...any) llm.Piece {
		return llm.Piece{Raw: llm.Raw{Dialect: llm.Anthropic, Bytes: fmt.Appendf(nil, format, args...)}}
	}
	for _, b := range data {
		at := int(b>>4) % 4
		var p llm.Piece
		switch n++; b & 15 {
		case 0:
			p = llm.Piece{Text: fmt.Sprint("t", n, " ")}
		case 1:
			p = llm.Piece{Reasoning: fmt.Sprint("r", n, " ")}
		case 2, 3, 4, 5:
			d := llm.CallDelta{Index: at, Arguments: []string{"", `{"a":`, `{}`, `1}`}[b&15-2]}
			if ids[at] == "" {
				ids[at] = fmt.Sprint("call", n)
				d.ID, d.Name = ids[at], "f"
			}
			arguments[ids[at]] += d.Arguments
			p = llm.Piece{Calls: []llm.CallDelta{d}}
		case 6:
			p = raw(`{"type":"content_block_start","index":%d,"content_block":{"type":"text","text":""}}`, at)
		case 7:
			p = raw(`{"type":"content_block_start","index":%d,"content_block":{"type":"thinking","thinking":"","signature":""}}`, at)
		case 8:
			p = raw(`{"type":"content_block_start","index":%d,"content_block":{"type":"server_tool_use","id":"s%d","name":"x","input":{}}}`, at, n)
		case 9:
			p = raw(`{"type":"content_block_delta","index":%d,"delta":{"type":"text_delta","text":"t%d "}}`, at, n)
			p.Text = fmt.Sprint("t", n, " ")
		case 10:
			p = raw(`{"type":"content_block_delta","index":%d,"delta":{"type":"signature_delta","signature":"s"}}`, at)
		case 11, 12:
			p = raw(`{"type":"content_block_stop","index":%d}`, at)
		case 13:
			p = raw(`{"type":"message_start","message":{"id":"up%d","content":5}}`, n)
		case 14:
			p = raw("{\"type\":\"message_delta\",\r\n\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":1}}")
		case 15:
			round++
			ids = map[int]string{}
			continue
		}
		text += p.Text
		pieces, rounds = append(pieces, p), append(rounds, round)
	}
	return pieces, rounds, text, arguments
}

// run encodes pieces for all who listen.
func run(pieces []llm.Piece, rounds []int, out turn.Outcome, listeners ...emitter) {
	e := newEncoder(head{ID: "msg_x", Model: "m", Thinking: true}, func(kind string, event []byte) {
		for _, l := range listeners {
			l(kind, event)
		}
	})
	for i := range pieces {
		e.piece(rounds[i], &pieces[i])
	}
	e.end(out)
}

// TestEncoder: what only pieces of an odd kind show.
func TestEncoder(t *testing.T) {
	raw := func(text string) llm.Piece {
		return llm.Piece{Raw: llm.Raw{Dialect: llm.Anthropic, Bytes: jsontext.Value(text)}}
	}
	for name, c := range map[string]struct {
		pieces []llm.Piece
		rounds []int
		out    turn.Outcome
		want   string
	}{
		"another alternative": {[]llm.Piece{{Text: "a"}, {Text: "b", Choice: 1}}, []int{1, 1}, turn.Outcome{Finish: llm.FinishStop, Rounds: 1}, `"content":[{"type":"text","text":"a"}],"stop_reason":"end_turn"`},
		"thoughts of two rounds": {
			[]llm.Piece{{Reasoning: "a"}, {Reasoning: "b"}, {Text: "x"}, {Text: "y"}},
			[]int{1, 2, 2, 3},
			turn.Outcome{Finish: llm.FinishStop, Rounds: 3},
			`"content":[{"type":"thinking","thinking":"a","signature":""},{"type":"thinking","thinking":"b","signature":""},{"type":"text","text":"xy"}]`,
		},
		"usage of two rounds": {
			[]llm.Piece{raw(`{"type":"message_delta","delta":{"stop_reason":"stop_sequence","stop_sequence":"END"},"usage":{"input_tokens":1,"output_tokens":1,"server_tool_use":{"n":1}}}`)},
			[]int{2},
			turn.Outcome{Finish: "stop_sequence", Rounds: 2, Usage: llm.Usage{Input: 10, Output: 5}},
			`"stop_reason":"stop_sequence","stop_sequence":"END","usage":{"input_tokens":10,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":5,"server_tool_use":{"n":1}}`,
		},
		"a call that came as no call": {
			[]llm.Piece{
				raw(`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"x","name":"skills_read","input":{}}}`),
				raw(`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{}"}}`),
				raw(`{"type":"content_block_stop","index":0}`),
			},
			[]int{1, 1, 1},
			turn.Outcome{Finish: llm.FinishStop, Rounds: 1},
			`"content":[]`,
		},
	} {
		var collected collector
		run(c.pieces, c.rounds, c.out, collected.event)
		if got := string(collected.whole(c.out)); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// FuzzEncoder: whatever comes in whatever order, the stream is well formed, and no text and
// no call is lost on its way.
func FuzzEncoder(f *testing.F) {
	f.Add([]byte{13, 6, 9, 11, 2, 3, 5, 14})
	f.Add([]byte{0, 15, 1, 15, 0, 2, 18, 19, 3, 21, 5, 0})
	f.Add([]byte{7, 10, 11, 22, 25, 27, 15, 13, 6, 9, 0, 11})
	f.Add([]byte{2, 18, 0, 4, 20, 8, 9, 12})
	f.Add([]byte{6, 9, 4, 9, 10, 11})
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<10 {
			return
		}
		pieces, rounds, text, arguments := program(data)
		o := &order{t: t, arguments: map[string]string{}}
		var c collector
		var stream frames
		run(pieces, rounds, turn.Outcome{Finish: llm.FinishStop, Rounds: 1}, o.event, c.event, stream.event)
		if !o.over {
			t.Fatal("there is no end")
		}
		if sorted(o.text) != sorted(text) {
			t.Errorf("text %q became %q", text, o.text)
		}
		for id, want := range arguments {
			// What stands behind an object is no part of it.
			whole := func(got string) bool { return got == want || strings.HasPrefix(want, got) && isObject([]byte(got)) }
			if got, there := o.arguments[id]; !there || !whole(got) {
				t.Errorf("the call %s has the arguments %q, want %q", id, got, want)
			}
		}
		if len(o.arguments) != len(arguments) {
			t.Errorf("calls %v, want %v", o.arguments, arguments)
		}
		message := jsontext.Value(c.whole(turn.Outcome{}))
		if !message.IsValid() {
			t.Errorf("the whole message is no JSON: %s", message)
		}
		if got := strings.Count(string(stream.take()), "\n\n"); got < o.blocks*2+3 {
			t.Errorf("%d frames for %d blocks", got, o.blocks)
		}
	})
}

// sorted are the words of a text; words that a call held back come later than they were said.
func sorted(text string) string {
	words := strings.Fields(text)
	slices.Sort(words)
	return strings.Join(words, " ")
}

// FuzzEvents: events of an upstream that is no friend make no stream that is not well formed.
func FuzzEvents(f *testing.F) {
	f.Add(`{"type":"content_block_start","index":0,"content_block":{"type":"text"}}` + "\n" + `{"type":"content_block_delta","index":0,"delta":{"type":"x","y":[1],"text":7}}`)
	f.Add(`{"type":"content_block_start","index":"0","content_block":[]}` + "\n" + `{"type":"content_block_delta","delta":{}}` + "\n" + `{"type":"content_block_stop"}`)
	f.Add(`{"type":"message_start","message":{"usage":[],"content":{}}}` + "\n" + `{"type":"message_delta","delta":[],"usage":7}` + "\n" + `{"type":"zzz"}`)
	f.Add(`{"type":"content_block_start","index":3,"content_block":{"type":"text","text":"a","citations":5}}` + "\n" + `{"type":"content_block_delta","index":3,"delta":{"type":"citations_delta","citation":{}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		var pieces []llm.Piece
		var rounds []int
		for line := range strings.SplitSeq(text, "\n") {
			if !wire.Lenient([]byte(line)) {
				continue // the provider refuses it
			}
			pieces = append(pieces, llm.Piece{Raw: llm.Raw{Dialect: llm.Anthropic, Bytes: jsontext.Value(line)}})
			rounds = append(rounds, 1)
		}
		o := &frame{t: t}
		var c collector
		run(pieces, rounds, turn.Outcome{Finish: llm.FinishStop, Rounds: 1}, o.event, c.event)
		if o.open || !o.over {
			t.Error("the stream has no end")
		}
		if message := c.whole(turn.Outcome{}); !wire.Lenient(message) {
			t.Errorf("the whole message is no JSON: %s", message)
		}
	})
}

// frame checks the order of events alone.
type frame struct {
	t          *testing.T
	open, over bool
	blocks     int
}

func (o *frame) event(kind string, event []byte) {
	if !wire.Lenient(event) {
		o.t.Fatalf("the event is no JSON: %s", event)
	}
	index := numberOf(event)
	switch kind {
	case "content_block_start":
		if o.open || index != o.blocks {
			o.t.Fatalf("block %d begins as %s", o.blocks, event)
		}
		o.open = true
		o.blocks++
	case "content_block_delta", "content_block_stop":
		if !o.open || index != o.blocks-1 {
			o.t.Fatalf("%s is of no open block", event)
		}
		o.open = kind != "content_block_stop"
	case "message_stop":
		o.over = true
	}
}
