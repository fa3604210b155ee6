package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metier-run/metier/internal/app"
	"github.com/metier-run/metier/internal/config"
)

// These gates hold what a bench cannot: counts, which no busy machine changes.
// Upstream, server and client are real and speak over loopback, in one process.

// gate is a server in front of an upstream, with what is counted of it.
type gate struct {
	url     string
	flushes atomic.Int64 // of answers, by the door
	writes  atomic.Int64 // on connections of clients
	dials   atomic.Int64 // to the upstream
}

// newGate serves, without skills, what the upstream answers.
func newGate(t *testing.T, upstream http.HandlerFunc) *gate {
	t.Helper()
	g := &gate{}
	up := httptest.NewUnstartedServer(upstream)
	up.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			g.dials.Add(1)
		}
	}
	up.Start()
	t.Cleanup(up.Close)
	limits, err := config.Values{}.Set(config.UpstreamRounds, manyRounds)
	if err != nil {
		t.Fatal(err)
	}
	a, err := app.Open(t.Context(), app.Settings{
		Home: t.TempDir(), NoSkills: true, Limits: limits, Upstream: app.Upstream{URL: up.URL + "/v1", Type: "openai"},
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close) // after the server, which is closed before it
	inner := a.Server(true)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inner.ServeHTTP(&countingWriter{ResponseWriter: w, flushes: &g.flushes}, r)
	}))
	s.Listener = countingListener{s.Listener, &g.writes}
	s.Start()
	t.Cleanup(s.Close)
	g.url = s.URL
	return g
}

type countingWriter struct {
	http.ResponseWriter
	flushes *atomic.Int64
}

func (w *countingWriter) FlushError() error {
	w.flushes.Add(1)
	return http.NewResponseController(w.ResponseWriter).Flush()
}

type countingListener struct {
	net.Listener
	writes *atomic.Int64
}

func (l countingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return countingConn{c, l.writes}, nil
}

type countingConn struct {
	net.Conn
	writes *atomic.Int64
}

func (c countingConn) Write(b []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(b)
}

// chunk is an event with a word.
func chunk(i int) []byte {
	return fmt.Appendf(nil, `data: {"id":"chatcmpl-gate","object":"chat.completion.chunk","created":1767225600,"model":"gate","choices":[{"index":0,"delta":{"content":"word%d "},"finish_reason":null}]}`+"\n\n", i)
}

// ending is what a stream ends with.
const ending = `data: {"id":"chatcmpl-gate","object":"chat.completion.chunk","created":1767225600,"model":"gate","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n" +
	`data: {"id":"chatcmpl-gate","object":"chat.completion.chunk","created":1767225600,"model":"gate","choices":[],"usage":{"prompt_tokens":8,"completion_tokens":9,"total_tokens":17}}` + "\n\n" +
	"data: [DONE]\n\n"

// wordStream is a stream of n words and what is around them.
func wordStream(n int) []byte {
	var b bytes.Buffer
	b.WriteString(`data: {"id":"chatcmpl-gate","object":"chat.completion.chunk","created":1767225600,"model":"gate","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}` + "\n\n")
	for i := range n {
		b.Write(chunk(i + 1))
	}
	b.WriteString(ending)
	return b.Bytes()
}

// sendAtOnce answers with a stream in one write.
func sendAtOnce(stream []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write(stream)
	}
}

// TestGateFlushesOfAStreamThatIsThereAtOnce holds that chunks which came together
// leave together: a flush is a system call and costs more than a chunk.
func TestGateFlushesOfAStreamThatIsThereAtOnce(t *testing.T) {
	const words = 2000
	g := newGate(t, sendAtOnce(wordStream(words)))
	if err := drive(t.Context(), g.url, question("gate", true), 1, wholeStream(words+framingChunks)); err != nil {
		t.Fatal(err)
	}
	const most = words / 8 // a read of the upstream brings about twenty
	if n := g.flushes.Load(); n > most {
		t.Errorf("%d chunks that came at once were flushed %d times, more than %d", words, n, most)
	}
	if n := g.writes.Load(); n > most {
		t.Errorf("%d chunks that came at once were sent in %d writes, more than %d", words, n, most)
	}
	t.Logf("%d flushes, %d writes", g.flushes.Load(), g.writes.Load())
}

// TestGateNoChunkWaitsForTheNext holds the other side: a chunk that is alone is sent
// before the next one is there. The upstream goes on only when the client has
// what was sent.
func TestGateNoChunkWaitsForTheNext(t *testing.T) {
	const words = 20
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	arrived := make(chan struct{})
	g := newGate(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range words {
			_, _ = w.Write(chunk(i + 1))
			_ = http.NewResponseController(w).Flush()
			select {
			case <-arrived:
			case <-r.Context().Done():
				return
			}
		}
		_, _ = io.WriteString(w, ending)
	})
	client, done := newClient(1)
	defer done()
	res, err := ask(ctx, client, g.url, question("gate", true))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var all []byte
	buf := make([]byte, 4<<10)
	for seen := 0; seen < words; {
		n, err := res.Body.Read(buf)
		if err != nil {
			t.Fatalf("after %d chunks: %v", seen, err)
		}
		all = append(all, buf[:n]...)
		for ; seen < bytes.Count(all, []byte("\n\n")); seen++ {
			arrived <- struct{}{}
		}
	}
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		t.Fatal(err)
	}
	if n := g.flushes.Load(); n < words {
		t.Errorf("%d chunks that came one by one were flushed %d times", words, n)
	}
}

// TestGateConnectionsAreUsedAgain holds that the pool carries many requests over few
// connections, whether the end mark came with the end of the body or before it.
func TestGateConnectionsAreUsedAgain(t *testing.T) {
	for name, upstream := range map[string]http.HandlerFunc{
		"end mark with the body's end": sendAtOnce(wordStream(3)),
		"end mark before it": func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", "text/event-stream")
			for part := range bytes.SplitAfterSeq(wordStream(3), []byte("\n\n")) {
				_, _ = w.Write(part)
				_ = http.NewResponseController(w).Flush()
			}
		},
	} {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, stream %t", name, stream), func(t *testing.T) {
				g := newGate(t, upstream)
				const requests = 200
				check := func(b []byte) error {
					if !bytes.Contains(b, []byte("word3 ")) {
						return fmt.Errorf("the answer is not whole: %q", b)
					}
					return nil
				}
				if err := drive(t.Context(), g.url, question("gate", stream), requests, check); err != nil {
					t.Fatal(err)
				}
				// An upstream's connection is free a moment after its answer's end, so
				// some requests find none; a dial a request is what must not be.
				if n := g.dials.Load(); n > 3*connections {
					t.Errorf("%d requests, %d at a time, took %d connections to the upstream, more than %d", requests, connections, n, 3*connections)
				}
				t.Logf("%d dials", g.dials.Load())
			})
		}
	}
}

// TestGateAllocationsAChunk holds what a chunk costs from the upstream's bytes to
// the client's: the difference between a long stream and a longer one, so that
// what a request costs is not in it.
func TestGateAllocationsAChunk(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates; make test-fast runs without it")
	}
	const short, long, times = 1000, 3000, 5
	per := float64(mallocs(t, long, times)-mallocs(t, short, times)) / float64(long-short) / times
	t.Logf("%.2f allocations a chunk", per)
	if per > mostMallocs {
		t.Errorf("%.2f allocations a chunk, more than %.2f", per, mostMallocs)
	}
}

// mostMallocs is what a chunk may allocate in server, upstream and client
// together. The last two take none.
const mostMallocs = 1.3

// mallocs counts the allocations of streams of n words, after one that warms up.
func mallocs(t *testing.T, n, times int) uint64 {
	g := newGate(t, sendAtOnce(wordStream(n)))
	client, done := newClient(1)
	defer done()
	r := question("gate", true)
	var answer bytes.Buffer
	var before, after runtime.MemStats
	for i := range times + 1 {
		if i == 1 {
			runtime.ReadMemStats(&before)
		}
		if err := once(t.Context(), client, g.url, r, &answer, wholeStream(n+framingChunks)); err != nil {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	return after.Mallocs - before.Mallocs
}

// TestGateConcurrentStreams holds that streams don't wait for each other: all are
// open, each with its first chunk at its client, before any may go on.
func TestGateConcurrentStreams(t *testing.T) {
	const n = 200
	var wg sync.WaitGroup
	wg.Add(n)
	all := make(chan struct{})
	go func() { wg.Wait(); close(all) }()
	g := newGate(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write(chunk(1))
		_ = http.NewResponseController(w).Flush()
		select {
		case <-all:
			_, _ = io.WriteString(w, ending)
		case <-r.Context().Done():
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	client, done := newClient(n)
	defer done()
	errs := make(chan error, n)
	for range n {
		go func() { errs <- oneOfMany(ctx, client, g.url, &wg) }()
	}
	for range n {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	// One more may be what the upstream was asked about its model with.
	if d := g.dials.Load(); d < n || d > n+1 {
		t.Errorf("%d streams at once took %d connections to the upstream", n, d)
	}
}

func oneOfMany(ctx context.Context, client *http.Client, url string, first *sync.WaitGroup) error {
	res, err := ask(ctx, client, url, question("gate", true))
	if err != nil {
		return err
	}
	defer res.Body.Close()
	one := make([]byte, 1)
	if _, err := res.Body.Read(one); err != nil {
		return err
	}
	first.Done()
	rest, err := io.ReadAll(res.Body)
	if err == nil && !bytes.HasSuffix(rest, []byte("data: [DONE]\n\n")) {
		err = fmt.Errorf("the stream is not whole: %q", rest)
	}
	return err
}

// TestGateLateEnd: an upstream that ends its body after the end mark keeps its connection.
func TestGateLateEnd(t *testing.T) {
	g := newGate(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write(wordStream(3))
		_ = http.NewResponseController(w).Flush()
		select { // the body's end comes a moment later than the mark
		case <-time.After(5 * time.Millisecond):
		case <-r.Context().Done():
		}
	})
	for range 50 {
		if err := drive(t.Context(), g.url, question("gate", true), 1, wholeStream(6)); err != nil {
			t.Fatal(err)
		}
	}
	if n := g.dials.Load(); n > 3 {
		t.Errorf("50 requests one after the other took %d connections to the upstream", n)
	}
}
