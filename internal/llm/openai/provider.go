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
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/internal/llm"
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
	// Transport carries all requests; see [NewTransport].
	Transport http.RoundTripper
	Limits    config.Values
	// NewID names calls that an upstream left without an id.
	NewID func() string
}

// Provider is one OpenAI-compatible upstream. It is safe for concurrent use.
type Provider struct {
	base      string
	key       config.Secret
	client    *http.Client
	limits    limits
	newID     func() string
	buffers   wire.Buffers
	reachable string // how errors name the upstream
	vendor    bool   // it is OpenAI itself
}

var _ llm.Provider = (*Provider)(nil)

// limits are the rows that an answer is held to.
type limits struct {
	event, reply   int64
	calls, choices int
	stall, end     time.Duration
}

// New makes a provider. It opens no connection.
func New(o Options) *Provider {
	return &Provider{
		base: strings.TrimRight(o.Base.String(), "/"), key: o.Key, newID: o.NewID,
		limits: limits{
			event: o.Limits.Get(config.UpstreamEvent), reply: o.Limits.Get(config.UpstreamReply),
			calls: o.Limits.Int(config.UpstreamCalls), choices: o.Limits.Int(config.UpstreamChoices),
			stall: o.Limits.Duration(config.UpstreamStall), end: o.Limits.Duration(config.UpstreamEnd),
		},
		reachable: o.Base.Redacted(), vendor: strings.EqualFold(o.Base.Hostname(), "api.openai.com"),
		client: &http.Client{
			Transport: o.Transport,
			CheckRedirect: func(*http.Request, []*http.Request) error {
				return http.ErrUseLastResponse // a redirect could carry the key elsewhere
			},
		},
	}
}

// idlePerHost keeps the connections of a burst of streams for the next one.
const idlePerHost = 256

// NewTransport makes the pooled transport that all providers of a process
// share. Answers are not compressed: a compressed stream is a delayed stream.
func NewTransport(limits config.Values) *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	dialer := &net.Dialer{Timeout: limits.Duration(config.UpstreamDial)}
	t.DialContext = dialer.DialContext
	t.ResponseHeaderTimeout = limits.Duration(config.UpstreamHeaders)
	t.MaxIdleConns = 0
	t.MaxIdleConnsPerHost = idlePerHost
	t.DisableCompression = true
	return t
}

// Dialect is OpenAI Chat Completions.
func (p *Provider) Dialect() llm.Dialect { return llm.OpenAIChat }

// Capabilities supposes that the upstream carries tools, as nearly all do.
func (p *Provider) Capabilities(context.Context, string) (llm.Capabilities, error) {
	return llm.Capabilities{Declares: true, Parsed: true, Results: true}, nil
}

// Models lists what GET /models of the upstream lists.
func (p *Provider) Models(ctx context.Context) ([]llm.Model, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.base+"/models", nil)
	if err != nil {
		return nil, fmt.Errorf("openai: list models: %w", err)
	}
	p.authorize(req, nil)
	res, err := p.client.Do(req)
	if err != nil {
		return nil, p.unreachable(ctx, err)
	}
	watch := p.watch(res, cancel)
	defer watch.stop()
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, p.limits.event))
	if err != nil {
		return nil, p.unreachable(ctx, err)
	}
	if res.StatusCode != http.StatusOK {
		return nil, p.statusError(res, body)
	}
	if !wire.Lenient(body) {
		return nil, fault.New(fault.Upstream, "the upstream %s answered GET /models with something that is not JSON", p.reachable)
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
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		res, err := p.post(ctx, r)
		if err != nil {
			yield(llm.Piece{}, err)
			return
		}
		watch := p.watch(res, cancel)
		defer watch.stop()
		defer res.Body.Close()
		if res.StatusCode != http.StatusOK {
			yield(llm.Piece{}, p.refusal(ctx, res))
			return
		}
		if err := p.stream(ctx, cancel, watch, res, yield); err != nil {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			yield(llm.Piece{}, err)
		}
	}
}

func (p *Provider) post(ctx context.Context, r *llm.Request) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.base+"/chat/completions", bytes.NewReader(encodeRequest(r, p.vendor)))
	if err != nil {
		return nil, fmt.Errorf("openai: make request: %w", err)
	}
	header := r.Header
	if r.Dialect != llm.OpenAIChat {
		header = http.Header{}
		if v := r.Header.Values(llm.Authorization); len(v) > 0 {
			header[llm.Authorization] = v
		}
	}
	p.authorize(req, header)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream, application/json")
	res, err := p.client.Do(req)
	if err != nil {
		return nil, p.unreachable(ctx, err)
	}
	return res, nil
}

// watch guards the body of an answer from here on: when no more of it comes, the
// request is given up.
func (p *Provider) watch(res *http.Response, cancel context.CancelCauseFunc) *watchdog {
	w := newWatchdog(p.limits.stall, func(silence time.Duration) {
		e := fault.New(fault.Timeout, "the upstream %s sent nothing of its answer for %s; raise --upstream-stall if its model needs longer", p.reachable, silence)
		e.Detail = "upstream_stalled"
		cancel(e)
	})
	res.Body = &watchedBody{ReadCloser: res.Body, watch: w}
	return w
}

// refusal is the error of an answer whose status is not 200.
func (p *Provider) refusal(ctx context.Context, res *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(res.Body, p.limits.event))
	if err != nil {
		return p.unreachable(ctx, err)
	}
	if res.StatusCode == http.StatusUnauthorized && !p.key.IsZero() {
		// The caller's own key is in order: a 401 would send it looking for a fault
		// that is the operator's.
		return fault.New(fault.Upstream, "the upstream %s refused the server's key: its operator has to set another", p.reachable)
	}
	return p.statusError(res, body)
}

// authorize sets the headers of a request: the client's that may travel, and
// the upstream's own key over the client's.
func (p *Provider) authorize(req *http.Request, client http.Header) {
	for name, values := range client {
		req.Header[name] = values
	}
	if !p.key.IsZero() {
		req.Header.Set("Authorization", "Bearer "+p.key.Reveal())
	}
}

// stream passes the reply on. It returns an error that was not yielded yet.
func (p *Provider) stream(ctx context.Context, cancel context.CancelCauseFunc, watch *watchdog, res *http.Response, yield func(llm.Piece, error) bool) error {
	r := &reply{newID: p.newID, limits: p.limits}
	switch kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); kind {
	case "application/json":
		return p.whole(res, r, yield)
	case "text/html":
		return p.page(res)
	}
	events := wire.NewEventReader(res.Body, int(p.limits.event), &p.buffers)
	defer events.Release()
	for {
		e, err := events.Next()
		if !events.Pending() {
			watch.event() // what is here already came when the one before did
		}
		done := false
		if err == nil {
			var piece llm.Piece
			piece, done, err = r.event(e)
			if err != nil {
				return p.scrubbed(err)
			}
			if !done {
				piece.More = events.Pending()
				if !yield(piece, nil) {
					return nil
				}
				continue
			}
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		whole, err := r.end(done, err)
		if err == nil {
			yield(llm.Piece{Reply: whole}, nil)
			p.finish(cancel, events)
		}
		return err
	}
}

// finish reads on to the end of a body, so that its connection can be used
// again. Servers end it a moment after the end mark; who does not is cut.
func (p *Provider) finish(cancel context.CancelCauseFunc, events *wire.EventReader) {
	late := time.AfterFunc(p.limits.end, func() { cancel(nil) })
	defer late.Stop()
	for {
		if _, err := events.Next(); err != nil {
			return // the end, or as good as that
		}
	}
}

// page is the error of a web page where an answer belongs: a login, a proxy, the
// wrong port.
func (p *Provider) page(res *http.Response) error {
	begin, err := io.ReadAll(io.LimitReader(res.Body, p.limits.event))
	if err != nil {
		return &llm.StreamError{Message: "the connection broke", Err: err}
	}
	return &llm.StreamError{Message: "it is a web page and no answer, so " + p.reachable + " is no model's address: " + excerpt(begin)}
}

func (p *Provider) whole(res *http.Response, r *reply, yield func(llm.Piece, error) bool) error {
	body, err := io.ReadAll(io.LimitReader(res.Body, p.limits.reply))
	if err != nil {
		return &llm.StreamError{Message: "the connection broke", Err: err}
	}
	pieces, err := r.whole(jsontext.Value(body))
	if err != nil {
		return p.scrubbed(err)
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

// scrubbed is an error of a stream without the host's own key.
func (p *Provider) scrubbed(err error) error {
	if e, ok := errors.AsType[*llm.StreamError](err); ok {
		return &llm.StreamError{Message: string(p.key.Scrub([]byte(e.Message))), Raw: p.key.Scrub(e.Raw), Overflow: e.Overflow, Err: e.Err}
	}
	return err
}

// unreachable tells an operator what to look at.
func (p *Provider) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err // the URL is said in our own words
	}
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
		e := fault.Wrap(err, fault.Timeout, "the upstream %s did not answer in time", p.reachable)
		e.Detail = "upstream_timeout"
		return e
	}
	e := fault.Wrap(err, fault.Upstream, "the upstream %s cannot be reached: is it running, and is --upstream right?", p.reachable)
	e.Detail = "upstream_unreachable"
	return e
}
