package openai

import (
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/wire"
)

// Collector makes one buffered completion of the pieces that a client may see:
// a buffered answer is a collected stream. The zero Collector is ready.
type Collector struct {
	// Foreign: the upstream speaks another dialect, so that its reasons to stop are those of
	// [FinishReason].
	Foreign bool

	head    fields // members of the chunks but for choices, object and usage
	choices []collected
	usage   jsontext.Value
}

type collected struct {
	index    int
	message  Assembly
	finish   string
	logprobs fields
	other    fields
}

// Add takes the next piece.
func (c *Collector) Add(p *llm.Piece) {
	raw := p.Raw.Is(llm.OpenAIChat)
	if p.Repeats && len(c.head.list) > 0 {
		m := &c.choice(0).message
		m.Plain([]byte(p.Text))
		return
	}
	if raw {
		c.chunk(p.Raw.Bytes)
	} else if p.Text != "" || p.Reasoning != "" {
		m := &c.choice(p.Choice).message
		m.Text("reasoning_content", p.Reasoning)
		m.Text("content", p.Text)
	}
	if p.Choice != 0 && raw {
		return // its calls were taken from the chunk
	}
	if len(p.Calls) > 0 {
		m := &c.choice(p.Choice).message
		for _, d := range p.Calls {
			m.Call(d)
		}
	}
	if p.Finish != "" {
		c.choice(p.Choice).finish = string(p.Finish)
	}
}

func (c *Collector) choice(index int) *collected {
	i := slices.IndexFunc(c.choices, func(x collected) bool { return x.index == index })
	if i < 0 {
		i = len(c.choices)
		c.choices = append(c.choices, collected{index: index})
	}
	return &c.choices[i]
}

func (c *Collector) chunk(v jsontext.Value) {
	for m := wire.Object(v); m.Next(); {
		switch {
		case m.Is("choices"):
			for a := wire.Array(m.Value); a.Next(); {
				c.chunkChoice(a.Value)
			}
		case m.Is("usage"):
			if !wire.IsNull(m.Value) {
				c.usage = slices.Clone(m.Value)
			}
		case m.Is("object"), wire.IsNull(m.Value):
		case m.Is("id"), m.Is("created"), m.Is("model"):
			// Those of the first round are those of the completion.
			if c.head.get(string(m.Name)) == nil {
				c.head.replace(m.Name, m.Value)
			}
		default:
			c.head.replace(m.Name, m.Value)
		}
	}
}

func (c *Collector) chunkChoice(v jsontext.Value) {
	x := c.choice(int(number(wire.Member(v, "index"))))
	for m := wire.Object(v); m.Next(); {
		switch {
		case m.Is("index"), wire.IsNull(m.Value):
		case m.Is("delta"):
			x.message.Delta(m.Value)
			if x.index != 0 {
				for t := wire.Array(wire.Member(m.Value, "tool_calls")); t.Next(); {
					x.message.Call(parseCallDelta(t.Value))
				}
			}
		case m.Is("finish_reason"):
			x.finish, _ = wire.String(m.Value)
		case m.Is("logprobs"):
			for l := wire.Object(m.Value); l.Next(); {
				if !wire.IsNull(l.Value) {
					x.logprobs.merge(l.Name, l.Value)
				}
			}
		default:
			x.other.replace(m.Name, m.Value)
		}
	}
}

// Completion is the whole answer. finish is that of the turn; rounds is how
// many generations went into usage: with one, the upstream's own usage object
// is kept as it came.
func (c *Collector) Completion(head Head, finish llm.Finish, rounds int, usage llm.Usage) []byte {
	out := []byte(`{"id":`)
	out = c.appendHead(out, "id", wire.AppendString(nil, head.ID))
	out = append(out, `,"object":"chat.completion","created":`...)
	out = c.appendHead(out, "created", strconv.AppendInt(nil, head.Created, 10))
	out = append(out, `,"model":`...)
	out = c.appendHead(out, "model", wire.AppendString(nil, head.Model))
	out = append(out, `,"choices":[`...)
	c.choice(0)
	slices.SortFunc(c.choices, func(a, b collected) int { return a.index - b.index })
	for i, x := range c.choices {
		if i > 0 {
			out = append(out, ',')
		}
		if x.finish == "" || x.index == 0 {
			x.finish = string(finish)
		}
		if c.Foreign {
			x.finish = string(FinishReason(llm.Finish(x.finish)))
		}
		out = x.append(out)
	}
	out = append(out, `],"usage":`...)
	if rounds == 1 && c.usage != nil {
		out = append(out, c.usage...)
	} else {
		out = AppendUsage(out, usage)
	}
	for _, f := range c.head.list {
		if f.name != "id" && f.name != "created" && f.name != "model" {
			out = f.append(append(append(append(out, ',', '"'), f.name...), '"', ':'))
		}
	}
	return append(out, '}')
}

func (c *Collector) appendHead(dst []byte, name string, fallback []byte) []byte {
	if f := c.head.get(name); f != nil {
		return f.append(dst)
	}
	return append(dst, fallback...)
}

func (x collected) append(dst []byte) []byte {
	dst = append(dst, `{"index":`...)
	dst = strconv.AppendInt(dst, int64(x.index), 10)
	dst = append(dst, `,"message":`...)
	dst = append(dst, x.message.Message()...)
	dst = append(dst, `,"logprobs":`...)
	if len(x.logprobs.list) == 0 {
		dst = append(dst, "null"...)
	}
	for i, f := range x.logprobs.list {
		dst = append(dst, "{,"[min(i, 1)], '"')
		dst = f.append(append(append(dst, f.name...), '"', ':'))
		if i == len(x.logprobs.list)-1 {
			dst = append(dst, '}')
		}
	}
	dst = append(dst, `,"finish_reason":`...)
	dst = wire.AppendString(dst, x.finish)
	for _, f := range x.other.list {
		dst = f.append(append(append(append(dst, ',', '"'), f.name...), '"', ':'))
	}
	return append(dst, '}')
}

// FinishReason is the reason of an upstream of another dialect as this one has it. One that
// it has not is the end of an answer like any other.
func FinishReason(f llm.Finish) llm.Finish {
	switch f {
	case llm.FinishCalls, llm.FinishLength, llm.FinishRefused:
		return f
	case "model_context_window_exceeded":
		return llm.FinishLength
	}
	return llm.FinishStop
}

// Head is what a completion is called where the upstream named nothing.
type Head struct {
	ID      string
	Created int64 // seconds since 1970
	Model   string
}
