package main

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/wire"
)

// The task. The prompt holds nothing of what the skill says, nor of what the command
// prints, so that both can only have come through the calls.
const (
	skillName = "release-notes"
	otherName = "unit-pricing" // is not selected, and the model must not hear of it
	rulesPath = "references/house-rules.md"
	prompt    = "Ticket 7731: in which order do the headings of our release notes come? Run a command that says hello first."
	mark      = "Ticket 7731"
	// bodySays is in the skill's body, rulesSay in its file alone.
	bodySays = "Drop what no user can see"
	rulesSay = "Trains are named after water"
	// command prints printed, which is not in the command. It takes its time: one of the
	// agents now and then has nothing of a command that ends at once.
	command = "echo hello-$((7000+731)); sleep 1"
	printed = "hello-7731"
	answer  = "The headings come in this order: Act now, New, Better, Fixed, Going away. The house rules agree."
	// aside is what requests get that are not about the task: agents ask for titles and
	// summaries besides.
	aside = "A quiet day."
)

// The steps of the task, in order. The one behind them is for all else.
const taskSteps = 3

// scenario is what the model says to one agent.
func scenario(a agent) []byte {
	var b strings.Builder
	b.WriteString("A skill is read, then one of its files beside the client's own shell, then all is answered.\n\n")
	step := func(number int, when []string, events ...string) {
		fmt.Fprintf(&b, "-- %d.when --\nstream: true\n", number)
		for _, line := range when {
			b.WriteString(line + "\n")
		}
		fmt.Fprintf(&b, "-- %d.answer --\n200\nContent-Type: text/event-stream\n-- %d.body --\n", number, number)
		for _, e := range events {
			b.WriteString("data: " + e + "\n\n")
		}
		b.WriteString("data: [DONE]\n\n")
	}
	ours := []string{"tool: " + hostTool, "tool: " + a.shell, "has: " + mark, "lacks: " + otherName}
	step(1, append(ours[:len(ours):len(ours)], "has: "+skillName, "lacks: "+bodySays),
		text(a.name, "Let me look. "),
		call(a.name, 0, "call_body", hostTool, members("skill", skillName)),
		finish(a.name, "tool_calls"))
	step(2, append(ours[:len(ours):len(ours)], "has: "+bodySays, "lacks: "+rulesSay, "lacks: "+printed),
		call(a.name, 0, "call_rules", hostTool, members("skill", skillName, "path", rulesPath)),
		call(a.name, 1, "call_shell", a.shell, strings.TrimSuffix(members(a.argument, command), "}")+a.more+"}"),
		finish(a.name, "tool_calls"))
	step(taskSteps, append(ours[:len(ours):len(ours)], "has: "+bodySays, "has: "+rulesSay, "has: "+printed),
		text(a.name, answer), finish(a.name, "stop"))
	step(taskSteps+1, nil, text(a.name, aside), finish(a.name, "stop"))
	return []byte(b.String())
}

// hostTool is the tool with which a model reads a skill, as docs/skills.md names it.
const hostTool = "skills_read"

func text(model, words string) string {
	return chunk(model, `{"role":"assistant","content":`+quoted(words)+`}`, "null")
}

func call(model string, index int, id, name, arguments string) string {
	return chunk(model, fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":"%s","type":"function","function":{"name":"%s","arguments":%s}}]}`,
		index, id, name, quoted(arguments)), "null")
}

func finish(model, reason string) string {
	done := chunk(model, "{}", `"`+reason+`"`)
	usage := fmt.Sprintf(`{"id":"chatcmpl-%[1]s","object":"chat.completion.chunk","created":1767225600,"model":"%[1]s","choices":[],`+
		`"usage":{"prompt_tokens":1200,"completion_tokens":20,"total_tokens":1220}}`, model)
	return done + "\n\ndata: " + usage
}

func chunk(model, delta, reason string) string {
	return fmt.Sprintf(`{"id":"chatcmpl-%[1]s","object":"chat.completion.chunk","created":1767225600,"model":"%[1]s",`+
		`"choices":[{"index":0,"delta":%[2]s,"finish_reason":%[3]s}]}`, model, delta, reason)
}

// members is an object of texts.
func members(pairs ...string) string {
	v := jsontext.Value("{}")
	for i := 0; i+1 < len(pairs); i += 2 {
		v = wire.Set(v, pairs[i], quotedBytes(pairs[i+1]))
	}
	return string(v)
}

func quoted(s string) string      { return string(quotedBytes(s)) }
func quotedBytes(s string) []byte { return wire.AppendString(nil, s) }
