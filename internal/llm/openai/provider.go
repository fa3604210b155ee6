// Package openai speaks OpenAI Chat Completions to an upstream and holds that
// dialect's codec, which the OpenAI door shares.
//
// What a client sent in this dialect is spliced, never decoded and encoded
// again: members, messages and tools keep their bytes. Upstream is always asked
// for a stream, since some servers go on decoding after the client of a
// buffered request is gone.
//
// It retries nothing, follows no redirect and runs no tool.
//
// Start at [New] and [DecodeRequest].
package openai

import (
	"context"
	"io"
	"iter"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/llm/upstream"
	"github.com/metier-run/metier/internal/wire"
)

// Options set up a [Provider].
type Options struct {
	// Base is the URL that /chat/completions and /models hang on, for example
	// http://127.0.0.1:11434/v1.
	Base *url.URL
	// Key is sent as a bearer token. Without one the client's own Authorization
	// header goes through.
	Key config.Secret
	// Transport carries all requests; see [upstream.NewTransport].
	Transport http.RoundTripper
	Limits    config.Values
	// NewID names calls that an upstream left without an id.
	NewID func() string
}

// Provider is one OpenAI-compatible upstream. It is safe for concurrent use.
type Provider struct {
	client *upstream.Client
	limits limits
	newID  func() string
	vendor bool // it is OpenAI itself
}

var _ llm.Provider = (*Provider)(nil)

// limits are the rows that an answer is held to.
type limits struct {
	event, reply   int64
	calls, choices int
}

// New makes a provider. It opens no connection.
func New(o Options) *Provider {
	return &Provider{
		client: upstream.New(upstream.Options{Dialect: llm.OpenAIChat, Base: o.Base, Key: o.Key, Transport: o.Transport, Limits: o.Limits}),
		limits: limits{
			event: o.Limits.Get(config.UpstreamEvent), reply: o.Limits.Get(config.UpstreamReply),
			calls: o.Limits.Int(config.UpstreamCalls), choices: o.Limits.Int(config.UpstreamChoices),
		},
		newID: o.NewID, vendor: strings.EqualFold(o.Base.Hostname(), "api.openai.com"),
	}
}

// Dialect is OpenAI Chat Completions.
func (p *Provider) Dialect() llm.Dialect { return llm.OpenAIChat }

// Capabilities supposes that the upstream carries tools, as nearly all do.
func (p *Provider) Capabilities(context.Context, string) (llm.Capabilities, error) {
	return llm.Capabilities{Declares: true, Parsed: true, Results: true}, nil
}

// Models lists what GET /models of the upstream lists.
func (p *Provider) Models(ctx context.Context) ([]llm.Model, error) {
	body, err := p.client.Get(ctx, "/models", nil)
	if err != nil {
		return nil, err
	}
	var models []llm.Model
	for c := wire.Array(wire.Member(body, "data")); c.Next(); {
		if id, _ := wire.String(wire.Member(c.Value, "id")); id != "" {
			models = append(models, llm.Model{ID: id, Raw: llm.Raw{Dialect: llm.OpenAIChat, Bytes: c.Value}})
		}
	}
	return models, nil
}

// Stream asks for one generation.
func (p *Provider) Stream(ctx context.Context, r *llm.Request) iter.Seq2[llm.Piece, error] {
	return func(yield func(llm.Piece, error) bool) {
		header := p.client.Header(r)
		header.Set("Accept", "text/event-stream, application/json")
		answer, err := p.client.Open(ctx, "/chat/completions", header, encodeRequest(r, p.vendor))
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
		done := false
		if err == nil {
			var piece llm.Piece
			piece, done, err = r.event(e)
			if err != nil {
				return p.client.Scrubbed(err)
			}
			if !done {
				piece.More = events.Pending()
				if !yield(piece, nil) {
					return nil
				}
				continue
			}
		}
		if why := a.Cause(nil); why != nil {
			return why
		}
		whole, err := r.end(done, err)
		if err == nil {
			yield(llm.Piece{Reply: whole}, nil)
			a.Drain(func() error { _, err := events.Next(); return err })
		}
		return err
	}
}

func (p *Provider) whole(a *upstream.Answer, r *reply, yield func(llm.Piece, error) bool) error {
	body, err := io.ReadAll(io.LimitReader(a.Body, p.limits.reply))
	if err != nil {
		return upstream.Broken(err)
	}
	pieces, err := r.whole(jsontext.Value(body))
	if err != nil {
		return p.client.Scrubbed(err)
	}
	for _, piece := range pieces {
		if !yield(piece, nil) {
			return nil
		}
	}
	whole, err := r.end(true, nil)
	if err == nil {
		yield(llm.Piece{Reply: whole}, nil)
	}
	return err
}
