package anthropic

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/llm/upstream"
	"github.com/metier-run/metier/internal/wire"
)

// Options set up a [Provider].
type Options struct {
	// Base is the URL that /v1/messages hangs on, for example https://api.anthropic.com; it
	// may end in /v1.
	Base *url.URL
	// Key is the host's own, sent in the header that the version of a request has it in.
	// Without one the client's own credential goes through.
	Key config.Secret
	// Version is the API's for requests of other dialects; empty means [Version2023], which
	// every server of the dialect speaks.
	Version string
	// Transport carries all requests; see [upstream.NewTransport].
	Transport http.RoundTripper
	Limits    config.Values
	// NewID names calls that an upstream left without an id.
	NewID func() string
}

// Provider is one upstream that speaks Messages. It is safe for concurrent use.
type Provider struct {
	client  *upstream.Client
	version string
	limits  limits
	newID   func() string
}

var _ llm.Provider = (*Provider)(nil)

// limits are the rows that an answer is held to.
type limits struct {
	event, reply int64
	calls        int
}

// New makes a provider. It opens no connection.
func New(o Options) *Provider {
	base := *o.Base
	base.Path = strings.TrimSuffix(strings.TrimRight(base.Path, "/"), "/v1")
	return &Provider{
		client: upstream.New(upstream.Options{
			Dialect: llm.Anthropic, Base: &base, Key: o.Key, Present: present, Transport: o.Transport, Limits: o.Limits,
		}),
		version: cmp.Or(o.Version, Version2023), newID: o.NewID,
		limits: limits{
			event: o.Limits.Get(config.UpstreamEvent), reply: o.Limits.Get(config.UpstreamReply), calls: o.Limits.Int(config.UpstreamCalls),
		},
	}
}

// The headers of the dialect.
const (
	versionHeader = "Anthropic-Version"
	betaHeader    = "Anthropic-Beta"
	keyHeader     = "X-Api-Key"
)

// present sends a key in the header that the version of the API has it in.
func present(h http.Header, key string) {
	if h.Get(versionHeader) == Version2023 {
		h.Set(keyHeader, key)
		return
	}
	h.Set(llm.Authorization, "Bearer "+key)
}

// oauth begins a token of a subscription, which every version takes as a bearer's alone.
const oauth = "sk-ant-oat"

// header is that of a request: the client's, with its version or the provider's, and its
// credential in the header that the version has it in.
func (p *Provider) header(r *llm.Request) (h http.Header, version string) {
	h = p.client.Header(r)
	if h.Get(versionHeader) == "" {
		h.Set(versionHeader, p.version)
	}
	version = h.Get(versionHeader)
	if token, ok := strings.CutPrefix(h.Get(llm.Authorization), "Bearer "); ok && !strings.HasPrefix(token, oauth) {
		h.Del(llm.Authorization)
		present(h, token)
	}
	return h, version
}

// passesOn lists the headers of a client that an upstream may see: the credential
// (replaced by the upstream's own key where there is one), what says which form of the API
// is spoken, what Claude Code names its sessions by, and traces.
func passesOn() []string {
	return []string{
		llm.Authorization, versionHeader, betaHeader, "Anthropic-Workspace-Id", "X-Claude-Code-Session-Id", "X-Claude-Code-Agent-Id",
		"X-Claude-Code-Parent-Agent-Id", "X-App", "Idempotency-Key", "Traceparent", "Tracestate",
	}
}

// PassHeader is the part of a client's header that an upstream may see. Several lines of
// betas are one list.
func PassHeader(client http.Header) http.Header {
	h := http.Header{}
	for _, name := range passesOn() {
		if v := client.Values(name); len(v) > 0 {
			h[name] = v
		}
	}
	if v := h[betaHeader]; len(v) > 1 {
		h[betaHeader] = []string{strings.Join(v, ",")}
	}
	return h
}

// Dialect is Anthropic's Messages.
func (p *Provider) Dialect() llm.Dialect { return llm.Anthropic }

// Capabilities are those of every model of the vendor.
func (p *Provider) Capabilities(context.Context, string) (llm.Capabilities, error) {
	return llm.Capabilities{Declares: true, Parsed: true, Results: true}, nil
}

// Lost names what of a request of another dialect has no form in this one.
func (p *Provider) Lost(r *llm.Request) []string {
	if r.Dialect == llm.Anthropic {
		return nil
	}
	c := llm.Carry{
		Parts:     []llm.PartKind{llm.Image, llm.File},
		NoOptions: []string{"seed", "frequency_penalty", "presence_penalty", "repeat_penalty", "choices"},
	}
	if p.version != Version2023 || !samples(r, p.version) {
		c.NoOptions = append(c.NoOptions, "temperature", "top_p", "top_k")
	}
	if r.Options.Structured && len(r.Options.Schema) == 0 {
		c.NoOptions = append(c.NoOptions, "structured")
	}
	return r.Lost(c)
}

// modelPages is how many pages of the list of models are read at most.
const modelPages = 10

// Models lists what GET /v1/models of the upstream lists.
func (p *Provider) Models(ctx context.Context) ([]llm.Model, error) {
	var models []llm.Model
	after := ""
	for range modelPages {
		path := "/v1/models?limit=1000"
		if after != "" {
			path += "&after_id=" + url.QueryEscape(after)
		}
		h, _ := p.header(&llm.Request{})
		body, err := p.client.Get(ctx, path, h)
		if err != nil {
			return nil, err
		}
		for c := wire.Array(wire.Member(body, "data")); c.Next(); {
			if id, _ := wire.String(wire.Member(c.Value, "id")); id != "" {
				m := llm.Model{ID: id}
				if isBlock(c.Value, "model") {
					m.Raw = raw(c.Value)
				}
				models = append(models, m)
			}
		}
		last, _ := wire.String(wire.Member(body, "last_id"))
		if more := string(wire.Member(body, "has_more")) == "true"; !more || last == "" || last == after {
			break
		}
		after = last
	}
	return models, nil
}

// CountTokens asks the upstream how many tokens a request sends.
func (p *Provider) CountTokens(ctx context.Context, r *llm.Request) (int64, error) {
	h, version := p.header(r)
	body := jsontext.Value(encodeRequest(r, version))
	for _, name := range []string{"stream", "max_tokens", "temperature", "top_p", "top_k", "stop_sequences", "metadata", "service_tier"} {
		body = wire.Remove(body, name) // the route refuses what has no part in the count
	}
	answer, err := p.client.Post(ctx, "/v1/messages/count_tokens", h, body)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(string(wire.Member(answer, "input_tokens")), 10, 64)
	if err != nil || n < 0 {
		return 0, fault.New(fault.Upstream, "the upstream %s counted tokens and gave no number: %s", p.client.Name(), upstream.Excerpt(answer))
	}
	return n, nil
}

// Stream asks for one generation.
func (p *Provider) Stream(ctx context.Context, r *llm.Request) iter.Seq2[llm.Piece, error] {
	return func(yield func(llm.Piece, error) bool) {
		header, version := p.header(r)
		header.Set("Accept", "text/event-stream, application/json")
		answer, err := p.client.Open(ctx, "/v1/messages", header, encodeRequest(r, version))
		if err != nil {
			yield(llm.Piece{}, err)
			return
		}
		defer answer.Close()
		if err := p.read(answer, yield); err != nil {
			yield(llm.Piece{}, answer.Cause(err))
		}
	}
}

// read passes the reply on. It returns an error that was not yielded yet.
func (p *Provider) read(a *upstream.Answer, yield func(llm.Piece, error) bool) error {
	r := &reply{newID: p.newID, limits: p.limits}
	switch kind, _, _ := mime.ParseMediaType(a.Header.Get("Content-Type")); kind {
	case "application/json":
		return p.whole(a, r, yield)
	case "text/html":
		return a.Page()
	}
	events := wire.NewEventReader(a.Body, int(p.limits.event), &p.client.Buffers)
	defer events.Release()
	for {
		e, err := events.Next()
		if !events.Pending() {
			a.Event() // what is here already came when the one before did
		}
		if err == nil {
			piece, show, err := r.event(e.Data)
			if err != nil {
				return p.client.Scrubbed(err)
			}
			if !r.stopped {
				if piece.More = events.Pending(); show && !yield(piece, nil) {
					return nil
				}
				continue
			}
		}
		if why := a.Cause(nil); why != nil {
			return why
		}
		whole, err := r.end(err)
		if err == nil {
			yield(llm.Piece{Reply: whole}, nil)
			a.Drain(func() error { _, err := events.Next(); return err })
		}
		return err
	}
}

// whole reads a message that an upstream sent in one piece although a stream was asked for.
// Its pieces are those of a stream.
func (p *Provider) whole(a *upstream.Answer, r *reply, yield func(llm.Piece, error) bool) error {
	body, err := io.ReadAll(io.LimitReader(a.Body, p.limits.reply))
	if err != nil {
		return upstream.Broken(err)
	}
	if !wire.Lenient(body) {
		return &llm.StreamError{Message: "the answer is not JSON: " + upstream.Excerpt(body)}
	}
	if fault := upstream.ErrorMember(body); fault != nil {
		return p.client.Scrubbed(upstream.StreamError(body, fault))
	}
	if wire.Member(body, "content") == nil {
		return &llm.StreamError{Message: "the answer has no content: " + upstream.Excerpt(body)}
	}
	for _, event := range unrolled(body) {
		piece, show, err := r.event(event)
		if err != nil {
			return p.client.Scrubbed(err)
		}
		if show && !yield(piece, nil) {
			return nil
		}
	}
	reply, err := r.end(nil)
	if err == nil {
		yield(llm.Piece{Reply: reply}, nil)
	}
	return err
}

// unrolled are the events that a message would have been as a stream.
func unrolled(message jsontext.Value) []jsontext.Value {
	var out []jsontext.Value
	add := func(format string, args ...any) { out = append(out, fmt.Appendf(nil, format, args...)) }
	begin := wire.Set(message, "content", []byte("[]"))
	begin = wire.Set(begin, "stop_reason", []byte("null"))
	add(`{"type":"message_start","message":%s}`, begin)
	n := 0
	for c := wire.Array(wire.Member(message, "content")); c.Next(); n++ {
		block, deltas := emptied(c.Value)
		add(`{"type":"content_block_start","index":%d,"content_block":%s}`, n, block)
		for _, d := range deltas {
			add(`{"type":"content_block_delta","index":%d,"delta":%s}`, n, d)
		}
		add(`{"type":"content_block_stop","index":%d}`, n)
	}
	reason, usage := wire.Member(message, "stop_reason"), wire.Member(message, "usage")
	if wire.IsNull(usage) {
		usage = jsontext.Value("{}")
	}
	if wire.IsNull(reason) {
		reason = jsontext.Value(`"end_turn"`)
	}
	sequence := wire.Member(message, "stop_sequence")
	if sequence == nil {
		sequence = jsontext.Value("null")
	}
	add(`{"type":"message_delta","delta":{"stop_reason":%s,"stop_sequence":%s},"usage":%s}`, reason, sequence, usage)
	add(`{"type":"message_stop"}`)
	return out
}

// emptied is a whole block as a stream begins it, and the deltas that fill it.
func emptied(block jsontext.Value) (begin jsontext.Value, deltas []jsontext.Value) {
	kind, _ := wire.String(wire.Member(block, "type"))
	take := func(member, delta, name string) {
		v := wire.Member(block, member)
		if v.Kind() != '"' {
			return
		}
		block = wire.Set(block, member, []byte(`""`))
		deltas = append(deltas, fmt.Appendf(nil, `{"type":%q,%q:%s}`, delta, name, v))
	}
	switch kind {
	case "text":
		take("text", "text_delta", "text")
	case "thinking":
		take("thinking", "thinking_delta", "thinking")
		take("signature", "signature_delta", "signature")
	case "tool_use":
		if input := wire.Member(block, "input"); !wire.IsNull(input) {
			block = wire.Set(block, "input", []byte("{}"))
			deltas = append(deltas, fmt.Appendf(nil, `{"type":"input_json_delta","partial_json":%s}`, wire.AppendString(nil, string(input))))
		}
	}
	return block, deltas
}
