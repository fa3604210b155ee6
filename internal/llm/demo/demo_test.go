package demo

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/llm/llmtest"
)

var update = flag.Bool("update", false, "write the golden files anew")

// host answers the two tools as the real ones do.
type host struct {
	// list is the result of skills_list.
	list string
	// files holds results of skills_read by "skill/path@offset".
	files map[string]string
}

func (h host) run(t *testing.T, c llm.Call) string {
	t.Helper()
	if c.Name == toolList {
		return h.list
	}
	var a struct {
		Skill  string `json:"skill"`
		Path   string `json:"path"`
		Offset int    `json:"offset"`
	}
	if err := json.Unmarshal([]byte(c.Arguments), &a); err != nil {
		t.Fatalf("arguments %q: %v", c.Arguments, err)
	}
	text, ok := h.files[fmt.Sprintf("%s/%s@%d", a.Skill, a.Path, a.Offset)]
	if !ok {
		return "Error: no such file. Nothing was read."
	}
	return text
}

const office = `3 skills are reachable:

release-notes
  Writes release notes from a list of changes, grouped for readers.
  files: SKILL.md, references/breaking.md, assets/logo.png [binary]

meeting-minutes
  Turns a transcript into minutes with decisions and owners.
  requires: a transcript
  files: SKILL.md only

commit-messages
  Writes the message of a commit: subject line, body, trailers.
  files: SKILL.md only
`

const notesBody = `Skill: release-notes
File: SKILL.md

# Release notes

## Order

Begin with what changed for the reader, then fixes, then thanks.
Name each change in one line.

## Breaking changes

For changes that break something see references/breaking.md before writing.

## Tone

Write in the present tense, and address the reader as you.

Bundled files:

- references/breaking.md (412 bytes)
- assets/logo.png [binary] (12.5 KB)
- scripts/collect.py (2 KB)

Scripts are available through skills_run. Do not copy them.
`

func theOffice() host {
	return host{list: office, files: map[string]string{
		"release-notes/SKILL.md@0":               notesBody,
		"release-notes/references/breaking.md@0": "Skill: release-notes\nFile: references/breaking.md\n\n# Breaking changes\n\nSay what breaks, for whom, and the shortest way to migrate.\n\nNever hide a break among the fixes.\n",
		"meeting-minutes/SKILL.md@0":             "Skill: meeting-minutes\nFile: SKILL.md\nBytes 0-60 of 100\n\n# Minutes\n\nFirst list who was there.\n\n[Bytes 60 to 100 are left: call skills_read with skill \"meeting-minutes\", path \"SKILL.md\", offset 60]\n",
		"meeting-minutes/SKILL.md@60":            "Skill: meeting-minutes\nFile: SKILL.md\nBytes 60-100 of 100\n\nA decision names its owner and a date.\n",
	}}
}

// endless is a skill of many pages, and one whose files lead on and on.
func endless() host {
	return host{list: "1 skill:\n\nbook\n  A long book of tales.\n  files: SKILL.md, a.md, b.md\n", files: map[string]string{
		"book/SKILL.md@0":  "Skill: book\nFile: SKILL.md\nBytes 0-10 of 90\n\nChapter one.\n\n[Go on.]",
		"book/SKILL.md@10": "Skill: book\nFile: SKILL.md\nBytes 10-20 of 90\n\nChapter two. Dragons are in a.md, dragons of the sea in b.md.\n\n[Go on.]\n\n- a.md (3 bytes)\n- b.md (3 bytes)\n",
		"book/a.md@0":      "Skill: book\nFile: a.md\n\nNothing here.\n",
		"book/b.md@0":      "Skill: book\nFile: b.md\nBytes 0-10 of 90\n\nNothing here either.\n\n[Go on.]",
	}}
}

func hostTools() []llm.Declaration {
	return []llm.Declaration{
		{Name: toolList, Parameters: []byte(`{"type":"object","properties":{}}`)},
		{Name: toolRead, Parameters: []byte(`{"type":"object","properties":{"skill":{"type":"string"},"path":{"type":"string"}}}`)},
	}
}

// converse runs the loop of a host and writes down what happens.
func converse(t *testing.T, h host, r *llm.Request) string {
	t.Helper()
	var log strings.Builder
	for round := 1; round <= 8; round++ {
		heard, err := llmtest.Listen(t.Context(), Provider{}, r)
		if err != nil {
			t.Fatal(err)
		}
		if heard.Finish != llm.FinishCalls {
			fmt.Fprintf(&log, "answer (%s):\n%s\n", heard.Finish, heard.Text)
			return log.String()
		}
		r.Messages = append(r.Messages, heard.Reply.Message)
		for _, c := range heard.Calls {
			fmt.Fprintf(&log, "call %s: %s %s\n", c.ID, c.Name, c.Arguments)
			m := llm.TextMessage(llm.Tool, h.run(t, c))
			m.CallID = c.ID
			r.Messages = append(r.Messages, m)
		}
	}
	t.Fatalf("no answer after 8 rounds:\n%s", log.String())
	return ""
}

func ask(text string) *llm.Request {
	return &llm.Request{Model: "demo", Messages: []llm.Message{llm.TextMessage(llm.User, text)}, Tools: hostTools()}
}

func with(r *llm.Request, change func(*llm.Request)) *llm.Request {
	change(r)
	return r
}

const inlinedSystem = `You are helpful.

## Agent skills

<skill name="release-notes">
Writes release notes.

Begin with what changed for the reader.
</skill>
<skill name="tea">
Brews tea.

Warm the pot before the leaves go in.
</skill>`

func conversations() map[string]struct {
	host host
	ask  *llm.Request
} {
	type c = struct {
		host host
		ask  *llm.Request
	}
	caller := llm.Declaration{Name: "get_weather"}
	theirs := hostTools()
	for i := range theirs {
		theirs[i].Raw = llm.Raw{Dialect: llm.OpenAIChat, Bytes: []byte(`{}`)}
	}
	return map[string]c{
		"quotes":        {theOffice(), ask("How do I order the release notes for 2.4?")},
		"reference":     {theOffice(), ask("Release notes: what do I write about breaking changes that need a migration?")},
		"continues":     {theOffice(), ask("Who owns a decision in the minutes of our meeting?")},
		"bounds":        {endless(), ask("A book of tales: which dragons of the sea?")},
		"no match":      {theOffice(), ask("What is the capital of Norway?")},
		"list is empty": {host{list: "No skill is reachable here."}, ask("Write release notes")},
		"read fails":    {theOffice(), ask("Write a commit message with trailers")},
		"list fails":    {host{list: "Error: the registry is being read.\nTry again."}, ask("Write release notes")},
		"no tools":      {host{}, with(ask("Write release notes"), func(r *llm.Request) { r.Tools = nil })},
		"caller's only": {host{}, with(ask("Write release notes"), func(r *llm.Request) { r.Tools = []llm.Declaration{caller} })},
		"caller's names": {host{}, with(ask("Write release notes"), func(r *llm.Request) {
			r.Tools = theirs
		})},
		"choice none": {host{}, with(ask("Write release notes"), func(r *llm.Request) { r.Options.Choice = llm.ChoiceNone })},
		"inlined": {host{}, with(ask("How do I brew tea?"), func(r *llm.Request) {
			r.Choice = llm.ChoiceNone
			r.Messages = append([]llm.Message{llm.TextMessage(llm.System, inlinedSystem)}, r.Messages...)
		})},
		"inlined in the tail": {host{}, with(ask("How do I begin release notes?"), func(r *llm.Request) {
			r.Tools = nil
			r.Messages = append([]llm.Message{{Role: llm.System, Tail: inlinedSystem}}, r.Messages...)
		})},
		"inlined, no match": {host{}, with(ask("What is the capital of Norway?"), func(r *llm.Request) {
			r.Tools = nil
			r.Messages = append([]llm.Message{llm.TextMessage(llm.System, inlinedSystem)}, r.Messages...)
		})},
		"second turn": {theOffice(), with(ask("How do I order the release notes?"), func(r *llm.Request) {
			r.Messages = append(r.Messages,
				llm.Message{Role: llm.Assistant, Calls: []llm.Call{{ID: "call_demo_1", Name: toolList, Arguments: "{}"}}},
				llm.Message{Role: llm.Tool, CallID: "call_demo_1", Parts: llm.TextMessage(llm.Tool, office).Parts},
				llm.TextMessage(llm.Assistant, "Answered."),
				llm.TextMessage(llm.User, "And in which tense are the release notes, and their tone?"))
		})},
	}
}

func TestConversations(t *testing.T) {
	for name, c := range conversations() {
		t.Run(name, func(t *testing.T) {
			got := converse(t, c.host, c.ask)
			golden := filepath.Join("testdata", strings.NewReplacer(" ", "-", ",", "", "'", "").Replace(name)+".golden")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), got); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
			if !strings.Contains(got, "not a language model") {
				t.Error("the answer does not say what it is")
			}
		})
	}
}

// TestForcedAnswer holds that the host's request for an answer, which is a user
// message behind a result, is not taken for a question.
func TestForcedAnswer(t *testing.T) {
	r := ask("How do I order the release notes?")
	for range 2 {
		heard, err := llmtest.Listen(t.Context(), Provider{}, r)
		if err != nil {
			t.Fatal(err)
		}
		m := llm.TextMessage(llm.Tool, theOffice().run(t, heard.Calls[0]))
		m.CallID = heard.Calls[0].ID
		r.Messages = append(r.Messages, heard.Reply.Message, m)
	}
	r.Messages = append(r.Messages, llm.TextMessage(llm.User, "The limit is reached. Answer from what was read, with no further calls."))
	r.Choice = llm.ChoiceNone
	heard, err := llmtest.Listen(t.Context(), Provider{}, r)
	if err != nil {
		t.Fatal(err)
	}
	if len(heard.Calls) != 0 || !strings.Contains(heard.Text, "> Begin with what changed for the reader") {
		t.Errorf("got calls %v and %q", heard.Calls, heard.Text)
	}
}

// TestSuite runs what the suite asks of every provider that it can ask of one
// without an upstream.
func TestSuite(t *testing.T) {
	for _, tt := range []struct {
		name string
		ask  *llm.Request
	}{
		{"the suite's request", llmtest.Ask("demo")},
		{"alternatives", with(ask("hi"), func(r *llm.Request) { r.Tools, r.Options.Choices = nil, 3 })},
	} {
		heard, err := llmtest.Listen(t.Context(), Provider{}, tt.ask)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		for choice := 1; choice < tt.ask.Options.Choices; choice++ {
			if heard.Choices[choice] != heard.Text {
				t.Errorf("%s: alternative %d says %q", tt.name, choice, heard.Choices[choice])
			}
		}
		if heard.Usage == nil || heard.Usage.Input == 0 || heard.Usage.Total != heard.Usage.Input+heard.Usage.Output {
			t.Errorf("%s: usage %+v", tt.name, heard.Usage)
		}
		if words := len(strings.Fields(heard.Text)); heard.Pieces < words {
			t.Errorf("%s: %d words came in %d pieces", tt.name, words, heard.Pieces)
		}
	}
	models, err := Provider{}.Models(t.Context())
	if err != nil || len(models) != 1 || models[0].ID != ModelID {
		t.Errorf("models: %v, %v", models, err)
	}
}

func TestStreamEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n := 0
	var last error
	for _, err := range (Provider{}).Stream(ctx, ask("hi")) {
		n++
		last = err
		cancel()
	}
	if n != 2 || !errors.Is(last, context.Canceled) {
		t.Errorf("after cancelling: %d elements, last error %v", n, last)
	}
	for _, err := range (Provider{}).Stream(ctx, ask("hi")) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled before it began: %v", err)
		}
	}
	for range (Provider{}).Stream(t.Context(), ask("hi")) {
		break // goes on no further, or the iterator panics
	}
}

func TestRefusesStructure(t *testing.T) {
	_, err := llmtest.Listen(t.Context(), Provider{}, with(ask("hi"), func(r *llm.Request) { r.Options.Structured = true }))
	if e, ok := errors.AsType[*llm.StatusError](err); !ok || e.Status != 400 || !strings.Contains(e.Message, "response_format") {
		t.Errorf("got %v", err)
	}
}
