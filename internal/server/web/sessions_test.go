package web

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/access"
	"github.com/metier-run/metier/internal/config"
)

func writes(name string) string { return `write_file {"path":"` + name + `","content":"x"}` }

// in is a member that names a session.
func in(session string) string { return `,"sessionId":"` + session + `"` }

// TestWorkspaces: a session's requests share a workspace, which no other session and no
// other caller has; it goes with the session, or with newChat.
func TestWorkspaces(t *testing.T) {
	r := newRig(t, rigOptions{})
	ann, bob := caller("ann"), caller("bob")
	one, two := r.session(t, ann), r.session(t, ann)
	post := func(c access.Caller, text string, more ...string) string {
		t.Helper()
		return answer(t, r.as(t, c, http.MethodPost, "/api/chat", say(text, more...)))
	}
	for _, name := range []string{"a1.txt", "a2.txt"} {
		post(ann, writes(name), in(one))
		post(ann, writes("own-"+name))
		post(bob, writes("bob-"+name))
	}
	post(ann, writes("b.txt"), in(two))
	want := []string{"a1.txt a2.txt", "b.txt", "bob-a1.txt bob-a2.txt", "own-a1.txt own-a2.txt"}
	if diff := cmp.Diff(want, r.workspaces(t)); diff != "" {
		t.Fatalf("workspaces (-want +got):\n%s", diff)
	}
	post(ann, writes("new.txt"), in(one), `,"newChat":true`)
	w := r.as(t, ann, http.MethodDelete, "/api/sessions/"+two, "")
	if w.Code != http.StatusOK || w.Body.String() != `{"removed":true}` {
		t.Errorf("remove: %d %s", w.Code, w.Body)
	}
	want = []string{"bob-a1.txt bob-a2.txt", "new.txt", "own-a1.txt own-a2.txt"}
	if diff := cmp.Diff(want, r.workspaces(t)); diff != "" {
		t.Errorf("workspaces (-want +got):\n%s", diff)
	}
	for name, w := range map[string]int{
		"chat in one that is gone": r.as(t, ann, http.MethodPost, "/api/chat", say("hi", in(two))).Code,
		"remove it again":          r.as(t, ann, http.MethodDelete, "/api/sessions/"+two, "").Code,
		"chat in another's":        r.as(t, bob, http.MethodPost, "/api/chat", say("hi", in(one))).Code,
		"remove another's":         r.as(t, bob, http.MethodDelete, "/api/sessions/"+one, "").Code,
	} {
		if w != http.StatusNotFound {
			t.Errorf("%s: %d", name, w)
		}
	}
}

// TestOwnSession: the session of a request without an id has one all the same, which its
// caller may name; callers who bring keys for the upstream are told apart by them.
func TestOwnSession(t *testing.T) {
	r := newRig(t, rigOptions{})
	of := func(body string, header ...string) string {
		t.Helper()
		frames := read(t, r.as(t, access.Anonymous(), http.MethodPost, "/api/chat", body, header...))
		return frames[len(frames)-1].Session
	}
	own := of(say("hi"))
	if again, named := of(say("hi")), of(say("hi", in(own))); own == "" || again != own || named != own {
		t.Errorf("sessions %q, %q, %q", own, again, named)
	}
	a := of(say("hi"), "Authorization", "Bearer a")
	if b := of(say("hi"), "Authorization", "Bearer b"); a == b || a == own || b == own {
		t.Errorf("sessions %q, %q, %q", own, a, b)
	}
	if w := r.as(t, access.Anonymous(), http.MethodDelete, "/api/sessions/"+own, ""); w.Code != http.StatusOK {
		t.Errorf("remove: %d %s", w.Code, w.Body)
	}
	if again := of(say("hi")); again == own {
		t.Error("the session is there again")
	}
}

// hanging begins a turn that does not end by itself.
func (r *rig) hanging(t *testing.T, c access.Caller, more string) (ended chan *httptest.ResponseRecorder) {
	t.Helper()
	ended = make(chan *httptest.ResponseRecorder, 1)
	q := httptest.NewRequestWithContext(access.WithCaller(t.Context(), c), http.MethodPost, "/api/chat", strings.NewReader(say("hang", more)))
	q.Host = "localhost"
	go func() {
		w := httptest.NewRecorder()
		r.house.ServeHTTP(w, q)
		ended <- w
	}()
	select {
	case <-r.doer.hangs:
	case w := <-ended:
		t.Fatalf("the turn has ended: %d %s", w.Code, w.Body)
	}
	return ended
}

// TestOneTurn: a session answers one request at a time, and says so; others go on; and
// whoever removes it ends its turn.
func TestOneTurn(t *testing.T) {
	r := newRig(t, rigOptions{})
	ann := caller("ann")
	one := r.session(t, ann)
	ended := r.hanging(t, ann, in(one))
	w := r.as(t, ann, http.MethodPost, "/api/chat", say("hi", in(one)))
	if w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), "still answering") {
		t.Fatalf("a second turn: %d %s", w.Code, w.Body)
	}
	answer(t, r.as(t, ann, http.MethodPost, "/api/chat", say("hi")))
	if w := r.as(t, ann, http.MethodDelete, "/api/sessions/"+one, ""); w.Code != http.StatusOK {
		t.Errorf("remove: %d %s", w.Code, w.Body)
	}
	frames := read(t, <-ended)
	if end := frames[len(frames)-1]; !end.Aborted || end.Error == nil || *end.Error != "the session was removed while it answered" {
		t.Errorf("the turn ended with %+v", end)
	}
}

// TestFreeAtDone: who has read the last frame, or a refusal, may ask again at once.
func TestFreeAtDone(t *testing.T) {
	r := newRig(t, rigOptions{})
	s := httptest.NewServer(r.house)
	defer s.Close()
	defer http.DefaultClient.CloseIdleConnections()
	for i := range 200 {
		body := say("hi")
		if i%2 == 0 {
			body = say("hi", `,"skills":["nope"]`)
		}
		res, err := http.Post(s.URL+"/api/chat", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if res.StatusCode == http.StatusConflict {
			t.Fatalf("request %d: the session is busy", i)
		}
		b := make([]byte, 4096)
		for !strings.Contains(string(b), `"done":true`) && !strings.Contains(string(b), `"error":"`) {
			n, err := res.Body.Read(b)
			if b = b[:n:cap(b)]; err != nil {
				break
			}
			b = b[:cap(b)]
		}
		_ = res.Body.Close()
	}
}

// TestRoom: a caller's new session takes the place of the one that it left alone for the
// longest, never that of another caller; where all are in use there is no new one.
func TestRoom(t *testing.T) {
	var clock atomic.Int64
	r := newRig(t, rigOptions{
		now:    func() time.Time { return time.Unix(clock.Add(1), 0) },
		limits: map[config.Name]int64{config.WebOwned: 2, config.WebSessions: 3},
	})
	ann, bob, cid := caller("ann"), caller("bob"), caller("cid")
	one, two := r.session(t, ann), r.session(t, ann)
	there := func(c access.Caller, id string) bool {
		return r.as(t, c, http.MethodPost, "/api/chat", say(writes(id+".txt"), in(id))).Code == http.StatusOK
	}
	if !there(ann, two) || !there(ann, one) {
		t.Fatal("the sessions are not there")
	}
	three := r.session(t, ann)
	if there(ann, two) || !there(ann, one) || !there(ann, three) {
		t.Error("not the one that was left alone for the longest has gone")
	}
	if diff := cmp.Diff([]string{one + ".txt", three + ".txt"}, r.workspaces(t)); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(r.log.String(), "to make room") {
		t.Errorf("the log does not say so: %s", r.log)
	}
	four := r.session(t, bob)
	if w := r.as(t, cid, http.MethodPost, "/api/sessions", ""); w.Code != http.StatusTooManyRequests || !strings.Contains(w.Body.String(), "too many sessions") {
		t.Errorf("one too many: %d %s", w.Code, w.Body)
	}
	r.session(t, bob)
	if there(bob, four) {
		t.Error("there are more than there may be")
	}
	a, b := r.hanging(t, ann, in(one)), r.hanging(t, ann, in(three))
	if w := r.as(t, ann, http.MethodPost, "/api/chat", say("hi")); w.Code != http.StatusTooManyRequests {
		t.Errorf("all in use: %d %s", w.Code, w.Body)
	}
	r.sessions.Close()
	for _, ended := range []chan *httptest.ResponseRecorder{a, b} {
		frames := read(t, <-ended)
		if end := frames[len(frames)-1]; !end.Aborted || *end.Error != "the server is stopping" {
			t.Errorf("the turn ended with %+v", end)
		}
	}
	if left := r.workspaces(t); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
	if w := r.chat(t, say("hi")); w.Code != http.StatusServiceUnavailable {
		t.Errorf("after the end: %d %s", w.Code, w.Body)
	}
}

// TestIdle: a session ends when it was not used for long, and not while it is.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, rigOptions{limits: map[config.Name]int64{config.WebIdle: 60, config.KeepAlive: 300}})
		ann := caller("ann")
		one, two := r.session(t, ann), r.session(t, ann)
		answer(t, r.as(t, ann, http.MethodPost, "/api/chat", say(writes("a.txt"), in(one))))
		ended := r.hanging(t, ann, in(two))
		<-time.After(59 * time.Second)
		answer(t, r.as(t, ann, http.MethodPost, "/api/chat", say(writes("b.txt"), in(one))))
		<-time.After(59 * time.Second)
		synctest.Wait()
		if diff := cmp.Diff([]string{"a.txt b.txt"}, r.workspaces(t)); diff != "" {
			t.Error(diff)
		}
		<-time.After(2 * time.Second)
		synctest.Wait()
		if left := r.workspaces(t); len(left) > 0 {
			t.Errorf("left: %q", left)
		}
		if w := r.as(t, ann, http.MethodPost, "/api/chat", say("hi", in(one))); w.Code != http.StatusNotFound {
			t.Errorf("the session that was left alone: %d", w.Code)
		}
		if w := r.as(t, ann, http.MethodPost, "/api/chat", say("hi", in(two))); w.Code != http.StatusConflict {
			t.Errorf("the session that is in use: %d", w.Code)
		}
		r.sessions.Close()
		<-ended
	})
}

// TestFilesStay: restored rounds that worked in the session's workspace are not told to
// have lost their files; those of another are.
func TestFilesStay(t *testing.T) {
	r := newRig(t, rigOptions{})
	first := quoted(writes("a.txt"))
	said := answer(t, r.chat(t, `{"messages":[{"role":"user","content":`+first+`}]}`))
	next := `{"messages":[{"role":"user","content":` + first + `},{"role":"assistant","content":` + quoted(said) + `},{"role":"user","content":"and now"}]`
	for _, c := range []struct {
		name, more string
		gone       bool
	}{
		{"the same session", "", false},
		{"another session", in(r.session(t, access.Anonymous())), true},
		{"a new chat", `,"newChat":true`, true},
	} {
		if answer(t, r.chat(t, next+c.more+`}`)) != "I am told: and now" {
			t.Error("the answer is another")
		}
		sent := r.doer.last().Messages
		if len(sent) < 6 { // the system's, the hidden call and its result, and the client's own
			t.Fatalf("%s: the hidden rounds were not put back: %d messages", c.name, len(sent))
		}
		gone := false
		for _, m := range sent {
			gone = gone || strings.Contains(m.Tail, "are gone")
		}
		if gone != c.gone {
			t.Errorf("%s: told that the files are gone: %v", c.name, gone)
		}
	}
}
