package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
)

// connections is how many requests of a load run at once.
const connections = 8

// request is what a load asks, again and again.
type request struct {
	path   string
	header string // its name and value, if there is one
	body   []byte
	// bodies are those of the connections, where each needs its own.
	bodies [][]byte
}

// The words of a request, whatever the dialect.
const (
	system = "You help the people of a small company with their mail. Answer in two sentences, and never invent a date."
	line   = "The warehouse in Lyon reports that pallets of the spring order stand two days behind the plan, and asks who tells the customer. "
	told   = "The order left on Tuesday and should be there by Friday."
	asked  = "Then write the customer a short note about it, please."
	tells  = "Finds one order by its number and tells where it is, what it holds and who is responsible for it."
	schema = `{"type":"object","properties":{"number":{"type":"string","description":"The number of the order, with the letters before it."},` +
		`"year":{"type":"integer","description":"The year in which it was placed; the current one when left out."},` +
		`"fields":{"type":"array","items":{"type":"string","enum":["place","contents","owner","history"]},"description":"What to tell; everything when left out."}},` +
		`"required":["number"],"additionalProperties":false}`
)

// question is a request of about 2.3 KB with one tool, as a client of a small assistant
// sends it, in Chat Completions.
func question(model string, stream bool) request {
	mode := ""
	if stream {
		mode = `"stream":true,"stream_options":{"include_usage":true},`
	}
	return request{path: "/v1/chat/completions", body: fmt.Appendf(nil, `{"model":%q,%s"temperature":0.2,"max_tokens":512,"messages":[{"role":"system","content":%q},%s],`+
		`"tools":[{"type":"function","function":{"name":"find_order","description":%q,"parameters":%s}}],"tool_choice":"auto"}`,
		model, mode, system, conversation(), tells, schema)}
}

// conversation is the messages behind the system's, which most dialects write alike.
func conversation() string {
	return fmt.Sprintf(`{"role":"user","content":%q},{"role":"assistant","content":%q},{"role":"user","content":%q}`, strings.Repeat(line, 9), told, asked)
}

// newClient makes the client side of a load: one pool of connections, no
// proxies, no compression.
func newClient(conns int) (*http.Client, func()) {
	t := &http.Transport{MaxIdleConnsPerHost: conns, MaxConnsPerHost: conns, DisableCompression: true, ReadBufferSize: 32 << 10}
	return &http.Client{Transport: t}, t.CloseIdleConnections
}

// ask sends a request and returns its open answer.
func ask(ctx context.Context, client *http.Client, url string, r request) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+r.path, bytes.NewReader(r.body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if name, value, ok := strings.Cut(r.header, ": "); ok {
		req.Header.Set(name, value)
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK && res.StatusCode != http.StatusCreated {
		defer res.Body.Close()
		text, _ := io.ReadAll(res.Body) // as much as there is
		return nil, fmt.Errorf("answered %s: %s", res.Status, text)
	}
	return res, nil
}

// drive sends a request n times over the connections and has each answer
// checked. It returns the first error.
func drive(ctx context.Context, url string, r request, n int, check func([]byte) error) error {
	client, done := newClient(connections)
	defer done()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var wg sync.WaitGroup
	for i := range connections {
		r := r
		if r.bodies != nil {
			r.body = r.bodies[i]
		}
		wg.Go(func() {
			var answer bytes.Buffer
			for next.Add(1) <= int64(n) {
				if err := once(ctx, client, url, r, &answer, check); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

func once(ctx context.Context, client *http.Client, url string, r request, answer *bytes.Buffer, check func([]byte) error) error {
	res, err := ask(ctx, client, url, r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	answer.Reset()
	if _, err := answer.ReadFrom(res.Body); err != nil {
		return err
	}
	return check(answer.Bytes())
}

// wholeStream checks a stream by its count of chunks and its end.
func wholeStream(chunks int) func([]byte) error {
	return func(b []byte) error {
		if n := bytes.Count(b, []byte("data: {")); n != chunks || !bytes.HasSuffix(b, []byte("data: [DONE]\n\n")) {
			return fmt.Errorf("the stream has %d chunks, not %d, and ends in %q", n, chunks, b[max(0, len(b)-80):])
		}
		return nil
	}
}

// wholeAnswer checks a buffered answer by its last word and its count of tokens.
func wholeAnswer(words int) func([]byte) error {
	last, tokens := fmt.Appendf(nil, `word%d "`, words), fmt.Appendf(nil, `"completion_tokens":%d`, words)
	return func(b []byte) error {
		if !bytes.Contains(b, last) || !bytes.Contains(b, tokens) {
			return fmt.Errorf("the answer is not whole: %q", b)
		}
		return nil
	}
}
