// Package demo is the built-in stand-in for a language model: it finds the
// reachable skill that matches the last user message best, reads it through the
// real tools, and quotes from it. It is deterministic, so that a first run and
// a test need no model.
//
// It is no language model and says so in every answer. It never opens a
// connection, never reads a skill but through a tool of the host, and never
// calls a tool of the caller. It sees decoded messages only, so its dialect is
// empty.
//
// What it does next is a function of the request: [Provider.Stream] reads the
// calls and results since the last user message and takes one more step.
//
// Start at [Provider].
package demo

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"strings"

	"github.com/metier-run/metier/internal/llm"
)

// ModelID is the one model that the stand-in lists. It answers to any name, so
// that a client need not be changed for a first try.
const ModelID = "demo"

// Provider is the stand-in. The zero value is ready and safe for concurrent use.
type Provider struct{}

var _ llm.Provider = Provider{}

// Dialect is empty: the stand-in reads decoded messages.
func (Provider) Dialect() llm.Dialect { return "" }

// Lost is nothing that would change what the stand-in answers.
func (Provider) Lost(*llm.Request) []string { return nil }

// Capabilities are those of a model that carries everything; its window has no
// known size.
func (Provider) Capabilities(context.Context, string) (llm.Capabilities, error) {
	return llm.Capabilities{Declares: true, Parsed: true, Results: true}, nil
}

// Models lists [ModelID].
func (Provider) Models(context.Context) ([]llm.Model, error) {
	return []llm.Model{{ID: ModelID}}, nil
}

// Stream takes the next step: a call of skills_list or skills_read, or an
// answer, word by word. It refuses a request for structured output, which it
// could only fake, with a [*llm.StatusError] of 400.
func (Provider) Stream(ctx context.Context, r *llm.Request) iter.Seq2[llm.Piece, error] {
	return func(yield func(llm.Piece, error) bool) {
		if err := ctx.Err(); err != nil {
			yield(llm.Piece{}, err)
			return
		}
		if r.Options.Structured {
			yield(llm.Piece{}, &llm.StatusError{Status: http.StatusBadRequest, Message: noStructure})
			return
		}
		s := next(r)
		out := speaker{yield: func(p llm.Piece) bool {
			if err := ctx.Err(); err != nil {
				yield(llm.Piece{}, err)
				return false
			}
			return yield(p, nil)
		}}
		out.speak(r, s)
	}
}

// speaker turns a step into pieces. It stops for good at the first that is not
// taken.
type speaker struct {
	yield func(llm.Piece) bool
	asm   llm.Assembler
}

func (s *speaker) say(p llm.Piece) bool {
	s.asm.Add(p)
	return s.yield(p)
}

func (s *speaker) speak(r *llm.Request, st step) {
	for choice := 1; choice < r.Options.Choices; choice++ {
		if !s.words(choice, st.text) || !s.say(llm.Piece{Choice: choice, Finish: llm.FinishStop}) {
			return
		}
	}
	if !s.words(0, st.text) {
		return
	}
	finish := llm.FinishStop
	if st.call != nil {
		finish = llm.FinishCalls
		if !s.say(llm.Piece{Calls: []llm.CallDelta{{ID: st.call.ID, Name: st.call.Name, Arguments: st.call.Arguments}}}) {
			return
		}
	}
	usage := estimate(r, st)
	if !s.say(llm.Piece{Finish: finish, Usage: &usage}) {
		return
	}
	reply := s.asm.Reply()
	reply.Model = ModelID
	s.yield(llm.Piece{Reply: &reply})
}

// words sends a text word by word, each with the white space behind it.
func (s *speaker) words(choice int, text string) bool {
	for text != "" {
		i := strings.IndexAny(text, " \n")
		for i >= 0 && i < len(text) && (text[i] == ' ' || text[i] == '\n') {
			i++
		}
		if i < 0 {
			i = len(text)
		}
		if !s.say(llm.Piece{Choice: choice, Text: text[:i]}) {
			return false
		}
		text = text[i:]
	}
	return true
}

// bytesPerToken is what a token is taken to be: there is no tokenizer here.
const bytesPerToken = 4

func estimate(r *llm.Request, st step) llm.Usage {
	in := 0
	for _, m := range r.Messages {
		in += len(m.Text()) + len(m.Tail)
		for _, c := range m.Calls {
			in += len(c.Name) + len(c.Arguments)
		}
	}
	for _, t := range r.Tools {
		in += len(t.Name) + len(t.Description) + len(t.Parameters)
	}
	out := len(st.text) * max(1, r.Options.Choices)
	if st.call != nil {
		out += len(st.call.Name) + len(st.call.Arguments)
	}
	u := llm.Usage{Input: tokens(in), Output: tokens(out)}
	u.Total = u.Input + u.Output
	return u
}

func tokens(n int) int64 { return int64((n + bytesPerToken - 1) / bytesPerToken) }

// callID counts the calls of the whole conversation, so it is the same in every
// run and taken by no other call.
func callID(r *llm.Request) string {
	taken := map[string]bool{}
	for _, m := range r.Messages {
		for _, c := range m.Calls {
			taken[c.ID] = true
		}
	}
	for n := 1; ; n++ {
		if id := fmt.Sprintf("call_demo_%d", n); !taken[id] {
			return id
		}
	}
}
