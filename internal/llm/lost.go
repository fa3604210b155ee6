package llm

import (
	"slices"
	"strconv"
)

// Carry is what a provider's dialect has a form for, of what a request of another dialect
// can hold in neutral form.
type Carry struct {
	// Parts are the kinds of parts beside text.
	Parts []PartKind
	// Options names the settings that the dialect has no form for, as in the JSON of
	// [Options].
	NoOptions []string
}

// nameSize is how much is shown of a name that a client chose.
const nameSize = 40

// Lost names what of a request of another dialect a provider that carries c cannot tell
// its upstream: members without a neutral form, settings, special tools, and kinds of
// parts. Each is named once, in the order of the request.
func (r *Request) Lost(c Carry) []string {
	var lost []string
	name := func(what string) {
		if !slices.Contains(lost, what) {
			lost = append(lost, what)
		}
	}
	for _, m := range r.Rest {
		if !m.Neutral && len(m.Value) > 0 && string(m.Value) != "null" {
			name("the member " + quoted(m.Name))
		}
	}
	for _, option := range c.NoOptions {
		if r.Options.says(option) {
			name("the setting " + quoted(option))
		}
	}
	for _, d := range r.Tools {
		if d.Special {
			name("the tool " + quoted(d.Name))
		}
	}
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			if what := p.words(); what != "" && !slices.Contains(c.Parts, p.Kind) {
				name(what)
			}
		}
	}
	return lost
}

// says reports whether a setting is there.
func (o Options) says(name string) bool {
	switch name {
	case "schema":
		return len(o.Schema) > 0
	case "structured":
		return o.Structured
	case "choice":
		return o.Choice == ChoiceRequired || o.Choice == ChoiceNamed
	case "function":
		return o.Choice == ChoiceNamed
	case "temperature":
		return o.Temperature != nil
	case "top_p":
		return o.TopP != nil
	case "top_k":
		return o.TopK != nil
	case "seed":
		return o.Seed != nil
	case "stop":
		return len(o.Stop) > 0
	case "frequency_penalty":
		return o.FrequencyPenalty != nil
	case "presence_penalty":
		return o.PresencePenalty != nil
	case "repeat_penalty":
		return o.RepeatPenalty != nil
	case "parallel":
		return o.Parallel != nil && !*o.Parallel
	case "effort":
		return o.Effort != ""
	case "choices":
		return o.Choices > 1
	}
	return false
}

// words name a part that a dialect may not carry; empty for text.
func (p Part) words() string {
	switch p.Kind {
	case Text:
		return ""
	case Reasoning:
		return "reasoning of earlier answers"
	case Image:
		return "images"
	case File:
		return "files"
	}
	return "parts of messages that only their own dialect has"
}

func quoted(name string) string {
	return strconv.QuoteToASCII(name[:min(len(name), nameSize)])
}
