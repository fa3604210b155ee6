package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start runs the command and returns its address; the test's end stops it.
func start(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := run(ctx, args, in, io.Discard)
		in.CloseWithError(err)
		done <- err
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if !ok {
		t.Fatalf("first line: %q", line)
	}
	return url
}

func post(t *testing.T, url, body string) string {
	t.Helper()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	res, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

const rest = `"messages":[{"role":"user","content":"hi"}]`

func TestServesScenarios(t *testing.T) {
	url := start(t)
	if got := post(t, url, `{"model":"hello",`+rest+`}`); !strings.Contains(got, "Good morning") {
		t.Errorf("got %q", got)
	}
	if got := post(t, url, `{"model":"bench",`+rest+`}`); !strings.Contains(got, "model_not_found") {
		t.Errorf("bench without -fast: got %q", got)
	}
}

func TestServesAFolder(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mine.txtar"), []byte("-- 1.answer --\n200\nContent-Type: text/plain\n-- 1.body --\nmine\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := post(t, start(t, "-dir", dir), `{"model":"mine",`+rest+`}`); got != "mine\n" {
		t.Errorf("got %q", got)
	}
}

func TestBench(t *testing.T) {
	url := start(t, "-fast", "50")
	flushed := post(t, url, `{"model":"bench","stream":true,`+rest+`}`)
	if n := strings.Count(flushed, "data: {"); n != 53 || !strings.HasSuffix(flushed, "data: [DONE]\n\n") {
		t.Errorf("got %d chunks: %q", n, flushed)
	}
	if got := post(t, url, `{"model":"bench-buffered","stream":true,`+rest+`}`); got != flushed {
		t.Errorf("the buffered stream differs: %q", got)
	}
	if got := post(t, url, `{"model":"bench",`+rest+`}`); !strings.Contains(got, "word1 word2 ") || !strings.Contains(got, `"completion_tokens":50`) {
		t.Errorf("whole: got %q", got)
	}
	if got := post(t, url, `{"model":"hello",`+rest+`}`); !strings.Contains(got, "Good morning") {
		t.Errorf("scenarios beside the bench: got %q", got)
	}
}

// TestStopsWhileAStreamHangs holds that a termination ends a stream that would
// not end by itself.
func TestStopsWhileAStreamHangs(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, in := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- run(ctx, nil, in, io.Discard) }()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	url := strings.TrimPrefix(strings.TrimSpace(line), "listening on ")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/chat/completions", strings.NewReader(`{"model":"hang",`+rest+`}`))
	if err != nil {
		t.Fatal(err)
	}
	res, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	cancel()
	if err := <-done; err != nil {
		t.Errorf("run: %v", err)
	}
	_, _ = io.Copy(io.Discard, res.Body) // ends, in whatever way
}

func TestCalledWrongly(t *testing.T) {
	for _, args := range [][]string{{"-nope"}, {"extra"}, {"-fast", "-1"}} {
		if err := run(t.Context(), args, io.Discard, io.Discard); !errors.Is(err, errUsage) {
			t.Errorf("%v: got %v", args, err)
		}
	}
	for want, args := range map[string][]string{
		"listen": {"-addr", "256.0.0.1:0"},
		"kind":   {"-kind", "abacus"},
		"txtar":  {"-dir", t.TempDir()},
	} {
		if err := run(t.Context(), args, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v, want %q", args, err, want)
		}
	}
}

func BenchmarkStream(b *testing.B) {
	h := newBench(2000, http.NotFoundHandler())
	b.ReportAllocs()
	for b.Loop() {
		h.play(nowhere{http.Header{}}, true)
	}
}

// nowhere takes what is written and keeps nothing.
type nowhere struct{ header http.Header }

func (n nowhere) Header() http.Header         { return n.header }
func (n nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (n nowhere) WriteHeader(int)             {}
func (n nowhere) Flush()                      {}
