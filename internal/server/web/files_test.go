package web

import (
	"bytes"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/access"
	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/server"
)

// tails are the notes behind the user's messages, as the model got them.
func (r *rig) tails() []string {
	var all []string
	for _, m := range r.doer.last().Messages {
		if m.Role == llm.User {
			all = append(all, m.Tail)
		}
	}
	return all
}

// TestUpload: an uploaded file lies in the session's workspace at once; the next message
// tells of it, and tells the same in each request that holds it.
func TestUpload(t *testing.T) {
	r := newRig(t, rigOptions{})
	for _, c := range []struct{ name, content, want string }{
		{"a.csv", "1,2\n", `{"name":"a.csv","bytes":4}`},
		{"../../a.csv", "3", `{"name":"a-2.csv","bytes":1}`},
		{"", "4", `{"name":"file","bytes":1}`},
	} {
		w := r.send(t, "", c.name, c.content)
		if w.Code != http.StatusCreated || w.Body.String() != c.want {
			t.Errorf("%q: %d %s", c.name, w.Code, w.Body)
		}
	}
	if diff := cmp.Diff([]string{"a-2.csv a.csv file"}, r.workspaces(t)); diff != "" {
		t.Error(diff)
	}
	answer(t, r.chat(t, say("one")))
	first := r.tails()
	if len(first) != 1 || !strings.Contains(first[0], "a.csv (4 bytes)") || !strings.Contains(first[0], "a-2.csv (1 byte") {
		t.Errorf("told: %q", first)
	}
	if got := answer(t, r.chat(t, say(`read_file {"path":"a.csv"}`))); !strings.Contains(got, "1,2") {
		t.Errorf("the model reads %q", got)
	}
	if got := r.tails(); got[0] != "" {
		t.Errorf("told behind another message: %q", got)
	}
	r.send(t, "", "c.txt", "c")
	answer(t, r.chat(t, say("one")))
	for range 2 {
		body := `{"messages":[{"role":"user","content":"one"},{"role":"assistant","content":"x"},{"role":"user","content":[{"type":"text","text":"two"}]}]}`
		r.send(t, "", "d.txt", "d")
		answer(t, r.chat(t, body))
		got := r.tails()
		if !strings.Contains(got[0], "c.txt") || !strings.Contains(got[1], "d.txt") || strings.Contains(got[0], "d.txt") {
			t.Errorf("told: %q", got)
		}
	}
}

// TestUploadWaits: a note waits for a request in which tools can reach the file.
func TestUploadWaits(t *testing.T) {
	r := newRig(t, rigOptions{})
	r.send(t, "", "a.txt", "a")
	own := `,"tools":[{"type":"function","function":{"name":"bash","parameters":{"type":"object"}}}]`
	answer(t, r.chat(t, say("one", own)))
	if got := r.tails(); got[0] != "" {
		t.Errorf("told where nothing reaches it: %q", got)
	}
	answer(t, r.chat(t, say("one")))
	if got := r.tails(); !strings.Contains(got[0], "a.txt") {
		t.Errorf("told: %q", got)
	}
}

// TestUploadAndNewChat: a session that is new keeps what was uploaded to it; one that
// begins anew loses it, and says which of it nobody was told of.
func TestUploadAndNewChat(t *testing.T) {
	r := newRig(t, rigOptions{})
	one := r.session(t, access.Anonymous())
	r.send(t, one, "a.txt", "a")
	w := r.chat(t, say("one", in(one), `,"newChat":true`))
	answer(t, w)
	if got := r.tails(); !strings.Contains(got[0], "a.txt") || w.Header().Get("X-Metier-Warning") != "" {
		t.Errorf("told %q, warned of %q", got, w.Header().Get("X-Metier-Warning"))
	}
	r.send(t, one, "b.txt", "b")
	w = r.chat(t, say("one", in(one), `,"newChat":true`))
	answer(t, w)
	if got := r.tails(); got[0] != "" || !strings.Contains(w.Header().Get("X-Metier-Warning"), "no message has told of, b.txt: ") {
		t.Errorf("told %q, warned of %q", got, w.Header().Get("X-Metier-Warning"))
	}
	if left := r.workspaces(t); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// TestMissingFilesStayTold: what is told of a file that is not there does not change when
// another file comes to have its name.
func TestMissingFilesStayTold(t *testing.T) {
	r := newRig(t, rigOptions{})
	file := func(data string) string {
		return `{"role":"user","content":[{"type":"file","file":{"filename":"a.txt","file_data":"` + data + `"}},` +
			`{"type":"image_url","image_url":{"url":"https://pictures.example/b.png"}}]}`
	}
	more := file("YQ=") + `,{"role":"assistant","content":"x"},` + file("YQ==")
	for _, body := range []string{file("YQ="), more, more} {
		answer(t, r.chat(t, `{"messages":[`+body+`]}`))
		want := "[Files of this message that are not in the working directory of the tools: a.txt (what was sent of it cannot be decoded); image (only a link was sent, and not the file).]"
		if got := r.tails(); got[0] != want {
			t.Errorf("told: %q", got)
		}
	}
	if diff := cmp.Diff([]string{"a.txt"}, r.workspaces(t)); diff != "" {
		t.Error(diff)
	}
}

// TestFilesInMessages: files that stand in messages are put into the workspace once,
// however often the messages come, and told alike each time.
func TestFilesInMessages(t *testing.T) {
	r := newRig(t, rigOptions{limits: map[config.Name]int64{config.AttachCount: 2}})
	file := func(name, data string) string {
		return `{"type":"file","file":{"filename":"` + name + `","file_data":"` + data + `"}}`
	}
	first := `{"role":"user","content":[{"type":"text","text":"one"},` + file("a.txt", "YQ==") + `]}`
	again := `{"content":[{"text":"one","type":"text"},{"type": "file","file":{"file_data":"YQ==","filename":"a.txt"}}],"role":"user"}`
	next := `,{"role":"assistant","content":"x"},{"role":"user","content":[` + file("b.txt", "Yg==") + `,` + file("c.txt", "Yw==") + `]}`
	var notes []string
	for _, body := range []string{first, again, first + next, again + next} {
		answer(t, r.chat(t, `{"messages":[`+body+`]}`))
		notes = append(notes, strings.Join(r.tails(), " | "))
	}
	if notes[0] != notes[1] || !strings.HasPrefix(notes[2], notes[0]+" | ") || notes[2] != notes[3] {
		t.Errorf("told:\n%s", strings.Join(notes, "\n"))
	}
	if !strings.Contains(notes[0], "a.txt (1 byte") || !strings.Contains(notes[2], "b.txt (1 byte") || !strings.Contains(notes[2], "Not there: c.txt") {
		t.Errorf("told:\n%s", strings.Join(notes, "\n"))
	}
	if diff := cmp.Diff([]string{"a.txt b.txt"}, r.workspaces(t)); diff != "" {
		t.Error(diff)
	}
	two := r.session(t, access.Anonymous())
	answer(t, r.chat(t, `{"messages":[`+first+next+`]`+in(two)+`}`))
	if diff := cmp.Diff([]string{"a.txt b.txt", "a.txt b.txt"}, r.workspaces(t)); diff != "" {
		t.Errorf("in a session that has not seen them: %s", diff)
	}
}

// TestUploadRefusals: what cannot be taken has a status and a sentence, and leaves
// nothing behind.
func TestUploadRefusals(t *testing.T) {
	r := newRig(t, rigOptions{limits: map[config.Name]int64{config.AttachCount: 1, config.AttachBytes: 1024, config.RequestBody: 4096}})
	form := func(parts ...string) (body, kind string) {
		b := &bytes.Buffer{}
		f := multipart.NewWriter(b)
		for i := 0; i+1 < len(parts); i += 2 {
			if strings.HasPrefix(parts[i], "file") {
				part, err := f.CreateFormFile(strings.TrimSuffix(parts[i], "2"), "a.txt")
				if err != nil {
					t.Fatal(err)
				}
				_, _ = part.Write([]byte(parts[i+1])) // a buffer takes it
			} else if err := f.WriteField(parts[i], parts[i+1]); err != nil {
				t.Fatal(err)
			}
		}
		_ = f.Close() // and its end
		return b.String(), f.FormDataContentType()
	}
	whole, kind := form("file", "x")
	for name, c := range map[string]struct {
		parts      []string
		body, kind string
		status     int
		said       string
	}{
		"no form":         {body: "{}", kind: "application/json", status: 400, said: "multipart/form-data"},
		"broken off":      {body: whole[:len(whole)-12], kind: kind, status: 400, said: "broke off"},
		"no file":         {parts: []string{"sessionId", ""}, status: 400, said: `no field \"file\"`},
		"two":             {parts: []string{"file", "a", "file2", "b"}, status: 400, said: "one file at a time"},
		"another field":   {parts: []string{"folder", "x", "file", "a"}, status: 400, said: `a field \"folder\"`},
		"too long":        {parts: []string{"file", strings.Repeat("x", 1025)}, status: 413, said: "larger than 1024 bytes"},
		"a long body":     {parts: []string{"file", strings.Repeat("x", 5000)}, status: 413, said: "larger than"},
		"no such session": {parts: []string{"file", "a", "sessionId", "session-x"}, status: 404, said: "no such session"},
		"a long id":       {parts: []string{"file", "a", "sessionId", strings.Repeat("x", 600)}, status: 404, said: "no such session"},
	} {
		t.Run(name, func(t *testing.T) {
			body, kind := c.body, c.kind
			if c.parts != nil {
				body, kind = form(c.parts...)
			}
			w := r.as(t, access.Anonymous(), http.MethodPost, "/api/upload", body, "Content-Type", kind)
			if w.Code != c.status || !strings.Contains(w.Body.String(), c.said) {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		})
	}
	if left := r.workspaces(t); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
	if w := r.send(t, "", "a.txt", strings.Repeat("x", 1024)); w.Code != http.StatusCreated {
		t.Errorf("the longest: %d %s", w.Code, w.Body)
	}
	if w := r.send(t, "", "b.txt", "b"); w.Code != http.StatusRequestEntityTooLarge || !strings.Contains(w.Body.String(), `there may be 1: send \"newChat\"`) {
		t.Errorf("one too many: %d %s", w.Code, w.Body)
	}
	off := newRig(t, rigOptions{noCode: true})
	if w := off.send(t, "", "a.txt", "a"); w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "--code-exec") {
		t.Errorf("without code work: %d %s", w.Code, w.Body)
	}
	answer(t, off.chat(t, say("hi")))
}

// FuzzDecode: whatever the body, it is refused with a sentence or carried as it is, and
// nothing of it becomes a member that is not ours to write.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		say("hi"), say("hi", `,"model":"m"`), say("hi", weather, `,"maxTokens":5,"newChat":true,"sessionId":"s","skills":["a"],"use_model":"u"`),
		`{"messages":[{"role":"user","content":[{"type":"file","file":{"file_data":"YQ=="}}]}],"think":"low","x":1}`,
		`{"messages":null}`, `{"messages":[{}]}`, `[]`, `{`, "{\"\\u006dessages\":[{\"role\":\"user\"}]}",
	} {
		f.Add([]byte(seed))
	}
	d := New(Options{})
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := decode(body)
		if err != nil {
			if server.FaultOf(err).Message == "" || server.FaultOf(err).Code.Status() != http.StatusBadRequest {
				t.Errorf("refused with %v", err)
			}
			return
		}
		for _, w := range r.warnings() {
			if strings.ContainsAny(w, "\r\n") || len(w) > 4096 {
				t.Errorf("a warning of %d bytes: %q", len(w), w)
			}
		}
		in, err := r.compose("the model", http.Header{}, d.bounds, true)
		if err != nil {
			if server.FaultOf(err).Code.Status() != http.StatusBadRequest {
				t.Errorf("refused with %v", err)
			}
			return
		}
		if in.Model != "the model" || len(in.Messages) == 0 {
			t.Errorf("made %+v", in)
		}
		for _, m := range in.Rest {
			switch m.Name {
			case "model", "messages", "tools", "max_tokens", "reasoning_effort":
			default:
				t.Errorf("the member %q came from %s", m.Name, body)
			}
		}
	})
}
