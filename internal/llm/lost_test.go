package llm_test

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/llm"
)

// TestLost: what cannot be carried is named once each, and nothing else is.
func TestLost(t *testing.T) {
	many, yes, no := 40, true, false
	member := func(name, value string, neutral bool) llm.Member {
		return llm.Member{Name: name, Value: jsontext.Value(value), Neutral: neutral}
	}
	parts := func(kinds ...llm.PartKind) []llm.Message {
		var m llm.Message
		for _, k := range kinds {
			m.Parts = append(m.Parts, llm.Part{Kind: k})
		}
		return []llm.Message{m, m}
	}
	for name, tt := range map[string]struct {
		request llm.Request
		carry   llm.Carry
		want    []string
	}{
		"nothing": {llm.Request{Messages: parts(llm.Text)}, llm.Carry{NoOptions: []string{"seed", "stop", "effort"}}, nil},
		"members": {
			llm.Request{Rest: []llm.Member{member("logit_bias", "{}", false), member("stop", `"x"`, true), member("user", "null", false), {Name: "messages"}}},
			llm.Carry{},
			[]string{`the member "logit_bias"`},
		},
		"a hostile name": {
			llm.Request{Rest: []llm.Member{member("a\r\nX-Evil: 1"+strings.Repeat("e", 99), "1", false)}},
			llm.Carry{},
			[]string{`the member "a\r\nX-Evil: 1eeeeeeeeeeeeeeeeeeeeeeeeeeee"`},
		},
		"settings": {
			llm.Request{Options: llm.Options{TopK: &many, Stop: []string{"x"}, Parallel: &no, Choice: llm.ChoiceNamed}},
			llm.Carry{NoOptions: []string{"seed", "top_k", "parallel", "function"}},
			[]string{`the setting "top_k"`, `the setting "parallel"`, `the setting "function"`},
		},
		"calls side by side": {llm.Request{Options: llm.Options{Parallel: &yes}}, llm.Carry{NoOptions: []string{"parallel"}}, nil},
		"tools": {
			llm.Request{Tools: []llm.Declaration{{Name: "f"}, {Name: "web_search", Special: true}}},
			llm.Carry{},
			[]string{`the tool "web_search"`},
		},
		"parts": {
			llm.Request{Messages: parts(llm.Image, llm.File, llm.Reasoning, llm.Other)},
			llm.Carry{Parts: []llm.PartKind{llm.Image}},
			[]string{"files", "reasoning of earlier answers", "parts of messages that only their own dialect has"},
		},
	} {
		if diff := cmp.Diff(tt.want, tt.request.Lost(tt.carry)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestMedia: a file is the same whichever way a dialect writes it.
func TestMedia(t *testing.T) {
	for address, want := range map[string]llm.Media{
		"data:image/PNG;base64,aGk=":                {Type: "image/png", Data: "aGk="},
		"DATA:text/plain;charset=utf-8;base64,aGk=": {Type: "text/plain", Data: "aGk="},
		"https://files.test/a.png":                  {URL: "https://files.test/a.png"},
		"data:text/plain,hi":                        {URL: "data:text/plain,hi"},
		"data:":                                     {URL: "data:"},
		"":                                          {},
	} {
		got := llm.ParseDataURL(address)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", address, diff)
		}
		if again := llm.ParseDataURL(got.DataURL()); again != got {
			t.Errorf("%s became %+v and then %+v", address, got, again)
		}
	}
	for name, tt := range map[string]struct {
		media   llm.Media
		problem string
		size    int64
	}{
		"whole":  {llm.Media{Data: "aGk="}, "", 2},
		"broken": {llm.Media{Data: "a=k="}, llm.BrokenData, 0},
		"empty":  {llm.Media{Type: "image/png"}, llm.NoData, 0},
		"linked": {llm.Media{URL: "https://files.test/a.png"}, llm.OnlyLink, 0},
	} {
		m := llm.Message{Parts: []llm.Part{{Kind: llm.Text}, {Kind: llm.Image, Media: &tt.media}}}
		found := llm.Attachments(m)
		if len(found) != 1 || found[0].Problem != tt.problem || found[0].Size != tt.size || (found[0].Data == nil) != (tt.problem != "") {
			t.Errorf("%s: %+v", name, found)
		}
	}
}
