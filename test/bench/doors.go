package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
)

// dialect is a door other than Chat Completions: the same question in its words, and
// what a whole answer of it ends in.
type dialect struct {
	name string
	ask  func(model string, stream bool) request
	// end is the end of a stream, and total what holds the count of words.
	end, total string
	streamOnly bool
	// sessions: one answer at a time in each, so every connection has its own.
	sessions bool
}

func dialects() []dialect {
	return []dialect{
		{"responses", askResponses, "\n\n", `"output_tokens":%d`, false, false},
		{"messages", askMessages, "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n", `"output_tokens":%d`, false, false},
		{"ollama", askOllama, "}\n", `"eval_count":%d`, false, false},
		{"web", askWeb, "\n\n", `"tokenCount":%d`, true, true},
	}
}

// check is of a whole answer: its last word, its count of words, and its end.
func (d dialect) check(words int, stream bool) func([]byte) error {
	last, total := fmt.Appendf(nil, `word%d "`, words), fmt.Appendf(nil, d.total, words)
	return func(b []byte) error {
		if !bytes.Contains(b, last) || !bytes.Contains(b, total) || stream && !bytes.HasSuffix(b, []byte(d.end)) {
			return fmt.Errorf("the answer at the door %s is not whole: …%q", d.name, b[max(0, len(b)-400):])
		}
		return nil
	}
}

func askResponses(model string, stream bool) request {
	return request{path: "/v1/responses", body: fmt.Appendf(nil, `{"model":%q,"stream":%t,"store":false,"temperature":0.2,"max_output_tokens":512,"instructions":%q,"input":[%s],`+
		`"tools":[{"type":"function","name":"find_order","description":%q,"parameters":%s,"strict":false}],"tool_choice":"auto"}`,
		model, stream, system, conversation(), tells, schema)}
}

func askMessages(model string, stream bool) request {
	return request{path: "/v1/messages", header: "anthropic-version: 2023-06-01", body: fmt.Appendf(nil, `{"model":%q,"stream":%t,"temperature":0.2,"max_tokens":512,"system":%q,"messages":[%s],`+
		`"tools":[{"name":"find_order","description":%q,"input_schema":%s}],"tool_choice":{"type":"auto"}}`,
		model, stream, system, conversation(), tells, schema)}
}

func askOllama(model string, stream bool) request {
	return request{path: "/api/chat", body: fmt.Appendf(nil, `{"model":%q,"stream":%t,"options":{"temperature":0.2,"num_predict":512},"messages":[{"role":"system","content":%q},%s],`+
		`"tools":[{"type":"function","function":{"name":"find_order","description":%q,"parameters":%s}}]}`,
		model, stream, system, conversation(), tells, schema)}
}

func askWeb(model string, _ bool) request {
	r := question(model, false)
	body := strings.Replace(string(r.body), `{"model":`, `{"use_model":`, 1)
	for _, left := range []string{`"temperature":0.2,`, `,"tool_choice":"auto"`} {
		body = strings.Replace(body, left, "", 1)
	}
	return request{path: "/api/chat", body: []byte(strings.Replace(body, `"max_tokens"`, `"maxTokens"`, 1))}
}

// inSessions is a request for each connection, in a session of its own.
func inSessions(ctx context.Context, url string, r request) (request, error) {
	client, done := newClient(1)
	defer done()
	for range connections {
		res, err := ask(ctx, client, url, request{path: "/api/sessions"})
		if err != nil {
			return r, err
		}
		var made struct {
			ID string `json:"sessionId"`
		}
		err = json.UnmarshalRead(res.Body, &made)
		if err = errors.Join(err, res.Body.Close()); err != nil {
			return r, fmt.Errorf("make a session: %w", err)
		}
		r.bodies = append(r.bodies, fmt.Appendf(nil, `{"sessionId":%q,%s`, made.ID, r.body[1:]))
	}
	return r, nil
}

// doorLoads are a plain request and a short stream at each door. The reverse proxy, which
// knows no dialect, is asked in the upstream's.
func doorLoads(s sizes) []cpuLoad {
	var loads []cpuLoad
	for _, d := range dialects() {
		if !d.streamOnly {
			loads = append(loads, cpuLoad{
				name: "door-" + d.name, title: "the same buffered request at the door " + d.name, unit: "us CPU a request",
				model: modelAtOnce, requests: s.short, units: 1, door: &d,
			})
		}
		loads = append(loads, cpuLoad{
			name: "door-" + d.name + "-stream-50", title: "the same stream of 50 chunks at the door " + d.name, unit: "us CPU a stream",
			model: modelFlushed, stream: true, requests: s.streams, units: 1, door: &d,
		})
	}
	return loads
}

// peer is another gateway as it was measured once, on a machine of two cores like those
// of the builds: microseconds of processor time.
type peer struct{ name, request, stream, memory string }

// peers are for orientation: they did not run beside this run.
func peers() []peer {
	return []peer{
		{"GoModel", "477-490", "700-740", "33"},
		{"Bifrost (a fork of April 2026)", "413-473", "1680-1740", "107"},
		{"llama-swap", "930-1280", "1020", "180-270"},
	}
}
