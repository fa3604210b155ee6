package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing/fstest"
	"time"

	"github.com/metier-run/metier/internal/llm/scripted"
)

// grace is what a process gets to end by itself.
const grace = 10 * time.Second

// The keys of the server. The agents present one of them: the one that selects the
// skill, or the one that selects nothing.
const (
	selectingKey = "metier-key-that-selects-0123456789"
	plainKey     = "metier-key-that-does-not-0123456789"
)

const settings = `[skills]
discovery = "off"

[key.selecting]
env = "CLIENTS_SELECTING"
skills = ["` + skillName + `"]

[key.plain]
env = "CLIENTS_PLAIN"
`

// house is a server for one agent: the scripted upstream, metier in front of it, and
// a tap between metier and the agent.
type house struct {
	url      string // of the tap, which is what the agent is given
	upstream *scripted.Handler
	tap      *tap

	cmd     *exec.Cmd
	reading sync.WaitGroup
	stops   []func()

	mu  sync.Mutex
	log bytes.Buffer
}

// open starts all three. The folder takes what the server writes.
func open(ctx context.Context, o options, a agent, dir string) (*house, error) {
	h := &house{}
	ready := false
	defer func() {
		if !ready {
			h.close()
		}
	}()
	var err error
	if h.upstream, err = scripted.New(scripted.Options{FS: fstest.MapFS{a.name + scripted.Ext: {Data: scenario(a)}}}); err != nil {
		return nil, err
	}
	behind, err := h.serve(ctx, h.upstream)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "metier.toml")
	if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
		return nil, err
	}
	inner, err := h.start(o, dir, "serve", "-c", file, "--port", "0", "--log-json", "--drain", "1",
		"--upstream", behind, "--skills-dir", o.skills)
	if err != nil {
		return nil, err
	}
	target, err := url.Parse(inner)
	if err != nil {
		return nil, err
	}
	h.tap = newTap(target)
	if h.url, err = h.serve(ctx, h.tap); err != nil {
		return nil, err
	}
	ready = true
	return h, nil
}

// serve answers on a free port until the house is closed.
func (h *house) serve(ctx context.Context, handler http.Handler) (string, error) {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("listen: %w", err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: grace}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(ln) // it ends when it is closed
	}()
	h.stops = append(h.stops, func() {
		_ = server.Close() // what is still open then is of no use
		<-done
	})
	return "http://" + ln.Addr().String(), nil
}

// start runs the program and returns its address.
func (h *house) start(o options, dir string, args ...string) (string, error) {
	h.cmd = exec.Command(o.binary, args...)
	h.cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "METIER_HOME=" + dir,
		"CLIENTS_SELECTING=" + selectingKey, "CLIENTS_PLAIN=" + plainKey,
	}
	stdout, err := h.cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	stderr, err := h.cmd.StderrPipe()
	if err != nil {
		return "", err
	}
	if err := h.cmd.Start(); err != nil {
		return "", fmt.Errorf("start %s: %w", o.binary, err)
	}
	h.reading.Go(func() { h.keep(stderr) })
	line, err := bufio.NewReader(stdout).ReadString('\n')
	address, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if !ok {
		_ = h.cmd.Process.Kill() // what it said is what counts
		h.reading.Wait()
		return "", fmt.Errorf("the server did not say where it listens: %q, %v\n%s", line, err, h.said())
	}
	return address, nil
}

func (h *house) keep(log io.Reader) {
	in := bufio.NewReader(log)
	for {
		line, err := in.ReadBytes('\n')
		h.mu.Lock()
		h.log.Write(line)
		h.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// said is the server's log.
func (h *house) said() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.log.String()
}

// close stops all of it, the agent's side first.
func (h *house) close() {
	if h.cmd != nil && h.cmd.Process != nil {
		_ = h.cmd.Process.Signal(os.Interrupt) // it may have ended
		kill := time.AfterFunc(grace, func() { _ = h.cmd.Process.Kill() })
		h.reading.Wait()
		_ = h.cmd.Wait() // how it ended is in its log
		kill.Stop()
	}
	for i := len(h.stops) - 1; i >= 0; i-- {
		h.stops[i]()
	}
}

// tap passes everything on in both directions and keeps a copy.
type tap struct {
	proxy *httputil.ReverseProxy

	mu    sync.Mutex
	calls []*exchange
}

// exchange is one request of the agent and what it got.
type exchange struct {
	method, path string
	status       int
	request      []byte
	answer       bytes.Buffer
}

func newTap(target *url.URL) *tap {
	t := &tap{}
	t.proxy = &httputil.ReverseProxy{
		FlushInterval: -1, // events go on as they come
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			// So that the copy can be read.
			r.Out.Header.Del("Accept-Encoding")
			r.Out.Header.Del("Sec-Websocket-Extensions")
		},
		// An agent that leaves early is its own affair.
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	return t
}

// ServeHTTP keeps the request, and the answer as it comes.
func (t *tap) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e := &exchange{method: r.Method, path: r.URL.Path}
	t.mu.Lock()
	t.calls = append(t.calls, e)
	t.mu.Unlock()
	if r.Header.Get("Upgrade") == "" {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		t.mu.Lock()
		e.request = body
		t.mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	t.proxy.ServeHTTP(&copier{ResponseWriter: w, tap: t, into: e}, r)
}

// seen is what has gone through so far.
func (t *tap) seen() []exchange {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []exchange
	for _, e := range t.calls {
		one := exchange{method: e.method, path: e.path, status: e.status, request: e.request}
		one.answer.Write(e.answer.Bytes())
		all = append(all, one)
	}
	return all
}

type copier struct {
	http.ResponseWriter
	tap  *tap
	into *exchange
}

// Unwrap lets the proxy flush.
func (c *copier) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// Hijack lets the proxy take the connection over, and goes on copying.
func (c *copier) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(c.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	c.tap.mu.Lock()
	c.into.status = http.StatusSwitchingProtocols
	c.tap.mu.Unlock()
	return &copiedConn{Conn: conn, tap: c.tap, into: c.into}, rw, nil
}

// copiedConn keeps what an agent is sent over a connection of its own.
type copiedConn struct {
	net.Conn
	tap  *tap
	into *exchange
}

func (c *copiedConn) Write(p []byte) (int, error) {
	c.tap.mu.Lock()
	c.into.answer.Write(p)
	c.tap.mu.Unlock()
	return c.Conn.Write(p)
}

func (c *copier) WriteHeader(status int) {
	c.tap.mu.Lock()
	c.into.status = status
	c.tap.mu.Unlock()
	c.ResponseWriter.WriteHeader(status)
}

func (c *copier) Write(p []byte) (int, error) {
	c.tap.mu.Lock()
	c.into.answer.Write(p)
	c.tap.mu.Unlock()
	return c.ResponseWriter.Write(p)
}
