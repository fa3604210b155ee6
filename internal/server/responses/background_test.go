package responses_test

import (
	"context"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/continuity"
	"github.com/metier-run/metier/internal/store"
	"github.com/metier-run/metier/internal/wire"
)

// await polls until a response has ended.
func (r *rig) await(t *testing.T, id string) jsontext.Value {
	t.Helper()
	for ctx := t.Context(); ctx.Err() == nil; {
		v := r.get(t, id)
		if s := member(v, "status"); s != "queued" && s != "in_progress" {
			checkResponse(t, v)
			return v
		}
	}
	t.Fatal("it does not end")
	return nil
}

// TestBackground: the answer comes at once, the work goes on, and is fetched.
func TestBackground(t *testing.T) {
	eachStore(t, func(t *testing.T, o rigOptions) {
		up := newGate()
		o.upstream = up
		r := newRig(t, o)
		made := r.made(t, request("m", `,"background":true`))
		if member(made, "status") != "queued" || member(made, "background") != "true" {
			t.Errorf("%s", made)
		}
		id := member(made, "id")
		<-up.began
		if s := member(r.get(t, id), "status"); s != "queued" && s != "in_progress" {
			t.Errorf("it is %s", s)
		}
		if res, body := r.post(t, request("m", `,"previous_response_id":`+quote(id))); res.StatusCode != 400 {
			t.Errorf("going on from one that is worked on: %d %s", res.StatusCode, body)
		}
		close(up.open)
		done := r.await(t, id)
		if member(done, "status") != "completed" || textOf(done) != "First and last." {
			t.Errorf("%s", done)
		}
		if o.store != nil {
			sessions, _, err := o.store.(*store.DB).Sessions(t.Context(), store.Query{Tenant: "default", Limit: 10})
			if err != nil || len(sessions) != 1 || sessions[0].Origin != "responses" {
				t.Errorf("sessions %+v, %v", sessions, err)
			}
		}
		// Its events are there again, from wherever a client left off.
		_, all := r.ask(t, http.MethodGet, "/v1/responses/"+id+"?stream=true", "")
		if last := listen(t, all); string(last) != string(done) {
			t.Errorf("streamed %s\nfetched %s", last, done)
		}
		_, rest := r.ask(t, http.MethodGet, "/v1/responses/"+id+"?stream=true&starting_after=3", "")
		if !strings.HasSuffix(all, rest) || strings.Contains(rest, `"sequence_number":3,`) || !strings.Contains(rest, `"sequence_number":4,`) {
			t.Errorf("from 3 on:\n%s", rest)
		}
		for _, bad := range []string{"x", "-1"} {
			if res, _ := r.ask(t, http.MethodGet, "/v1/responses/"+id+"?stream=true&starting_after="+bad, ""); res.StatusCode != 400 {
				t.Errorf("starting_after=%s: %d", bad, res.StatusCode)
			}
		}
	})
}

// TestBackgroundStream: who streams a response may leave and come back; it goes on.
func TestBackgroundStream(t *testing.T) {
	up := newGate()
	r := newRig(t, rigOptions{upstream: up})
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url+"/v1/responses", strings.NewReader(request("m", `,"background":true,"stream":true`)))
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	events := wire.NewEventReader(res.Body, 1<<20, nil)
	l := &listener{t: t}
	id, number := "", ""
	for {
		e, err := events.Next()
		if err != nil {
			t.Fatal(err)
		}
		v := jsontext.Value(e.Data).Clone()
		l.event(v)
		number = member(v, "sequence_number")
		if id == "" {
			id = member(v, "response", "id")
		}
		if member(v, "delta") == "First " {
			break
		}
	}
	leave()
	_, _ = io.Copy(io.Discard, res.Body)
	res.Body.Close()
	close(up.open)
	_, rest := r.ask(t, http.MethodGet, "/v1/responses/"+id+"?stream=true&starting_after="+number, "")
	listenFrom(t, l, rest)
	if l.over != "response.completed" || textOf(l.last) != "First and last." {
		t.Errorf("%s %s", l.over, l.last)
	}
}

// TestBackgroundCancel: a response is cancelled once, and stays so.
func TestBackgroundCancel(t *testing.T) {
	eachStore(t, func(t *testing.T, o rigOptions) {
		up := newGate()
		o.upstream = up
		r := newRig(t, o)
		id := member(r.made(t, request("m", `,"background":true`)), "id")
		<-up.began
		for range 2 {
			res, body := r.ask(t, http.MethodPost, "/v1/responses/"+id+"/cancel", "")
			if res.StatusCode != 200 || member([]byte(body), "status") != "cancelled" {
				t.Errorf("%d %s", res.StatusCode, body)
			}
			checkResponse(t, []byte(body))
		}
		if s := member(r.get(t, id), "status"); s != "cancelled" {
			t.Errorf("it is %s", s)
		}
		_, all := r.ask(t, http.MethodGet, "/v1/responses/"+id+"?stream=true", "")
		listen(t, all)
		// One that is removed while it is worked on is cancelled, too.
		id = member(r.made(t, request("m", `,"background":true`)), "id")
		<-up.began
		if res, body := r.ask(t, http.MethodDelete, "/v1/responses/"+id, ""); res.StatusCode != 200 {
			t.Errorf("delete: %d %s", res.StatusCode, body)
		}
		if res, _ := r.ask(t, http.MethodGet, "/v1/responses/"+id, ""); res.StatusCode != 404 {
			t.Errorf("after delete: %d", res.StatusCode)
		}
	})
}

// TestBackgroundBounds: so many at once for one key, and no more.
func TestBackgroundBounds(t *testing.T) {
	limits, err := config.Values{}.Set(config.BackgroundOwned, 2)
	if err != nil {
		t.Fatal(err)
	}
	up := newGate()
	r := newRig(t, rigOptions{upstream: up, limits: limits})
	var made []string
	for range 2 {
		made = append(made, member(r.made(t, request("m", `,"background":true`)), "id"))
	}
	res, body := r.post(t, request("m", `,"background":true`))
	if res.StatusCode != 429 || member([]byte(body), "error", "code") != "too_many_responses" {
		t.Errorf("%d %s", res.StatusCode, body)
	}
	other := member(r.made(t, request("m", `,"background":true`), "Authorization", "Bearer bob"), "id")
	close(up.open)
	for _, id := range made {
		r.await(t, id)
	}
	r.await(t, member(r.made(t, request("m", `,"background":true`)), "id"))
	if res, _ := r.ask(t, http.MethodGet, "/v1/responses/"+other, ""); res.StatusCode != 404 {
		t.Errorf("another key's response: %d", res.StatusCode)
	}
}

// TestBackgroundFails: what an upstream refuses is the response's error.
func TestBackgroundFails(t *testing.T) {
	r := newRig(t, rigOptions{})
	for model, code := range map[string]string{"rate-limited": "rate_limit_exceeded", "server-error": "server_error", "overflow": "context_length_exceeded", "error-in-stream": "server_error"} {
		got := r.await(t, member(r.made(t, request(model, `,"background":true`)), "id"))
		if member(got, "status") != "failed" || member(got, "error", "code") != code {
			t.Errorf("%s: %s", model, got)
		}
	}
	if res, body := r.post(t, request("hello", `,"background":true,"skills":["nope"]`)); res.StatusCode != 400 {
		t.Errorf("what is wrong with the request is said at once: %d %s", res.StatusCode, body)
	}
}

// TestCloseEndsBackground: work ends with the door, and is kept as failed.
func TestCloseEndsBackground(t *testing.T) {
	b := openBase(t, filepath.Join(t.TempDir(), "metier.db"))
	up := newGate()
	r := newRig(t, rigOptions{upstream: up, store: b.db, journal: b.journal, held: b.held})
	id := member(r.made(t, request("m", `,"background":true`)), "id")
	<-up.began
	r.door.Close()
	got := r.get(t, id)
	if member(got, "status") != "failed" || !strings.Contains(member(got, "error", "message"), "stopping") {
		t.Errorf("%s", got)
	}
	if res, body := r.post(t, request("m", `,"background":true`)); res.StatusCode != 503 {
		t.Errorf("after the end: %d %s", res.StatusCode, body)
	}
}

// TestProcessDied: a response whose process is gone has failed; one that another process
// works on has not.
func TestProcessDied(t *testing.T) {
	for _, c := range []struct {
		name    string
		session string
		held    bool
		age     int64
		want    string
	}{
		{"gone", "ses_1", false, 3600, "failed"},
		{"at work elsewhere", "ses_1", true, 3600, "in_progress"},
		{"just begun elsewhere", "ses_1", false, 1, "in_progress"},
		{"without a session", "", false, 0, "failed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := openBase(t, filepath.Join(t.TempDir(), "metier.db"))
			held := func(context.Context, string, string) (bool, error) { return c.held, nil }
			r := newRig(t, rigOptions{store: b.db, journal: b.journal, held: held})
			body := `{"id":"resp_old","object":"response","created_at":1,"status":"in_progress","background":true,"error":null,"output":[]}`
			err := b.db.PutResponse(t.Context(), continuity.Owner{Tenant: "default"}, store.Response{
				ID: "resp_old", Session: c.session, Status: "in_progress", CreatedAt: time.Unix(r.clock.at.Load()-c.age, 0),
				Request: []byte("{}"), Input: []byte("[]"), Output: []byte("[]"), Body: []byte(body),
			})
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				got := r.get(t, "resp_old")
				if member(got, "status") != c.want || (c.want == "failed") != strings.Contains(string(got), "ended in the middle") {
					t.Errorf("%s", got)
				}
			}
			res, answer := r.ask(t, http.MethodPost, "/v1/responses/resp_old/cancel", "")
			if want := map[string]int{"failed": 200, "in_progress": 409}[c.want]; res.StatusCode != want {
				t.Errorf("cancel: %d %s", res.StatusCode, answer)
			}
		})
	}
}

// TestEventsGo: of a long response the oldest events go, and who asks for them is told.
func TestEventsGo(t *testing.T) {
	limits, err := config.Values{}.Set(config.BackgroundEvents, 4096)
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, rigOptions{limits: limits})
	id := member(r.made(t, request("long", `,"background":true`)), "id")
	r.await(t, id)
	res, body := r.ask(t, http.MethodGet, "/v1/responses/"+id+"?stream=true", "")
	if res.StatusCode != 400 || member([]byte(body), "error", "code") != "events_not_found" {
		t.Errorf("%d %.300s", res.StatusCode, body)
	}
	// One that was never worked on in the background has none.
	id = member(r.made(t, request("hello", "")), "id")
	if res, body := r.ask(t, http.MethodGet, "/v1/responses/"+id+"?stream=true", ""); res.StatusCode != 400 {
		t.Errorf("%d %s", res.StatusCode, body)
	}
}
