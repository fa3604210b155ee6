package responses_test

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/wire"
)

// TestEveryScenario: whatever an upstream does, a stream is one well-formed response, and
// the whole answer says the same as the stream.
func TestEveryScenario(t *testing.T) {
	files, err := os.ReadDir("../../llm/scripted/scenarios")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		name := strings.TrimSuffix(f.Name(), ".txtar")
		switch name {
		case "hang", "hang-headers", "stall", "slow-load", "slow-headers":
			continue // they wait for limits that are minutes
		}
		t.Run(name, func(t *testing.T) {
			r := newRig(t, rigOptions{})
			res, body := r.post(t, request(name, streamed+weather))
			if res.StatusCode != http.StatusOK {
				checkError(t, body)
				return
			}
			streamed := listen(t, body)
			res, body = r.post(t, request(name, weather))
			if res.StatusCode != http.StatusOK {
				checkError(t, body)
				if member(streamed, "status") != "failed" {
					t.Errorf("whole: %d %s, streamed: %s", res.StatusCode, body, streamed)
				}
				return
			}
			whole := jsontext.Value(body)
			checkResponse(t, whole)
			for _, path := range []string{"status", "usage", "incomplete_details"} {
				if a, b := member(streamed, path), member(whole, path); a != b {
					t.Errorf("%s streamed %s, whole %s", path, a, b)
				}
			}
			if textOf(streamed) != textOf(whole) || kinds(streamed) != kinds(whole) || strings.Contains(body, `"name":"skills_read"`) {
				t.Errorf("streamed %s\nwhole %s", wire.Member(streamed, "output"), wire.Member(whole, "output"))
			}
		})
	}
}

// checkError checks an error's envelope.
func checkError(t *testing.T, body string) {
	t.Helper()
	e := wire.Member([]byte(body), "error")
	for _, name := range []string{"message", "type", "param", "code"} {
		if wire.Member(e, name) == nil {
			t.Errorf("the error has no %q: %s", name, body)
		}
	}
}
