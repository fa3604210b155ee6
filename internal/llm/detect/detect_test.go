package detect

import (
	"context"
	"errors"
	"flag"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/metier-run/metier/internal/llm/scripted"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server is an upstream that writes down what it was asked.
type server struct {
	*httptest.Server
	mu  sync.Mutex
	log []string
}

func serve(t *testing.T, h http.Handler) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.log = append(s.log, r.Method+" "+r.URL.Path)
		s.mu.Unlock()
		if r.Method != http.MethodGet || r.Header.Get("Authorization") != "" || r.Header.Get("Cookie") != "" || r.ContentLength != 0 {
			t.Errorf("probe is not harmless: %s %s %v", r.Method, r.URL, r.Header)
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.log...)
}

func (s *server) port(t *testing.T) int {
	t.Helper()
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func play(t *testing.T, o scripted.Options, models ...string) http.Handler {
	t.Helper()
	dir := fstest.MapFS{}
	for _, m := range models {
		dir[m+scripted.Ext] = &fstest.MapFile{Data: []byte("-- 1.answer --\n200\n")}
	}
	o.FS = dir
	h, err := scripted.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestGuessKinds(t *testing.T) {
	for kind, imitated := range map[Kind]scripted.Kind{
		Ollama: scripted.Ollama, LlamaCPP: scripted.LlamaCPP, LMStudio: scripted.LMStudio, VLLM: scripted.VLLM, OpenAI: scripted.OpenAI,
	} {
		t.Run(string(kind), func(t *testing.T) {
			s := serve(t, play(t, scripted.Options{Kind: imitated}, "b-chat", "a-embed"))
			got, err := Guess(t.Context(), nil, s.URL)
			want := Found{Kind: kind, URL: s.URL + "/v1", Models: []string{"a-embed", "b-chat"}, Model: "b-chat"}
			if d := cmp.Diff(want, got); d != "" || err != nil {
				t.Errorf("%v\n%s", err, d)
			}
		})
	}
}

// TestGuessMarks holds that a server is known by its own routes when the owner of
// its models says nothing.
func TestGuessMarks(t *testing.T) {
	list := `{"object":"list","data":[{"id":"m","owned_by":"somebody"}]}`
	for kind, routes := range map[Kind]map[string]string{
		Ollama:   {"/api/version": `{"version":"1"}`},
		LlamaCPP: {"/props": `{"default_generation_settings":{}}`},
		LMStudio: {"/api/v0/models": `{"data":[]}`},
		VLLM:     {"/version": `{"version":"1"}`},
		OpenAI:   {"/api/version": `{"error":"Unexpected endpoint or method."}`, "/props": `{"default_generation_settings":null}`, "/api/v0/models": `{"data":{}}`, "/version": `{"version":1}`},
	} {
		t.Run(string(kind), func(t *testing.T) {
			mux := http.NewServeMux()
			for path, body := range routes {
				mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) })
			}
			mux.HandleFunc("/v1/models", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(list)) })
			got, err := Guess(t.Context(), nil, serve(t, mux).URL+"/v1")
			if err != nil || got.Kind != kind {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

// TestGuessPaths holds which base is found for what people write.
func TestGuessPaths(t *testing.T) {
	for name, tt := range map[string]struct{ at, write, want string }{
		"root":            {"/v1", "", "/v1"},
		"slash":           {"/v1", "/", "/v1"},
		"base":            {"/v1", "/v1/", "/v1"},
		"whole route":     {"/v1", "/v1/chat/completions", "/v1"},
		"without version": {"", "", ""},
		"other version":   {"/api/v3", "/api/v3", "/api/v3"},
		"beta version":    {"/v1beta", "/v1beta", "/v1beta"},
		"below a path":    {"/openai/v1", "/openai", "/openai/v1"},
		"at a path":       {"/openai", "/openai", "/openai"},
	} {
		t.Run(name, func(t *testing.T) {
			mux := http.NewServeMux()
			mux.HandleFunc(tt.at+"/models", func(w http.ResponseWriter, _ *http.Request) {
				_, _ = w.Write([]byte(`{"data":[{"id":"m"}]}`))
			})
			s := serve(t, mux)
			got, err := Guess(t.Context(), nil, s.URL+tt.write)
			if err != nil || got.URL != s.URL+tt.want || got.Model != "m" {
				t.Errorf("got %+v, %v, want %s", got, err, s.URL+tt.want)
			}
		})
	}
}

// answering answers the same below /v1, and knows nothing else.
func answering(status int, body string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/v1/") {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	})
}

func TestGuessStates(t *testing.T) {
	for name, tt := range map[string]struct {
		handler http.Handler
		write   string
		want    Found // its URL is a path
		err     string
	}{
		"needs a key":  {answering(401, `{}`), "/v1", Found{Kind: OpenAI, URL: "/v1", NeedsKey: true}, ""},
		"forbidden":    {answering(403, `{}`), "", Found{Kind: OpenAI, URL: "/v1", NeedsKey: true}, ""},
		"loading":      {answering(503, `{"error":{"type":"unavailable_error"}}`), "", Found{Kind: LlamaCPP, URL: "/v1", Loading: true}, ""},
		"other 503":    {answering(503, `{"error":{}}`), "/v1", Found{}, "answered 503"},
		"no models":    {answering(200, `{"object":"list","data":[]}`), "/v1", Found{Kind: OpenAI, URL: "/v1"}, ""},
		"null models":  {answering(200, `{"object":"list","data":null}`), "/v1", Found{Kind: OpenAI, URL: "/v1"}, ""},
		"only embeds":  {answering(200, `{"data":[{"id":""},{"id":"embed"}]}`), "/v1", Found{Kind: OpenAI, URL: "/v1", Models: []string{"embed"}, Model: "embed"}, ""},
		"a page":       {answering(200, `<html>`), "", Found{}, "no list of models"},
		"another list": {answering(200, `{"items":[]}`), "/v1", Found{}, "no list of models"},
		"not found":    {answering(404, ``), "", Found{}, "answered 404"},
		"redirect":     {answering(301, ``), "/v1", Found{}, "redirects"},
		"too long":     {answering(200, `{"data":[],"x":"`+strings.Repeat("x", 1000)+`"}`), "/v1", Found{}, "too long"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, tt.handler)
			got, err := Prober{Body: 500}.Guess(t.Context(), s.URL+tt.write)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) || !strings.Contains(err.Error(), s.URL) {
					t.Errorf("got %v, want an error with the address and %q", err, tt.err)
				}
				for _, asked := range s.asked() {
					if strings.Contains(asked, "elsewhere") {
						t.Error("a redirect was followed")
					}
				}
				return
			}
			tt.want.URL = s.URL + tt.want.URL
			if d := cmp.Diff(tt.want, got); d != "" || err != nil {
				t.Errorf("%v\n%s", err, d)
			}
		})
	}
}

// refuse carries no request, so a test that uses it opens no connection.
type refuse struct{ t *testing.T }

func (r refuse) RoundTrip(req *http.Request) (*http.Response, error) {
	r.t.Errorf("a request was sent: %s %s", req.Method, req.URL)
	return nil, errors.New("refused")
}

func TestGuessVendorIsNotAsked(t *testing.T) {
	for _, written := range []string{"https://api.openai.com", "https://api.openai.com/v1", "https://api.openai.com/v1/chat/completions"} {
		got, err := Guess(t.Context(), &http.Client{Transport: refuse{t}}, written)
		want := Found{Kind: OpenAI, URL: "https://api.openai.com/v1", NeedsKey: true}
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Errorf("%s: %v\n%s", written, err, d)
		}
	}
}

func TestGuessRefusesAddresses(t *testing.T) {
	for written, want := range map[string]string{
		"":                        "neither http nor https",
		"ftp://host":              "neither http nor https",
		"gateway.example:8080":    "neither http nor https",
		"http://":                 "names no host",
		"http://:8080/v1":         "names no host",
		"http://u:hunter2@host":   "holds a user",
		"http://host/v1?key=1":    "has a query",
		"http://host/v1#x":        "has a query",
		"http://u:hunter2@host:x": "cannot be read",
		"http://%zz":              "cannot be read",
	} {
		_, err := Guess(t.Context(), &http.Client{Transport: refuse{t}}, written)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: got %v, want %q", written, err, want)
		}
	}
}

func TestGuessWithoutScheme(t *testing.T) {
	s := serve(t, play(t, scripted.Options{Kind: scripted.Ollama}, "m"))
	got, err := Guess(t.Context(), nil, strings.TrimPrefix(s.URL, "http://"))
	if err != nil || got.URL != s.URL+"/v1" {
		t.Errorf("got %+v, %v", got, err)
	}
	for written, want := range map[string]bool{
		"localhost": true, "localhost:1/v1": true, "[::1]:1": true, "127.0.0.2": true, "10.0.0.1:1": false, "localhost.example": false, "": false,
	} {
		if onThisMachine(written) != want {
			t.Errorf("%q on this machine: want %v", written, want)
		}
	}
}

// TestGuessKeepsCookiesBack holds that a client's jar is not opened.
func TestGuessKeepsCookiesBack(t *testing.T) {
	s := serve(t, play(t, scripted.Options{}, "m"))
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Jar: jar{}}
	if _, err := Guess(t.Context(), client, s.URL); err != nil { // serve looks at the headers
		t.Error(err)
	}
	if client.Jar == nil || client.CheckRedirect != nil {
		t.Error("the caller's client was changed")
	}
}

type jar struct{}

func (jar) SetCookies(*url.URL, []*http.Cookie) {}
func (jar) Cookies(*url.URL) []*http.Cookie     { return []*http.Cookie{{Name: "session", Value: "1"}} }

func TestGuessEnds(t *testing.T) {
	s := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	if _, err := (Prober{Answer: time.Millisecond}).Guess(t.Context(), s.URL); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	closed := closedPort(t)
	if _, err := Guess(t.Context(), nil, "http://127.0.0.1:"+strconv.Itoa(closed)); err == nil || !strings.Contains(err.Error(), "start the server") {
		t.Errorf("got %v", err)
	}
}

func closedPort(t *testing.T) int {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().(*net.TCPAddr).Port
}

// TestLoopback holds the order, and that what is none of the kinds is left out.
func TestLoopback(t *testing.T) {
	vllm := serve(t, play(t, scripted.Options{Kind: scripted.VLLM}, "v"))
	ollama := serve(t, play(t, scripted.Options{Kind: scripted.Ollama}, "o"))
	other := serve(t, play(t, scripted.Options{Kind: scripted.OpenAI}, "x"))
	locked := serve(t, answering(401, `{}`))
	page := serve(t, answering(200, `<html>`))
	mute := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	p := Prober{Answer: 500 * time.Millisecond}
	for _, s := range []*server{mute, other, vllm, locked, page, ollama} {
		p.Places = append(p.Places, Place{LlamaCPP, s.port(t)})
	}
	p.Places = append(p.Places, Place{LMStudio, closedPort(t)})
	got := p.Loopback(t.Context())
	want := []Found{
		{Kind: VLLM, URL: vllm.URL + "/v1", Models: []string{"v"}, Model: "v"},
		{Kind: Ollama, URL: ollama.URL + "/v1", Models: []string{"o"}, Model: "o"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestLoopbackOfNothing(t *testing.T) {
	p := Prober{Places: []Place{{Ollama, closedPort(t)}}}
	if got := p.Loopback(t.Context()); len(got) != 0 {
		t.Errorf("got %v", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := Loopback(ctx, &http.Client{Transport: refuse{t}}); len(got) != 0 {
		t.Errorf("cancelled: got %v", got)
	}
}

func TestPlaces(t *testing.T) {
	want := []Place{{Ollama, 11434}, {LlamaCPP, 8080}, {LlamaCPP, 9931}, {LMStudio, 1234}, {VLLM, 8000}}
	if d := cmp.Diff(want, Places()); d != "" {
		t.Error(d)
	}
}

func TestHelp(t *testing.T) {
	for name, found := range map[string][]Found{
		"help-nothing": nil,
		"help-unusable": {
			{Kind: Ollama, URL: "http://127.0.0.1:11434/v1"},
			{Kind: LlamaCPP, URL: "http://127.0.0.1:8080/v1", Loading: true},
			{Kind: LMStudio, URL: "http://127.0.0.1:1234/v1"},
			{Kind: VLLM, URL: "http://127.0.0.1:8000/v1"},
		},
	} {
		golden := filepath.Join("testdata", name+".golden")
		got := Help(found)
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(want), got); d != "" {
			t.Errorf("(-want +got)\n%s", d)
		}
	}
}

func TestFoundSaysWhatItIs(t *testing.T) {
	for want, f := range map[string]Found{
		"Ollama at u, model m":                                  {Kind: Ollama, URL: "u", Model: "m"},
		"vLLM at u, without a model":                            {Kind: VLLM, URL: "u"},
		"llama.cpp at u, still loading its model":               {Kind: LlamaCPP, URL: "u", Loading: true},
		"an OpenAI-compatible endpoint at u, which needs a key": {Kind: OpenAI, URL: "u", NeedsKey: true},
	} {
		if got := f.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if f.Usable() != strings.Contains(want, "model m") {
			t.Errorf("%s: usable is %v", want, f.Usable())
		}
	}
}

func FuzzAddress(f *testing.F) {
	for _, s := range []string{"http://127.0.0.1:8080/v1", "localhost", "https://u:p@h/v1?x#y", "[::1]:1", "http://h//chat/completions/"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := parseAddress(text)
		if err != nil {
			return
		}
		for _, base := range append(a.bases(), a.root()) {
			u, err := url.Parse(base)
			if err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.HasSuffix(base, "/") || u.Host != a.host {
				t.Fatalf("%q gave the base %q: %v", text, base, err)
			}
		}
	})
}
