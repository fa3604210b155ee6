package sdk

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/llm/scripted"
)

// rig is one upstream and one server in front of it, with a window on both. A
// client finds them in its environment:
//
//	METIER_URL      the server, without /v1
//	METIER_CONTROL  the window; see [board.routes]
type rig struct {
	url, control string
	board        *board
}

func newRig(t *testing.T, binary, skills string) *rig {
	t.Helper()
	b := newBoard(scenarios(t))
	upstream := httptest.NewServer(b.watched(b.upstream))
	t.Cleanup(upstream.Close)
	control := httptest.NewServer(b.routes())
	t.Cleanup(control.Close)
	r := &rig{control: control.URL, board: b}
	r.url = serve(t, b, binary, "--upstream", upstream.URL, "--skills-dir", skills)
	return r
}

// scenarios are those of the scripted upstream and those of this folder.
func scenarios(t *testing.T) *scripted.Handler {
	t.Helper()
	all := fstest.MapFS{}
	for _, from := range []fs.FS{scripted.Embedded(), os.DirFS("testdata/scenarios")} {
		files, err := fs.Glob(from, "*"+scripted.Ext)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			data, err := fs.ReadFile(from, name)
			if err != nil {
				t.Fatal(err)
			}
			all[name] = &fstest.MapFile{Data: data}
		}
	}
	h, err := scripted.New(scripted.Options{FS: all})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// runClient runs a client's tests, and then holds what must be true of the
// server whatever they did.
func (r *rig) runClient(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("the server's log:\n%s", r.board.log())
		}
	}()
	command(t, dir, []string{
		"METIER_URL=" + r.url, "METIER_CONTROL=" + r.control,
		// The server is on this machine, and some clients go through a proxy even so.
		"NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1",
	}, name, args...)
	for _, line := range r.board.errorLines() {
		t.Errorf("the server logged a fault of its own: %s", line)
	}
	if r.board.turns() == 0 {
		t.Error("the server logged no turn: the client asked nothing")
	}
}

// serve starts the program on a free port and returns its address. The test's
// end interrupts it and wants a clean exit.
func serve(t *testing.T, b *board, binary string, args ...string) string {
	t.Helper()
	home := t.TempDir()
	cmd := exec.Command(binary, append([]string{"serve", "--port", "0", "--log-json", "--drain", "1"}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "METIER_HOME=" + home, "GORACE=atexit_sleep_ms=0"}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var reading sync.WaitGroup
	reading.Go(func() { b.read(stderr) })
	t.Cleanup(func() { stop(t, cmd, &reading, b) })
	line, err := bufio.NewReader(stdout).ReadString('\n')
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if !ok {
		t.Fatalf("the server did not say where it listens: %q, %v\n%s", line, err, b.log())
	}
	return url
}

func stop(t *testing.T, cmd *exec.Cmd, reading *sync.WaitGroup, b *board) {
	t.Helper()
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Errorf("interrupt the server: %v", err)
	}
	kill := time.AfterFunc(grace, func() {
		t.Errorf("the server did not stop within %s of an interrupt", grace)
		_ = cmd.Process.Kill() // it may have ended just now
	})
	reading.Wait() // its log ends with it
	err := cmd.Wait()
	kill.Stop()
	if err != nil {
		t.Errorf("the server ended badly: %v\n%s", err, b.log())
	}
}

// board is what happened behind the client's back: the server's log and the
// upstream's requests. Whoever asks for something that has not happened yet
// waits for it.
type board struct {
	upstream *scripted.Handler

	mu      sync.Mutex
	changed chan struct{} // closed at the next change
	lines   []jsontext.Value
	raw     bytes.Buffer
	begun   map[string]int // by model: requests that the upstream has read
	gone    map[string]int // by model: those whose client left before the end
}

func newBoard(upstream *scripted.Handler) *board {
	return &board{upstream: upstream, changed: make(chan struct{}), begun: map[string]int{}, gone: map[string]int{}}
}

// change notes something and wakes who waits.
func (b *board) change(note func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	note()
	close(b.changed)
	b.changed = make(chan struct{})
}

// read takes the server's log until it ends.
func (b *board) read(log io.Reader) {
	in := bufio.NewReader(log)
	for {
		line, err := in.ReadBytes('\n')
		b.change(func() {
			b.raw.Write(line)
			if v := jsontext.Value(bytes.TrimSpace(line)); v.IsValid() {
				b.lines = append(b.lines, v)
			}
		})
		if err != nil {
			return
		}
	}
}

func (b *board) log() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.raw.String()
}

// logLine is what a test asks of a line of the server's log.
type logLine struct {
	Level   string `json:"level"`
	Msg     string `json:"msg"`
	Request string `json:"request"`
}

func (b *board) find(fits func(logLine) bool) []jsontext.Value {
	var found []jsontext.Value
	for _, v := range b.lines {
		var l logLine
		if json.Unmarshal(v, &l) == nil && fits(l) {
			found = append(found, v)
		}
	}
	return found
}

func (b *board) errorLines() []jsontext.Value {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.find(func(l logLine) bool { return l.Level == "ERROR" || l.Msg == "panic" })
}

func (b *board) turns() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.find(func(l logLine) bool { return l.Msg == "turn" }))
}

// watched notes the requests that come, and those whose connection goes before
// their answer is whole.
func (b *board) watched(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		var asked struct {
			Model string `json:"model"`
		}
		_ = json.Unmarshal(body, &asked) // a body that is no JSON has no model
		b.change(func() { b.begun[asked.Model]++ })
		defer func() {
			if r.Context().Err() != nil {
				b.change(func() { b.gone[asked.Model]++ })
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// patience bounds how long a client's question waits.
const patience = 10 * time.Second

// routes are the window's: GET /turn?request=ID is the server's log line about
// the turn of that request; GET /begun?model=NAME answers when the upstream has
// read such a request, GET /gone?model=NAME when it has seen the connection of
// one go; GET /requests?model=NAME lists what the upstream was asked so far, GET
// /talk one conversation of that (see [board.talk]).
func (b *board) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /turn", func(w http.ResponseWriter, r *http.Request) {
		id := r.FormValue("request")
		b.await(w, r, func() any {
			if found := b.find(func(l logLine) bool { return l.Msg == "turn" && l.Request == id }); len(found) > 0 {
				return found[0]
			}
			return nil
		})
	})
	for name, counts := range map[string]map[string]int{"begun": b.begun, "gone": b.gone} {
		mux.HandleFunc("GET /"+name, func(w http.ResponseWriter, r *http.Request) {
			model := r.FormValue("model")
			b.await(w, r, func() any {
				if n := counts[model]; n > 0 {
					return map[string]int{name: n}
				}
				return nil
			})
		})
	}
	mux.HandleFunc("GET /requests", func(w http.ResponseWriter, r *http.Request) {
		send(w, b.requests(r.FormValue("model")))
	})
	mux.HandleFunc("GET /talk", b.talk)
	return mux
}

// await answers with what look finds, as soon as it finds something.
func (b *board) await(w http.ResponseWriter, r *http.Request, look func() any) {
	ctx, stop := context.WithTimeout(r.Context(), patience)
	defer stop()
	for {
		b.mu.Lock()
		found, changed := look(), b.changed
		b.mu.Unlock()
		if found != nil {
			send(w, found)
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			http.Error(w, r.URL.String()+": it did not happen within "+patience.String(), http.StatusGatewayTimeout)
			return
		}
	}
}

// asked is a request that the upstream got.
type asked struct {
	Step   int            `json:"step"`
	Header http.Header    `json:"header"`
	Body   jsontext.Value `json:"body"`
}

func (b *board) requests(model string) []asked {
	found := []asked{}
	for _, r := range b.upstream.Requests() {
		if r.Model == model {
			found = append(found, asked{Step: r.Step, Header: r.Header, Body: r.Body})
		}
	}
	return found
}

func send(w http.ResponseWriter, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(data) // a client that is gone needs no answer
}
