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
	if r.Conversation != nil {
		r.bring(plan)
		return nil
	}
	if !plan.code || r.Files == nil {
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

// bring puts the files that come with the messages into the conversation. Where no tool
// could reach them they stay where they are: a note of them would be a lie.
func (r *Request) bring(plan selection) {
	if !plan.code {
		return
	}
	if r.Notes != nil {
		notes := r.Notes(r.Messages)
		r.Messages = slices.Clone(r.Messages)
		for i, note := range notes {
			r.Messages[i].Tail = note
		}
	}
	if len(r.Attached) > 0 {
		r.Messages = slices.Clone(r.Messages)
		r.Messages[len(r.Messages)-1].Tail = r.Conversation.Attach(r.Attached)
	}
}

// sample adds what a turn with code work asks of the sampler where the client does not
// say: no penalty on tokens that come again, if the upstream has one by itself, because
// code repeats them for good reason; and the operator's temperature (seed 1, "Measured
// against Codex and Claude Code"; B1 18.5). Nothing that the client sent is changed; a
// null, by which it leaves the value to others, is not sent beside a value.
func (g *Gateway) sample(r Request, plan selection, caps llm.Capabilities) []llm.Member {
	rest := r.Rest
	add := func(name, value string) {
		if slices.ContainsFunc(rest, func(m llm.Member) bool { return strings.EqualFold(m.Name, name) && string(m.Value) != "null" }) {
			return
		}
		rest = slices.DeleteFunc(slices.Clone(rest), func(m llm.Member) bool { return strings.EqualFold(m.Name, name) })
		rest = append(rest, llm.Member{Name: name, Value: jsontext.Value(value)})
	}
	if !plan.code {
		return rest
	}
	if caps.Penalty != "" {
		add(caps.Penalty, "1.0")
	}
	if g.o.Temperature != nil {
		add("temperature", strconv.FormatFloat(*g.o.Temperature, 'g', -1, 64))
	}
	return rest
}
