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

// question is a request body of about 2.3 KB with one tool, as a client of a
// small assistant sends it.
func question(model string, stream bool) []byte {
	mode := ""
	if stream {
		mode = `"stream":true,"stream_options":{"include_usage":true},`
	}
	line := "The warehouse in Lyon reports that pallets of the spring order stand two days behind the plan, and asks who tells the customer. "
	return fmt.Appendf(nil, `{"model":%q,%s"temperature":0.2,"max_tokens":512,"messages":[`+
		`{"role":"system","content":"You help the people of a small company with their mail. Answer in two sentences, and never invent a date."},`+
		`{"role":"user","content":"%s"},`+
		`{"role":"assistant","content":"The order left on Tuesday and should be there by Friday."},`+
		`{"role":"user","content":"Then write the customer a short note about it, please."}],`+
		`"tools":[{"type":"function","function":{"name":"find_order","description":"Finds one order by its number and tells where it is, what it holds and who is responsible for it.",`+
		`"parameters":{"type":"object","properties":{"number":{"type":"string","description":"The number of the order, with the letters before it."},`+
		`"year":{"type":"integer","description":"The year in which it was placed; the current one when left out."},`+
		`"fields":{"type":"array","items":{"type":"string","enum":["place","contents","owner","history"]},"description":"What to tell; everything when left out."}},`+
		`"required":["number"],"additionalProperties":false}}}],"tool_choice":"auto"}`,
		model, mode, strings.Repeat(line, 9))
}

// newClient makes the client side of a load: one pool of connections, no
// proxies, no compression.
func newClient(conns int) (*http.Client, func()) {
	t := &http.Transport{MaxIdleConnsPerHost: conns, MaxConnsPerHost: conns, DisableCompression: true, ReadBufferSize: 32 << 10}
	return &http.Client{Transport: t}, t.CloseIdleConnections
}

// ask sends a request and returns its open answer.
func ask(ctx context.Context, client *http.Client, url string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		defer res.Body.Close()
		text, _ := io.ReadAll(res.Body) // as much as there is
		return nil, fmt.Errorf("answered %s: %s", res.Status, text)
	}
	return res, nil
}

// drive sends a request n times over the connections and has each answer
// checked. It returns the first error.
func drive(ctx context.Context, url string, body []byte, n int, check func([]byte) error) error {
	client, done := newClient(connections)
	defer done()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range connections {
		wg.Go(func() {
			var answer bytes.Buffer
			for next.Add(1) <= int64(n) {
				if err := once(ctx, client, url, body, &answer, check); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

func once(ctx context.Context, client *http.Client, url string, body []byte, answer *bytes.Buffer, check func([]byte) error) error {
	res, err := ask(ctx, client, url, body)
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
