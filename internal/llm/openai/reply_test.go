package openai

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/wire"
)

// read reads a stream of events to a clean end of its connection.
func read(events ...string) (pieces []llm.Piece, whole *llm.Reply, err error) {
	r := &reply{newID: func() string { return "id" }, limits: testLimits()}
	done := false
	for _, data := range events {
		var p llm.Piece
		if p, done, err = r.event(wire.Event{Data: []byte(data)}); err != nil {
			return nil, nil, err
		}
		pieces = append(pieces, p)
	}
	whole, err = r.end(done, io.EOF)
	return pieces, whole, err
}

func collect(pieces []llm.Piece) string {
	var c Collector
	for _, p := range pieces {
		c.Add(&p)
	}
	return string(c.Completion(Head{ID: "h", Model: "m"}, llm.FinishStop, 1, llm.Usage{}))
}

// TestEveryChoiceEnds: the end of one choice is not that of another.
func TestEveryChoiceEnds(t *testing.T) {
	choice := func(index int, finish string) string {
		return fmt.Sprintf(`{"choices":[{"index":%d,"delta":{"content":"a"},"finish_reason":%s}]}`, index, finish)
	}
	for _, c := range []struct {
		name   string
		events []string
		finish llm.Finish // empty: the stream broke off
	}{
		{"only 1 ends", []string{choice(0, "null"), choice(1, "null"), choice(1, `"length"`)}, ""},
		{"only 0 ends", []string{choice(0, "null"), choice(1, "null"), choice(0, `"length"`)}, ""},
		{"both in one event, one open", []string{`{"choices":[{"index":0,"delta":{},"finish_reason":"length"},{"index":1,"delta":{}}]}`}, ""},
		{"both end, 1 first", []string{choice(1, `"stop"`), choice(0, `"length"`)}, llm.FinishLength},
		{"both end, 0 first", []string{choice(0, `"length"`), choice(1, `"stop"`)}, llm.FinishLength},
		{"the end mark closes all", []string{choice(0, "null"), choice(1, `"length"`), "[DONE]"}, llm.FinishStop},
		{"no choice at all", []string{`{"choices":[]}`, "[DONE]"}, ""},
	} {
		_, whole, err := read(c.events...)
		if c.finish == "" {
			if e, ok := errors.AsType[*llm.StreamError](err); !ok || !strings.Contains(e.Message, "middle of a reply") {
				t.Errorf("%s: error %v, want that it broke off", c.name, err)
			}
			continue
		}
		if err != nil || whole.Finish != c.finish {
			t.Errorf("%s: %+v, error %v; want finish %s", c.name, whole, err, c.finish)
		}
	}
}

// TestLogprobsAreKept: chunks that are alike but for nothing still each have
// their log probabilities.
func TestLogprobsAreKept(t *testing.T) {
	const chunk = `{"id":"x","choices":[{"index":0,"delta":{"content":"ha"},"logprobs":{"content":[{"token":"ha"}]},"finish_reason":null}]}`
	pieces, _, err := read(`{"id":"x","choices":[{"index":0,"delta":{"role":"assistant"}}]}`, chunk, chunk, chunk, "[DONE]")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(collect(pieces), `{"token":"ha"}`); got != 3 {
		t.Errorf("%d log probabilities, want 3: %s", got, collect(pieces))
	}
}

func testLimits() limits { return limits{reply: 64 << 20, calls: 256, choices: 128} }

// TestManyChoices: no upstream makes us keep more choices, or calls, than there
// is use for: each is looked for among the others.
func TestManyChoices(t *testing.T) {
	for _, c := range []struct{ what, first, next, end string }{
		{"choices", `{"choices":[{"index":0,"delta":{}}`, `,{"index":%d}`, `]}`},
		{"calls", `{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c0","function":{"name":"f"}}`, `,{"index":%[1]d,"id":"c%[1]d"}`, `]}}]}`},
	} {
		most := map[string]int{"choices": testLimits().choices, "calls": testLimits().calls}[c.what]
		event := func(n int) string {
			var b strings.Builder
			b.WriteString(c.first)
			for i := 1; i < n; i++ {
				fmt.Fprintf(&b, c.next, i)
			}
			return b.String() + c.end
		}
		if _, _, err := read(event(most), "[DONE]"); err != nil {
			t.Errorf("%d %s: %v", most, c.what, err)
		}
		if _, _, err := read(event(most+1), "[DONE]"); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("more than %d %s", most, c.what)) {
			t.Errorf("one too many of %s gave %v", c.what, err)
		}
	}
}

// TestManyMembers: members are all kept, wherever they come; TestFields sees to
// it that they are found without a search.
func TestManyMembers(t *testing.T) {
	object := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"f%d":1`, i)
		}
		return b.String()
	}
	const n = 5000
	for name, event := range map[string]string{
		"delta":  `{"choices":[{"index":0,"delta":{"content":"x"` + object(n) + `}}]}`,
		"chunk":  `{"choices":[{"index":0,"delta":{"content":"x"}}]` + object(n) + `}`,
		"choice": `{"choices":[{"index":0,"delta":{"content":"x"}` + object(n) + `}]}`,
	} {
		pieces, _, err := read(event, "[DONE]")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		whole := collect(pieces)
		if !wire.Lenient([]byte(whole)) || strings.Count(whole, `"f4999":1`) != 1 {
			t.Errorf("%s: the last member is not there once", name)
		}
	}
}

func TestFields(t *testing.T) {
	var f fields
	var want []string
	for i := range 3 * manyFields {
		name := fmt.Sprint("f", i)
		f.merge([]byte(name), jsontext.Value(`"a"`))
		want = append(want, name+`:"ab"`)
	}
	for i := range 3 * manyFields {
		f.merge(fmt.Append(nil, "f", i), jsontext.Value(`"b"`))
	}
	f.replace([]byte("f1"), jsontext.Value(`[1]`))
	f.replace([]byte("f1"), jsontext.Value(`[2]`))
	want[1] = "f1:[2]"
	var got []string
	for _, x := range f.list {
		got = append(got, x.name+":"+string(x.append(nil)))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
	if len(f.at) != len(f.list) {
		t.Errorf("%d of %d members are in the map: the others cost a search of all", len(f.at), len(f.list))
	}
	if f.get("f999") != nil {
		t.Error("a member that never came is there")
	}
}

// TestWhole: an answer in one piece loses nothing on its way through a stream.
func TestWhole(t *testing.T) {
	const call = `{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}`
	body := `{"id":"x","object":"chat.completion","created":5,"model":"up","system_fingerprint":"fp","choices":[` +
		`{"index":0,"message":{"role":"assistant","content":"one","tool_calls":[` + call + `,` + call + `]},"logprobs":{"content":[{"token":"one"}]},"finish_reason":"tool_calls"},` +
		`{"index":1,"message":{"role":"assistant","content":"two","tool_calls":[` + call + `]},"finish_reason":"length"}],` +
		`"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3,"x":1}}`
	r := &reply{newID: func() string { return "new" }, limits: testLimits()}
	pieces, err := r.whole(jsontext.Value(body))
	if err != nil {
		t.Fatal(err)
	}
	whole, err := r.end(true, nil)
	if err != nil {
		t.Fatal(err)
	}
	if whole.Finish != llm.FinishCalls || whole.Usage.Total != 3 || whole.Model != "up" || len(whole.Message.Calls) != 2 || whole.Message.Calls[1].ID != "call_new" {
		t.Errorf("reply %+v", whole)
	}
	named := strings.Replace(call, `"c"`, `"call_new"`, 1)
	want := `{"id":"x","object":"chat.completion","created":5,"model":"up","choices":[` +
		`{"index":0,"message":{"role":"assistant","content":"one","tool_calls":[` + call + `,` + named + `]},"logprobs":{"content":[{"token":"one"}]},"finish_reason":"stop"},` +
		`{"index":1,"message":{"role":"assistant","content":"two","tool_calls":[` + call + `]},"logprobs":null,"finish_reason":"length"}],` +
		`"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3,"x":1},"system_fingerprint":"fp"}`
	if diff := cmp.Diff(want, collect(pieces)); diff != "" {
		t.Errorf("completion (-want +got):\n%s", diff)
	}
}

// TestErrorMember: an empty error is none.
func TestErrorMember(t *testing.T) {
	for fault, bad := range map[string]bool{
		`""`: false, `false`: false, `{}`: false, `[]`: false, `null`: false, `{"message":"x"}`: true, `"x"`: true,
	} {
		_, _, err := read(`{"error":`+fault+`,"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}`, "[DONE]")
		if (err != nil) != bad {
			t.Errorf("error member %s gave %v", fault, err)
		}
		r := &reply{newID: func() string { return "new" }, limits: testLimits()}
		_, err = r.whole(jsontext.Value(`{"error":` + fault + `,"choices":[{"message":{"content":"a"}}]}`))
		if (err != nil) != bad {
			t.Errorf("error member %s of a whole answer gave %v", fault, err)
		}
	}
}
