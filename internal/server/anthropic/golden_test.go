package anthropic_test

import (
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/llm"
)

var update = flag.Bool("update", false, "write the golden files")

// TestGolden pins whole streams, byte by byte: each kind of answer from an upstream of
// another dialect and from one of the same.
func TestGolden(t *testing.T) {
	own := func(rounds ...[]string) rigOptions { return rigOptions{provider: &vendor{t: t, rounds: rounds}} }
	breaking := func(rounds [][]string, err error) rigOptions {
		return rigOptions{provider: &vendor{t: t, rounds: rounds, errs: map[int]error{1: err}}}
	}
	for name, c := range map[string]struct {
		model, more string
		options     rigOptions
	}{
		"chat-text":     {"hello", "", rigOptions{}},
		"chat-thinking": {"reasoning", thinking, rigOptions{}},
		"chat-tool":     {"caller-tool", weather, rigOptions{}},
		"chat-read":     {"skill-read", "", rigOptions{}},
		"chat-mixed":    {"mixed", weather, rigOptions{}},
		"chat-error":    {"error-in-stream", "", rigOptions{}},
		"chat-refused":  {"rate-limited", "", rigOptions{}},
		"chat-cut-call": {"cut-call", weather, rigOptions{}},

		"own-text":     {"claude-x", "", own(round(began(10), says(0, "Good ", "morning."), ended("end_turn", 10, 5)))},
		"own-thinking": {"claude-x", thinking, own(round(began(10), thinks(0, "Seven fits.", "c2ln"), says(1, "Seven."), ended("end_turn", 10, 5)))},
		"own-tool":     {"claude-x", weather, own(round(began(10), calls(0, "toolu_w", "get_weather", "", `{"city":`, `"Oslo"}`), ended("tool_use", 10, 5)))},
		"own-read": {"claude-x", thinking, own(
			round(began(10), thinks(0, "First I read.", "sig1"), says(1, "Let me look. "), read(2), ended("tool_use", 10, 5)),
			round(began(30), thinks(0, "Now I know.", "sig2"), says(1, "In brackets."), ended("end_turn", 30, 7)),
		)},
		"own-mixed":         {"claude-x", weather, own(round(began(10), says(0, "Both. "), read(1), calls(2, "toolu_w", "get_weather", `{"city":"Oslo"}`), ended("tool_use", 10, 5)))},
		"own-stop-sequence": {"claude-x", "", own(round(began(10), says(0, "Until here. "), ended("stop_sequence", 10, 5)))},
		"own-length":        {"claude-x", "", own(round(began(10), says(0, "Half a sen"), ended("max_tokens", 10, 5)))},
		"own-error": {"claude-x", "", breaking([][]string{append(began(10), says(0, "I was ")[:2]...)}, &llm.StreamError{
			Message: "Overloaded", Raw: []byte(`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`),
		})},
		"own-refused": {"claude-x", "", breaking(nil, &llm.StatusError{
			Status: 529, Dialect: llm.Anthropic, Message: "Overloaded",
			Body: []byte(`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_up"}`),
		})},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, c.options)
			res, body := r.post(t, request(c.model, c.more+streamed), "X-Request-Id", "req_golden")
			if res.StatusCode == http.StatusOK {
				listen(t, body)
			}
			file := filepath.Join("testdata", "golden", name+".txt")
			if *update {
				if err := os.WriteFile(file, []byte(body), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatalf("%v: run the test with -update", err)
			}
			if diff := cmp.Diff(string(want), body); diff != "" {
				t.Errorf("-golden +got:\n%s", diff)
			}
		})
	}
}
