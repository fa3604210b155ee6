package gateway

import (
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/code"
	"github.com/metier-run/metier/internal/llm"
)

// attach finds the files that messages hold, and has the model told where each lies: in
// a line behind its message, which depends on the messages alone (B1 6.4).
func (g *Gateway) attach(r *Request, plan selection) *code.Attachments {
	switch {
	case !plan.code:
		return nil
	case r.Conversation != nil:
		r.tellNotes()
		return nil
	case r.Files == nil:
		return nil
	}
	files := g.o.Code.Attachments()
	cloned := false
	for i, m := range r.Messages {
		if m.Role != llm.User {
			continue
		}
		note := files.Add(r.Files(m))
		if note == "" {
			continue
		}
		if !cloned {
			r.Messages, cloned = slices.Clone(r.Messages), true
		}
		r.Messages[i].Tail = note
	}
	return files
}

// tellNotes puts the notes of a conversation that goes on behind their messages.
func (r *Request) tellNotes() {
	if r.Notes == nil {
		return
	}
	notes := r.Notes(r.Messages)
	r.Messages = slices.Clone(r.Messages)
	for i, note := range notes {
		r.Messages[i].Tail = note
	}
}

// sample is what a turn with code work asks of the sampler where the client does not
// say: no penalty on tokens that come again, if the upstream has one by itself, because
// code repeats them for good reason; and the operator's temperature (seed 1, "Measured
// against Codex and Claude Code"; B1 18.5). Nothing that the client sent is changed; a
// null, by which it leaves the value to others, is not sent beside a value.
func (g *Gateway) sample(r Request, plan selection, caps llm.Capabilities) []llm.Member {
	if !plan.code {
		return nil
	}
	var added []llm.Member
	said := func(name string) bool {
		return slices.ContainsFunc(r.Rest, func(m llm.Member) bool { return strings.EqualFold(m.Name, name) && string(m.Value) != "null" })
	}
	if caps.Penalty != "" && r.Options.RepeatPenalty == nil && !said(caps.Penalty) {
		added = append(added, llm.Member{Name: caps.Penalty, Value: jsontext.Value("1.0")})
	}
	if g.o.Temperature != nil && r.Options.Temperature == nil && !said("temperature") {
		added = append(added, llm.Member{Name: "temperature", Value: strconv.AppendFloat(nil, *g.o.Temperature, 'g', -1, 64)})
	}
	return added
}
