package responses

import (
	"strconv"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/llm/codec"
	"github.com/metier-run/metier/internal/turn"
	"github.com/metier-run/metier/internal/wire"
)

func seeds(f *testing.F) {
	for _, s := range []string{
		`{"model":"m","input":"hi"}`,
		`{"model":"m","input":[{"role":"developer","content":"a"},{"role":"user","content":[{"type":"input_text","text":"b"},{"type":"input_image","image_url":"data:,x"},{"type":"input_file","file_url":"u"}]},{"type":"reasoning","content":[{"text":"r"}]},{"role":"assistant","content":[{"type":"output_text","text":"c"},{"type":"refusal","refusal":"d"}]},{"type":"function_call","call_id":"1","name":"f","namespace":"n","arguments":"{}"},{"type":"custom_tool_call","call_id":"2","name":"g","input":"x"},{"type":"function_call_output","call_id":"1","output":[{"type":"input_text","text":"t"},{"type":"input_image","image_url":"u"}]},{"type":"custom_tool_call_output","call_id":"2","output":{"a":1}},{"type":"shell_call"}]}`,
		`{"model":"m","input":"hi","tools":[{"type":"function","name":"f","parameters":{}},{"type":"namespace","name":"n/é","tools":[{"type":"function","name":"f"},{"type":"custom","name":"g","format":{"type":"grammar","definition":"x"}}]},{"type":"x"}],"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"f"}]},"include":["x"],"text":{"format":{"type":"json_schema","name":"n","schema":{}}},"reasoning":{"effort":"low","summary":"auto"},"top_logprobs":3,"max_output_tokens":5,"metadata":{"a":"b"},"background":true,"generate":false}`,
		`{"model":"m","input":[{"content":"x"}],"instructions":"\ud83d","stream":true,"store":null}`,
	} {
		f.Add([]byte(s))
	}
}

// FuzzRequest: whatever a client sends is refused, or makes a request that both dialects
// take, and a response in which all that the client said is JSON still.
func FuzzRequest(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		bounds := codec.NewBounds(config.Values{})
		req, err := decode(body, bounds)
		if err != nil {
			return
		}
		a := &ask{request: req, id: "resp_x"}
		input, err := req.inputItems(bounds.Messages)
		if err != nil {
			return
		}
		for i, v := range input {
			item := a.named(v, i)
			if wire.Check(item) != nil {
				t.Fatalf("item %s of %s", item, v)
			}
			a.input = append(a.input, item)
		}
		in, err := req.compose(a.input, nil, bounds, true)
		if err != nil {
			return
		}
		for _, m := range in.Messages {
			if !m.Raw.Is(llm.OpenAIChat) || wire.Check(m.Raw.Bytes) != nil {
				t.Fatalf("message %s", m.Raw.Bytes)
			}
		}
		req.warnings()
		l := eventCheck{t: t}
		e := newAnswer(a, l.event)
		for i, p := range pieces(string(body)) {
			e.piece(1+i/7, &p)
		}
		s := e.end(turn.Outcome{Finish: llm.Finish(req.model)}, 1)
		e.last(s.status, a.object(s))
		if wire.Check(a.object(s)) != nil {
			t.Fatalf("%s", a.object(s))
		}
	})
}

// pieces are some that a stream could have, made of a text.
func pieces(text string) []llm.Piece {
	var out []llm.Piece
	for i := 0; i < len(text) && i < 64; i++ {
		part := text[i:min(i+3, len(text))]
		switch text[i] % 5 {
		case 0:
			out = append(out, llm.Piece{Text: part})
		case 1:
			out = append(out, llm.Piece{Reasoning: part})
		case 2:
			out = append(out, llm.Piece{Calls: []llm.CallDelta{{Index: int(text[i] % 3), ID: "c" + strconv.Itoa(i), Name: part}}})
		case 3:
			out = append(out, llm.Piece{Calls: []llm.CallDelta{{Index: int(text[i] % 3), Arguments: part}, {Index: 9, Name: "f", Arguments: "{}"}}})
		default:
			out = append(out, llm.Piece{Choice: int(text[i] % 2), Text: part})
		}
	}
	return out
}

// eventCheck: events are JSON, numbered by one, and items begin and end once.
type eventCheck struct {
	t     *testing.T
	n     int
	open  map[string]bool
	index int
}

func (c *eventCheck) event(kind string, event []byte) {
	v := jsontext.Value(event)
	if wire.Check(v) != nil || string(wire.Member(v, "sequence_number")) != strconv.Itoa(c.n) {
		c.t.Fatalf("event %d: %s", c.n, event)
	}
	c.n++
	id, _ := wire.String(wire.Member(wire.Member(v, "item"), "id"))
	switch kind {
	case "response.output_item.added":
		if c.open == nil {
			c.open = map[string]bool{}
		}
		if string(wire.Member(v, "output_index")) != strconv.Itoa(c.index) || c.open[id] {
			c.t.Fatalf("item %d: %s", c.index, event)
		}
		c.index++
		c.open[id] = true
	case "response.output_item.done":
		if !c.open[id] {
			c.t.Fatalf("done, and was not open: %s", event)
		}
		delete(c.open, id)
	case "response.completed", "response.incomplete":
		if len(c.open) > 0 {
			c.t.Fatalf("open at the end: %v", c.open)
		}
	}
}

// FuzzFrame: whatever comes over a WebSocket is refused, or is a body without what only a
// frame has.
func FuzzFrame(f *testing.F) {
	for _, s := range []string{
		`{"type":"response.create","stream_id":"a.B-_1","model":"m","input":"hi","stream":true,"background":false}`,
		`{"type":"response.create","stream_id":"a b"}`, `{"type":"x"}`, `[]`, ` {"type":"response.create"} `, `{"type":"response.create","stream_id":7}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		stream, body, err := readFrame(frame)
		if err != nil {
			return
		}
		if len(stream) > longestStream || wire.Check(body) != nil || jsontext.Value(body).Kind() != '{' {
			t.Fatalf("%q: stream %q, body %s", frame, stream, body)
		}
		for _, name := range []string{"type", "stream_id", "stream", "background"} {
			if wire.Member(body, name) != nil {
				t.Errorf("%q: the body has %q", frame, name)
			}
		}
		if event := []byte(`{"a":1}`); stream != "" && wire.Check(append(appendText(event[:len(event)-1], "stream_id", stream), '}')) != nil {
			t.Errorf("stream %q breaks an event", stream)
		}
	})
}
