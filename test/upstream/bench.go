package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
)

// The models of a bench. Both stream the same bytes, or answer whole when no
// stream is asked for; a stream of the first is flushed at every chunk, one of
// the second when the server's buffer is full.
const (
	modelFlushed  = "bench"
	modelBuffered = "bench-buffered"
)

// bench answers its two models from bytes that were made beforehand, and leaves
// all else to the next handler.
type bench struct {
	chunks [][]byte
	stream []byte // the chunks, joined
	whole  []byte
	next   http.Handler
}

func newBench(n int, next http.Handler) *bench {
	b := &bench{next: next}
	chunk := func(body string) {
		b.chunks = append(b.chunks, []byte("data: {\"id\":\"chatcmpl-bench\",\"object\":\"chat.completion.chunk\",\"created\":1767225600,\"model\":\"bench\","+body+"}\n\n"))
	}
	choice := func(delta, finish string) {
		chunk(fmt.Sprintf(`"choices":[{"index":0,"delta":{%s},"finish_reason":%s}]`, delta, finish))
	}
	var text strings.Builder
	choice(`"role":"assistant","content":""`, "null")
	for i := range n {
		word := fmt.Sprintf("word%d ", i+1)
		text.WriteString(word)
		choice(`"content":"`+word+`"`, "null")
	}
	choice("", `"stop"`)
	usage := fmt.Sprintf(`"usage":{"prompt_tokens":8,"completion_tokens":%d,"total_tokens":%d}`, n, n+8)
	chunk(`"choices":[],` + usage)
	b.chunks = append(b.chunks, []byte("data: [DONE]\n\n"))
	b.stream = bytes.Join(b.chunks, nil)
	b.whole = fmt.Appendf(nil, `{"id":"chatcmpl-bench","object":"chat.completion","created":1767225600,"model":"bench",`+
		`"choices":[{"index":0,"message":{"role":"assistant","content":"%s"},"finish_reason":"stop"}],%s}`, text.String(), usage)
	return b
}

// ServeHTTP answers the models of a bench.
func (b *bench) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		b.next.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var asked struct {
		Model  string `json:"model"`
		Stream bool   `json:"stream"`
	}
	// A body that is no request is for the next handler to refuse.
	bad := json.Unmarshal(body, &asked) != nil
	switch {
	case bad || asked.Model != modelFlushed && asked.Model != modelBuffered:
		r.Body = io.NopCloser(bytes.NewReader(body))
		b.next.ServeHTTP(w, r)
	case asked.Stream:
		b.play(w, asked.Model == modelFlushed)
	default:
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(b.whole) // a client that is gone needs no answer
	}
}

func (b *bench) play(w http.ResponseWriter, flush bool) {
	w.Header().Set("Content-Type", "text/event-stream")
	if !flush {
		_, _ = w.Write(b.stream) // a client that is gone needs no answer
		return
	}
	rc := http.NewResponseController(w)
	for _, c := range b.chunks {
		if _, err := w.Write(c); err != nil {
			return
		}
		if err := rc.Flush(); err != nil {
			return
		}
	}
}
