package responses_test

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/wire"
)

// dialed is a client's end of a WebSocket.
type dialed struct {
	t    *testing.T
	conn *websocket.Conn
}

func (r *rig) dial(t *testing.T, header http.Header) *dialed {
	t.Helper()
	conn, _, err := websocket.Dial(t.Context(), "ws"+strings.TrimPrefix(r.url, "http")+"/v1/responses", &websocket.DialOptions{HTTPHeader: header})
	if err != nil {
		t.Fatal(err)
	}
	conn.SetReadLimit(1 << 24)
	t.Cleanup(func() { _ = conn.CloseNow() })
	return &dialed{t, conn}
}

func (d *dialed) send(frame string) {
	d.t.Helper()
	if err := d.conn.Write(d.t.Context(), websocket.MessageText, []byte(frame)); err != nil {
		d.t.Fatal(err)
	}
}

// next is the next frame of the server.
func (d *dialed) next() jsontext.Value {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), time.Minute)
	defer cancel()
	kind, b, err := d.conn.Read(ctx)
	if err != nil || kind != websocket.MessageText {
		d.t.Fatalf("%v frame, %v", kind, err)
	}
	return b
}

// response reads the frames of one response to its end.
func (d *dialed) response() jsontext.Value {
	d.t.Helper()
	l := &listener{t: d.t}
	for l.over == "" {
		v := d.next()
		if member(v, "type") == "error" {
			d.t.Fatalf("%s", v)
		}
		l.event(v)
	}
	return l.last
}

func create(model, input, more string) string {
	return `{"type":"response.create","model":` + quote(model) + `,"input":` + quote(input) + more + `}`
}

// TestSocket: the events of a stream, one frame each, response after response, and a
// conversation that is kept nowhere goes on.
func TestSocket(t *testing.T) {
	r := newRig(t, rigOptions{upstream: &reader{}, continuity: remembering()})
	d := r.dial(t, nil)
	d.send(create("m", "question one", `,"store":false,"stream":true`))
	first := d.response()
	d.send(create("m", "question two", `,"store":false,"previous_response_id":`+quote(member(first, "id"))))
	second := d.response()
	if !strings.Contains(textOf(second), "answer 3") || member(second, "store") != "false" {
		t.Errorf("%s", second)
	}
	if sent := string(r.up.last(t)); !strings.Contains(sent, "question one") || strings.Contains(sent, "previous_response_id") {
		t.Errorf("sent %s", sent)
	}
	// The vendor's clients begin a conversation without an answer to it.
	d.send(create("m", "question three", `,"store":false,"generate":false`))
	warm := d.response()
	if kinds(warm) != "" || len(r.up.sent()) != 3 {
		t.Errorf("%s", warm)
	}
	d.send(`{"type":"response.create","model":"m","store":false,"input":[],"previous_response_id":` + quote(member(warm, "id")) + `}`)
	if got := d.response(); !strings.Contains(textOf(got), "answer") || !strings.Contains(string(r.up.last(t)), "question three") {
		t.Errorf("%s: sent %s", got, r.up.last(t))
	}
	_ = d.conn.Close(websocket.StatusNormalClosure, "")
}

// TestSocketErrors: what cannot be answered is said in a frame, and the next one is
// answered.
func TestSocketErrors(t *testing.T) {
	r := newRig(t, rigOptions{})
	d := r.dial(t, nil)
	for _, c := range []struct{ name, frame, stream, status, code string }{
		{"no JSON", `{`, "", "400", "null"},
		{"no object", `[]`, "", "400", "null"},
		{"another type", `{"type":"response.cancel","stream_id":"a"}`, "a", "400", "null"},
		{"stream", `{"type":"response.create","stream_id":"a b"}`, "", "400", "null"},
		{"background", create("hello", "hi", `,"background":true`), "", "400", "null"},
		{"previous", create("hello", "hi", `,"stream_id":"x","previous_response_id":"resp_nope"`), "x", "400", "previous_response_not_found"},
		{"upstream", create("rate-limited", "hi", ""), "", "429", "rate_limited"},
	} {
		d.send(c.frame)
		v := d.next()
		e := wire.Member(v, "error")
		stream, _ := wire.String(wire.Member(v, "stream_id"))
		if member(v, "type") != "error" || member(v, "status") != c.status || stream != c.stream || member(e, "message") == "" || member(e, "type") == "" || c.name != "upstream" && member(e, "code") != c.code {
			t.Errorf("%s: %s", c.name, v)
		}
	}
	if err := d.conn.Write(t.Context(), websocket.MessageBinary, []byte("x")); err != nil {
		t.Fatal(err)
	}
	if v := d.next(); member(v, "type") != "error" {
		t.Errorf("%s", v)
	}
	d.send(create("error-in-stream", "hi", ""))
	if got := d.response(); member(got, "status") != "failed" {
		t.Errorf("%s", got)
	}
	d.send(create("hello", "hi", `,"newer":1`))
	if v := d.next(); !strings.Contains(member(v, "metier_warnings"), "newer") {
		t.Errorf("nobody says what was left out: %s", v)
	}
}

// TestSocketLanes: streams are answered side by side, and each in its order.
func TestSocketLanes(t *testing.T) {
	up := newGate()
	limits := lanes(t, 2, 1)
	r := newRig(t, rigOptions{upstream: up, limits: limits})
	d := r.dial(t, nil)
	for _, id := range []string{"a", "b"} {
		d.send(create("m", "first of "+id, `,"stream_id":`+quote(id)))
		<-up.began
	}
	d.send(create("m", "second of a", `,"stream_id":"a"`))
	d.send(create("m", "third of a", `,"stream_id":"a"`)) // one may wait
	d.send(create("m", "first of c", `,"stream_id":"c"`))
	listeners := map[string]*listener{"a": {t: t}, "b": {t: t}}
	refused := map[string]string{}
	ended := 0
	for ended < 3 {
		v := d.next()
		id := member(v, "stream_id")
		if member(v, "type") == "error" {
			if refused[id] = member(v, "error", "code"); len(refused) == 2 {
				close(up.open)
			}
			continue
		}
		l := listeners[id]
		l.event(v)
		if l.over == "" {
			continue
		}
		if ended++; id == "a" && ended < 3 {
			listeners["a"] = &listener{t: t}
		}
	}
	if refused["a"] != "websocket_queue_limit_reached" || refused["c"] != "websocket_stream_limit_reached" {
		t.Errorf("refused %v", refused)
	}
	if order := strings.Join(r.up.sent(), "\n"); strings.Index(order, "first of a") > strings.Index(order, "second of a") || strings.Contains(order, "third") {
		t.Errorf("order %s", order)
	}
	// A stream that is not in use makes room.
	d.send(create("m", "first of c", `,"stream_id":"c"`))
	if v := d.next(); member(v, "stream_id") != "c" || member(v, "type") != "response.created" {
		t.Errorf("%s", v)
	}
}

func lanes(t *testing.T, most, waiting int64) config.Values {
	t.Helper()
	limits, err := config.Values{}.Set(config.SocketLanes, most)
	if err == nil {
		limits, err = limits.Set(config.SocketQueue, waiting)
	}
	if err != nil {
		t.Fatal(err)
	}
	return limits
}

// TestSocketClientLeaves: its turns go with it.
func TestSocketClientLeaves(t *testing.T) {
	up := newGate()
	r := newRig(t, rigOptions{upstream: up})
	d := r.dial(t, nil)
	d.send(create("m", "hi", ""))
	<-up.began
	_ = d.conn.CloseNow()
	r.door.Close() // returns when the turn has ended
	if !strings.Contains(r.log.String(), "cancelled") {
		t.Errorf("log: %s", r.log)
	}
}

// TestSocketCloses: the door ends sockets in use, and takes no new ones.
func TestSocketCloses(t *testing.T) {
	up := newGate()
	r := newRig(t, rigOptions{upstream: up})
	idle, busy := r.dial(t, nil), r.dial(t, nil)
	busy.send(create("m", "hi", ""))
	<-up.began
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.door.Close()
	}()
	for _, d := range []*dialed{idle, busy} {
		for {
			if _, _, err := d.conn.Read(t.Context()); err != nil {
				break
			}
		}
	}
	<-done
	late := r.dial(t, nil)
	if _, _, err := late.conn.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusGoingAway {
		t.Errorf("%v", err)
	}
}

// TestSocketServerStops: when the server begins to stop, a socket that answers goes on to the
// end of its answer, and then is closed.
func TestSocketServerStops(t *testing.T) {
	up := newGate()
	r := newRig(t, rigOptions{upstream: up})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	served := make(chan error, 1)
	go func() { served <- r.house.Serve(ctx, l) }()
	r.url = "http://" + l.Addr().String()
	idle, busy := r.dial(t, nil), r.dial(t, nil)
	busy.send(create("m", "hi", ""))
	<-up.began
	stop()
	if _, _, err := idle.conn.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusGoingAway {
		t.Errorf("%v", err)
	}
	busy.send(create("m", "one more", `,"stream_id":"late"`))
	refused, last := false, &listener{t: t}
	for last.over == "" {
		v := busy.next()
		if member(v, "type") != "error" {
			last.event(v)
			continue
		}
		if refused = member(v, "error", "code") == "server_stopping"; refused {
			close(up.open)
		}
	}
	if !refused || textOf(last.last) != "First and last." {
		t.Errorf("refused %v, %s", refused, last.last)
	}
	if _, _, err := busy.conn.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusGoingAway {
		t.Errorf("%v", err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// TestSocketKeeps: a response that is kept brings the conversation before it along, if that
// was not.
func TestSocketKeeps(t *testing.T) {
	r := newRig(t, rigOptions{upstream: &reader{}})
	d := r.dial(t, nil)
	d.send(create("m", "question one", `,"store":false`))
	first := d.response()
	d.send(create("m", "question two", `,"previous_response_id":`+quote(member(first, "id"))))
	second := d.response()
	r.made(t, `{"model":"m","input":"question three","previous_response_id":`+quote(member(second, "id"))+`}`)
	if sent := string(r.up.last(t)); !strings.Contains(sent, "question one") || !strings.Contains(sent, "question two") || !strings.Contains(sent, "question three") {
		t.Errorf("sent %s", sent)
	}
}

// TestSocketLife: a connection ends after its time, and says so.
func TestSocketLife(t *testing.T) {
	limits, err := config.Values{}.Set(config.SocketLife, 1)
	if err != nil {
		t.Fatal(err)
	}
	d := newRig(t, rigOptions{limits: limits}).dial(t, nil)
	if v := d.next(); member(v, "error", "code") != "websocket_connection_limit_reached" {
		t.Errorf("%s", v)
	}
	if _, _, err := d.conn.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusNormalClosure {
		t.Errorf("%v", err)
	}
}

// TestSocketTooLarge: a frame is bounded as a body is.
func TestSocketTooLarge(t *testing.T) {
	limits, err := config.Values{}.Set(config.RequestBody, 2048)
	if err != nil {
		t.Fatal(err)
	}
	d := newRig(t, rigOptions{limits: limits}).dial(t, nil)
	d.send(create("hello", strings.Repeat("x", 4096), ""))
	if _, _, err := d.conn.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusMessageTooBig {
		t.Errorf("%v", err)
	}
}

// TestSocketDoor: who asks for no WebSocket, or from a foreign page, gets none.
func TestSocketDoor(t *testing.T) {
	r := newRig(t, rigOptions{})
	res, body := r.ask(t, http.MethodGet, "/v1/responses", "")
	if res.StatusCode != http.StatusMethodNotAllowed || res.Header.Get("Allow") != http.MethodPost || !strings.Contains(body, "POST") {
		t.Errorf("%d %s", res.StatusCode, body)
	}
	for origin, good := range map[string]bool{"http://evil.example": false, "null": false, "http://localhost:3000": true, r.url: true, "http://[::1]:3000": true, "": true} {
		header := http.Header{}
		if origin != "" {
			header.Set("Origin", origin)
		}
		conn, _, err := websocket.Dial(t.Context(), "ws"+strings.TrimPrefix(r.url, "http")+"/responses", &websocket.DialOptions{HTTPHeader: header})
		if (err == nil) != good {
			t.Errorf("origin %q: %v", origin, err)
		}
		if err == nil {
			_ = conn.CloseNow()
		}
	}
}
