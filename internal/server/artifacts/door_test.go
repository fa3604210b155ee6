package artifacts_test

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/metier-run/metier/internal/access"
	"github.com/metier-run/metier/internal/server"
	"github.com/metier-run/metier/internal/server/artifacts"
	"github.com/metier-run/metier/internal/workspace/artifact"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const runID = "00000000000000ab"

// files are what the one launch of the rig has written.
func files() map[string]string {
	return map[string]string{
		"report.pdf": "%PDF-1.7 0123456789", "a b/é#?%.txt": "odd", "page.html": "<script>alert(1)</script>",
		"pic.svg": "<svg onload='alert(1)'/>", "x.xml": "<?xml-stylesheet href='x'?>", "x.js": "alert(1)", "x.xhtml": "<html/>",
		"noext": "<!doctype html><script>", "Makefile": "all:", "報告.PDF": "%PDF-", "DATA.CSV": "a,b", "-rf.txt": "", "say \"hi\"; x=.txt": "q",
	}
}

type rig struct {
	handler http.Handler
	store   *artifact.Store
	log     *strings.Builder
}

// newRig is a server with the door alone, over one run of anonymous or, with
// keys, of the first of them.
func newRig(t testing.TB, store artifacts.Store, keys *access.Keys) *rig {
	t.Helper()
	r := &rig{log: &strings.Builder{}}
	logger := slog.New(slog.NewTextHandler(r.log, nil))
	if store == nil {
		r.store = keep(t, "")
		store = r.store
	}
	door := artifacts.New(artifacts.Options{Store: store, Logger: logger})
	r.handler = server.New(server.Options{
		Doors: []server.Door{locked{door, keys}}, Logger: logger, NewID: func() string { return "x" }, Loopback: true,
	})
	return r
}

// keep captures the files for the holder of a key.
func keep(t testing.TB, keyID string) *artifact.Store {
	t.Helper()
	work, dir := t.TempDir(), t.TempDir()
	check(t, os.WriteFile(filepath.Join(dir, "secret.txt"), []byte("secret of the host"), 0o600))
	for name, text := range files() {
		p := filepath.Join(work, filepath.FromSlash(name))
		check(t, os.MkdirAll(filepath.Dir(p), 0o755))
		check(t, os.WriteFile(p, []byte(text), 0o644))
	}
	s, err := artifact.Open(artifact.Options{Dir: dir, NewID: func() string { return runID }})
	check(t, err)
	c, err := s.Capture(t.Context(), artifact.Owner(access.DefaultTenant, keyID), work, artifact.Snapshot{})
	check(t, err)
	if len(c.Files) != len(files()) {
		t.Fatalf("%+v", c)
	}
	return s
}

// locked asks for a key on every route, as the program does.
type locked struct {
	server.Door
	keys *access.Keys
}

func (l locked) Routes() map[string]http.Handler {
	routes := map[string]http.Handler{}
	for pattern, h := range l.Door.Routes() {
		routes[pattern] = access.Require(l.keys, h, l.Refuse)
	}
	return routes
}

// ask sends a request; header is pairs of names and values.
func (r *rig) ask(t testing.TB, method, path string, header ...string) *http.Response {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), method, "http://localhost/", nil)
	u, err := url.Parse("http://localhost" + path)
	check(t, err)
	req.URL = u
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	r.handler.ServeHTTP(w, req)
	return w.Result()
}

func body(t testing.TB, resp *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(resp.Body)
	check(t, err)
	return string(b)
}

const base = artifacts.Prefix + "/" + runID

// TestList: every file is listed, and its URL leads to it.
func TestList(t *testing.T) {
	r := newRig(t, nil, nil)
	for _, path := range []string{base, base + "/"} {
		resp := r.ask(t, "GET", path)
		var l artifacts.Listing
		check(t, json.Unmarshal([]byte(body(t, resp)), &l))
		if resp.StatusCode != http.StatusOK || l.RunID != runID || len(l.Files) != len(files()) {
			t.Fatalf("%s: %d %+v", path, resp.StatusCode, l)
		}
		got := map[string]string{}
		for _, f := range l.Files {
			got[f.Path] = body(t, r.ask(t, "GET", f.URL))
			if int64(len(got[f.Path])) != f.Bytes {
				t.Errorf("%s: %d bytes, said %d", f.Path, len(got[f.Path]), f.Bytes)
			}
			if f.Path == "a b/é#?%.txt" && f.URL != base+"/a%20b/%C3%A9%23%3F%25.txt" {
				t.Error(f.URL)
			}
		}
		if diff := cmp.Diff(files(), got); diff != "" {
			t.Error(diff)
		}
	}
	if got := body(t, r.ask(t, "GET", base)); !strings.HasPrefix(got, `{"runId":"`+runID+`","files":[{"path":"-rf.txt","bytes":0,"url":"`+base+`/-rf.txt"},`) {
		t.Error(got)
	}
}

// TestHeaders: a browser saves whatever it is, under a harmless name, and runs
// nothing of it.
func TestHeaders(t *testing.T) {
	r := newRig(t, nil, nil)
	const octets = "application/octet-stream"
	tests := []struct{ path, contentType, name string }{
		{"report.pdf", "application/pdf", "report.pdf"},
		{"a b/é#?%.txt", "text/plain; charset=utf-8", "download.txt"},
		{"page.html", octets, "page.html"},
		{"pic.svg", octets, "pic.svg"},
		{"x.xml", octets, "x.xml"},
		{"x.js", octets, "x.js"},
		{"x.xhtml", octets, "x.xhtml"},
		{"noext", octets, "noext"},
		{"Makefile", octets, "Makefile"},
		{"報告.PDF", "application/pdf", "download.PDF"},
		{"DATA.CSV", "text/csv; charset=utf-8", "DATA.CSV"},
		{"-rf.txt", "text/plain; charset=utf-8", "rf.txt"},
		{"say \"hi\"; x=.txt", "text/plain; charset=utf-8", "sayhix.txt"},
	}
	for _, tt := range tests {
		for _, method := range []string{"GET", "HEAD"} {
			resp := r.ask(t, method, artifact.URL(artifacts.Prefix, runID, tt.path))
			want := map[string]string{
				"Content-Type": tt.contentType, "Content-Disposition": `attachment; filename="` + tt.name + `"`,
				"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "sandbox; default-src 'none'",
				"Cache-Control": "private, no-store", "Cross-Origin-Resource-Policy": "same-origin", "Accept-Ranges": "bytes",
			}
			got := map[string]string{}
			for name := range want {
				got[name] = resp.Header.Get(name)
			}
			if diff := cmp.Diff(want, got); resp.StatusCode != http.StatusOK || diff != "" {
				t.Errorf("%s %s: %d %s", method, tt.path, resp.StatusCode, diff)
			}
			if text := body(t, resp); method == "HEAD" && text != "" || method == "GET" && text != files()[tt.path] {
				t.Errorf("%s %s: %q", method, tt.path, text)
			}
		}
	}
}

// TestRanges: a download that broke off goes on where it was.
func TestRanges(t *testing.T) {
	r := newRig(t, nil, nil)
	path := base + "/report.pdf"
	tag := r.ask(t, "HEAD", path).Header.Get("ETag")
	if !strings.HasPrefix(tag, `"`+runID) || tag == r.ask(t, "HEAD", base+"/x.js").Header.Get("ETag") {
		t.Errorf("the tag is %s", tag)
	}
	tests := []struct {
		header []string
		status int
		body   string
	}{
		{[]string{"Range", "bytes=9-12"}, 206, "0123"},
		{[]string{"Range", "bytes=-3"}, 206, "789"},
		{[]string{"Range", "bytes=15-", "If-Range", tag}, 206, "6789"},
		{[]string{"Range", "bytes=15-", "If-Range", `"other"`}, 200, files()["report.pdf"]},
		{[]string{"If-None-Match", tag}, 304, ""},
		{[]string{"If-Match", `"other"`}, 412, ""},
	}
	for _, tt := range tests {
		resp := r.ask(t, "GET", path, tt.header...)
		if text := body(t, resp); resp.StatusCode != tt.status || text != tt.body {
			t.Errorf("%v: %d %q", tt.header, resp.StatusCode, text)
		}
	}
	resp := r.ask(t, "GET", path, "Range", "bytes=100-")
	if resp.StatusCode != http.StatusRequestedRangeNotSatisfiable || resp.Header.Get("Content-Range") != "bytes */19" || resp.Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%d %v", resp.StatusCode, resp.Header)
	}
}

func TestRefusals(t *testing.T) {
	r := newRig(t, nil, nil)
	gone := `{"error":"there are no such files: they are kept for a time only, and for the caller whose launch wrote them"}`
	tests := []struct {
		method, path string
		status       int
		body         string
	}{
		{"GET", artifacts.Prefix + "/ffffffffffffffff", 404, gone},
		{"GET", artifacts.Prefix + "/ffffffffffffffff/report.pdf", 404, gone},
		{"GET", artifacts.Prefix + "/..%2f" + runID, 404, gone},
		{"GET", artifacts.Prefix + "/secret.txt", 404, gone},
		{"GET", base + "/gone", 404, gone},
		{"GET", base + "/a%20b", 404, gone},
		{"GET", base + "/..%2frun.json", 400, ""},
		{"GET", base + "/..%2f..%2fsecret.txt", 400, ""},
		{"GET", base + "/%2e%2e%2frun.json", 400, ""},
		{"GET", base + "/%2fetc%2fpasswd", 400, ""},
		{"GET", base + "/a%00", 400, ""},
		{"GET", base + "/a%5cb", 400, ""},
		{"GET", base + "/%ff", 400, ""},
		{"GET", artifacts.Prefix + "/%ff", 404, gone},
		{"PUT", base + "/%ff", 405, ""},
		{"GET", artifacts.Prefix, 404, `{"error":"there is nothing at GET /api/code/artifacts"}`},
		{"POST", base, 405, ""},
		{"DELETE", base, 405, ""},
		{"PUT", base + "/report.pdf", 405, `{"error":"/api/code/artifacts/` + runID + `/report.pdf does not take PUT: use GET, HEAD"}`},
	}
	for _, tt := range tests {
		resp := r.ask(t, tt.method, tt.path)
		text := body(t, resp)
		if resp.StatusCode != tt.status || tt.body != "" && text != tt.body || !strings.HasPrefix(text, `{"error":"`) {
			t.Errorf("%s %s: %d %s", tt.method, tt.path, resp.StatusCode, text)
		}
		if allow := resp.Header.Get("Allow"); (tt.status == 405) != (allow == "GET, HEAD") {
			t.Errorf("%s %s: Allow %q", tt.method, tt.path, allow)
		}
	}
}

// TestKeys: a run is there for the key whose launch wrote it, and for no other.
func TestKeys(t *testing.T) {
	keys, err := access.New([]access.Key{{ID: "ann", Hash: [32]byte{1}}, {ID: "bob", Hash: [32]byte{2}}})
	check(t, err)
	store := keep(t, "ann")
	unlocked := artifacts.New(artifacts.Options{Store: store, Logger: slog.New(slog.DiscardHandler)})
	mux := http.NewServeMux()
	for pattern, h := range unlocked.Routes() {
		mux.Handle(pattern, h)
	}
	for id, want := range map[string]int{"ann": 200, "bob": 404, "": 404, "ANN": 404} {
		for _, path := range []string{base, base + "/report.pdf"} {
			req := httptest.NewRequestWithContext(access.WithCaller(t.Context(), access.Caller{ID: id, Tenant: access.DefaultTenant}), "GET", path, nil)
			w := httptest.NewRecorder()
			mux.ServeHTTP(w, req)
			if w.Code != want {
				t.Errorf("%q %s: %d", id, path, w.Code)
			}
		}
	}
	r := newRig(t, store, keys)
	for _, path := range []string{base, base + "/report.pdf"} {
		if resp := r.ask(t, "GET", path); resp.StatusCode != http.StatusUnauthorized || !strings.Contains(body(t, resp), `{"error":"`) {
			t.Errorf("%s without a key: %d", path, resp.StatusCode)
		}
	}
}

func TestTurnedOff(t *testing.T) {
	door := artifacts.New(artifacts.Options{Logger: slog.New(slog.DiscardHandler)})
	r := &rig{handler: server.New(server.Options{
		Doors: []server.Door{door}, Logger: slog.New(slog.DiscardHandler), NewID: func() string { return "x" }, Loopback: true,
	})}
	for _, path := range []string{base, base + "/", base + "/report.pdf", base + "/..%2fx"} {
		resp := r.ask(t, "GET", path)
		if text := body(t, resp); resp.StatusCode != http.StatusNotFound || !strings.Contains(text, "--skills-allow-exec") {
			t.Errorf("%s: %d %s", path, resp.StatusCode, text)
		}
	}
}

// broken is a store whose disk fails.
type broken struct{}

func (broken) List(string, string) (artifact.Run, error) {
	return artifact.Run{}, errors.New("read /srv/host/path: input/output error")
}

func (broken) Open(string, string, string) (*os.File, artifact.File, error) {
	return nil, artifact.File{}, errors.New("open /srv/host/path: input/output error")
}

// TestFailures: what fails in the host is told to its log and not to the caller.
func TestFailures(t *testing.T) {
	r := newRig(t, broken{}, nil)
	for _, path := range []string{base, base + "/a"} {
		resp := r.ask(t, "GET", path)
		if text := body(t, resp); resp.StatusCode != http.StatusInternalServerError || strings.Contains(text, "/srv") || !strings.Contains(text, `{"error":`) {
			t.Errorf("%s: %d %s", path, resp.StatusCode, text)
		}
	}
	if !strings.Contains(r.log.String(), "/srv/host/path") {
		t.Errorf("the log says %s", r.log)
	}
}

// FuzzPath: whatever is asked below the prefix, nothing but the run's files comes
// back, in a form that no browser runs.
func FuzzPath(f *testing.F) {
	r := newRig(f, nil, nil)
	for _, path := range []string{
		"report.pdf", "..%2f..%2fsecret.txt", "../../secret.txt", "%2e%2e/%2e%2e/secret.txt", "%252e%252e%252fsecret.txt",
		"..%5c..%5csecret.txt", "....//secret.txt", "/etc/passwd", "%00", "a%20b/%C3%A9%23%3F%25.txt", "a%0d%0aSet-Cookie:x", ";", "?x", "report.pdf/", "%ff",
	} {
		f.Add(runID + "/" + path)
		f.Add(path)
		f.Add(path + "/" + runID)
	}
	have := map[string]bool{}
	for _, text := range files() {
		have[text] = true
	}
	f.Fuzz(func(t *testing.T, path string) {
		u, err := url.Parse("http://localhost" + artifacts.Prefix + "/" + path)
		if err != nil || u.Host != "localhost" {
			return
		}
		req := httptest.NewRequestWithContext(t.Context(), "GET", "http://localhost/", nil)
		req.URL = u
		w := httptest.NewRecorder()
		r.handler.ServeHTTP(w, req)
		text, listing := w.Body.String(), strings.HasPrefix(w.Body.String(), `{"runId":"`+runID)
		switch w.Code {
		case http.StatusOK:
			down := strings.HasPrefix(w.Header().Get("Content-Disposition"), "attachment;") && have[text]
			if !listing && !down {
				t.Errorf("%s: %v %q", path, w.Header(), text)
			}
		case http.StatusNotFound, http.StatusBadRequest, http.StatusMovedPermanently, http.StatusTemporaryRedirect:
		default:
			t.Errorf("%s: %d", path, w.Code)
		}
		if strings.Contains(text, "secret of the host") || strings.Contains(w.Header().Get("Content-Type"), "html") && w.Code == http.StatusOK {
			t.Errorf("%s: %v %q", path, w.Header(), text)
		}
	})
}
