package anthropic_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/llm/anthropic"
)

// ear answers everything alike and keeps what came.
type ear struct {
	mu     sync.Mutex
	paths  []string
	header http.Header
	body   string
	answer func(w http.ResponseWriter, n int)
}

func (e *ear) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	e.mu.Lock()
	e.paths = append(e.paths, r.URL.String())
	e.header, e.body = r.Header, string(body)
	n := len(e.paths)
	e.mu.Unlock()
	e.answer(w, n)
}

func hello(w http.ResponseWriter, _ int) { _, _ = io.WriteString(w, text(1, 1, "hi")) }

func ask(ctx context.Context, p llm.Provider, r *llm.Request) (*llm.Reply, error) {
	for piece, err := range p.Stream(ctx, r) {
		if err != nil {
			return nil, err
		}
		if piece.Reply != nil {
			return piece.Reply, nil
		}
	}
	return nil, errors.New("no reply")
}

// TestKey: each version of the API has a key in a header of its own, the host's goes before
// the client's, and a token of a subscription is a bearer's whatever the version.
func TestKey(t *testing.T) {
	const old, new = anthropic.Version2023, anthropic.Version2026
	for name, c := range map[string]struct {
		own, client, version string
		dialect              llm.Dialect
		bearer, key, sent    string
	}{
		"own, old":            {"own", "Bearer theirs", old, llm.Anthropic, "", "own", old},
		"own, new":            {"own", "Bearer theirs", new, llm.Anthropic, "Bearer own", "", new},
		"theirs, old":         {"", "Bearer theirs", old, llm.Anthropic, "", "theirs", old},
		"theirs, new":         {"", "Bearer theirs", new, llm.Anthropic, "Bearer theirs", "", new},
		"a token, old":        {"", "Bearer sk-ant-oat-x", old, llm.Anthropic, "Bearer sk-ant-oat-x", "", old},
		"another dialect":     {"", "Bearer theirs", new, llm.OpenAIChat, "", "theirs", old},
		"another, own":        {"own", "Bearer theirs", "", llm.OpenAIChat, "", "own", old},
		"none":                {"", "", "", llm.Anthropic, "", "", old},
		"another scheme, old": {"", "Basic eA==", old, llm.Anthropic, "Basic eA==", "", old},
	} {
		e := &ear{answer: hello}
		p := connect(t, e, anthropic.Options{Key: config.NewSecret(c.own)})
		h := http.Header{"Anthropic-Beta": {"b"}}
		if c.client != "" {
			h.Set(llm.Authorization, c.client)
		}
		if c.version != "" {
			h.Set("Anthropic-Version", c.version)
		}
		if _, err := ask(t.Context(), p, &llm.Request{Dialect: c.dialect, Model: "m", Messages: []llm.Message{llm.TextMessage(llm.User, "x")}, Header: h}); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := []string{e.header.Get("Authorization"), e.header.Get("X-Api-Key"), e.header.Get("Anthropic-Version"), e.header.Get("Anthropic-Beta")}
		beta := "b"
		if c.dialect != llm.Anthropic {
			beta = ""
		}
		if diff := cmp.Diff([]string{c.bearer, c.key, c.sent, beta}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestKeyIsNotQuoted: an upstream that repeats the host's key does not give it away.
func TestKeyIsNotQuoted(t *testing.T) {
	const own = "sk-ant-secret-of-the-host"
	for name, answer := range map[string]func(http.ResponseWriter, int){
		"refused": func(w http.ResponseWriter, _ int) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"type":"error","error":{"type":"invalid_request_error","message":"the key `+own+` is odd"}}`)
		},
		"inside": func(w http.ResponseWriter, _ int) {
			_, _ = io.WriteString(w, begin(`{}`)+said(`{"type":"error","error":{"type":"api_error","message":"the key %s is odd"}}`, own))
		},
		"of the host": func(w http.ResponseWriter, _ int) {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"type":"error","error":{"type":"authentication_error","message":"`+own+`"}}`)
		},
	} {
		p := connect(t, &ear{answer: answer}, anthropic.Options{Key: config.NewSecret(own)})
		_, err := ask(t.Context(), p, &llm.Request{Model: "m", Messages: []llm.Message{llm.TextMessage(llm.User, "x")}})
		if err == nil || strings.Contains(err.Error(), own) {
			t.Errorf("%s: %v", name, err)
		}
		if name == "of the host" && fault.From(err).Code != fault.Upstream {
			t.Errorf("%s: %v is the caller's fault", name, err)
		}
	}
}

// TestCountTokens: what the route refuses is left out of the request, and a number that is
// none is an error.
func TestCountTokens(t *testing.T) {
	number := "42"
	e := &ear{answer: func(w http.ResponseWriter, _ int) { _, _ = io.WriteString(w, `{"input_tokens":`+number+`}`) }}
	p := connect(t, e, anthropic.Options{})
	r := &llm.Request{Dialect: llm.OpenAIChat, Model: "m", Messages: []llm.Message{llm.TextMessage(llm.User, "x")}, Options: llm.Options{MaxTokens: 5, Stop: []string{"y"}}}
	n, err := p.CountTokens(t.Context(), r)
	if want := `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"x"}]}]}`; err != nil || n != 42 || e.body != want || e.paths[0] != "/v1/messages/count_tokens" {
		t.Errorf("%d, %v, of %s at %v", n, err, e.body, e.paths)
	}
	for _, number = range []string{"-1", `"x"`, "null"} {
		if _, err := p.CountTokens(t.Context(), r); err == nil {
			t.Errorf("%s counts as a number", number)
		}
	}
}

// TestModels: all pages are read, and an upstream that never ends its list is left.
func TestModels(t *testing.T) {
	e := &ear{answer: func(w http.ResponseWriter, n int) {
		if n == 1 {
			_, _ = io.WriteString(w, `{"data":[{"type":"model","id":"a"}],"has_more":true,"last_id":"a b"}`)
			return
		}
		_, _ = io.WriteString(w, `{"data":[{"id":"c"},{}],"has_more":false}`)
	}}
	models, err := connect(t, e, anthropic.Options{}).Models(t.Context())
	if err != nil || len(models) != 2 || models[0].ID != "a" || models[1].ID != "c" || !models[0].Raw.Is(llm.Anthropic) {
		t.Errorf("%+v, %v", models, err)
	}
	if diff := cmp.Diff([]string{"/v1/models?limit=1000", "/v1/models?limit=1000&after_id=a+b"}, e.paths); diff != "" {
		t.Error(diff)
	}
	endless := &ear{answer: func(w http.ResponseWriter, n int) {
		_, _ = io.WriteString(w, `{"data":[{"id":"a"}],"has_more":true,"last_id":"`+strings.Repeat("x", n)+`"}`)
	}}
	if models, err := connect(t, endless, anthropic.Options{}).Models(t.Context()); err != nil || len(models) != len(endless.paths) || len(models) > 10 {
		t.Errorf("%d models in %d pages, %v", len(models), len(endless.paths), err)
	}
}

// TestReplyGoesBack: what the model wrote comes back to it as it was, with what only its
// vendor understands, and in the parts that the host reads.
func TestReplyGoesBack(t *testing.T) {
	e := &ear{answer: func(w http.ResponseWriter, _ int) {
		_, _ = io.WriteString(w, begin(`{"input_tokens":3,"cache_creation_input_tokens":2,"cache_read_input_tokens":1}`)+
			block(0, `{"type":"thinking","thinking":"","signature":""}`, `{"type":"thinking_delta","thinking":"h\u00e9"}`, `{"type":"signature_delta","signature":"c2ln"}`)+
			block(1, `{"type":"redacted_thinking","data":"x"}`)+
			block(2, `{"type":"text","text":""}`)+
			block(3, `{"type":"text","text":"","citations":[]}`, `{"type":"text_delta","text":"So."}`, `{"type":"citations_delta","citation":{"n":1}}`, `{"type":"citations_delta","citation":{"n":2}}`)+
			block(4, `{"type":"server_tool_use","id":"s","name":"web_search","input":{}}`, `{"type":"input_json_delta","partial_json":"{\"q\":1}"}`)+
			block(5, `{"type":"later","k":"a"}`, `{"type":"later_delta","k":"b"}`)+
			use(6, "c", "f", `{"a":1}`)+stop("tool_use", `{"output_tokens":9}`))
	}}
	p := connect(t, e, anthropic.Options{})
	r := &llm.Request{Model: "m", Messages: []llm.Message{llm.TextMessage(llm.User, "x")}}
	reply, err := ask(t.Context(), p, r)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "reply.json", string(reply.Message.Raw.Bytes)+"\n")
	if got := reply.Message.Text(); got != "So." || len(reply.Message.Calls) != 1 || reply.Message.Parts[0].Text != "hé" {
		t.Errorf("%+v", reply.Message)
	}
	if want := (llm.Usage{Input: 6, Output: 9, Total: 15, Cached: 1, Written: 2}); reply.Usage != want {
		t.Errorf("usage %+v, want %+v", reply.Usage, want)
	}
	r.Messages = append(r.Messages, reply.Message)
	if _, err := ask(t.Context(), p, r); err != nil || !strings.Contains(e.body, string(reply.Message.Raw.Bytes)) {
		t.Errorf("%v, sent back as %s", err, e.body)
	}
}
