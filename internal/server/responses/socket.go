package responses

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/internal/llm/openai"
	"github.com/metier-run/metier/internal/server"
	"github.com/metier-run/metier/internal/wire"
)

// sockets are the WebSockets that are open.
type sockets struct {
	mu     sync.Mutex
	closed bool
	cut    map[*socket]context.CancelCauseFunc
	wait   sync.WaitGroup
}

func newSockets() *sockets { return &sockets{cut: map[*socket]context.CancelCauseFunc{}} }

// add takes a socket in; false when nothing new begins. leave must be called when it has
// ended.
func (s *sockets) add(x *socket, cut context.CancelCauseFunc) (leave func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, false
	}
	s.cut[x] = cut
	s.wait.Add(1)
	return func() {
		s.mu.Lock()
		delete(s.cut, x)
		s.mu.Unlock()
		s.wait.Done()
	}, true
}

// close cuts all sockets and waits for them.
func (s *sockets) close() {
	s.mu.Lock()
	s.closed = true
	for _, cut := range s.cut {
		cut(stopping())
	}
	s.mu.Unlock()
	s.wait.Wait()
}

// socket is one WebSocket. Each frame of its client asks for a response; those of one
// stream are answered one after the other, and streams side by side.
type socket struct {
	door   *Door
	conn   *websocket.Conn
	header http.Header

	mu      sync.Mutex
	closing bool
	lanes   map[string]*lane
	waiting int
	wait    sync.WaitGroup // the lanes that work
}

// lane is one stream of a socket.
type lane struct {
	id      string
	working bool
	queue   [][]byte
	// last is the conversation up to its last response, also one that is not kept.
	last *spoken
}

// socket answers a client that asks for a WebSocket. The vendor's own clients go on by POST
// when they are told that there is none.
func (d *Door) socket(w http.ResponseWriter, r *http.Request) {
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		w.Header().Set("Allow", http.MethodPost)
		d.Refuse(w, r, fault.New(fault.Method, "responses are asked for by POST, or over a WebSocket, which this request does not ask for: there is no list of responses"))
		return
	}
	// The server has looked at the origin already, with the same rule: its own pages, and on
	// a loopback server those of other local ports.
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{
		OriginPatterns: []string{"localhost", "localhost:*", "127.0.0.1", "127.0.0.1:*", `\[::1\]`, `\[::1\]:*`},
	})
	if err != nil {
		return // it has answered
	}
	conn.SetReadLimit(d.options.Limits.Get(config.RequestBody))
	x := &socket{door: d, conn: conn, header: r.Header, lanes: map[string]*lane{}}
	x.serve(r)
}

func (x *socket) serve(r *http.Request) {
	// The server does not wait for a connection that is not HTTP any more: who closes the door
	// does.
	ctx, cut := context.WithCancelCause(context.WithoutCancel(r.Context()))
	defer cut(nil)
	leave, ok := x.door.sockets.add(x, cut)
	if !ok {
		_ = x.conn.Close(websocket.StatusGoingAway, "the server is stopping") // the client may be gone
		return
	}
	defer leave()
	stops, release := server.Watching(r)
	defer release()
	read, pinged := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(read)
		x.read(ctx)
	}()
	go func() {
		defer close(pinged)
		x.ping(ctx, cut)
	}()
	life := time.NewTimer(x.door.options.Limits.Duration(config.SocketLife))
	defer life.Stop()
	code, reason := websocket.StatusGoingAway, "the server is stopping"
	select {
	case <-read: // the client is gone, and its turns go with it
		cut(context.Canceled)
	case <-ctx.Done():
	case <-stops.Done():
	case <-life.C:
		code, reason = websocket.StatusNormalClosure, "the connection has been open for as long as it may"
		e := invalid("", "%s: open another one", reason)
		e.Detail = "websocket_connection_limit_reached"
		x.fail(ctx, "", e)
	}
	x.end(ctx)
	_ = x.conn.Close(code, reason) // the client may be gone
	cut(nil)
	x.wait.Wait()
	<-read
	<-pinged
}

// end takes no more requests, and waits until those that are there are answered, or ctx
// ends.
func (x *socket) end(ctx context.Context) {
	x.mu.Lock()
	x.closing = true
	x.mu.Unlock()
	done := make(chan struct{})
	go func() {
		x.wait.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		<-done // each turn ends with its context
	}
}

// ping sees whether the client is still there, and keeps the connection open.
func (x *socket) ping(ctx context.Context, cut context.CancelCauseFunc) {
	tick := time.NewTicker(x.door.keepAlive)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		wait, cancel := context.WithTimeout(ctx, x.door.keepAlive)
		err := x.conn.Ping(wait)
		cancel()
		if err != nil {
			cut(context.Canceled)
			return
		}
	}
}

// read takes the client's frames until there are no more.
func (x *socket) read(ctx context.Context) {
	for {
		kind, frame, err := x.conn.Read(ctx)
		if err != nil {
			return
		}
		if kind != websocket.MessageText {
			x.fail(ctx, "", invalid("", "a frame must be text"))
			continue
		}
		x.take(ctx, frame)
	}
}

// take has a frame answered in its lane.
func (x *socket) take(ctx context.Context, frame []byte) {
	id, body, err := readFrame(frame)
	if err == nil {
		err = x.enqueue(ctx, id, body)
	}
	if err != nil {
		x.fail(ctx, id, err)
	}
}

// longestStream is how long the name of a stream may be.
const longestStream = 256

// readFrame is the stream that a frame is for, and the body of its request.
func readFrame(frame []byte) (stream string, body []byte, err error) {
	if err := wire.Check(frame); err != nil {
		return "", nil, invalid("", "the frame is not valid JSON: %v", err)
	}
	v := jsontext.Value(bytes.TrimSpace(frame))
	if v.Kind() != '{' {
		return "", nil, invalid("", `the frame must be a JSON object of type "response.create"`)
	}
	if id := wire.Member(v, "stream_id"); !wire.IsNull(id) {
		name, ok := wire.String(id)
		if !ok || name == "" || len(name) > longestStream || strings.ContainsFunc(name, unfit) {
			return "", nil, invalid("stream_id", `"stream_id" must have 1 to %d of the letters A-Z, a-z, 0-9, "_", "." and "-"`, longestStream)
		}
		stream = name
	}
	if kind := kindOf(v); kind != "response.create" {
		return stream, nil, invalid("type", `a frame of type %s is not known here: send "response.create"`, quoted(kind))
	}
	if string(wire.Member(v, "background")) == "true" {
		return stream, nil, invalid("background", `"background" cannot be had over a WebSocket: ask for it by POST`)
	}
	for _, name := range []string{"type", "stream_id", "stream", "background"} {
		v = wire.Remove(v, name)
	}
	return stream, v, nil
}

func unfit(r rune) bool { return r != '.' && fitting(r) == '_' && r != '_' }

func (x *socket) enqueue(ctx context.Context, id string, body []byte) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closing {
		return stopping()
	}
	l, err := x.lane(id)
	if err != nil {
		return err
	}
	if !l.working {
		l.working = true
		x.wait.Go(func() { x.work(ctx, l, body) })
		return nil
	}
	if x.waiting >= x.door.options.Limits.Int(config.SocketQueue) {
		e := fault.New(fault.Busy, "%d requests of this connection wait already: send the next one when a response has ended", x.waiting)
		e.Detail = "websocket_queue_limit_reached"
		return e
	}
	x.waiting++
	l.queue = append(l.queue, body)
	return nil
}

// lane is the one of a stream. A stream that is not in use makes room for a new one. x.mu
// is held.
func (x *socket) lane(id string) (*lane, error) {
	if l := x.lanes[id]; l != nil {
		return l, nil
	}
	if most := x.door.options.Limits.Int(config.SocketLanes); len(x.lanes) >= most {
		free := ""
		for name, l := range x.lanes {
			if !l.working {
				free = name
			}
		}
		if l := x.lanes[free]; l == nil || l.working {
			e := fault.New(fault.Busy, "%d streams of this connection are answered at once: wait until one has ended, or open another connection", most)
			e.Detail = "websocket_stream_limit_reached"
			return nil, e
		}
		delete(x.lanes, free)
	}
	l := &lane{id: id}
	x.lanes[id] = l
	return l, nil
}

// work answers the requests of a lane, the oldest first, until there are no more.
func (x *socket) work(ctx context.Context, l *lane, body []byte) {
	for body != nil {
		if ctx.Err() == nil {
			x.answer(ctx, l, body)
		}
		x.mu.Lock()
		if body = nil; len(l.queue) > 0 {
			body = l.queue[0]
			l.queue = slices.Delete(l.queue, 0, 1)
			x.waiting--
		} else {
			l.working = false
		}
		x.mu.Unlock()
	}
}

func (x *socket) answer(ctx context.Context, l *lane, body []byte) {
	defer func() {
		if p := recover(); p != nil {
			x.door.options.Logger.ErrorContext(ctx, "panic", "stream", l.id, "panic", p, "stack", string(debug.Stack()))
			x.fail(ctx, l.id, fmt.Errorf("panic: %v", p))
		}
	}()
	if err := x.respond(ctx, l, body); err != nil {
		x.fail(ctx, l.id, err)
	}
}

// respond answers one request. The error is one that no response tells of.
func (x *socket) respond(ctx context.Context, l *lane, body []byte) error {
	d := x.door
	previous, _ := wire.String(wire.Member(body, "previous_response_id"))
	a, err := d.prepare(ctx, x.header, body, x.before(previous))
	if err != nil {
		return err
	}
	t, err := d.turn(ctx, a, func(warning string) { a.told = append(a.told, warning) })
	if err != nil {
		return err
	}
	var broken error
	e := newAnswer(a, func(_ string, event []byte) {
		if err := x.write(ctx, l.id, event); err != nil && broken == nil {
			broken = err
		}
	})
	out, err := d.run(ctx, t, e, func(bool) error { return broken })
	if err != nil && !e.begun {
		return err
	}
	done := d.finish(ctx, e, out, err)
	if err == nil {
		items := append(slices.Clone(a.items), elements(wire.Member(done, "output"))...)
		x.mu.Lock()
		l.last = &spoken{id: a.id, items: items, kept: a.store}
		x.mu.Unlock()
	}
	return nil
}

// before is the conversation up to a response, if it was the last of a stream.
func (x *socket) before(id string) *spoken {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, l := range x.lanes {
		if l.last != nil && l.last.id == id {
			return l.last
		}
	}
	return nil
}

// write sends an event, with the name of its stream if that has one.
func (x *socket) write(ctx context.Context, stream string, event []byte) error {
	if stream != "" {
		event = append(appendText(bytes.Clone(event[:len(event)-1]), "stream_id", stream), '}')
	}
	return x.conn.Write(ctx, websocket.MessageText, event)
}

// fail sends an error.
func (x *socket) fail(ctx context.Context, stream string, err error) {
	f := faultOf(err)
	if f.Code == fault.Internal {
		x.door.options.Logger.ErrorContext(ctx, "response failed", "stream", stream, "error", err)
	}
	out := appendCount(appendText([]byte{'{'}, "type", "error"), "status", int64(server.StatusOf(err)))
	out = append(openai.AppendError(appendMember(out, "error", nil), f), '}')
	_ = x.write(ctx, stream, out) // a client that is gone is noticed when it is read from
}
