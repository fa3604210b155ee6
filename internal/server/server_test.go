package server_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/internal/server"
	"github.com/metier-run/metier/internal/telemetry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// door is a dialect with whatever routes a test needs.
type door map[string]http.HandlerFunc

func (d door) Routes() map[string]http.Handler {
	routes := map[string]http.Handler{}
	for pattern, h := range d {
		routes[pattern] = h
	}
	return routes
}

func (d door) Owns(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/v1/") }

func (d door) Refuse(w http.ResponseWriter, _ *http.Request, err error) {
	e := fault.From(err)
	server.WriteJSON(w, e.Code.Status(), map[string]string{"door": e.Message})
}

// vendor is a door that shares its paths with another: the header tells whose a request is.
type vendor struct{ door }

func (vendor) Owns(r *http.Request) bool { return r.Header.Get("Vendor-Version") != "" }

func (vendor) Refuse(w http.ResponseWriter, _ *http.Request, err error) {
	server.WriteJSON(w, fault.From(err).Code.Status(), map[string]string{"vendor": "no"})
}

// TestSharedRoutes: two doors may have one route; who owns the request answers it, and
// refuses what nobody answers.
func TestSharedRoutes(t *testing.T) {
	says := func(what string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, what) }
	}
	o := options(door{"GET /v1/models": says("door"), "GET /v1/own": says("door")}, false)
	o.Doors = append([]server.Door{vendor{door{"GET /v1/models": says("vendor")}}}, o.Doors...)
	s := server.New(o)
	for _, c := range []struct{ path, version, want string }{
		{"/v1/models", "1", "vendor"},
		{"/v1/models", "", "door"},
		{"/v1/own", "1", "door"},
		{"/v1/none", "1", `{"vendor":"no"}`},
		{"/v1/none", "", `{"door":"there is nothing at GET /v1/none"}`},
	} {
		r := httptest.NewRequest(http.MethodGet, c.path, nil)
		if c.version != "" {
			r.Header.Set("Vendor-Version", c.version)
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if got := w.Body.String(); got != c.want {
			t.Errorf("%s with version %q: %s, want %s", c.path, c.version, got, c.want)
		}
	}
}

func options(d door, loopback bool) server.Options {
	return server.Options{
		Doors: []server.Door{d}, Logger: slog.New(slog.DiscardHandler), Version: "test",
		NewID: func() string { return "made" }, Loopback: loopback,
	}
}

func TestGuard(t *testing.T) {
	d := door{"GET /v1/x": func(w http.ResponseWriter, _ *http.Request) { server.WriteJSON(w, 200, map[string]string{}) }}
	for _, c := range []struct {
		host, origin string
		loopback     bool
		status       int
	}{
		{"127.0.0.1:8484", "", true, 200},
		{"localhost", "", true, 200},
		{"LOCALHOST:1", "", true, 200},
		{"[::1]:8484", "", true, 200},
		{"127.9.9.9", "", true, 200},
		{"evil.example", "", true, 403},
		{"127.0.0.1.evil.example", "", true, 403},
		{"localhost.evil.example:8484", "", true, 403},
		{"10.0.0.1", "", true, 403},
		{"", "", true, 403},
		{"127.0.0.1:8484", "http://127.0.0.1:3000", true, 200},
		{"127.0.0.1:8484", "http://localhost:8484", true, 200},
		{"127.0.0.1:8484", "https://evil.example", true, 403},
		{"127.0.0.1:8484", "null", true, 403},
		{"127.0.0.1:8484", "http://127.0.0.1@evil.example", true, 403},
		{"metier.lan", "", false, 200},
		{"metier.lan", "http://metier.lan", false, 200},
		{"metier.lan", "http://evil.example", false, 403},
	} {
		r := httptest.NewRequest(http.MethodGet, "/v1/x", nil)
		r.Host = c.host
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		w := httptest.NewRecorder()
		server.New(options(d, c.loopback)).ServeHTTP(w, r)
		if w.Code != c.status {
			t.Errorf("Host %q, Origin %q, loopback %v: %d, want %d", c.host, c.origin, c.loopback, w.Code, c.status)
		}
	}
}

func TestRequestID(t *testing.T) {
	var seen string
	d := door{"GET /v1/x": func(_ http.ResponseWriter, r *http.Request) { seen = telemetry.RequestID(r.Context()) }}
	for _, c := range []struct{ sent, want string }{
		{"", "req_made"},
		{"abc-1:2.3_X", "abc-1:2.3_X"},
		{"bad id", "req_made"},
		{"new\nline", "req_made"},
		{strings.Repeat("x", 129), "req_made"},
	} {
		r := httptest.NewRequest(http.MethodGet, "/v1/x", nil)
		r.Header["X-Request-Id"] = []string{c.sent}
		w := httptest.NewRecorder()
		server.New(options(d, false)).ServeHTTP(w, r)
		if got := w.Header().Get("X-Request-Id"); got != c.want || seen != c.want {
			t.Errorf("sent %q: answered %q, handler saw %q, want %q", c.sent, got, seen, c.want)
		}
	}
}

func TestFallback(t *testing.T) {
	d := door{
		"POST /v1/x":     func(http.ResponseWriter, *http.Request) {},
		"GET /v1/panics": func(http.ResponseWriter, *http.Request) { panic("secret text") },
	}
	for _, c := range []struct {
		method, path string
		status       int
		want         string
	}{
		{"GET", "/healthz", 200, `"version":"test"`},
		{"GET", "/readyz", 200, `"ready"`},
		{"HEAD", "/healthz", 200, ""},
		{"GET", "/", 200, "Point an OpenAI client at http://example.com/v1,\nan Anthropic client at http://example.com, an Ollama client at http://example.com/ollama."},
		{"HEAD", "/", 200, ""},
		{"GET", "/v1/none", 404, `{"door":`},
		{"GET", "/none", 404, `{"error":`},
		{"GET", "/none/%ff", 404, `{"error":`}, // no text
		{"GET", "/v1/x", 405, `use POST`},
	} {
		w := httptest.NewRecorder()
		server.New(options(d, false)).ServeHTTP(w, httptest.NewRequest(c.method, c.path, nil))
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%s %s: %d %s, want %d with %q", c.method, c.path, w.Code, w.Body, c.status, c.want)
		}
	}
	s := httptest.NewServer(server.New(options(d, false)))
	defer s.Close()
	defer s.Client().CloseIdleConnections()
	res, err := s.Client().Get(s.URL + "/v1/panics")
	if err == nil {
		defer res.Body.Close()
		body, _ := io.ReadAll(res.Body)
		if res.StatusCode != 500 || strings.Contains(string(body), "secret") {
			t.Errorf("a panic answered %d %s", res.StatusCode, body)
		}
	}
	if w := httptest.NewRecorder(); true {
		server.New(options(d, false)).ServeHTTP(w, httptest.NewRequest("GET", "/healthz", nil))
		if w.Code != 200 {
			t.Error("a panic took the server down")
		}
	}
}

// TestRefusalsAreTold: an operator sees what was refused and why, and nothing
// of what was answered well.
func TestRefusalsAreTold(t *testing.T) {
	var log strings.Builder
	o := options(door{
		"GET /v1/no": func(w http.ResponseWriter, _ *http.Request) {
			server.WriteJSON(w, 403, map[string]string{"why": "because"})
		},
		"GET /v1/yes": func(w http.ResponseWriter, _ *http.Request) {
			server.WriteJSON(w, 200, map[string]string{"a": "secret"})
		},
	}, true)
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	s := server.New(o)
	for _, path := range []string{"/v1/no", "/v1/yes"} {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Host = "localhost"
		s.ServeHTTP(httptest.NewRecorder(), r)
	}
	s.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/v1/yes", nil)) // a foreign Host
	got := log.String()
	if strings.Count(got, "msg=refused") != 2 || !strings.Contains(got, "because") || !strings.Contains(got, "example.com") || strings.Contains(got, "secret") {
		t.Errorf("the log says\n%s", got)
	}
}

func TestBodyBound(t *testing.T) {
	var err error
	o := options(door{"POST /v1/x": func(_ http.ResponseWriter, r *http.Request) { _, err = server.ReadBody(r) }}, false)
	if o.Limits, err = o.Limits.Set(config.RequestBody, 1024); err != nil {
		t.Fatal(err)
	}
	for size, want := range map[int]fault.Code{1024: "", 1025: fault.TooLarge, 1 << 20: fault.TooLarge} {
		for _, known := range []bool{true, false} {
			var body io.Reader = strings.NewReader(strings.Repeat("x", size))
			if !known {
				body = io.MultiReader(body) // hides the length
			}
			server.New(o).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", "/v1/x", body))
			if got := codeOf(err); got != want {
				t.Errorf("%d bytes, length known %v: %q, want %q", size, known, got, want)
			}
		}
	}
}

// TestSlowBody: a body that does not come holds its connection for a bounded
// time, and one that came holds no handler to it.
func TestSlowBody(t *testing.T) {
	for name, c := range map[string]struct{ pause, work time.Duration }{
		"a slow body":    {pause: 2 * time.Hour},
		"a slow handler": {work: 2 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				var detail string
				d := door{"POST /v1/x": func(w http.ResponseWriter, r *http.Request) {
					if _, err := server.ReadBody(r); err != nil {
						detail = fault.From(err).Detail
						w.WriteHeader(http.StatusBadRequest)
						return
					}
					select {
					case <-r.Context().Done():
						t.Errorf("the handler was cancelled after %s: %v", time.Since(began), context.Cause(r.Context()))
					case <-time.After(c.work):
					}
				}}
				l := newPipes()
				ctx, stop := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- server.New(options(d, true)).Serve(ctx, l) }()
				body, send := io.Pipe()
				sent := make(chan struct{})
				go func() {
					defer close(sent)
					_, _ = send.Write([]byte("{"))
					<-time.After(c.pause)
					_, _ = send.Write([]byte("}"))
					_ = send.Close()
				}()
				client := l.client()
				res, err := client.Post("http://127.0.0.1/v1/x", "application/json", body)
				took := time.Since(began)
				switch {
				case err == nil && c.pause == 0:
					if res.StatusCode != http.StatusOK || took != c.work {
						t.Errorf("%d after %s", res.StatusCode, took)
					}
				case c.pause > 0:
					if detail != "request_timeout" || took > 10*time.Minute {
						t.Errorf("the body was given up with %q after %s (%v)", detail, took, err)
					}
				default:
					t.Error(err)
				}
				if res != nil {
					_ = res.Body.Close()
				}
				<-sent
				client.CloseIdleConnections()
				stop()
				if err := <-done; err != nil && !errors.Is(err, http.ErrServerClosed) {
					t.Error(err)
				}
			})
		})
	}
}

func codeOf(err error) fault.Code {
	if err == nil {
		return ""
	}
	return fault.From(err).Code
}

// pipes is a listener without a port, so that a server can run in a bubble of
// synctest.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func newPipes() *pipes { return &pipes{make(chan net.Conn), make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	select {
	case <-p.closed:
	default:
		close(p.closed)
	}
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

func (p *pipes) client() *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		select {
		case p.conns <- theirs:
			return ours, nil
		case <-p.closed:
			return nil, errors.New("refused")
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}}}
}

// stream runs a server in a bubble whose one route streams under the test's
// control.
type stream struct {
	client  *http.Client
	release chan string // what the handler writes; closing it ends the answer
	stop    context.CancelFunc
	done    chan error
	cut     chan error
	started time.Time
}

func startStream(t *testing.T) *stream {
	s := &stream{release: make(chan string), done: make(chan error, 1), cut: make(chan error, 1), started: time.Now()}
	d := door{"GET /v1/stream": func(w http.ResponseWriter, r *http.Request) {
		out := server.NewStream(w, 15*time.Second, server.Form{})
		defer func() {
			if err := out.Close(); err != nil {
				t.Errorf("stream: %v", err)
			}
		}()
		for {
			select {
			case text, ok := <-s.release:
				if !ok {
					return
				}
				if err := out.Write([]byte(text), true); err != nil {
					t.Errorf("write: %v", err)
				}
			case <-r.Context().Done():
				s.cut <- context.Cause(r.Context())
				return
			}
		}
	}}
	l := newPipes()
	ctx, stop := context.WithCancel(t.Context())
	s.stop = stop
	s.client = l.client()
	go func() { s.done <- server.New(options(d, true)).Serve(ctx, l) }()
	return s
}

func (s *stream) open(t *testing.T) *bufio.Reader {
	t.Helper()
	res, err := s.client.Get("http://127.0.0.1/v1/stream")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	return bufio.NewReader(res.Body)
}

// TestKeepAlive: after a silence comes a comment, also before the first byte,
// and talk puts it off.
func TestKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startStream(t)
		in := s.open(t) // returns with the first comment
		at := func(want time.Duration, text string) {
			t.Helper()
			line, err := in.ReadString('\n')
			if err != nil || strings.TrimSpace(line) != text {
				t.Fatalf("read %q, %v, want %q", line, err, text)
			}
			if _, err := in.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
			if got := time.Since(s.started); got != want {
				t.Errorf("%q came after %s, want %s", text, got, want)
			}
		}
		at(15*time.Second, ": keep-alive")
		<-time.After(10 * time.Second)
		s.release <- "data: a\n\n"
		at(25*time.Second, "data: a")
		at(40*time.Second, ": keep-alive")
		at(55*time.Second, ": keep-alive")
		close(s.release)
		if rest, err := io.ReadAll(in); err != nil || len(rest) > 0 {
			t.Errorf("after the end: %q, %v", rest, err)
		}
		s.stop()
		if err := <-s.done; err != nil {
			t.Errorf("Serve: %v", err)
		}
		s.client.CloseIdleConnections()
	})
}

// TestDrain: a server that stops takes nothing new, lets an open stream end by
// itself, and cuts one that does not end in time.
func TestDrain(t *testing.T) {
	t.Run("ends by itself", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := startStream(t)
			go func() { s.release <- "data: a\n\n" }()
			in := s.open(t)
			s.stop()
			synctest.Wait()
			if _, err := s.client.Get("http://127.0.0.1/readyz"); err == nil {
				t.Error("a stopping server took a new connection")
			}
			<-time.After(20 * time.Second) // inside the grace of 30 s
			close(s.release)
			if rest, err := io.ReadAll(in); err != nil || !strings.Contains(string(rest), "data: a") {
				t.Errorf("the open stream gave %q, %v", rest, err)
			}
			if err := <-s.done; err != nil {
				t.Errorf("Serve: %v", err)
			}
			if len(s.cut) != 0 {
				t.Error("the stream was cut inside its grace")
			}
		})
	})
	t.Run("is cut", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := startStream(t)
			go func() { s.release <- "data: a\n\n" }()
			in := s.open(t)
			go func() { _, _ = io.Copy(io.Discard, in) }() // a reader of keep-alives
			s.stop()
			err := <-s.cut
			if got := codeOf(err); got != fault.Unavailable {
				t.Errorf("the stream was cut with %v", err)
			}
			if err := <-s.done; err != nil {
				t.Errorf("Serve: %v", err)
			}
			// The server looks for idle connections a few times a second.
			if took := time.Since(s.started); took < 30*time.Second || took > 32*time.Second {
				t.Errorf("stopping took %s, want the grace of 30 s", took)
			}
		})
	})
}

// noFlush is a writer that a wrapper has broken.
type noFlush struct{ http.ResponseWriter }

func TestUnflushableWriterFails(t *testing.T) {
	s := server.NewStream(noFlush{httptest.NewRecorder()}, time.Minute, server.Form{})
	if err := s.Write([]byte("data: a\n\n"), true); err == nil {
		t.Error("a stream that cannot be flushed was accepted")
	}
	if err := s.Close(); err == nil {
		t.Error("Close forgot the error")
	}
}
