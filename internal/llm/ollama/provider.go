package ollama

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/llm/upstream"
	"github.com/metier-run/metier/internal/wire"
)

// Options set up a [Provider].
type Options struct {
	// Base is the URL that /api/chat hangs on, for example http://127.0.0.1:11434; a /v1 or
	// /api at its end is left out.
	Base *url.URL
	// Key is sent as a bearer token. Without one the client's own credential goes through.
	Key config.Secret
	// Transport carries all requests; see [upstream.NewTransport].
	Transport http.RoundTripper
	Limits    config.Values
	// NewID names calls, which have no ids in this dialect.
	NewID func() string
}

// Provider is one Ollama. It is safe for concurrent use.
type Provider struct {
	client *upstream.Client
	limits limits
	newID  func() string
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
	base.Path = strings.TrimRight(base.Path, "/")
	for _, end := range []string{"/v1", "/api"} {
		base.Path = strings.TrimSuffix(base.Path, end)
	}
	return &Provider{
		client: upstream.New(upstream.Options{Dialect: llm.Ollama, Base: &base, Key: o.Key, Transport: o.Transport, Limits: o.Limits}),
		newID:  o.NewID,
		limits: limits{
			event: o.Limits.Get(config.UpstreamEvent), reply: o.Limits.Get(config.UpstreamReply), calls: o.Limits.Int(config.UpstreamCalls),
		},
	}
}

// Dialect is Ollama's own.
func (p *Provider) Dialect() llm.Dialect { return llm.Ollama }

// Capabilities supposes that the model carries tools. What it really can its server tells
// to who asks (see llm/capable).
func (p *Provider) Capabilities(context.Context, string) (llm.Capabilities, error) {
	return llm.Capabilities{Declares: true, Parsed: true, Results: true}, nil
}

// Lost names what of a request of another dialect has no form in this one.
func (p *Provider) Lost(r *llm.Request) []string {
	if r.Dialect == llm.Ollama {
		return nil
	}
	none := []string{"choice", "parallel", "choices"}
	if r.Options.Effort != noEffort {
		none = append(none, "effort")
	}
	lost := r.Lost(llm.Carry{Parts: []llm.PartKind{llm.Image, llm.Reasoning}, NoOptions: none})
	for _, m := range r.Messages {
		linked := func(part llm.Part) bool { return part.Kind == llm.Image && part.Media != nil && part.Media.Data == "" }
		if slices.ContainsFunc(m.Parts, linked) {
			return append(lost, "images that are only pointed at")
		}
	}
	return lost
}

// Models lists what GET /api/tags of the upstream lists.
func (p *Provider) Models(ctx context.Context) ([]llm.Model, error) {
	body, err := p.client.Get(ctx, "/api/tags", nil)
	if err != nil {
		return nil, err
	}
	var models []llm.Model
	for c := wire.Array(wire.Member(body, "models")); c.Next(); {
		name, _ := wire.String(wire.Member(c.Value, "model"))
		own, _ := wire.String(wire.Member(c.Value, "name"))
		if name = cmp.Or(name, own); name != "" {
			models = append(models, llm.Model{ID: name, Raw: raw(c.Value)})
		}
	}
	return models, nil
}

// Stream asks for one generation.
func (p *Provider) Stream(ctx context.Context, r *llm.Request) iter.Seq2[llm.Piece, error] {
	return func(yield func(llm.Piece, error) bool) {
		header := p.client.Header(r)
		header.Set("Accept", "application/x-ndjson, application/json")
		answer, err := p.client.Open(ctx, "/api/chat", header, encodeRequest(r))
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
	if kind, _, _ := mime.ParseMediaType(a.Header.Get("Content-Type")); kind == "text/html" {
		return a.Page()
	}
	r := &reply{newID: p.newID, limits: p.limits}
	lines := newLineReader(a.Body, int(p.limits.event))
	for {
		line, err := lines.next()
		if !lines.pending() {
			a.Event() // what is here already came when the one before did
		}
		if err == nil {
			piece, show, err := r.line(line)
			if err != nil {
				return p.client.Scrubbed(err)
			}
			if piece.More = lines.pending(); show && !yield(piece, nil) {
				return nil
			}
			if !r.done {
				continue
			}
		}
		if why := a.Cause(nil); why != nil {
			return why
		}
		whole, err := r.end(err)
		if err == nil {
			yield(llm.Piece{Reply: whole}, nil)
			a.Drain(func() error { _, err := lines.next(); return err })
		}
		return err
	}
}

// lineReader reads lines up to a size. Empty ones are skipped.
type lineReader struct {
	r    *bufio.Reader
	max  int
	line []byte
}

// lineBuffer holds the usual line whole.
const lineBuffer = 4 << 10

func newLineReader(r io.Reader, max int) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(r, lineBuffer), max: max}
}

// next is the next line, valid until the one after it. The last may have no end.
func (l *lineReader) next() ([]byte, error) {
	for {
		l.line = l.line[:0]
		for {
			part, err := l.r.ReadSlice('\n')
			l.line = append(l.line, part...)
			if len(l.line) > l.max {
				return nil, wire.ErrEventTooLarge
			}
			if err == nil {
				break
			}
			if errors.Is(err, bufio.ErrBufferFull) {
				continue
			}
			if err == io.EOF && len(bytes.TrimSpace(l.line)) > 0 {
				return bytes.TrimSpace(l.line), nil
			}
			return nil, err
		}
		if line := bytes.TrimSpace(l.line); len(line) > 0 {
			return line, nil
		}
	}
}

// pending reports whether more is here already.
func (l *lineReader) pending() bool { return l.r.Buffered() > 0 }

// reply follows one generation, line by line.
type reply struct {
	newID     func() string
	limits    limits
	size      int64
	done      bool
	content   []byte // as they stand between quotes
	thinking  []byte
	calls     []llm.Call
	toolCalls []byte // as they came
	finish    llm.Finish
	usage     llm.Usage
	model     string
}

// line takes one line. show is false when there is nothing in it for anybody.
func (r *reply) line(data jsontext.Value) (p llm.Piece, show bool, err error) {
	if r.size += int64(len(data)); r.size > r.limits.reply {
		return p, false, &llm.StreamError{Message: fmt.Sprintf("the reply is larger than %d bytes (limit %s)", r.limits.reply, config.UpstreamReply), Detail: "upstream_reply_too_large"}
	}
	if !wire.Lenient(data) || data.Kind() != '{' {
		return p, false, &llm.StreamError{Message: "a line is no JSON object: " + upstream.Excerpt(data)}
	}
	if fault := upstream.ErrorMember(data); fault != nil {
		return p, false, upstream.StreamError(data, fault)
	}
	p.Raw = raw(data)
	if r.model == "" {
		r.model, _ = wire.String(wire.Member(data, "model"))
	}
	message := wire.Member(data, "message")
	p.Text, _ = wire.String(wire.Member(message, "content"))
	p.Reasoning, _ = wire.String(wire.Member(message, "thinking"))
	r.content = appendContents(r.content, wire.Member(message, "content"))
	r.thinking = appendContents(r.thinking, wire.Member(message, "thinking"))
	if p.Calls, err = r.takeCalls(message); err != nil {
		return p, false, err
	}
	if len(p.Calls) > 0 {
		p.Raw = llm.Raw{} // calls get ids here
	}
	if string(wire.Member(data, "done")) == "true" {
		r.finished(&p, data)
	}
	return p, true, nil
}

func appendContents(dst []byte, v jsontext.Value) []byte {
	contents, _ := wire.Contents(v)
	return append(dst, contents...)
}

// takeCalls gives the calls of a message ids.
func (r *reply) takeCalls(message jsontext.Value) ([]llm.CallDelta, error) {
	var deltas []llm.CallDelta
	for c := wire.Array(wire.Member(message, "tool_calls")); c.Next(); {
		if len(r.calls) == r.limits.calls {
			return nil, &llm.StreamError{Message: fmt.Sprintf("the reply has more than %d calls (limit %s)", r.limits.calls, config.UpstreamCalls), Detail: "upstream_too_many_calls"}
		}
		call := callOf(c.Value)
		if taken := slices.ContainsFunc(r.calls, func(o llm.Call) bool { return o.ID == call.ID }); call.ID == "" || taken {
			call.ID = "call_" + r.newID()
		}
		deltas = append(deltas, llm.CallDelta{Index: len(r.calls), ID: call.ID, Name: call.Name, Arguments: call.Arguments})
		r.calls = append(r.calls, call)
		if len(r.toolCalls) > 0 {
			r.toolCalls = append(r.toolCalls, ',')
		}
		r.toolCalls = append(r.toolCalls, c.Value...)
	}
	return deltas, nil
}

// finished takes the line that ends the reply.
func (r *reply) finished(p *llm.Piece, data jsontext.Value) {
	r.done = true
	reason, _ := wire.String(wire.Member(data, "done_reason"))
	switch {
	case reason == "length":
		r.finish = llm.FinishLength
	case len(r.calls) > 0:
		r.finish = llm.FinishCalls
	case reason == "":
		r.finish = llm.FinishStop
	default:
		r.finish = llm.Finish(reason)
	}
	r.usage = llm.Usage{Input: count(data, "prompt_eval_count"), Output: count(data, "eval_count")}
	r.usage.Total = r.usage.Input + r.usage.Output
	usage := r.usage
	p.Finish, p.Usage = r.finish, &usage
}

func count(data jsontext.Value, name string) int64 {
	n, err := strconv.ParseInt(string(wire.Member(data, name)), 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// end is the reply when the stream is over.
func (r *reply) end(err error) (*llm.Reply, error) {
	if errors.Is(err, wire.ErrEventTooLarge) {
		return nil, &llm.StreamError{Message: fmt.Sprintf("a line is larger than %d bytes (limit %s)", r.limits.event, config.UpstreamEvent), Detail: "upstream_event_too_large"}
	}
	if err != nil && err != io.EOF {
		return nil, upstream.Broken(err)
	}
	if !r.done {
		return nil, &llm.StreamError{Message: "it ended in the middle of a reply"}
	}
	return &llm.Reply{Message: r.message(), Finish: r.finish, Usage: r.usage, Model: r.model}, nil
}

// message is the assistant's as the upstream would have written it whole: it goes back in
// the next round.
func (r *reply) message() llm.Message {
	out := slices.Concat([]byte(`{"role":"assistant","content":"`), r.content, []byte{'"'})
	if len(r.thinking) > 0 {
		out = slices.Concat(out, []byte(`,"thinking":"`), r.thinking, []byte{'"'})
	}
	if len(r.toolCalls) > 0 {
		out = slices.Concat(out, []byte(`,"tool_calls":[`), r.toolCalls, []byte{']'})
	}
	// What is no text no strict upstream would take back.
	m := llm.Message{Role: llm.Assistant, Raw: raw(bytes.ToValidUTF8(append(out, '}'), []byte("\uFFFD"))), Calls: r.calls}
	m.Parts = partsOf(m.Role, m.Raw.Bytes)
	return m
}
