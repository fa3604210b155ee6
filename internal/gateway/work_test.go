package gateway

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/code"
	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/llm"
)

func member(name, value string) llm.Member {
	return llm.Member{Name: name, Value: jsontext.Value(value)}
}

// TestSample: what is added stands apart from what the client sent, and only where the
// client says nothing, in whatever dialect.
func TestSample(t *testing.T) {
	warm := 0.25
	g := New(Options{Temperature: &warm})
	caps := llm.Capabilities{Penalty: "repeat_penalty"}
	both := []llm.Member{member("repeat_penalty", "1.0"), member("temperature", "0.25")}
	for name, tt := range map[string]struct {
		request llm.Request
		code    bool
		want    []llm.Member
	}{
		"nothing":      {llm.Request{}, true, both},
		"without code": {llm.Request{}, false, nil},
		"nulls":        {llm.Request{Rest: []llm.Member{member("temperature", "null")}}, true, both},
		"another case": {llm.Request{Rest: []llm.Member{member("Repeat_Penalty", "2"), member("seed", "1")}}, true, both[1:]},
		"neutral":      {llm.Request{Options: llm.Options{Temperature: &warm, RepeatPenalty: &warm}}, true, nil},
	} {
		got := g.sample(Request{Request: &tt.request}, selection{code: tt.code}, caps)
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestChooseCode: each reason for which code work stays out, and that it is told only
// where there is code work.
func TestChooseCode(t *testing.T) {
	able := llm.Capabilities{Declares: true, Parsed: true, Results: true}
	unable := llm.Capabilities{Declares: true}
	request := func(change func(*llm.Request)) Request {
		r := &llm.Request{}
		change(r)
		return Request{Request: r}
	}
	for name, tt := range map[string]struct {
		request Request
		caps    llm.Capabilities
		reason  string
	}{
		"plain":         {request(func(*llm.Request) {}), able, ""},
		"no parsing":    {request(func(*llm.Request) {}), unable, "no tools may be called"},
		"none":          {request(func(r *llm.Request) { r.Options.Choice = llm.ChoiceNone }), able, "no tools may be called"},
		"required":      {request(func(r *llm.Request) { r.Options.Choice = llm.ChoiceRequired }), able, ""},
		"structured":    {request(func(r *llm.Request) { r.Options.Structured = true }), able, "the answer must be structured"},
		"choices":       {request(func(r *llm.Request) { r.Options.Choices = 2 }), able, "more than one choice"},
		"rival":         {request(func(r *llm.Request) { r.Tools = []llm.Declaration{{Name: "a"}, {Name: "functions.run_command"}} }), able, `a tool of its own for it, "functions.run_command"`},
		"no rival":      {request(func(r *llm.Request) { r.Tools = []llm.Declaration{{Name: "search"}, {Name: "skills_read"}} }), able, ""},
		"no rival name": {request(func(r *llm.Request) { r.Tools = []llm.Declaration{{}} }), able, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := New(Options{Code: code.New(code.Options{})})
			on, warnings := g.chooseCode(tt.request, tt.caps)
			if told := strings.Join(warnings, "; "); on != (tt.reason == "") || on != (told == "") || !strings.Contains(told, tt.reason) {
				t.Errorf("on %v, told %q", on, told)
			}
			if on, warnings := New(Options{}).chooseCode(tt.request, tt.caps); on || len(warnings) > 0 {
				t.Errorf("without code work: %v, %q", on, warnings)
			}
		})
	}
}

// TestBounds: where code may run there are more rounds, unless the operator said how
// many.
func TestBounds(t *testing.T) {
	own, err := config.Values{}.Set(config.MaxRounds, 8)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		limits config.Values
		code   bool
		want   int
	}{{config.Values{}, false, 8}, {config.Values{}, true, 24}, {own, true, 8}, {own, false, 8}} {
		if got := New(Options{Limits: tt.limits}).boundsOf(selection{code: tt.code}).Rounds; got != tt.want {
			t.Errorf("code %v: %d rounds, want %d", tt.code, got, tt.want)
		}
	}
}

// TestNotes: the notes of a conversation that goes on are told only where a tool can
// reach the files that they tell of.
func TestNotes(t *testing.T) {
	g := New(Options{Code: code.New(code.Options{})})
	f := llm.Attachment{Name: "a.csv", Size: 3, Data: func() ([]byte, error) { return []byte("a,b"), nil }}
	for _, on := range []bool{false, true} {
		messages := []llm.Message{llm.TextMessage(llm.User, "one"), llm.TextMessage(llm.User, "two")}
		work := g.o.Code.Open("", nil)
		r := Request{
			Request: &llm.Request{Messages: messages}, Conversation: work,
			Notes: func(m []llm.Message) map[int]string {
				return map[int]string{len(m) - 1: work.Attach([]llm.Attachment{f})}
			},
			Files: func(llm.Message) []llm.Attachment { t.Error("the messages are searched"); return nil },
		}
		if files := g.attach(&r, selection{code: on}); files != nil {
			t.Error("there are files beside those of the conversation")
		}
		want := ""
		if on {
			want = "[Files of this message, in the working directory of the tools: a.csv (3 bytes).]"
		}
		if r.Messages[1].Tail != want || r.Messages[0].Tail != "" || messages[1].Tail != "" {
			t.Errorf("code %v: the tail is %q", on, r.Messages[1].Tail)
		}
	}
}
