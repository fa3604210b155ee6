package web

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/access"
	"github.com/metier-run/metier/internal/config"
)

const weather = `,"tools":[{"type":"function","function":{"name":"get_weather","description":"w","parameters":{"type":"object","properties":{"city":{"type":"string"}}}}}]`

// TestFrames: the frames of whole turns, byte for byte, under a clock that stands still.
func TestFrames(t *testing.T) {
	for _, c := range []struct {
		name     string
		scripted bool
		body     string
	}{
		{"hello", true, say("hi", `,"use_model":"hello"`)},
		{"thinking", true, say("hi", `,"use_model":"reasoning"`)},
		{"skill", true, say("hi", `,"use_model":"skill-read","skills":["release-notes"]`)},
		{"caller-tool", true, say("hi", `,"use_model":"caller-tool"`, weather)},
		{"caller-tool-alone", true, say("hi", `,"use_model":"caller-tool","skills_discovery":false`, weather)},
		{"mixed", true, say("hi", `,"use_model":"mixed"`, weather)},
		{"cached", true, say("hi", `,"use_model":"usage-cached"`)},
		{"truncated", true, say("hi", `,"use_model":"cut-call"`)},
		{"broken", true, say("hi", `,"use_model":"error-in-stream"`)},
		{"code", false, say(`create_file {"path":"a.txt","content":"one\n"}` + "\n" + `read {"path":"a.txt"}` + "\n" + `bash {"command":"ls"}` + "\n" + `str_replace {"path":"none.txt"}`)},
	} {
		t.Run(c.name, func(t *testing.T) {
			still := func() time.Time { return time.Unix(1_000_000, 0) }
			r := newRig(t, rigOptions{scripted: c.scripted, noCode: c.scripted, now: still})
			w := r.chat(t, c.body)
			if w.Code != http.StatusOK {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
			golden(t, c.name, whatIsOurs(w.Body.String(), c.scripted))
		})
	}
}

// whatIsOurs leaves out what other rooms tell a model.
func whatIsOurs(stream string, scripted bool) string {
	if scripted {
		return stream
	}
	return regexp.MustCompile(`(?m)^data: \{"token":.*\n\n`).ReplaceAllString(stream, "")
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// TestRefusals: what is wrong before the stream has begun has a status, and a sentence.
func TestRefusals(t *testing.T) {
	r := newRig(t, rigOptions{scripted: true, limits: map[config.Name]int64{config.RequestMessages: 2}})
	for _, c := range []struct {
		name, body string
		status     int
		said       string
	}{
		{"no JSON", `{"messages":`, 400, "not valid JSON"},
		{"twice", `{"messages":[],"messages":[]}`, 400, "not valid JSON"},
		{"no object", `[]`, 400, "must be a JSON object"},
		{"empty", `{}`, 400, `"messages" is missing`},
		{"no messages", `{"use_model":"hello","messages":[]}`, 400, `"messages" is missing`},
		{"no message", `{"use_model":"hello","messages":[1]}`, 400, "messages[0] must be an object"},
		{"too many", `{"use_model":"hello","messages":[{"role":"user"},{"role":"user"},{"role":"user"}]}`, 400, "more than 2 messages"},
		{"model", say("hi", `,"model":"hello"`), 400, `"use_model"`},
		{"use_model", say("hi", `,"use_model":1`), 400, `"use_model" must be a string`},
		{"maxTokens", say("hi", `,"maxTokens":0`), 400, `"maxTokens" must be a whole number`},
		{"newChat", say("hi", `,"newChat":1`), 400, `"newChat" must be true or false`},
		{"sessionId", say("hi", `,"sessionId":1`), 400, `"sessionId" must be a string`},
		{"skills", say("hi", `,"skills":"pdf"`), 400, `"skills" must be an array`},
		{"unknown skill", say("hi", `,"use_model":"hello","skills":["nope"]`), 400, `"nope"`},
		{"unknown session", say("hi", `,"sessionId":"session-x"`), 404, "no such session"},
		{"refused upstream", say("hi", `,"use_model":"unauthorized"`), 401, "the upstream refused"},
		{"upstream is busy", say("hi", `,"use_model":"rate-limited"`), 429, "the upstream refused"},
		{"upstream fails", say("hi", `,"use_model":"server-error"`), 502, "the upstream refused"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := r.chat(t, c.body)
			if w.Code != c.status || !strings.Contains(w.Body.String(), quoted(c.said)[1:len(quoted(c.said))-1]) || !strings.HasPrefix(w.Body.String(), `{"error":"`) {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		})
	}
	for path, want := range map[string]int{"/api/chat": 405, "/api/sessions": 405, "/api/upload": 405, "/api/sessions/x/y": 404} {
		if w := r.as(t, access.Anonymous(), http.MethodGet, path, ""); w.Code != want || !strings.HasPrefix(w.Body.String(), `{"error":"`) {
			t.Errorf("GET %s: %d %s", path, w.Code, w.Body)
		}
	}
	if w := r.as(t, access.Anonymous(), http.MethodPost, "/api/chat", say("hi"), "Origin", "https://elsewhere.example"); w.Code != http.StatusForbidden {
		t.Errorf("a foreign page got %d", w.Code)
	}
}

// TestCarried: what goes upstream of a request, and what is told of the rest.
func TestCarried(t *testing.T) {
	r := newRig(t, rigOptions{scripted: true, noCode: true})
	message := `{ "role":"user", "content":[{"type":"text","text":"h\u0069"}], "x":1 }`
	w := r.chat(t, `{"messages":[`+message+`],"use_model":"hello","maxTokens":7,"think":true,"temperature":1,"\u0061\nb":2,"skills_discovery":false,"multi_agent":false,"stream":null}`)
	answer(t, w)
	sent := string(r.upstream.Requests()[0].Body)
	if want := `{"model":"hello","messages":[` + message + `],"max_tokens":7,"reasoning_effort":"medium",`; !strings.HasPrefix(sent, want) {
		t.Errorf("sent %s, want %s...", sent, want)
	}
	for _, left := range []string{"think", "temperature", "session"} {
		if strings.Contains(sent, left) {
			t.Errorf("%s went upstream: %s", left, sent)
		}
	}
	want := []string{
		`members that this door does not know are left out: "temperature", "a\nb"`,
	}
	if diff := cmp.Diff(want, w.Header().Values("X-Metier-Warning")); diff != "" {
		t.Error(diff)
	}
	many := say("hi", `,"use_model":"hello"`, strings.Join([]string{"", `"a":1`, `"b":1`, `"c":1`, `"d":1`, `"e":1`, `"f":1`, `"g":1`, `"h":1`, `"i":1`, `"j":1`}, ","))
	if got := r.chat(t, many).Header().Get("X-Metier-Warning"); !strings.HasSuffix(got, `"h" and 2 more`) {
		t.Errorf("warning: %s", got)
	}
	for think, want := range map[string]string{`false`: `"none"`, `"low"`: `"low"`, `"much"`: "", `1`: ""} {
		w := r.chat(t, say("hi", `,"use_model":"hello","think":`+think))
		if want == "" {
			if w.Code != http.StatusBadRequest {
				t.Errorf("think %s: %d", think, w.Code)
			}
			continue
		}
		all := r.upstream.Requests()
		if sent := string(all[len(all)-1].Body); !strings.Contains(sent, `"reasoning_effort":`+want) {
			t.Errorf("think %s: sent %s", think, sent)
		}
	}
	w = r.as(t, access.Anonymous(), http.MethodPost, "/api/chat", say("hi", `,"use_model":"hello"`), "X-Metier-Skills", "nope")
	if w.Code != http.StatusBadRequest {
		t.Errorf("a skill that is selected by the header: %d", w.Code)
	}
}

// TestFirstModel: a request that names no model gets the first that its caller may use.
func TestFirstModel(t *testing.T) {
	r := newRig(t, rigOptions{})
	for _, c := range []struct {
		models, may []string
		want        string
		status      int
	}{
		{[]string{"m", "other"}, nil, "m", 200},
		{[]string{"m", "other"}, []string{"other"}, "other", 200},
		{[]string{"m", "other"}, []string{"third"}, "", 503},
		{nil, nil, "", 503},
	} {
		r.doer.models = c.models
		who := caller("key")
		who.Models = c.may
		w := r.as(t, who, http.MethodPost, "/api/chat", say("hello"))
		if w.Code != c.status {
			t.Errorf("%+v: %d %s", c, w.Code, w.Body)
		} else if c.want != "" && r.doer.last().Model != c.want {
			t.Errorf("%+v: asked %s", c, r.doer.last().Model)
		}
	}
	who := caller("key")
	who.Models = []string{"other"}
	if w := r.as(t, who, http.MethodPost, "/api/chat", say("hello", `,"use_model":"m"`)); w.Code != http.StatusForbidden {
		t.Errorf("a model that the caller may not use: %d", w.Code)
	}
}

func TestModels(t *testing.T) {
	for _, c := range []struct {
		noCode bool
		want   string
	}{
		{true, `{"models":[{"id":"m"},{"id":"other"}],"skills":{"enabled":true,"installable":false,"allowScripts":false,"count":1},"code":null}`},
		{false, `{"models":[{"id":"m"},{"id":"other"}],"skills":{"enabled":true,"installable":false,"allowScripts":false,"count":1},"code":{"enabled":true,"install":false}}`},
	} {
		r := newRig(t, rigOptions{noCode: c.noCode})
		if w := r.as(t, access.Anonymous(), http.MethodGet, "/api/models", ""); w.Body.String() != c.want {
			t.Errorf("%d %s, want %s", w.Code, w.Body, c.want)
		}
	}
}

// TestGoneClient: a client that goes away cancels its turn, and the session is free
// again.
func TestGoneClient(t *testing.T) {
	r := newRig(t, rigOptions{})
	s := httptest.NewServer(r.house)
	defer s.Close()
	defer http.DefaultClient.CloseIdleConnections()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/api/chat", strings.NewReader(say("hang")))
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(res.Body).ReadString('\n'); err != nil || !strings.Contains(line, "One moment") {
		t.Fatalf("%q, %v", line, err)
	}
	<-r.doer.hangs
	cancel()
	_ = res.Body.Close()
	for r.chat(t, say("hello")).Code == http.StatusConflict {
		select {
		case <-t.Context().Done():
			t.Fatal("the session stays busy")
		case <-time.After(5 * time.Millisecond):
		}
	}
	if !strings.Contains(r.log.String(), "outcome=cancelled") {
		t.Errorf("no cancelled turn in the log:\n%s", r.log)
	}
}

// TestKeepAlive: a stream that has nothing to say says so.
func TestKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, rigOptions{})
		ctx, cancel := context.WithCancel(access.WithCaller(t.Context(), access.Anonymous()))
		defer cancel()
		q := httptest.NewRequestWithContext(ctx, http.MethodPost, "/api/chat", strings.NewReader(say("hang")))
		q.Host = "localhost"
		w := httptest.NewRecorder()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			r.house.ServeHTTP(w, q)
		}()
		<-r.doer.hangs
		<-time.After(time.Minute)
		cancel()
		<-ended
		if n := strings.Count(w.Body.String(), ": keep-alive\n\n"); n != 4 && n != 3 {
			t.Errorf("%d comments in a minute:\n%s", n, w.Body)
		}
		r.sessions.Close()
	})
}
