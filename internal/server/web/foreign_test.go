package web

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/metier-run/metier/internal/access"
	"github.com/metier-run/metier/internal/llm"
)

// foreign is a provider of another dialect than Chat Completions.
type foreign struct{ *llm.Script }

func (foreign) Dialect() llm.Dialect { return llm.Anthropic }

func (foreign) Lost(r *llm.Request) []string {
	return r.Lost(llm.Carry{Parts: []llm.PartKind{llm.Image}, NoOptions: []string{"effort"}})
}

func newForeign(rounds ...llm.ScriptedRound) foreign {
	return foreign{&llm.Script{Rounds: rounds, Caps: llm.Capabilities{Declares: true, Parsed: true, Results: true}}}
}

func event(data string) llm.Raw { return llm.Raw{Dialect: llm.Anthropic, Bytes: []byte(data)} }

// aRound begins and ends as those of the other dialect do, with events that say nothing.
func aRound(finish llm.Finish, pieces ...llm.Piece) llm.ScriptedRound {
	all := append([]llm.Piece{{Raw: event(`{"type":"message_start"}`)}}, pieces...)
	return llm.ScriptedRound{Pieces: append(all, llm.Piece{Finish: finish, Usage: &llm.Usage{Input: 20, Output: 5, Cached: 10, Total: 25}, Raw: event(`{"type":"message_delta"}`)})}
}

// TestForeignFrames: the frames of a turn whose upstream speaks another dialect, byte for
// byte.
func TestForeignFrames(t *testing.T) {
	text := llm.Piece{Text: "It is so.", Raw: event(`{"type":"content_block_delta"}`)}
	for _, c := range []struct {
		name, body string
		rounds     []llm.ScriptedRound
	}{
		{"foreign-skill", say("hi", `,"use_model":"m"`), []llm.ScriptedRound{
			aRound(
				llm.FinishCalls,
				llm.Piece{Reasoning: "hm", Raw: event(`{"type":"content_block_delta"}`)}, llm.Piece{Raw: event(`{"type":"signature"}`)},
				llm.Piece{Calls: []llm.CallDelta{{ID: "toolu_1", Name: "skills_read"}}}, llm.Piece{Calls: []llm.CallDelta{{Arguments: `{"skill":"release-notes"}`}}},
			),
			aRound(llm.FinishStop, text),
		}},
		{"foreign-calls", say("hi", `,"use_model":"m"`, weather), []llm.ScriptedRound{
			aRound(llm.FinishCalls, text, llm.Piece{Calls: []llm.CallDelta{{ID: "toolu_1", Name: "get_weather", Arguments: `{"city":"Oslo"}`}}}),
		}},
		{"foreign-truncated", say("hi", `,"use_model":"m"`), []llm.ScriptedRound{aRound("model_context_window_exceeded", text)}},
		{"foreign-broken", say("hi", `,"use_model":"m"`), []llm.ScriptedRound{{Pieces: []llm.Piece{text}, Err: &llm.StreamError{Message: "overloaded", Raw: []byte(`{"type":"error"}`)}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			still := func() time.Time { return time.Unix(1_000_000, 0) }
			w := newRig(t, rigOptions{provider: newForeign(c.rounds...), noCode: true, now: still}).chat(t, c.body)
			stream := w.Body.String()
			read(t, w)
			golden(t, c.name, stream)
		})
	}
}

// TestForeignRefusal: an upstream's refusal keeps its status although events without a word
// came before it.
func TestForeignRefusal(t *testing.T) {
	round := llm.ScriptedRound{
		Pieces: []llm.Piece{{Raw: event(`{"type":"message_start"}`)}},
		Err:    &llm.StatusError{Status: 529, Dialect: llm.Anthropic, Body: []byte(`{"type":"error"}`), Message: "overloaded", Header: http.Header{"Retry-After": {"7"}}},
	}
	w := newRig(t, rigOptions{provider: newForeign(round), noCode: true}).chat(t, say("hi", `,"use_model":"m"`))
	if want := `{"error":"the upstream refused the request: overloaded"}`; w.Code != 529 || w.Body.String() != want || w.Header().Get("Retry-After") != "7" {
		t.Errorf("%d %s, %v", w.Code, w.Body, w.Header())
	}
}

// png is the beginning of a picture.
func png() string { return base64.StdEncoding.EncodeToString([]byte("\x89PNG\r\n\x1a\n....")) }

// TestForeignRequest: a request reaches a provider of another dialect whole, in neutral
// form, and its client is told what the provider cannot carry.
func TestForeignRequest(t *testing.T) {
	p := newForeign(aRound(llm.FinishStop), aRound(llm.FinishStop, llm.Piece{Text: "x"}))
	r := newRig(t, rigOptions{provider: p, noCode: true, noSkills: true})
	w := r.chat(t, `{"messages":[{"role":"system","content":"be"},
		{"role":"user","content":"see","images":["`+png()+`"]},
		{"role":"assistant","content":"","tool_calls":[{"id":"c1","type":"function","function":{"name":"get_weather","arguments":"{}"}}]},
		{"role":"tool","tool_call_id":"c1","content":"rain"},
		{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/gif;base64,R0lG"}},{"type":"file","file":{"filename":"a.txt","file_data":"YQ=="}}]}],
		"use_model":"m","maxTokens":9,"think":"high"`+weather+`}`)
	if got := answer(t, w); got != "x" {
		t.Fatalf("answered %q", got)
	}
	if diff := cmp.Diff([]string{`the upstream's dialect cannot carry the setting "effort", files`}, w.Header().Values("X-Metier-Warning")); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	sent := p.Requests()[0]
	if diff := cmp.Diff(llm.Options{MaxTokens: 9, Effort: "high"}, sent.Options); diff != "" {
		t.Errorf("the options differ (-want +got):\n%s", diff)
	}
	want := []llm.Message{
		llm.TextMessage(llm.System, "be"),
		{Role: llm.User, Parts: []llm.Part{{Kind: llm.Text, Text: "see"}, {Kind: llm.Image, Media: &llm.Media{Type: "image/png", Data: png()}}}},
		{Role: llm.Assistant, Parts: []llm.Part{{Kind: llm.Text}}, Calls: []llm.Call{{ID: "c1", Name: "get_weather", Arguments: "{}"}}},
		{Role: llm.Tool, CallID: "c1", Parts: []llm.Part{{Kind: llm.Text, Text: "rain"}}},
		{Role: llm.User, Parts: []llm.Part{
			{Kind: llm.Image, Media: &llm.Media{Type: "image/gif", Data: "R0lG"}}, {Kind: llm.File, Media: &llm.Media{Name: "a.txt", Data: "YQ=="}},
		}},
	}
	if diff := cmp.Diff(want, sent.Messages, cmpopts.IgnoreFields(llm.Message{}, "Raw"), cmpopts.IgnoreFields(llm.Part{}, "Raw")); diff != "" {
		t.Errorf("the messages differ (-want +got):\n%s", diff)
	}
	if len(sent.Tools) != 1 || sent.Tools[0].Name != "get_weather" {
		t.Errorf("the tools are %+v", sent.Tools)
	}
}

// TestThink: each way to say how much to think is a setting that every dialect has.
func TestThink(t *testing.T) {
	for think, want := range map[string]string{
		"true": "medium", "false": "none", `"minimal"`: "minimal", `"low"`: "low", `"medium"`: "medium", `"high"`: "high", `"xhigh"`: "xhigh", `"none"`: "none", "null": "",
	} {
		p := newForeign(aRound(llm.FinishStop, llm.Piece{Text: "x"}))
		w := newRig(t, rigOptions{provider: p, noCode: true, noSkills: true}).chat(t, say("hi", `,"use_model":"m","think":`+think))
		answer(t, w)
		if got := p.Requests()[0].Options.Effort; got != want {
			t.Errorf("think %s became %q, want %q", think, got, want)
		}
		if warned := w.Header().Get("X-Metier-Warning") != ""; warned != (want != "") {
			t.Errorf("think %s: warned %v, of an upstream that has no such setting", think, warned)
		}
	}
}

// TestImages: pictures as Ollama's clients write them go upstream as parts of their message,
// and nothing else of the messages changes.
func TestImages(t *testing.T) {
	r := newRig(t, rigOptions{scripted: true, noCode: true})
	jpeg := base64.StdEncoding.EncodeToString([]byte("\xff\xd8\xff\xe0...."))
	image := func(address string) string {
		return `{"type":"image_url","image_url":{"url":"` + address + `"}}`
	}
	unknown := base64.StdEncoding.EncodeToString([]byte("?"))
	for in, want := range map[string]string{
		`{"role":"user", "content":"h\u0069","images":["` + png() + `","` + strings.ReplaceAll(jpeg, "/", `\/`) + `"]}`: `{"role":"user","content":[{"type":"text","text":"h\u0069"},` + image("data:image/png;base64,"+png()) + `,` + image("data:image/jpeg;base64,"+jpeg) + `]}`,
		`{"role":"user","images":["data:image/webp;base64,AAAA"]}`:                                                      `{"role":"user","content":[` + image("data:image/webp;base64,AAAA") + `]}`,
		`{"images":["` + unknown + `"],"role":"user","content":[{"type":"text","text":"a"}],"x":1}`:                     `{"role":"user","content":[{"type":"text","text":"a"},` + image("data:image/png;base64,"+unknown) + `],"x":1}`,
		`{"role":"user","content":"the \"images\" ", "images": null}`:                                                   `{"role":"user","content":"the \"images\" ", "images": null}`,
		`{"role":"user","content":"","images":[]}`:                                                                      `{"role":"user","content":""}`,
	} {
		before, after := `{"role":"system", "content":"be" }`, `{"role":"user","content":"and \"images\"" }`
		answer(t, r.chat(t, `{"messages":[`+before+`,`+in+`,`+after+`],"use_model":"hello","skills_discovery":false}`))
		all := r.upstream.Requests()
		if sent := string(all[len(all)-1].Body); !strings.Contains(sent, `"messages":[`+before+`,`+want+`,`+after+`]`) {
			t.Errorf("%s\nwent upstream as %s", in, sent)
		}
	}
	for _, wrong := range []string{`"x"`, `[1]`, `["no-base64!"]`, `[""]`, `{}`} {
		w := r.chat(t, `{"messages":[{"role":"user","content":"a"},{"role":"user","content":"b","images":`+wrong+`}],"use_model":"hello"}`)
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "messages[1].images") {
			t.Errorf("images %s: %d %s", wrong, w.Code, w.Body)
		}
	}
}

// TestImagesAreFiles: such a picture is put into the workspace as any other file of a message.
func TestImagesAreFiles(t *testing.T) {
	r := newRig(t, rigOptions{})
	answer(t, r.chat(t, `{"messages":[{"role":"user","content":"see","images":["`+png()+`"]}]}`))
	if got := r.workspaces(t); len(got) != 1 || !strings.HasSuffix(got[0], ".png") {
		t.Errorf("in the workspaces: %q", got)
	}
}

// TestNullMembers: a member that is null is one that is not there; a null session is the
// caller's own (B1 17.3).
func TestNullMembers(t *testing.T) {
	r := newRig(t, rigOptions{})
	sessionOf := func(more string) string {
		frames := read(t, r.chat(t, say("hello", more)))
		return frames[len(frames)-1].Session
	}
	own := sessionOf("")
	nulls := `,"sessionId":null,"newChat":null,"think":null,"maxTokens":null,"tools":null,"skills":null,"skills_discovery":null,"multi_agent":null,"use_model":null,"model":null`
	if got := sessionOf(nulls); got != own || own == "" {
		t.Errorf("a null session is %q, want %q", got, own)
	}
	if got := sessionOf(`,"sessionId":` + quoted(r.session(t, access.Anonymous()))); got == own {
		t.Errorf("a session of its own is %q", got)
	}
}

// TestNoSkills: without skills their block is null, so that a page shows no control
// (B1 17.12).
func TestNoSkills(t *testing.T) {
	r := newRig(t, rigOptions{noCode: true, noSkills: true})
	want := `{"models":[{"id":"m"},{"id":"other"}],"skills":null,"code":null}`
	if w := r.as(t, access.Anonymous(), http.MethodGet, "/api/models", ""); w.Code != http.StatusOK || w.Body.String() != want {
		t.Errorf("%d %s, want %s", w.Code, w.Body, want)
	}
}
