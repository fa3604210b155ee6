package llm

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
)

// Assembler puts the pieces of choice 0 together into a [Reply]. It is for
// providers that have no wire form of their own.
type Assembler struct {
	text, reasoning strings.Builder
	calls           []Call
	index           []int
	reply           Reply
}

// Add takes the next piece.
func (a *Assembler) Add(p Piece) {
	if p.Choice != 0 {
		return
	}
	a.text.WriteString(p.Text)
	a.reasoning.WriteString(p.Reasoning)
	for _, d := range p.Calls {
		i := slices.Index(a.index, d.Index)
		if i < 0 {
			i = len(a.calls)
			a.index = append(a.index, d.Index)
			a.calls = append(a.calls, Call{ID: d.ID, Name: d.Name})
		}
		a.calls[i].Arguments += d.Arguments
	}
	if p.Finish != "" {
		a.reply.Finish = p.Finish
	}
	if p.Usage != nil {
		a.reply.Usage = *p.Usage
	}
}

// Reply is what has come together so far.
func (a *Assembler) Reply() Reply {
	r := a.reply
	r.Message = Message{Role: Assistant, Calls: a.calls}
	if a.reasoning.Len() > 0 {
		r.Message.Parts = append(r.Message.Parts, Part{Kind: Reasoning, Text: a.reasoning.String()})
	}
	if a.text.Len() > 0 {
		r.Message.Parts = append(r.Message.Parts, Part{Kind: Text, Text: a.text.String()})
	}
	return r
}

// ScriptedRound is one generation of a [Script].
type ScriptedRound struct {
	Pieces []Piece
	// Err ends the stream after the pieces, in place of a reply.
	Err error
	// Block makes the stream wait after the pieces until its context ends.
	Block bool
}

// Script is a provider that plays prepared rounds, for tests of what is above
// this package. The round that it plays is the number of assistant messages in
// the request, so a request that is sent again gets the same answer.
type Script struct {
	Rounds []ScriptedRound
	Caps   Capabilities

	mu       sync.Mutex
	requests []*Request
}

var _ Provider = (*Script)(nil)

// Requests lists what was asked for, in order.
func (s *Script) Requests() []*Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Dialect is empty: a script has no wire form.
func (s *Script) Dialect() Dialect { return "" }

// Capabilities are those that the test set.
func (s *Script) Capabilities(context.Context, string) (Capabilities, error) { return s.Caps, nil }

// Lost is nothing: a script hears all.
func (s *Script) Lost(*Request) []string { return nil }

// Models lists the one model that a script is.
func (s *Script) Models(context.Context) ([]Model, error) { return []Model{{ID: "script"}}, nil }

// Stream plays a round.
func (s *Script) Stream(ctx context.Context, r *Request) iter.Seq2[Piece, error] {
	s.mu.Lock()
	s.requests = append(s.requests, r)
	s.mu.Unlock()
	return func(yield func(Piece, error) bool) {
		n := 0
		for _, m := range r.Messages {
			if m.Role == Assistant {
				n++
			}
		}
		if n >= len(s.Rounds) {
			yield(Piece{}, fmt.Errorf("script: no round %d", n+1))
			return
		}
		s.Rounds[n].play(ctx, yield)
	}
}

func (round ScriptedRound) play(ctx context.Context, yield func(Piece, error) bool) {
	var a Assembler
	for _, p := range round.Pieces {
		if err := ctx.Err(); err != nil {
			yield(Piece{}, err)
			return
		}
		a.Add(p)
		if !yield(p, nil) {
			return
		}
	}
	if round.Block {
		<-ctx.Done()
		yield(Piece{}, context.Cause(ctx))
		return
	}
	if round.Err != nil {
		yield(Piece{}, round.Err)
		return
	}
	reply := a.Reply()
	if reply.Finish == "" {
		yield(Piece{}, errors.New("script: the round has no finish"))
		return
	}
	yield(Piece{Reply: &reply}, nil)
}
