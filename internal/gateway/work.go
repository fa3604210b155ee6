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
	if !plan.code || r.Files == nil || r.Conversation != nil {
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

// sample adds what a turn with code work asks of the sampler where the client does not
// say: no penalty on tokens that come again, if the upstream has one by itself, because
// code repeats them for good reason; and the operator's temperature (seed 1, "Measured
// against Codex and Claude Code"; B1 18.5). Nothing that the client sent is changed.
func (g *Gateway) sample(r Request, plan selection, caps llm.Capabilities) []llm.Member {
	rest := r.Rest
	add := func(name, value string) {
		said := slices.ContainsFunc(rest, func(m llm.Member) bool { return strings.EqualFold(m.Name, name) && string(m.Value) != "null" })
		if !said {
			rest = append(slices.Clip(rest), llm.Member{Name: name, Value: jsontext.Value(value)})
		}
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
