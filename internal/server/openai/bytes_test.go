package openai_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/wire"
)

func get(t *testing.T, url string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(b)
}

func messagesOf(t *testing.T, body []byte) string {
	t.Helper()
	m := wire.Member(jsontext.Value(body), "messages")
	if m == nil {
		t.Fatalf("no messages in %s", body)
	}
	return string(m)
}

// clientRequests are requests shaped like what real clients send: our own, and
// with METIER_CAPTURES those of a folder of captures.
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
		var tools jsontext.Value
		for i, q := range c.Requests {
			if q.Method != http.MethodPost || !strings.HasSuffix(q.URL, "/chat/completions") {
				continue
			}
			// A capture names repeated tool lists instead of holding them.
			body := q.Body
			switch got := wire.Member(body, "tools"); got.Kind() {
			case '[':
				tools = got
			case '"':
				body = wire.Set(body, "tools", tools)
			}
			into[fmt.Sprintf("%s #%d", filepath.Base(f), i+1)] = body
			n++
		}
	}
	if n == 0 {
		t.Fatalf("METIER_CAPTURES=%s has no chat completions", dir)
	}
}

// TestCapturesLoseNothing sends client requests through and compares what reaches the
// upstream: it differs at the listed JSON pointers only, and every message that
// the host does not add to keeps its bytes.
func TestCapturesLoseNothing(t *testing.T) {
	for name, body := range clientRequests(t) {
		for _, skills := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, skills %v", name, skills), func(t *testing.T) {
				checkNothingLost(t, body, skills)
			})
		}
	}
}

func checkNothingLost(t *testing.T, body []byte, skills bool) {
	// The scripted upstream answers to its own model names.
	body = wire.Set(jsontext.Value(body), "model", []byte(`"hello"`))
	r := newRig(t, rigOptions{noSkills: !skills})
	res, answer := r.post(t, string(body))
	if res.StatusCode != http.StatusOK {
		t.Fatalf("%d %s", res.StatusCode, answer)
	}
	sent := r.upstream.Requests()[0].Body

	var before, after map[string]any
	if err := json.Unmarshal(body, &before); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(sent, &after); err != nil {
		t.Fatalf("upstream got %s: %v", sent, err)
	}
	allowed := []string{"/stream", "/stream_options", "/stream_options/include_usage"}
	messages, _ := before["messages"].([]any)
	from := 0 // the first message that must be untouched
	if skills && res.Header.Get("X-Metier-Warning") == "" && structured(before) == "" {
		tools, _ := before["tools"].([]any)
		for i := range 2 {
			allowed = append(allowed, fmt.Sprintf("/tools/%d", len(tools)+i))
		}
		if len(tools) == 0 {
			allowed = append(allowed, "/tools")
		}
		if role := messages[0].(map[string]any)["role"]; role == "system" || role == "developer" {
			allowed = append(allowed, "/messages/0/content")
			from = 1
		} else {
			// A message of the host's own comes first: compare what follows it.
			after["messages"] = after["messages"].([]any)[1:]
		}
	}
	for _, p := range differences("", before, after) {
		if !slices.ContainsFunc(allowed, func(a string) bool { return p == a || strings.HasPrefix(p, a+"/") }) {
			t.Errorf("%s differs, which is not in %v", p, allowed)
		}
	}
	i := 0
	for c := wire.Array(wire.Member(jsontext.Value(body), "messages")); c.Next(); i++ {
		if i >= from && !strings.Contains(string(sent), string(c.Value)) {
			t.Errorf("message %d lost its bytes: %s", i, c.Value)
		}
	}
}

func structured(body map[string]any) string {
	f, _ := body["response_format"].(map[string]any)
	kind, _ := f["type"].(string)
	return strings.TrimPrefix(kind, "text")
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
