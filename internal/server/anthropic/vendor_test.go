package anthropic_test

import (
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/wire"
)

// vendor is a provider of this dialect that plays events, one list for each generation.
type vendor struct {
	t      *testing.T
	rounds [][]string
	errs   map[int]error // in place of a round's end, by its number from 1 on

	mu       sync.Mutex
	requests []*llm.Request
}

func (v *vendor) Dialect() llm.Dialect       { return llm.Anthropic }
func (v *vendor) Lost(*llm.Request) []string { return nil }

func (v *vendor) Capabilities(context.Context, string) (llm.Capabilities, error) {
	return llm.Capabilities{Declares: true, Parsed: true, Results: true}, nil
}

func (v *vendor) Models(context.Context) ([]llm.Model, error) {
	raw := `{"type":"model","id":"claude-x","display_name":"Claude X","created_at":"2026-02-03T00:00:00Z","max_input_tokens":200000}`
	return []llm.Model{{ID: "claude-x", Raw: llm.Raw{Dialect: llm.Anthropic, Bytes: jsontext.Value(raw)}}}, nil
}

// sent lists what was asked for.
func (v *vendor) sent() []*llm.Request {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.requests)
}

func (v *vendor) Stream(_ context.Context, r *llm.Request) iter.Seq2[llm.Piece, error] {
	v.mu.Lock()
	v.requests = append(v.requests, r)
	n := len(v.requests)
	v.mu.Unlock()
	return func(yield func(llm.Piece, error) bool) {
		if n > len(v.rounds) && v.errs[n] == nil {
			v.t.Errorf("round %d was asked for", n)
			yield(llm.Piece{}, &llm.StreamError{Message: "no such round"})
			return
		}
		var a llm.Assembler
		if n <= len(v.rounds) {
			tools := map[string]bool{} // the numbers of blocks that are calls
			for _, event := range v.rounds[n-1] {
				p, ok := pieceOf(jsontext.Value(event), tools)
				if !ok {
					continue
				}
				a.Add(p)
				if !yield(p, nil) {
					return
				}
			}
		}
		if err := v.errs[n]; err != nil {
			yield(llm.Piece{}, err)
			return
		}
		reply := a.Reply()
		yield(llm.Piece{Reply: &reply}, nil)
	}
}

// pieceOf is an event as the provider of the dialect gives it out.
func pieceOf(event jsontext.Value, tools map[string]bool) (llm.Piece, bool) {
	p := llm.Piece{Raw: llm.Raw{Dialect: llm.Anthropic, Bytes: event}}
	member := func(path ...string) string {
		v := event
		for _, name := range path {
			v = wire.Member(v, name)
		}
		if text, ok := wire.String(v); ok {
			return text
		}
		return string(v)
	}
	number := func(path ...string) (n int64) {
		_, _ = fmt.Sscan(member(path...), &n)
		return n
	}
	index := member("index")
	switch member("type") {
	case "ping", "message_stop":
		return p, false
	case "content_block_start":
		if member("content_block", "type") != "tool_use" {
			break
		}
		tools[index] = true
		return llm.Piece{Calls: []llm.CallDelta{{Index: len(tools) - 1, ID: member("content_block", "id"), Name: member("content_block", "name")}}}, true
	case "content_block_delta":
		p.Text, p.Reasoning = member("delta", "text"), member("delta", "thinking")
		if tools[index] {
			return llm.Piece{Calls: []llm.CallDelta{{Index: len(tools) - 1, Arguments: member("delta", "partial_json")}}}, true
		}
	case "message_delta":
		p.Finish = llm.Finish(member("delta", "stop_reason"))
		switch p.Finish {
		case "end_turn":
			p.Finish = llm.FinishStop
		case "tool_use":
			p.Finish = llm.FinishCalls
		case "max_tokens":
			p.Finish = llm.FinishLength
		}
		u := llm.Usage{Input: number("usage", "input_tokens"), Output: number("usage", "output_tokens"), Cached: number("usage", "cache_read_input_tokens")}
		u.Input += u.Cached
		u.Total = u.Input + u.Output
		p.Usage = &u
	}
	return p, true
}

// Events of the vendor. Each is written as the vendor writes it, members that no neutral
// form has included.

func began(input int) []string {
	return []string{
		fmt.Sprintf(`{"type":"message_start","message":{"id":"msg_up","type":"message","role":"assistant","model":"claude-x-0203","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":%d,"cache_creation_input_tokens":0,"cache_read_input_tokens":8,"output_tokens":1,"service_tier":"standard"},"container":null}}`, input),
		`{"type":"ping"}`,
	}
}

func ended(reason string, input, output int) []string {
	sequence := "null"
	if reason == "stop_sequence" {
		sequence = `"END"`
	}
	return []string{
		fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%q,"stop_sequence":%s},"usage":{"input_tokens":%d,"cache_creation_input_tokens":null,"cache_read_input_tokens":8,"output_tokens":%d,"server_tool_use":{"web_search_requests":1}},"context_management":{"applied_edits":[]}}`, reason, sequence, input, output),
		`{"type":"message_stop"}`,
	}
}

// blockOf is a block of the content with its deltas.
func blockOf(index int, start string, deltas ...string) []string {
	out := []string{fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, index, start)}
	for _, d := range deltas {
		out = append(out, fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":%s}`, index, d))
	}
	return append(out, fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, index))
}

func says(index int, texts ...string) []string {
	var deltas []string
	for _, text := range texts {
		deltas = append(deltas, fmt.Sprintf(`{"type":"text_delta","text":%q}`, text))
	}
	return blockOf(index, `{"type":"text","text":""}`, deltas...)
}

func thinks(index int, text, signature string) []string {
	return blockOf(index, `{"type":"thinking","thinking":"","signature":""}`,
		fmt.Sprintf(`{"type":"thinking_delta","thinking":%q}`, text), fmt.Sprintf(`{"type":"signature_delta","signature":%q}`, signature))
}

func calls(index int, id, name string, fragments ...string) []string {
	var deltas []string
	for _, f := range fragments {
		deltas = append(deltas, fmt.Sprintf(`{"type":"input_json_delta","partial_json":%q}`, f))
	}
	return blockOf(index, fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%q,"input":{}}`, id, name), deltas...)
}

// round is the events of one generation.
func round(parts ...[]string) []string { return slices.Concat(parts...) }

// read is the call by which a model reads a skill.
func read(index int) []string {
	return calls(index, "toolu_read", "skills_read", "", `{"skill":`, `"release-notes"}`)
}

// playing is an upstream that plays rounds over HTTP.
func playing(rounds [][]string) http.Handler {
	var n atomic.Int64
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i := int(n.Add(1)) - 1
		if r.URL.Path != "/v1/messages" || i >= len(rounds) {
			http.Error(w, "no such round", http.StatusTeapot)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, framesOf(rounds[i]))
	})
}

// framesOf writes events as they stand on the wire.
func framesOf(events []string) string {
	var b strings.Builder
	for _, e := range events {
		kind, _ := wire.String(wire.Member(jsontext.Value(e), "type"))
		kind, _, _ = strings.Cut(kind, "\n") // what is hostile stands in the data
		fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", kind, e)
	}
	return b.String()
}
