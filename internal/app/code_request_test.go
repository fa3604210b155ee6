package app_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/app"
	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/wire"
)

const (
	filesBlock = "## Working with files"
	warnHeader = "X-Metier-Warning"
)

func set(t *testing.T, s *app.Settings, name config.Name, value int64) {
	t.Helper()
	limits, err := s.Limits.Set(name, value)
	if err != nil {
		t.Fatal(err)
	}
	s.Limits = limits
}

// content are parts as JSON: the task, and then files.
func content(task string) string {
	b64 := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	parts := []string{
		`{"type":"text","text":` + quoted(task) + `}`,
		`{"type":"file","file":{"filename":"data.csv","file_data":"data:text/csv;base64,` + b64("a,b\n1,2\n") + `"}}`,
		`{"type":"image_url","image_url":{"url":"data:image/png;base64,` + b64("\x89PNG\x00picture") + `"}}`,
		`{"type":"file","file":{"filename":"data.csv","file_data":"` + b64("second\n") + `"}}`,
		`{"type":"file","file":{"filename":"large.bin","file_data":"` + b64(strings.Repeat("x", 3000)) + `"}}`,
		`{"type":"file","file":{"filename":"../../broken.bin","file_data":"data:;base64,!!!!"}}`,
		`{"type":"image_url","image_url":{"url":"https://pictures.example/a.png"}}`,
		`{"type":"file","file":{"filename":"kept.pdf","file_id":"file-1"}}`,
		`{"type":"file","file":{"filename":"lost.pdf"}}`,
		`{"type":"input_audio","input_audio":{"data":"aGk=aGk=","format":"wav"}}`,
	}
	return "[" + strings.Join(parts, ",") + "]"
}

// TestAttachmentsOverHTTP: what a client attaches lies in the workspace before the first
// tool runs, the model is told of it in words that stay the same, and nothing is on the
// disk while no tool is called.
func TestAttachmentsOverHTTP(t *testing.T) {
	w := newWorker(t)
	c := newFiles(t, w, func(s *app.Settings) { set(t, s, config.AttachBytes, 2048) })
	var there []int
	w.before = func(context.Context, int) error {
		there = append(there, len(c.workspaces(t)))
		return nil
	}
	read := func(name string) step { return step{"read_file", map[string]any{"path": name, "offset": 1}} }
	user := `{"role":"user","content":` + content(task(read("data.csv"), read("data-2.csv"), read("image.png"), read("large.bin"))) + `}`
	_, body := c.post(t, `{"model":"m","messages":[`+user+`]}`)
	answer := answerOf(t, body)
	got := results(answer)
	if len(got) != 4 {
		t.Fatalf("the answer is %s", body)
	}
	for i, want := range []string{"2 | 1,2", "1 | second", "image.png is not text (12 bytes)", "There is no file large.bin"} {
		if !strings.Contains(got[i], want) {
			t.Errorf("result %d lacks %q:\n%s", i, want, got[i])
		}
	}
	if strings.Contains(got[0], "broken.bin") {
		t.Errorf("the first result:\n%s", got[0])
	}
	c.post(t, `{"model":"m","messages":[`+user+`,{"role":"assistant","content":`+quoted(answer)+`},{"role":"user","content":"thanks"}]}`)
	if want := []int{0, 1, 1, 1, 1, 0}; !cmp.Equal(there, want) {
		t.Errorf("workspaces by round: %v, want %v", there, want)
	}
	note := `{"type":"text","text":"\n\n[Files of this message, in the working directory of the tools: data.csv (8 bytes), image.png (12 bytes), data-2.csv (7 bytes). Not there: ` +
		`large.bin (2.9 KiB, and one file may have 2.0 KiB); broken.bin (what was sent of it cannot be decoded); ` +
		`image (only a link was sent, and not the file); kept.pdf (only its id was sent, and not the file); ` +
		`lost.pdf (nothing was sent of it); audio.wav (what was sent of it cannot be decoded).]"}`
	bodies := c.bodies()
	for i, sent := range [][]byte{bodies[0], bodies[4], bodies[5]} {
		message := userMessage(sent)
		if !bytes.HasPrefix(message, []byte(strings.TrimSuffix(user, "]}")+",")) || !bytes.Contains(message, []byte(note)) {
			t.Errorf("the message %d is %.2000s", i, message)
		}
		if !bytes.Equal(message, userMessage(bodies[0])) {
			t.Errorf("the message %d has other bytes:\n%s", i, message)
		}
	}
}

// userMessage is the first message of a user as the upstream got it.
func userMessage(body []byte) []byte {
	for c := wire.Array(wire.Member(body, "messages")); c.Next(); {
		if role, _ := wire.String(wire.Member(c.Value, "role")); role == "user" {
			return c.Value
		}
	}
	return nil
}

func answerOf(t *testing.T, body string) string {
	t.Helper()
	var answer struct {
		Choices []struct {
			Message struct {
				Content string `json:"content"`
			} `json:"message"`
		} `json:"choices"`
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil || len(answer.Choices) == 0 {
		t.Fatalf("no answer: %v: %s", err, body)
	}
	return answer.Choices[0].Message.Content
}

// TestCodeRounds: a turn with code has more rounds, unless the operator has said how
// many; then the answer is forced.
func TestCodeRounds(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*app.Settings)
		want   int
	}{
		"code":         {nil, 24},
		"own number":   {func(s *app.Settings) { set(t, s, config.MaxRounds, 3) }, 3},
		"own, default": {func(s *app.Settings) { set(t, s, config.MaxRounds, 8) }, 8},
	} {
		t.Run(name, func(t *testing.T) {
			c := newFiles(t, newWorker(t), tt.change)
			var endless []step
			for range 40 {
				endless = append(endless, step{"read_file", map[string]any{"path": "none.txt"}})
			}
			got := results(c.run(t, task(endless...), ""))
			if len(got) != tt.want || len(c.bodies()) != tt.want+1 {
				t.Errorf("%d results in %d rounds, want %d and the answer", len(got), len(c.bodies()), tt.want)
			}
		})
	}
}

// TestSampling: the host adds a penalty that is lifted, and a temperature, only where
// the upstream has the one, the operator wants the other, and the client says nothing.
// What the client says goes on byte for byte.
func TestSampling(t *testing.T) {
	penal := `{"default_generation_settings":{"n_ctx":8192,"params":{"repeat_penalty":1.1}},"chat_template_caps":{"supports_tools":true,"supports_tool_calls":true},"total_slots":1}`
	neutral := strings.Replace(penal, "1.1", "1.0", 1)
	warm := 0.3
	for name, tt := range map[string]struct {
		props       string
		temperature *float64
		off         bool
		client      string // members of the request
		gone        bool   // they are not sent on
		want        string // what is added
	}{
		"nothing to lift":        {neutral, nil, false, ``, false, ``},
		"lifted":                 {penal, nil, false, ``, false, `,"repeat_penalty":1.0`},
		"the client's word":      {penal, nil, false, `"repeat_penalty":1.3,`, false, ``},
		"explicit null":          {penal, nil, false, `"repeat_penalty": null,`, true, `,"repeat_penalty":1.0`},
		"no code":                {penal, &warm, true, ``, false, ``},
		"temperature":            {neutral, &warm, false, `"top_p": 0.90,`, false, `,"temperature":0.3`},
		"the client's own":       {neutral, &warm, false, `"temperature": 0.70,`, false, ``},
		"temperature null":       {neutral, &warm, false, `"temperature":null,`, true, `,"temperature":0.3`},
		"null of no concern":     {neutral, nil, false, `"temperature":null,"repeat_penalty":null,`, false, ``},
		"both":                   {penal, &warm, false, `"seed": 7 ,"x_unknown":{"b":1, "a":[ ]},`, false, `,"repeat_penalty":1.0,"temperature":0.3`},
		"frequency is not ours":  {neutral, nil, false, `"frequency_penalty":0.5,`, false, ``},
		"written in other cases": {penal, nil, false, `"Repeat_Penalty":1.2,`, false, ``},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorker(t)
			w.props = tt.props
			c := newFiles(t, w, func(s *app.Settings) {
				s.Upstream.Type = "" // it is asked
				s.Code.Temperature, s.Code.Allowed = tt.temperature, !tt.off
			})
			res, body := c.post(t, `{"model":"m",`+tt.client+`"messages":[{"role":"user", "content":"hello"}]}`)
			if res.StatusCode != http.StatusOK {
				t.Fatalf("%d %s", res.StatusCode, body)
			}
			client := tt.client
			if tt.gone {
				client = ""
			}
			if got, want := membersOf(c.bodies()[0]), membersOf([]byte(`{"model":"m",`+client+`"messages":[{"role":"user", "content":"hello"}]`+tt.want+`}`)); got != want {
				t.Errorf("the upstream got\n%s\nwant\n%s", got, want)
			}
			if message := userMessage(c.bodies()[0]); string(message) != `{"role":"user", "content":"hello"}` {
				t.Errorf("the message is %s", message)
			}
		})
	}
}

// membersOf are the members of a request in their order, each with its bytes, without
// messages, tools, and what a stream and a slot need.
func membersOf(body []byte) string {
	var b strings.Builder
	for c := wire.Object(body); c.Next(); {
		name, _ := wire.Unquote(c.Name)
		switch name {
		case "messages", "tools", "stream", "stream_options", "id_slot", "cache_prompt":
			continue
		}
		b.WriteString(name + "=" + string(c.Value) + "\n")
	}
	return b.String()
}

// TestRivalTools: a client with tools of its own for files or commands has them to
// itself, and so has one that cannot be served: no tool of ours is declared, no block
// tells of one, and a warning says why.
func TestRivalTools(t *testing.T) {
	own := func(name string) string {
		return `,"tools":[{"type":"function","function":{"name":"` + name + `","parameters":{"type":"object"}}}]`
	}
	for name, tt := range map[string]struct{ members, warning string }{
		"nothing":     {``, ""},
		"weather":     {own("get_weather"), ""},
		"bash":        {own("bash"), `"bash"`},
		"Bash":        {own("Bash"), `"Bash"`},
		"apply_patch": {own("apply_patch"), `"apply_patch"`},
		"shell":       {own("shell"), `"shell"`},
		"editor":      {own("str_replace_based_edit_tool"), "str_replace_based_edit_tool"},
		"no tools":    {`,"tool_choice":"none"`, "no tools may be called"},
		"two choices": {`,"n":2`, "more than one choice"},
		"structured":  {`,"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"type":"object"}}}`, "must be structured"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newFiles(t, newWorker(t), nil)
			res, body := c.post(t, `{"model":"m","messages":[{"role":"user","content":"hello"}]`+tt.members+`}`)
			if res.StatusCode != http.StatusOK {
				t.Fatalf("%d %s", res.StatusCode, body)
			}
			warned := strings.Join(res.Header.Values(warnHeader), "; ")
			if (warned == "") != (tt.warning == "") || !strings.Contains(warned, tt.warning) {
				t.Errorf("warned %q, want %q", warned, tt.warning)
			}
			sent := string(c.bodies()[0])
			for _, ours := range []string{filesBlock, `"name":"read_file"`, `"name":"write_file"`} {
				if strings.Contains(sent, ours) != (tt.warning == "") {
					t.Errorf("%s in %s", ours, sent)
				}
			}
			if strings.Contains(tt.members, `"tools"`) && strings.Count(sent, strings.TrimPrefix(strings.TrimSuffix(tt.members, "]"), `,"tools":[`)) != 1 {
				t.Errorf("the client's tool is not as it was in %s", sent)
			}
		})
	}
}

// TestBlockIsStable: the block and the declarations are the same bytes in every process
// and every request, wherever its files are.
func TestBlockIsStable(t *testing.T) {
	var first string
	for range 2 {
		c := newFiles(t, newWorker(t), nil)
		for range 2 {
			c.post(t, `{"model":"m","messages":[{"role":"user","content":"hello"}]}`)
		}
		for _, sent := range c.bodies() {
			if first == "" {
				first = string(sent)
			}
			if string(sent) != first || strings.Contains(first, c.home) {
				t.Errorf("the request is\n%s\nand was\n%s", sent, first)
			}
		}
	}
	if strings.Count(first, filesBlock) != 1 {
		t.Errorf("the block is not there once: %s", first)
	}
}

// TestCodeContinuity: the next request of a conversation has the hidden rounds back, with
// the line that their files are gone; and gone they are.
func TestCodeContinuity(t *testing.T) {
	c := newFiles(t, newWorker(t), nil)
	ask := `{"role":"user","content":` + quoted(task(write("notes.txt", "kept in mind\n"))) + `}`
	_, body := c.post(t, `{"model":"m","messages":[`+ask+`]}`)
	again := `{"role":"user","content":` + quoted(task(step{"read_file", map[string]any{"path": "notes.txt"}})) + `}`
	answered := `{"role":"assistant","content":` + quoted(answerOf(t, body)) + `}`
	_, body = c.post(t, `{"model":"m","messages":[`+ask+`,`+answered+`,`+again+`]}`)
	if got := answerOf(t, body); !strings.Contains(got, "There is no file notes.txt") {
		t.Errorf("the second answer is %s", got)
	}
	bodies := c.bodies()
	if len(bodies) != 4 {
		t.Fatalf("the upstream was asked %d times", len(bodies))
	}
	first, second := string(bodies[1]), string(bodies[2])
	var gone int
	for m := wire.Array(wire.Member(bodies[2], "messages")); m.Next(); {
		text := string(m.Value)
		switch role, _ := wire.String(wire.Member(m.Value, "role")); {
		case role == "tool" && strings.Contains(text, "Created notes.txt"):
			gone += strings.Count(text, "[The files of the working directory up to here are gone")
		case role == "assistant" && strings.Contains(text, "tool_calls") && !strings.Contains(first, text):
			t.Errorf("the hidden call has other bytes: %s", text)
		}
	}
	if gone != 1 || strings.Count(second, "kept in mind") < 2 {
		t.Errorf("the line stands there %d times in %s", gone, second)
	}
}
