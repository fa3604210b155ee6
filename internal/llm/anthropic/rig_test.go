package anthropic_test

import (
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/metier-run/metier/internal/llm/anthropic"
	"github.com/metier-run/metier/internal/llm/upstream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// connect is a provider in front of h.
func connect(t *testing.T, h http.Handler, o anthropic.Options) *anthropic.Provider {
	t.Helper()
	srv := httptest.NewServer(h)
	transport := upstream.NewTransport(o.Limits)
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		srv.Close()
	})
	base, err := url.Parse(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	o.Base, o.Transport = base, transport
	n := 0
	o.NewID = func() string { n++; return strings.Repeat("i", n) }
	return anthropic.New(o)
}

// said is an event of a stream.
func said(format string, args ...any) string {
	data := fmt.Sprintf(format, args...)
	kind, _, _ := strings.Cut(strings.TrimPrefix(data, `{"type":"`), `"`)
	return "event: " + kind + "\ndata: " + data + "\n\n"
}

func begin(usage string) string {
	return said(`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"usage":%s}}`, usage) +
		said(`{"type":"ping"}`)
}

// block is a whole block: its beginning, its deltas, its end.
func block(index int, start string, deltas ...string) string {
	out := said(`{"type":"content_block_start","index":%d,"content_block":%s}`, index, start)
	for _, d := range deltas {
		out += said(`{"type":"content_block_delta","index":%d,"delta":%s}`, index, d)
	}
	return out + said(`{"type":"content_block_stop","index":%d}`, index)
}

func words(index int, texts ...string) string {
	var deltas []string
	for _, text := range texts {
		deltas = append(deltas, fmt.Sprintf(`{"type":"text_delta","text":%q}`, text))
	}
	return block(index, `{"type":"text","text":""}`, deltas...)
}

func use(index int, id, name, arguments string) string {
	half := len(arguments) / 2
	return block(index, fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%q,"input":{}}`, id, name),
		fmt.Sprintf(`{"type":"input_json_delta","partial_json":%q}`, arguments[:half]),
		fmt.Sprintf(`{"type":"input_json_delta","partial_json":%q}`, arguments[half:]))
}

func stop(reason, usage string) string {
	return said(`{"type":"message_delta","delta":{"stop_reason":%q,"stop_sequence":null},"usage":%s}`, reason, usage) + said(`{"type":"message_stop"}`)
}
