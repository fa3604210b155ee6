package turn_test

import (
	"strings"
	"testing"

	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/turn"
)

// TestEstimate: text counts by its bytes, wire forms by theirs, and a picture no more than
// a model reads of it.
func TestEstimate(t *testing.T) {
	same := func(m llm.Message) llm.Message { return m }
	text := llm.TextMessage(llm.User, strings.Repeat("abc", 100))
	tail := text
	tail.Tail = strings.Repeat("x", 300)
	data := strings.Repeat("A", 300_000)
	raw := llm.Message{Role: llm.User, Raw: llm.Raw{Dialect: llm.Anthropic, Bytes: []byte(`{"role":"user","content":[{"data":"` + data + `"}]}`)}}
	picture := func(m llm.Message) llm.Message {
		m.Parts = append(m.Parts[:len(m.Parts):len(m.Parts)], llm.Part{Kind: llm.Image, Media: &llm.Media{Data: data}})
		return m
	}
	for name, tt := range map[string]struct {
		r           llm.Request
		expand      func(llm.Message) llm.Message
		least, most int64
	}{
		"text":          {llm.Request{Messages: []llm.Message{text}}, same, 100, 110},
		"with a tail":   {llm.Request{Messages: []llm.Message{tail}}, same, 200, 210},
		"a wire form":   {llm.Request{Messages: []llm.Message{raw}}, same, 100_000, 100_100},
		"a picture":     {llm.Request{Messages: []llm.Message{raw}}, picture, 1_600, 1_650},
		"a tool":        {llm.Request{Tools: []llm.Declaration{{Name: "f", Description: strings.Repeat("y", 300)}}}, same, 100, 110},
		"nothing":       {llm.Request{}, same, 0, 0},
		"parts, no raw": {llm.Request{Messages: []llm.Message{picture(text)}}, same, 1_700, 1_710},
		"text and raw":  {llm.Request{Messages: []llm.Message{text, raw}}, picture, 3_300, 3_350},
	} {
		if got := turn.Estimate(&tt.r, tt.expand); got < tt.least || got > tt.most {
			t.Errorf("%s: %d, want %d to %d", name, got, tt.least, tt.most)
		}
	}
}
