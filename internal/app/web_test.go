package app_test

import (
	"bytes"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/metier-run/metier/internal/access"
	"github.com/metier-run/metier/internal/app"
	"github.com/metier-run/metier/internal/wire"
)

// webFrame is a frame of the web stream.
type webFrame struct {
	Token    string `json:"token"`
	Step     string `json:"skill_step"`
	OK       bool   `json:"ok"`
	Progress string `json:"tool_progress"`
	Tool     string `json:"tool"`
	Text     string `json:"text"`
	Done     bool   `json:"done"`
	Error    string `json:"error"`
	Session  string `json:"sessionId"`
	Files    []struct {
		Name  string `json:"name"`
		Bytes int64  `json:"bytes"`
		URL   string `json:"url"`
	} `json:"files"`
}

// kind says which frame it is, in a word.
func (f webFrame) kind() string {
	switch {
	case f.Progress != "":
		return f.Progress + " " + f.Tool
	case f.Step != "":
		return "step " + f.Step
	case f.Done:
		return "done"
	}
	return "token"
}

// ask sends a request with a key.
func (c coder) ask(t *testing.T, method, path, kind, body, key string) (int, string) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), method, c.rig.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Content-Type", kind)
	if key != "" {
		q.Header.Set("Authorization", "Bearer "+key)
	}
	res, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

// web has the model make calls in a session, and gives the frames.
func (c coder) web(t *testing.T, session, key string, calls ...step) []webFrame {
	t.Helper()
	status, body := c.ask(t, http.MethodPost, "/api/chat", "application/json",
		`{"use_model":"m","sessionId":`+quoted(session)+`,"messages":[{"role":"user","content":`+quoted(task(calls...))+`}]}`, key)
	if status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	var frames []webFrame
	events := wire.NewEventReader(strings.NewReader(body), 1<<20, nil)
	for {
		e, err := events.Next()
		if err != nil {
			break
		}
		var f webFrame
		if err := json.Unmarshal(e.Data, &f); err != nil {
			t.Fatalf("%s: %v", e.Data, err)
		}
		frames = append(frames, f)
	}
	if len(frames) == 0 || !frames[len(frames)-1].Done || frames[len(frames)-1].Error != "" {
		t.Fatalf("the stream is %s", body)
	}
	return frames
}

// tokens are the results that the model answers with.
func tokens(frames []webFrame) []string {
	var text strings.Builder
	for _, f := range frames {
		text.WriteString(f.Token)
	}
	return results(text.String())
}

// TestWebSession: the requests of a session work in one workspace, with what a command
// left for the next one; no other session sees it, and with its end it is gone. The
// frames come in order, with what a command says, and what it made can be fetched.
func TestWebSession(t *testing.T) {
	mine, mineHash := key("mine")
	other, otherHash := key("other")
	c := newCoder(t, func(s *app.Settings) { s.Keys = []access.Key{mineHash, otherHash} }).able(t)
	one, two := c.session(t, mine), c.session(t, mine)

	frames := c.web(t, one, mine, run("mkdir -p sub && cd sub && export KEPT=word && echo hello-from-it && echo 6 > out.txt"))
	kinds := regexp.MustCompile(`^(writing shell )+(running shell )+finished shell step shell (token )+done $`)
	var all, said strings.Builder
	for _, f := range frames {
		all.WriteString(f.kind() + " ")
		if f.Progress == "running" {
			said.WriteString(f.Text)
		}
	}
	if !kinds.MatchString(all.String()) || said.String() != "hello-from-it\n" {
		t.Errorf("the frames are %s, and the command says %q", &all, &said)
	}
	var link string
	for _, f := range frames {
		if (f.Step != "" || f.Progress == "finished") && (len(f.Files) != 1 || f.Files[0].Name != "sub/out.txt" || f.Files[0].Bytes != 2) {
			t.Errorf("the frame %+v lacks the file", f)
		} else if len(f.Files) > 0 {
			link = f.Files[0].URL
		}
	}
	if !t.Failed() {
		c.fetches(t, link, mine, other)
	}

	if got := tokens(c.web(t, one, mine, run(`echo "$KEPT $(basename "$PWD")"; cat out.txt`))); !strings.Contains(got[0], "word sub\n6") {
		t.Errorf("the next request of the session sees %q", got)
	}
	if got := tokens(c.web(t, two, mine, run(`echo "[$KEPT]"; ls -A; cat ../../*/work/sub/out.txt`))); !strings.Contains(got[0], "[]") || strings.Contains(got[0], "\n6") || strings.Contains(got[0], "\nsub") {
		t.Errorf("another session sees %q", got)
	}
	if status, _ := c.ask(t, http.MethodPost, "/api/chat", "application/json", `{"sessionId":`+quoted(one)+`,"messages":[{"role":"user","content":"hi"}]}`, other); status != http.StatusNotFound {
		t.Errorf("another caller got %d", status)
	}
	if status, _ := c.ask(t, http.MethodPost, "/api/chat", "application/json", `{"messages":[{"role":"user","content":"hi"}]}`, ""); status != http.StatusUnauthorized {
		t.Errorf("a caller without a key got %d", status)
	}
	if n := len(c.workspaces(t)); n != 2 {
		t.Errorf("%d workspaces", n)
	}
	if status, body := c.ask(t, http.MethodDelete, "/api/sessions/"+one, "", "", mine); status != http.StatusOK {
		t.Errorf("remove: %d %s", status, body)
	}
	if n := len(c.workspaces(t)); n != 1 {
		t.Errorf("%d workspaces after the removal", n)
	}
}

// session begins one.
func (c coder) session(t *testing.T, key string) string {
	t.Helper()
	status, body := c.ask(t, http.MethodPost, "/api/sessions", "application/json", "", key)
	id, ok := wire.String(wire.Member([]byte(body), "sessionId"))
	if status != http.StatusCreated || !ok {
		t.Fatalf("begin a session: %d %s", status, body)
	}
	return id
}

// TestWebUpload: a command finds a file that was uploaded.
func TestWebUpload(t *testing.T) {
	c := newCoder(t, nil).able(t)
	body := &bytes.Buffer{}
	form := multipart.NewWriter(body)
	part, err := form.CreateFormFile("file", "data.csv")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = part.Write([]byte("a,b\n1,2\n")) // a buffer takes it
	if err := form.Close(); err != nil {
		t.Fatal(err)
	}
	if status, said := c.ask(t, http.MethodPost, "/api/upload", form.FormDataContentType(), body.String(), ""); status != http.StatusCreated || said != `{"name":"data.csv","bytes":8}` {
		t.Fatalf("upload: %d %s", status, said)
	}
	if got := tokens(c.web(t, "", "", run("cat data.csv"))); !strings.Contains(got[0], "1,2") {
		t.Errorf("the command sees %q", got)
	}
	if asked := string(c.bodies()[0]); !strings.Contains(asked, "data.csv (8 bytes)") {
		t.Errorf("the model is not told: %s", asked)
	}
}

// TestWebClose: with the process go the sessions, what runs in them, and their files.
func TestWebClose(t *testing.T) {
	w := newWorker(t)
	c := newCoderOf(t, w, nil).able(t)
	id := c.session(t, "")
	c.web(t, id, "", step{"shell", map[string]any{"command": "sleep 300", "run_in_background": true}}, write("a.txt", "x"))
	if n := len(c.workspaces(t)); n != 1 {
		t.Fatalf("%d workspaces", n)
	}
	c.app.Close()
	if left, err := filepath.Glob(filepath.Join(c.home, "workspaces", "*", "*")); err != nil || len(left) > 0 {
		t.Errorf("left: %q, %v", left, err)
	}
	s := httptest.NewServer(c.app.Server(true))
	defer s.Close()
	c.rig.url = s.URL
	if status, body := c.ask(t, http.MethodPost, "/api/sessions", "", "", ""); status != http.StatusServiceUnavailable {
		t.Errorf("after the end: %d %s", status, body)
	}
}
