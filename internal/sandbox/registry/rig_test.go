package registry

import (
	"bytes"
	"context"
	"flag"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/metier-run/metier/internal/config"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// asked is one request that a server of a test got.
type asked struct{ host, path, auth string }

// world is an internet of one listener: every name leads to it, and it answers by name
// and path.
type world struct {
	*httptest.Server
	mu    sync.Mutex
	asked []asked
	pages map[string]http.HandlerFunc // by "host/path"
	log   bytes.Buffer
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{pages: map[string]http.HandlerFunc{}}
	w.Server = httptest.NewUnstartedServer(w)
	w.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	w.Start()
	t.Cleanup(w.Close)
	return w
}

func (w *world) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	w.asked = append(w.asked, asked{r.Host, r.URL.EscapedPath(), r.Header.Get("Authorization")})
	page := w.pages[r.Host+r.URL.Path]
	w.mu.Unlock()
	if page == nil {
		http.NotFound(out, r)
		return
	}
	page(out, r)
}

// text makes a page that answers with a text.
func text(kind, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = io.WriteString(w, body)
	}
}

func (w *world) requests() []asked {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]asked(nil), w.asked...)
}

// LookupNetIP finds every name at a public address, but for those that say otherwise.
func (w *world) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	if strings.HasPrefix(host, "private") {
		return []netip.Addr{netip.MustParseAddr("10.1.2.3")}, nil
	}
	return []netip.Addr{netip.MustParseAddr("1.2.3.4")}, nil
}

// read makes settings of an environment and files.
func read(t testing.TB, environ []string, files map[string]string) Settings {
	t.Helper()
	s, err := ReadSettings(Surroundings{Environ: environ, Home: "/home/op", System: "linux", ReadFile: reading(files)})
	check(t, err)
	return s
}

func reading(files map[string]string) func(string) ([]byte, error) {
	return func(path string) ([]byte, error) {
		if data, ok := files[path]; ok {
			return []byte(data), nil
		}
		return nil, os.ErrNotExist
	}
}

// stand is a session that is served, and how to ask it.
type stand struct {
	*Session
	addr string
}

func (w *world) options(s Settings) Options {
	return Options{
		Settings: s, Resolver: w, Logger: slog.New(slog.NewTextHandler(&w.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, w.Listener.Addr().String())
		},
	}
}

func (w *world) open(t testing.TB, kind Kind, o Options) stand {
	t.Helper()
	f, err := New(o)
	check(t, err)
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	check(t, err)
	s := f.Session(kind)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); s.Serve(ctx, l) }()
	t.Cleanup(func() { cancel(); <-done; f.Close() })
	return stand{s, l.Addr().String()}
}

// get asks for a path below the token.
func (s stand) get(t testing.TB, path string) (int, string, error) {
	t.Helper()
	if !strings.HasPrefix(path, "/") {
		path = "/" + s.token + "/" + path
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + s.addr + path)
	check(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body), err
}

// hrefs are the targets of a page's links, without their fragments.
func hrefs(page string) []string {
	var all []string
	for _, attributes := range tags(page) {
		at, _, _ := strings.Cut(attributes["href"], "#")
		all = append(all, at)
	}
	return all
}

func limit(t testing.TB, name config.Name, value int64) config.Values {
	t.Helper()
	v, err := config.Values{}.Set(name, value)
	check(t, err)
	return v
}

// newTLS serves a world under the name example.com.
func newTLS(w *world) *httptest.Server {
	s := httptest.NewUnstartedServer(w)
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	s.StartTLS()
	return s
}

var update = flag.Bool("update", false, "write the golden files")

func golden(t testing.TB, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		check(t, os.MkdirAll("testdata", 0o755))
		check(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	check(t, err)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s: %s", name, diff)
	}
}
