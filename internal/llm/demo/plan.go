package demo

import (
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/metier-run/metier/internal/llm"
)

// The host's tools that the stand-in knows.
const (
	toolList = "skills_list"
	toolRead = "skills_read"
)

// mainFile is the file that every skill begins with.
const mainFile = "SKILL.md"

// step is what the stand-in does next: a call, or a text.
type step struct {
	call *llm.Call
	text string
}

// turn is what has happened since the person last spoke.
type turn struct {
	question string
	listed   *exchange
	reads    []page
	// failed is the first result that reports an error.
	failed *exchange
}

// exchange is a call and its result.
type exchange struct {
	call   llm.Call
	result string
}

// next decides, from the request alone.
func next(r *llm.Request) step {
	t := readTurn(r.Messages)
	may := mayCall(r)
	switch {
	case t.failed != nil:
		return answer(failure(t.failed.call.Name, t.failed.result))
	case len(t.reads) > 0:
		return t.afterRead(r, may)
	case t.listed != nil:
		return t.afterList(r, may)
	case may:
		return call(r, toolList, nil)
	}
	return answer(fromPrompt(r.Messages, t.question))
}

// afterList reads the skill that matches best.
func (t *turn) afterList(r *llm.Request, may bool) step {
	skills := parseList(t.listed.result)
	best, ok := bestSkill(skills, words(t.question))
	switch {
	case len(skills) == 0:
		return answer(nothingReachable)
	case !ok:
		return answer(noMatch(skills))
	case !may:
		return answer(unread(best))
	}
	return call(r, toolRead, map[string]any{"skill": best.id, "path": mainFile})
}

// afterRead goes on reading, at most one further page and one further file, and
// then quotes.
func (t *turn) afterRead(r *llm.Request, may bool) step {
	last := t.reads[len(t.reads)-1]
	if may && last.more && !t.continued() {
		return call(r, toolRead, map[string]any{"skill": last.skill, "path": last.path, "offset": last.next})
	}
	if may && !t.referred() {
		if path, ok := reference(t.reads, words(t.question)); ok {
			return call(r, toolRead, map[string]any{"skill": last.skill, "path": path})
		}
	}
	return answer(quotation(bestPassage(t.quotable(), words(t.question))))
}

// quotable are the pages of the file that the skill referred to, if one was
// read: the line that led there would only lead there again.
func (t *turn) quotable() []page {
	var referred []page
	for _, p := range t.reads {
		if p.path != mainFile {
			referred = append(referred, p)
		}
	}
	if len(referred) > 0 {
		return referred
	}
	return t.reads
}

func (t *turn) continued() bool {
	for _, p := range t.reads {
		if p.from > 0 {
			return true
		}
	}
	return false
}

func (t *turn) referred() bool {
	for _, p := range t.reads {
		if p.path != mainFile {
			return true
		}
	}
	return false
}

// mayCall reports whether the host's two tools are there to be called. A
// declaration that holds a client's own bytes is the caller's, whatever its name.
func mayCall(r *llm.Request) bool {
	choice := r.Choice
	if choice == llm.ChoiceUnset {
		choice = r.Options.Choice
	}
	if choice == llm.ChoiceNone {
		return false
	}
	var list, read bool
	for _, d := range r.Tools {
		ours := len(d.Raw.Bytes) == 0
		list = list || ours && d.Name == toolList
		read = read || ours && d.Name == toolRead
	}
	return list && read
}

func call(r *llm.Request, name string, arguments map[string]any) step {
	text := "{}"
	if arguments != nil {
		data, err := json.Marshal(arguments, json.Deterministic(true))
		if err != nil {
			return answer(failure(name, err.Error()))
		}
		text = string(data)
	}
	return step{call: &llm.Call{ID: callID(r), Name: name, Arguments: text}}
}

func answer(text string) step { return step{text: notice + "\n\n" + text} }

// readTurn finds the last words of the person, and what was called since.
func readTurn(messages []llm.Message) turn {
	start := lastQuestion(messages)
	t := turn{question: question(messages, start)}
	open := map[string]llm.Call{}
	for _, m := range messages[min(start, len(messages)):] {
		for _, c := range m.Calls {
			open[c.ID] = c
		}
		c, ok := open[m.CallID]
		if m.Role != llm.Tool || !ok {
			continue
		}
		delete(open, m.CallID)
		t.note(exchange{call: c, result: m.Text()})
	}
	return t
}

// note takes a result of one of the two tools; others are not the stand-in's.
func (t *turn) note(e exchange) {
	ours := e.call.Name == toolList || e.call.Name == toolRead
	switch {
	case !ours:
	case strings.HasPrefix(e.result, "Error:"):
		if t.failed == nil {
			t.failed = &e
		}
	case e.call.Name == toolList:
		t.listed = &e
	default:
		t.reads = append(t.reads, parsePage(e))
	}
}

// lastQuestion is the index of the last user message that a person wrote. One
// that follows a tool's result is the host's, which asks for the answer.
func lastQuestion(messages []llm.Message) int {
	for i := len(messages) - 1; i >= 0; i-- {
		if messages[i].Role == llm.User && (i == 0 || messages[i-1].Role != llm.Tool) {
			return i
		}
	}
	return 0
}

// question is the text of that message and of user messages right before it.
func question(messages []llm.Message, at int) string {
	var parts []string
	for i := at; i >= 0 && i < len(messages) && messages[i].Role == llm.User; i-- {
		parts = append([]string{messages[i].Text()}, parts...)
	}
	return strings.Join(parts, "\n")
}
