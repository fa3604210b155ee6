package responses_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/wire"
)

// says is an upstream that always says the same, and ends for the given reason.
func says(finish string, deltas ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, d := range deltas {
			fmt.Fprintf(w, "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":null}]}\n\n", d)
		}
		fmt.Fprintf(w, "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":%q}],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2,\"total_tokens\":5}}\n\ndata: [DONE]\n\n", finish)
	})
}

// reader is an upstream with a rule of its own: it reads release-notes when nothing in the
// conversation shows that it has, and then answers. When the user asks for the weather it
// calls the caller's tool beside that.
type reader struct {
	mu sync.Mutex
	n  int
}

func (u *reader) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	u.mu.Lock()
	u.n++
	n := u.n
	u.mu.Unlock()
	body, tail := string(b), ""
	for c := wire.Array(wire.Member(jsontext.Value(b), "messages")); c.Next(); {
		tail = string(c.Value)
	}
	var calls []string
	if !strings.Contains(body, "ticket in square brackets") && strings.Contains(body, `"name":"skills_read"`) {
		calls = append(calls, fmt.Sprintf(`{"index":0,"id":"call_r%d","type":"function","function":{"name":"skills_read","arguments":"{\"skill\": \"release-notes\"}"}}`, n))
	}
	if strings.Contains(tail, "weather") && strings.Contains(body, "get_weather") {
		calls = append(calls, fmt.Sprintf(`{"index":%d,"id":"call_w%d","type":"function","function":{"name":"get_weather","arguments":"{\"city\":\"Oslo\"}"}}`, len(calls), n))
	}
	if len(calls) > 0 {
		says("tool_calls", `{"role":"assistant","reasoning_content":"Hm. ","content":"Let me look. ","tool_calls":[`+strings.Join(calls, ",")+`]}`).ServeHTTP(w, r)
		return
	}
	says("stop", fmt.Sprintf(`{"role":"assistant","reasoning_content":"So. ","content":"answer %d. "}`, n)).ServeHTTP(w, r)
}

// gate is an upstream that says one word, and the rest when it is told to.
type gate struct {
	began chan struct{} // has an element for each request that has its first word
	open  chan struct{}
}

func newGate() *gate { return &gate{began: make(chan struct{}, 64), open: make(chan struct{})} }

func (u *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprint(w, "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"First \"},\"finish_reason\":null}]}\n\n")
	if err := http.NewResponseController(w).Flush(); err != nil {
		return
	}
	u.began <- struct{}{}
	select {
	case <-u.open:
	case <-r.Context().Done():
		return
	}
	fmt.Fprint(w, "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"and last.\"},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2,\"total_tokens\":5}}\n\ndata: [DONE]\n\n")
}
