package scripted_test

import (
	"bytes"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/llm/llmtest"
	"github.com/metier-run/metier/internal/llm/scripted"
)

var update = flag.Bool("update", false, "write the golden files anew")

// tap records every exchange, as a recording server does.
type tap struct {
	http.RoundTripper
	rounds []scripted.Round
}

func (t *tap) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := req.GetBody()
	if err != nil {
		return nil, err
	}
	var sent, got bytes.Buffer
	if _, err := sent.ReadFrom(body); err != nil {
		return nil, err
	}
	res, err := t.RoundTripper.RoundTrip(req)
	if err != nil {
		t.rounds = append(t.rounds, scripted.Round{Request: sent.Bytes(), Cut: true})
		return nil, err
	}
	_, err = got.ReadFrom(res.Body)
	res.Body.Close()
	t.rounds = append(t.rounds, scripted.Round{
		Request: sent.Bytes(), Status: res.StatusCode, Header: res.Header, Body: bytes.Clone(got.Bytes()), Cut: err != nil,
	})
	res.Body = &cutBody{Buffer: &got, err: err}
	return res, nil
}

type cutBody struct {
	*bytes.Buffer
	err error
}

func (b *cutBody) Read(p []byte) (int, error) {
	n, err := b.Buffer.Read(p)
	if n == 0 && b.err != nil {
		return 0, b.err
	}
	return n, err
}

func (b *cutBody) Close() error { return nil }

// TestRecordAndReplay plays each scenario of the suite through a recorder, and
// then the recording in its place: what the provider hears is the same.
func TestRecordAndReplay(t *testing.T) {
	for _, c := range llmtest.Cases() {
		t.Run(c.Scenario, func(t *testing.T) {
			_, url, plain := open(t, scripted.Options{Sleep: noWait})
			rec := &tap{RoundTripper: plain.Transport}
			if err := c.Verify(t.Context(), &client{http: &http.Client{Transport: rec}, url: url}, c.Scenario); err != nil {
				t.Fatal(err)
			}
			var file bytes.Buffer
			if err := scripted.Write(&file, scripted.Recording{Note: "Recorded.", Client: rec.rounds[0].Request, Rounds: rec.rounds}); err != nil {
				t.Fatal(err)
			}
			h, url, plain := play(t, map[string]string{"again": file.String()}, scripted.Options{})
			if err := c.Verify(t.Context(), &client{http: plain, url: url}, "again"); err != nil {
				t.Errorf("replayed: %v", err)
			}
			for i, r := range h.Requests() {
				if r.Step != i+1 {
					t.Errorf("request %d was answered by step %d", i+1, r.Step)
				}
			}
		})
	}
}

// TestWriteGolden pins the form of a recording.
func TestWriteGolden(t *testing.T) {
	asked := strings.Replace(answered, `{"model"`, `{"stream":true,"model"`, 1)
	r := scripted.Recording{
		Note:   "A skill was read.\n-- not a section --",
		Client: []byte(chat("s", `,"skills":["release-notes"]`)),
		Rounds: []scripted.Round{
			{
				Request: []byte(chat("s", `,"stream":true`)), Status: 200,
				Header: http.Header{"Content-Type": {"text/event-stream"}, "Date": {"today"}, "Set-Cookie": {"session=1"}, "X-Request-Id": {"r1"}},
				Body:   []byte("data: {\"a\":1}\n\n: ping\r\n\ndata: {\"b\":\"{{results}}\"}\n\n@odd\n-- x --\n"),
			},
			{Request: []byte(asked), Status: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: []byte("data: {\"half"), Cut: true},
		},
	}
	var got bytes.Buffer
	if err := scripted.Write(&got, r); err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "recording.golden")
	if *update {
		if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got.String()); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// TestWriteOrders holds that rounds with equal numbers of results are told apart
// by their order.
func TestWriteOrders(t *testing.T) {
	round := scripted.Round{Request: []byte(chat("s", "")), Status: 503}
	var got bytes.Buffer
	if err := scripted.Write(&got, scripted.Recording{Rounds: []scripted.Round{round, round}}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(got.String(), "nth: 2\n") || strings.Contains(got.String(), "results:") {
		t.Errorf("got\n%s", got.String())
	}
}

func TestWriteErrors(t *testing.T) {
	for name, tt := range map[string]struct {
		rounds []scripted.Round
		want   string
	}{
		"none":    {nil, "no rounds"},
		"request": {[]scripted.Round{{Request: []byte("x"), Status: 200}}, "round 1: request"},
		"status":  {[]scripted.Round{{Request: []byte(chat("s", ""))}}, "round 1: status 0"},
	} {
		if err := scripted.Write(&bytes.Buffer{}, scripted.Recording{Rounds: tt.rounds}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
	}
}
