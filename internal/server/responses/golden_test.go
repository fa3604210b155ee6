package responses_test

import (
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

const (
	weatherTool = `{"type":"function","name":"get_weather","description":"w","parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]},"strict":false}`
	weather     = `,"tools":[` + weatherTool + `]`
	streamed    = `,"stream":true`
)

func request(model, more string) string {
	return `{"model":` + quote(model) + `,"input":"hi"` + more + `}`
}

// TestGolden pins whole answers, byte by byte.
func TestGolden(t *testing.T) {
	for name, c := range map[string]struct {
		model, more string
		options     rigOptions
	}{
		"text":      {"hello", streamed, rigOptions{}},
		"reasoning": {"reasoning", streamed, rigOptions{}},
		"summary":   {"reasoning", streamed + `,"reasoning":{"summary":"auto"}`, rigOptions{}},
		"tool":      {"caller-tool", streamed + weather, rigOptions{}},
		"mixed":     {"mixed", streamed + weather, rigOptions{}},
		"read":      {"skill-read", streamed, rigOptions{}},
		"error":     {"error-in-stream", streamed, rigOptions{}},
		"refused":   {"rate-limited", streamed, rigOptions{}},
		"cut":       {"cut", streamed, rigOptions{}},
		"buffered":  {"skill-read", "", rigOptions{}},
		"length":    {"m", streamed, rigOptions{upstream: says("length", `{"content":"Half a sen"}`)}},
		"custom":    {"m", streamed + `,"tools":[{"type":"custom","name":"apply_patch"}]`, rigOptions{upstream: says("tool_calls", `{"tool_calls":[{"index":0,"id":"call_p","type":"function","function":{"name":"apply_patch","arguments":"{\"in"}}]}`, `{"tool_calls":[{"index":0,"function":{"arguments":"put\":\"*** Begin\\nx\"}"}}]}`)}},
		"namespace": {"m", streamed + `,"tools":[{"type":"namespace","name":"multi_agent_v1","description":"Sub-agents.","tools":[{"type":"function","name":"close_agent","parameters":{"type":"object"}}]}]`, rigOptions{upstream: says("tool_calls", `{"content":"Closing. ","tool_calls":[{"index":0,"id":"call_c","type":"function","function":{"name":"multi_agent_v1__close_agent","arguments":"{\"target\":\"a\"}"}}]}`)}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, c.options)
			res, body := r.post(t, request(c.model, c.more), "X-Request-Id", "req_golden")
			switch {
			case res.StatusCode == http.StatusOK && name == "buffered":
				checkResponse(t, []byte(body))
			case res.StatusCode == http.StatusOK:
				listen(t, body)
			}
			golden(t, name+".txt", body)
		})
	}
}

// golden compares with a file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", "golden", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v: run the test with -update", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("-golden +got:\n%s", diff)
	}
}
