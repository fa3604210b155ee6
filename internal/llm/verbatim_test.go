package llm_test

import (
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/llm"
)

// stored is m as a store gives it back.
func stored(t *testing.T, m llm.Message) llm.Message {
	t.Helper()
	b, err := json.Marshal(m, llm.Verbatim())
	if err != nil {
		t.Fatalf("%+v: %v", m, err)
	}
	var got llm.Message
	if err := json.Unmarshal(b, &got, llm.Verbatim()); err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	return got
}

// TestVerbatim: what stood on the wire comes back as it stood there.
func TestVerbatim(t *testing.T) {
	for _, raw := range []string{
		`{}`, "{ \"a\" :\t1.0e3,\r\n \"a\":2 }", `{"x":"\u00e9\/\u003c é <"}`, `{"bad":"\ud800"}`,
		"{\"no text\":\"\xff\xfe\"}", "not json", `"`, "", "null", "\x00", `["YQ=="]`,
	} {
		want := llm.Message{Role: llm.User, Raw: llm.Raw{Dialect: llm.OpenAIChat, Bytes: jsontext.Value(raw)}}
		got := stored(t, want)
		if string(got.Raw.Bytes) != raw || got.Raw.Dialect != want.Raw.Dialect {
			t.Errorf("%q came back as %q", raw, got.Raw.Bytes)
		}
	}
	none := llm.Message{Role: llm.Tool, CallID: "c"}
	if diff := cmp.Diff(none, stored(t, none)); diff != "" {
		t.Errorf("a message without a wire form:\n%s", diff)
	}
}

// TestVerbatimTakesAnyText: what a tool wrote is stored whatever it is.
func TestVerbatimTakesAnyText(t *testing.T) {
	if got := stored(t, llm.TextMessage(llm.Tool, "a\xffb")).Text(); got != "a\uFFFDb" {
		t.Errorf("text %q", got)
	}
}

func FuzzVerbatim(f *testing.F) {
	f.Add([]byte(`{"a":"\u00e9", "a":1}`))
	f.Add([]byte{0xff})
	f.Fuzz(func(t *testing.T, raw []byte) {
		got := stored(t, llm.Message{Role: llm.User, Raw: llm.Raw{Bytes: raw}})
		if string(got.Raw.Bytes) != string(raw) {
			t.Errorf("%q came back as %q", raw, got.Raw.Bytes)
		}
	})
}

func TestVerbatimRefuses(t *testing.T) {
	for _, in := range []string{`{"raw":{"bytes":{}}}`, `{"raw":{"bytes":[]}}`, `{"raw":{"bytes":["a","b"]}}`, `{"raw":{"bytes":["!"]}}`, `{"raw":{"bytes":1}}`} {
		var m llm.Message
		if err := json.Unmarshal([]byte(in), &m, llm.Verbatim()); err == nil {
			t.Errorf("%s was taken as %q", in, m.Raw.Bytes)
		}
	}
}
