package openai_test

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestGoneClient: a client that goes away cancels its turn, and with it the
// generation upstream.
func TestGoneClient(t *testing.T) {
	r := newRig(t, rigOptions{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url+"/v1/chat/completions",
		strings.NewReader(request("hang", `,"stream":true`)))
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(res.Body).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	cancel()
	_ = res.Body.Close()
	deadline := time.After(30 * time.Second)
	for !strings.Contains(r.log.String(), "outcome=cancelled") {
		select {
		case <-deadline:
			t.Fatalf("no cancelled turn in the log:\n%s", r.log)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// TestWideLine: one line a turn says what happened, with the request's id.
func TestWideLine(t *testing.T) {
	r := newRig(t, rigOptions{})
	r.post(t, request("usage-cached", `,"skills":["release-notes"]`), "X-Request-Id", "client-7")
	var lines []string
	for line := range strings.Lines(r.log.String()) {
		if strings.Contains(line, "msg=turn") {
			lines = append(lines, line)
		}
	}
	if len(lines) != 1 {
		t.Fatalf("%d lines for one turn:\n%s", len(lines), r.log)
	}
	for _, want := range []string{
		"outcome=answered", "finish=stop", "rounds=2", "host_calls=1", "selected=release-notes", "advertised=1",
		"reads=release-notes/SKILL.md", "tokens_in=700", "tokens_out=26", "tokens_cached=512", "model=usage-cached",
	} {
		if !strings.Contains(lines[0], want) {
			t.Errorf("the line lacks %q: %s", want, lines[0])
		}
	}
}
