package anthropic_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/wire"
)

// clientRequests are requests shaped like what real clients send: our own, and with
// METIER_CAPTURES those of a folder of captures.
func clientRequests(t *testing.T) map[string][]byte {
	t.Helper()
	requests := map[string][]byte{}
	files, err := filepath.Glob("testdata/requests/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no request fixtures: %v", err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		requests[filepath.Base(f)] = b
	}
	if dir := os.Getenv("METIER_CAPTURES"); dir != "" {
		captured(t, dir, requests)
	}
	return requests
}

type capture struct {
	Requests []struct {
		Method string         `json:"method"`
		URL    string         `json:"url"`
		Body   jsontext.Value `json:"body"`
	} `json:"requests"`
}

func captured(t *testing.T, dir string, into map[string][]byte) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("METIER_CAPTURES=%s has no captures: %v", dir, err)
	}
	n := 0
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var c capture
		if err := json.Unmarshal(b, &c); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		same := map[string]jsontext.Value{}
		for i, q := range c.Requests {
			path, _, _ := strings.Cut(q.URL, "?")
			if q.Method != http.MethodPost || path != "/v1/messages" {
				continue
			}
			// A capture names what is repeated instead of holding it.
			body := q.Body
			for _, name := range []string{"tools", "system"} {
				switch got := wire.Member(body, name); got.Kind() {
				case '[':
					same[name] = got
				case '"':
					if text, _ := wire.String(got); strings.HasPrefix(text, "<same as") {
						body = wire.Set(body, name, same[name])
					}
				}
			}
			into[fmt.Sprintf("%s #%d", filepath.Base(f), i+1)] = body
			n++
		}
	}
	if n == 0 {
		t.Fatalf("METIER_CAPTURES=%s has no messages", dir)
	}
}

// listening is an upstream of this dialect that keeps what it is sent.
type listening struct {
	mu     sync.Mutex
	bodies [][]byte
	header []http.Header
}

func (u *listening) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	u.mu.Lock()
	u.bodies, u.header = append(u.bodies, b), append(u.header, r.Header)
	u.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, framesOf(round(began(1), says(0, "x"), ended("end_turn", 1, 1))))
}

// TestCapturesLoseNothing sends client requests through and compares what reaches an
// upstream of the same dialect: it differs where the host adds, and nowhere else; every
// message, and every block of the system prompt, keeps its bytes.
func TestCapturesLoseNothing(t *testing.T) {
	for name, body := range clientRequests(t) {
		for _, selected := range []string{"", "release-notes"} {
			t.Run(fmt.Sprintf("%s, selected %q", name, selected), func(t *testing.T) {
				checkNothingLost(t, body, selected)
			})
		}
	}
}

func checkNothingLost(t *testing.T, body []byte, selected string) {
	up := &listening{}
	r := newRig(t, rigOptions{upstream: up, vendor: true})
	bare := wire.Set(body, "skills_discovery", []byte("false"))
	res, answer := r.post(t, string(bare), "X-Metier-Skills", selected)
	if wire.Member(body, "thread") != nil {
		if res.StatusCode != http.StatusBadRequest {
			t.Errorf("a thread of the vendor's, which is not here, became %d %s", res.StatusCode, answer)
		}
		return
	}
	if res.StatusCode != http.StatusOK {
		t.Fatalf("%d %s", res.StatusCode, answer)
	}
	sent := up.bodies[0]
	var before, after map[string]any
	if err := json.Unmarshal(body, &before); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(sent, &after); err != nil {
		t.Fatalf("upstream got %s: %v", sent, err)
	}
	allowed := []string{"/stream"}
	if selected != "" {
		tools, _ := before["tools"].([]any)
		allowed = append(allowed, fmt.Sprintf("/tools/%d", len(tools)), fmt.Sprintf("/tools/%d", len(tools)+1))
		if len(tools) == 0 {
			allowed = append(allowed, "/tools")
		}
		system, isBlocks := before["system"].([]any)
		allowed = append(allowed, fmt.Sprintf("/system/%d", len(system)))
		if !isBlocks {
			allowed = append(allowed, "/system")
		}
		if all := string(wire.Member(sent, "system")); !strings.Contains(all, "release-notes") {
			t.Errorf("the selected skill is not told of: %s", all)
		}
	}
	for _, p := range differences("", before, after) {
		if !slices.ContainsFunc(allowed, func(a string) bool { return p == a || strings.HasPrefix(p, a+"/") }) {
			t.Errorf("%s differs, which is not in %v", p, allowed)
		}
	}
	kept := func(what string, v jsontext.Value) {
		for c := wire.Array(v); c.Next(); {
			whole := strings.Contains(string(sent), string(c.Value))
			if b := wire.Member(c.Value, "content"); !whole && strings.Contains(string(b), "tool_result") {
				// Results are messages of their own here, and are put together again.
				for a := wire.Array(b); a.Next(); {
					if !strings.Contains(string(sent), string(a.Value)) {
						t.Errorf("a block of %s lost its bytes: %s", what, a.Value)
					}
				}
				continue
			}
			if !whole {
				t.Errorf("%s lost its bytes: %s", what, c.Value)
			}
		}
	}
	kept("a message", wire.Member(body, "messages"))
	kept("a block of the system prompt", wire.Member(body, "system"))
	kept("a tool", wire.Member(body, "tools"))
}

// differences lists the JSON pointers at which two values are not the same.
func differences(at string, a, b any) []string {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok {
			return []string{at}
		}
		var d []string
		for name := range x {
			if _, ok := y[name]; !ok {
				d = append(d, at+"/"+name)
				continue
			}
			d = append(d, differences(at+"/"+name, x[name], y[name])...)
		}
		for name := range y {
			if _, ok := x[name]; !ok {
				d = append(d, at+"/"+name)
			}
		}
		return d
	case []any:
		y, ok := b.([]any)
		if !ok {
			return []string{at}
		}
		var d []string
		for i := range max(len(x), len(y)) {
			p := fmt.Sprintf("%s/%d", at, i)
			if i >= len(x) || i >= len(y) {
				d = append(d, p)
				continue
			}
			d = append(d, differences(p, x[i], y[i])...)
		}
		return d
	}
	if !reflect.DeepEqual(a, b) {
		return []string{at}
	}
	return nil
}

// TestClaudeCode: a client with a skill tool of its own is not told of the host's skills,
// but for those that are selected for it; and its headers go on.
func TestClaudeCode(t *testing.T) {
	body, err := os.ReadFile("testdata/requests/claude-code.json")
	if err != nil {
		t.Fatal(err)
	}
	up := &listening{}
	r := newRig(t, rigOptions{upstream: up, vendor: true})
	header := []string{
		version, "2023-06-01", "Anthropic-Beta", "claude-code-20250219,interleaved-thinking-2025-05-14", "Authorization", "Bearer token",
		"X-Claude-Code-Session-Id", "s0", "X-App", "cli", "Anthropic-Dangerous-Direct-Browser-Access", "true",
	}
	for selected, want := range map[string]bool{"": false, "release-notes": true} {
		up.bodies = nil
		res, answer := r.send(t, http.MethodPost, "/v1/messages?beta=true", string(body), append(header, "X-Metier-Skills", selected)...)
		if res.StatusCode != http.StatusOK || listen(t, answer).message == nil {
			t.Fatalf("%d %s", res.StatusCode, answer)
		}
		sent := string(up.bodies[0])
		if strings.Contains(sent, "meeting-minutes") || strings.Contains(sent, "release-notes") != want || strings.Contains(sent, "skills_read") != want {
			t.Errorf("selected %q: upstream got %s", selected, sent)
		}
		if warning := res.Header.Get("X-Metier-Warning"); !strings.Contains(warning, `"Skill"`) {
			t.Errorf("selected %q: nobody said why: %q", selected, warning)
		}
		system := wire.Array(wire.Member(jsontext.Value(sent), "system"))
		if system.Next(); !strings.Contains(string(system.Value), "x-anthropic-billing-header") {
			t.Errorf("the first block of the system prompt is %s", system.Value)
		}
	}
	got := up.header[0]
	if got.Get("Anthropic-Version") != "2023-06-01" || !strings.Contains(got.Get("Anthropic-Beta"), "interleaved-thinking") || got.Get("X-Claude-Code-Session-Id") != "s0" {
		t.Errorf("headers %v", got)
	}
}
