package rescue

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/llm"
)

const marked1 = `<tool_call>{"name": "get_weather", "arguments": {"city":"Oslo"}}</tool_call>`

// rawText is a piece as a provider with a wire form sends it.
func rawText(text string) llm.Piece {
	return llm.Piece{Text: text, Raw: llm.Raw{Dialect: llm.OpenAIChat, Bytes: []byte(`{"t":1}`)}}
}

func stop(f llm.Finish) llm.Piece { return llm.Piece{Finish: f} }

// heard is what comes out of a stream.
type heard struct {
	text   string
	raw    int // pieces with wire form
	deltas []llm.CallDelta
	finish []llm.Finish
	reply  *llm.Reply
	err    error
}

func listen(t *testing.T, p llm.Provider, r *llm.Request) heard {
	t.Helper()
	var h heard
	for piece, err := range Wrap(p, Options{MaxHeld: testHold, NewID: ids()}).Stream(t.Context(), r) {
		if err != nil {
			h.err = err
			break
		}
		if piece.Choice != 0 {
			continue
		}
		h.text += piece.Text
		h.deltas = append(h.deltas, piece.Calls...)
		if len(piece.Raw.Bytes) > 0 {
			h.raw++
		}
		if piece.Finish != "" {
			h.finish = append(h.finish, piece.Finish)
		}
		if piece.Reply != nil {
			h.reply = piece.Reply
		}
	}
	return h
}

func script(pieces ...llm.Piece) *llm.Script {
	return &llm.Script{Rounds: []llm.ScriptedRound{{Pieces: pieces}}}
}

func asking() *llm.Request { return &llm.Request{Tools: declared()} }

func TestProviderRescues(t *testing.T) {
	own := llm.Piece{Calls: []llm.CallDelta{{Index: 0, ID: "own", Name: "get_time", Arguments: "{}"}}}
	h := listen(t, script(rawText("Let me "), rawText("look.<tool"), rawText(marked1[5:]), own, stop(llm.FinishStop)), asking())
	if h.text != "Let me look." {
		t.Errorf("text: got %q", h.text)
	}
	if h.raw != 1 {
		t.Errorf("got %d pieces with wire form, want the first alone", h.raw)
	}
	want := []llm.CallDelta{{Index: 0, ID: "own", Name: "get_time", Arguments: "{}"}, {Index: 1, ID: "call_1", Name: "get_weather", Arguments: `{"city":"Oslo"}`}}
	if d := cmp.Diff(want, h.deltas); d != "" {
		t.Errorf("deltas (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]llm.Finish{llm.FinishCalls}, h.finish); d != "" {
		t.Errorf("finish (-want +got):\n%s", d)
	}
	calls := []llm.Call{{ID: "own", Name: "get_time", Arguments: "{}"}, {ID: "call_1", Name: "get_weather", Arguments: `{"city":"Oslo"}`, Rescued: true}}
	if d := cmp.Diff(calls, h.reply.Message.Calls); d != "" {
		t.Errorf("calls of the reply (-want +got):\n%s", d)
	}
	if h.reply.Message.Text() != "Let me look." || h.reply.Finish != llm.FinishCalls {
		t.Errorf("reply: got text %q, finish %q", h.reply.Message.Text(), h.reply.Finish)
	}
}

// whole is a provider whose one reply it holds, wire form and all.
type whole struct {
	*llm.Script
	pieces []llm.Piece
}

func (w whole) Stream(context.Context, *llm.Request) iter.Seq2[llm.Piece, error] {
	return func(yield func(llm.Piece, error) bool) {
		for _, p := range w.pieces {
			if !yield(p, nil) {
				return
			}
		}
	}
}

func TestProviderKeepsTheModelsBytes(t *testing.T) {
	raw := llm.Raw{Dialect: llm.OpenAIChat, Bytes: []byte(`{"role":"assistant","content":"…"}`)}
	text := "<think>Hm.</think>\n" + `{"name": "get_time", "arguments": {}}`
	reply := llm.Reply{Finish: llm.FinishStop, Message: llm.Message{Role: llm.Assistant, Raw: raw, Parts: []llm.Part{
		{Kind: llm.Reasoning, Text: "r"}, {Kind: llm.Text, Text: text[:9]}, {Kind: llm.Text, Text: text[9:]},
	}}}
	usage := &llm.Usage{Total: 7}
	h := listen(t, whole{pieces: []llm.Piece{{Text: text[:30]}, {Text: text[30:]}, {Usage: usage, Reply: &reply}}}, asking())
	m := h.reply.Message
	if string(m.Raw.Bytes) != string(raw.Bytes) {
		t.Errorf("raw: got %s", m.Raw.Bytes)
	}
	want := []llm.Part{{Kind: llm.Reasoning, Text: "r"}, {Kind: llm.Text, Text: "<think>Hm.</think>"}}
	if d := cmp.Diff(want, m.Parts); d != "" {
		t.Errorf("parts (-want +got):\n%s", d)
	}
	if h.text != "<think>Hm.</think>" || len(m.Calls) != 1 || h.reply.Finish != llm.FinishCalls {
		t.Errorf("got text %q, calls %+v, finish %q", h.text, m.Calls, h.reply.Finish)
	}
	if len(reply.Message.Calls) != 0 || len(reply.Message.Parts) != 3 {
		t.Error("the wrapped provider's own reply was changed")
	}
}

func TestProviderLeavesAlone(t *testing.T) {
	none := asking()
	none.Options.Choice = llm.ChoiceNone
	for name, r := range map[string]*llm.Request{"no tools": {}, "calls forbidden": none} {
		t.Run(name, func(t *testing.T) {
			h := listen(t, script(rawText(marked1), stop(llm.FinishStop)), r)
			if h.text != marked1 || h.raw != 1 || len(h.reply.Message.Calls) != 0 {
				t.Errorf("got %q, %d pieces with wire form, calls %+v", h.text, h.raw, h.reply.Message.Calls)
			}
		})
	}
	t.Run("the host's own prohibition", func(t *testing.T) {
		r := asking()
		r.Options.Choice, r.Choice = llm.ChoiceNone, llm.ChoiceNone
		if h := listen(t, script(rawText(marked1), stop(llm.FinishStop)), r); len(h.reply.Message.Calls) != 1 {
			t.Errorf("got %+v, want the call, so that the machine can say so", h.reply.Message.Calls)
		}
	})
	t.Run("turned off for the model", func(t *testing.T) {
		r := asking()
		r.Model = "quiet"
		off := Options{MaxHeld: testHold, NewID: ids(), Off: func(model string) bool { return model == "quiet" }}
		var text string
		for p, err := range Wrap(script(rawText(marked1), stop(llm.FinishStop)), off).Stream(t.Context(), r) {
			if err != nil || len(p.Calls) > 0 {
				t.Errorf("got %+v, %v", p, err)
			}
			text += p.Text
		}
		if text != marked1 {
			t.Errorf("got %q", text)
		}
	})
	t.Run("structured", func(t *testing.T) {
		r := asking()
		r.Options.Structured = true
		text := `{"name": "get_time", "arguments": {}}`
		if h := listen(t, script(rawText(text), stop(llm.FinishStop)), r); h.text != text || len(h.deltas) != 0 {
			t.Errorf("got %q and %+v", h.text, h.deltas)
		}
	})
	t.Run("other choices", func(t *testing.T) {
		other := rawText(marked1)
		other.Choice = 1
		h := listen(t, script(other, rawText("Hello."), stop(llm.FinishStop)), asking())
		if h.text != "Hello." || h.raw != 1 || len(h.deltas) != 0 || h.finish[0] != llm.FinishStop {
			t.Errorf("got %+v", h)
		}
	})
}

func TestProviderCutReply(t *testing.T) {
	cut := `<tool_call>{"name": "write_file", "arguments": {"content": "half`
	h := listen(t, script(rawText(marked1+cut), stop(llm.FinishLength)), asking())
	if h.text != cut || len(h.reply.Message.Calls) != 1 || h.reply.Finish != llm.FinishLength || h.finish[0] != llm.FinishLength {
		t.Errorf("got text %q, calls %+v, finish %v %v", h.text, h.reply.Message.Calls, h.finish, h.reply.Finish)
	}
	if h.reply.Message.Text() != cut {
		t.Errorf("reply: got text %q, want %q", h.reply.Message.Text(), cut)
	}
}

func TestProviderDoubledCall(t *testing.T) {
	own := llm.Piece{Calls: []llm.CallDelta{{Index: 0, ID: "own", Name: "get_weather", Arguments: `{"city":`}}}
	rest := llm.Piece{Calls: []llm.CallDelta{{Index: 0, Arguments: ` "Oslo"}`}}}
	h := listen(t, script(own, rest, rawText("So. "+marked1), stop(llm.FinishCalls)), asking())
	if len(h.reply.Message.Calls) != 1 || h.text != "So. " || h.reply.Message.Text() != "So. " {
		t.Errorf("got text %q, reply %q, calls %+v, want the upstream's call alone", h.text, h.reply.Message.Text(), h.reply.Message.Calls)
	}
}

func TestProviderMendsArguments(t *testing.T) {
	call := func(args string) llm.Piece {
		return llm.Piece{Calls: []llm.CallDelta{{Index: 0, ID: "own", Name: "get_weather", Arguments: args}}}
	}
	for _, c := range []struct {
		in, want string
		finish   llm.Finish
	}{
		{`{"city": "Oslo",}`, `{"city":"Oslo"}`, llm.FinishCalls},
		{`{"city": "Oslo"}`, `{"city": "Oslo"}`, llm.FinishCalls},
		{`"{\"city\":\"Oslo\"}"`, `{"city":"Oslo"}`, llm.FinishCalls},
		{`{"city": Oslo}`, `{"city": Oslo}`, llm.FinishCalls},
		{``, ``, llm.FinishCalls},
		{`{"city": "Os`, `{"city": "Os`, llm.FinishLength},
	} {
		h := listen(t, script(call(c.in), stop(c.finish)), asking())
		if got := h.reply.Message.Calls[0]; got.Arguments != c.want || got.Rescued {
			t.Errorf("%s: got %+v, want arguments %s", c.in, got, c.want)
		}
		if h.deltas[0].Arguments != c.in {
			t.Errorf("%s: the stream has %s", c.in, h.deltas[0].Arguments)
		}
	}
}

func TestProviderShowsWhatIsHeldBeforeAnError(t *testing.T) {
	broken := errors.New("broke off")
	s := &llm.Script{Rounds: []llm.ScriptedRound{{Pieces: []llm.Piece{rawText("Hm. <tool_call>{")}, Err: broken}}}
	if h := listen(t, s, asking()); h.text != "Hm. <tool_call>{" || !errors.Is(h.err, broken) {
		t.Errorf("got %q and %v", h.text, h.err)
	}
}

func TestProviderStopsEarly(t *testing.T) {
	for piece := range Wrap(script(rawText("Well, "), rawText("so"), stop(llm.FinishStop)), Options{MaxHeld: testHold, NewID: ids()}).Stream(t.Context(), asking()) {
		if strings.Contains(piece.Text, "so") {
			t.Error("the stream went on")
		}
		break
	}
}

// TestProviderAllocates checks that prose costs no allocation a piece.
func TestProviderAllocates(t *testing.T) {
	run := func(n int) float64 {
		pieces := []llm.Piece{rawText("Well, ")}
		for range n {
			pieces = append(pieces, rawText(" the weather"))
		}
		w := Wrap(whole{pieces: pieces}, Options{MaxHeld: testHold, NewID: ids()})
		r := asking()
		return testing.AllocsPerRun(20, func() {
			for range w.Stream(t.Context(), r) {
			}
		})
	}
	// What else runs in the process allocates now and then; 990 pieces more would
	// cost 990 allocations more.
	if few, many := run(10), run(1000); many > few+100 {
		t.Errorf("got %v allocations for 1000 pieces and %v for 10", many, few)
	}
}
