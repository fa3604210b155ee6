// Package upstream is the HTTP side that all providers share: one pooled transport, the
// host's own key and where it must not show, answers that stall, refusals, and what an
// operator is told when nothing answers.
//
// It knows no dialect. It retries nothing and follows no redirect.
//
// Start at [New] and [Client.Open].
package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/wire"
)

// Options set up a [Client].
type Options struct {
	// Dialect is what the upstream's error objects are marked with.
	Dialect llm.Dialect
	// Base is the URL that paths hang on.
	Base *url.URL
	// Key is the host's own. Without one the client's credential goes through.
	Key config.Secret
	// Present puts a key into a request's header; nil sends "Authorization: Bearer".
	Present func(h http.Header, key string)
	// Transport carries all requests; see [NewTransport].
	Transport http.RoundTripper
	Limits    config.Values
}

// Client asks one upstream. It is safe for concurrent use.
type Client struct {
	base    string
	dialect llm.Dialect
	key     config.Secret
	present func(h http.Header, key string)
	http    *http.Client
	event   int64
	stall   time.Duration
	end     time.Duration
	name    string // how errors name the upstream
	// Buffers are for readers of its streams.
	Buffers wire.Buffers
}

// New makes a client. It opens no connection.
func New(o Options) *Client {
	c := &Client{
		base: strings.TrimRight(o.Base.String(), "/"), dialect: o.Dialect, key: o.Key, present: o.Present,
		event: o.Limits.Get(config.UpstreamEvent), stall: o.Limits.Duration(config.UpstreamStall), end: o.Limits.Duration(config.UpstreamEnd),
		name: o.Base.Redacted(),
		http: &http.Client{
			Transport: o.Transport,
			CheckRedirect: func(*http.Request, []*http.Request) error {
				return http.ErrUseLastResponse // a redirect could carry the key elsewhere
			},
		},
	}
	if c.present == nil {
		c.present = func(h http.Header, key string) { h.Set(llm.Authorization, "Bearer "+key) }
	}
	return c
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

// Name is the upstream's address for people, without a password.
func (c *Client) Name() string { return c.name }

// Header is what a request to the upstream carries of its client's: all of it when the
// dialects are the same, and otherwise the credential alone. The host's key comes later.
func (c *Client) Header(r *llm.Request) http.Header {
	h := http.Header{}
	if r.Dialect == c.dialect {
		maps.Copy(h, r.Header)
		return h
	}
	if v := r.Header.Values(llm.Authorization); len(v) > 0 {
		h[llm.Authorization] = v
	}
	return h
}

// Answer is a body that comes, with status 200. Close it.
type Answer struct {
	Header http.Header
	Body   io.Reader
	client *Client
	ctx    context.Context
	cancel context.CancelCauseFunc
	body   io.Closer
	watch  *watchdog
}

// Open asks with a POST of a JSON body, which is empty for a GET. The error is a
// [*llm.StatusError] for what the upstream refused, and otherwise a [*fault.Error] that
// tells an operator what to look at.
func (c *Client) Open(ctx context.Context, path string, header http.Header, body []byte) (*Answer, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	method, reader := http.MethodGet, io.Reader(nil)
	if body != nil {
		method, reader = http.MethodPost, bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, reader)
	if err != nil {
		cancel(nil)
		return nil, fmt.Errorf("make request to %s: %w", c.name, err)
	}
	for name, values := range header {
		req.Header[name] = values
	}
	if !c.key.IsZero() {
		req.Header.Del(llm.Authorization)
		c.present(req.Header, c.key.Reveal())
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := c.http.Do(req)
	if err != nil {
		defer cancel(nil)
		return nil, c.unreachable(ctx, err)
	}
	a := &Answer{Header: res.Header, client: c, ctx: ctx, cancel: cancel, body: res.Body}
	a.watch = newWatchdog(c.stall, func(silence time.Duration) {
		e := fault.New(fault.Timeout, "the upstream %s sent nothing of its answer for %s; raise --upstream-stall if its model needs longer", c.name, silence)
		e.Detail = "upstream_stalled"
		cancel(e)
	})
	a.Body = &watchedBody{Reader: res.Body, watch: a.watch}
	if res.StatusCode != http.StatusOK {
		defer a.Close()
		return nil, a.refusal(res)
	}
	return a, nil
}

// Get is the JSON that the upstream answers a GET with.
func (c *Client) Get(ctx context.Context, path string, header http.Header) ([]byte, error) {
	return c.document(ctx, path, header, nil)
}

// Post is the JSON that the upstream answers a small POST with.
func (c *Client) Post(ctx context.Context, path string, header http.Header, body []byte) ([]byte, error) {
	return c.document(ctx, path, header, body)
}

func (c *Client) document(ctx context.Context, path string, header http.Header, body []byte) ([]byte, error) {
	a, err := c.Open(ctx, path, header, body)
	if err != nil {
		return nil, err
	}
	defer a.Close()
	answer, err := io.ReadAll(io.LimitReader(a.Body, c.event))
	if err != nil {
		return nil, c.unreachable(a.ctx, err)
	}
	if !wire.Lenient(answer) {
		return nil, fault.New(fault.Upstream, "the upstream %s answered %s with something that is not JSON", c.name, path)
	}
	return answer, nil
}

// Close gives the connection up, or back when the body was read to its end.
func (a *Answer) Close() {
	a.watch.stop()
	_ = a.body.Close() // what is not read is of no use
	a.cancel(nil)
}

// Event notes that what was read last was an event, and no mere sign of life.
func (a *Answer) Event() { a.watch.event() }

// Cause is why reading failed: err, or the end of the context, if that came first.
func (a *Answer) Cause(err error) error {
	if a.ctx.Err() != nil {
		return context.Cause(a.ctx)
	}
	return err
}

// Drain reads on with next until that fails, so that the connection can be used again.
// Servers end an answer a moment after its end mark; who does not is cut.
func (a *Answer) Drain(next func() error) {
	late := time.AfterFunc(a.client.end, func() { a.cancel(nil) })
	defer late.Stop()
	for next() == nil {
	}
}

// Page is the error of a web page where an answer belongs: a login, a proxy, the
// wrong port.
func (a *Answer) Page() error {
	begin, err := io.ReadAll(io.LimitReader(a.Body, a.client.event))
	if err != nil {
		return Broken(err)
	}
	return &llm.StreamError{Message: "it is a web page and no answer, so " + a.client.name + " is no model's address: " + Excerpt(begin)}
}

// Broken is the error of a connection that ended in the middle of an answer.
func Broken(err error) *llm.StreamError {
	return &llm.StreamError{Message: "the connection broke", Err: err}
}

// refusal is the error of an answer whose status is not 200.
func (a *Answer) refusal(res *http.Response) error {
	c := a.client
	body, err := io.ReadAll(io.LimitReader(a.Body, c.event))
	if err != nil {
		return c.unreachable(a.ctx, err)
	}
	if res.StatusCode == http.StatusUnauthorized && !c.key.IsZero() {
		// The caller's own key is in order: a 401 would send it looking for a fault
		// that is the operator's.
		return fault.New(fault.Upstream, "the upstream %s refused the server's key: its operator has to set another", c.name)
	}
	return c.statusError(res, body)
}

// Scrubbed is an error of a stream without the host's own key.
func (c *Client) Scrubbed(err error) error {
	if e, ok := errors.AsType[*llm.StreamError](err); ok {
		clean := *e
		clean.Message, clean.Raw = string(c.key.Scrub([]byte(e.Message))), c.key.Scrub(e.Raw)
		return &clean
	}
	return err
}

// unreachable tells an operator what to look at.
func (c *Client) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err // the URL is said in our own words
	}
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
		e := fault.Wrap(err, fault.Timeout, "the upstream %s did not answer in time", c.name)
		e.Detail = "upstream_timeout"
		return e
	}
	e := fault.Wrap(err, fault.Upstream, "the upstream %s cannot be reached: is it running, and is --upstream right?", c.name)
	e.Detail = "upstream_unreachable"
	return e
}
