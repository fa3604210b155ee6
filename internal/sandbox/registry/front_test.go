package registry

import (
	"compress/gzip"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/config"
)

func mustURL(t testing.TB, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	check(t, err)
	return u
}

func sum(text string) string {
	h := sha256.Sum256([]byte(text))
	return hex.EncodeToString(h[:])
}

const wheel = "demo-1.0-py3-none-any.whl"

// secret is in every credential of these tests. It must appear nowhere.
const secret = "s3cretword"

// operator has an index with a credential, and a registry with another.
func operator(t testing.TB) Settings {
	t.Helper()
	return read(t, []string{"PIP_INDEX_URL=http://me:" + secret + "@index.test/simple"}, map[string]string{
		"/home/op/.npmrc": "registry=http://npm.test/\n//npm.test/:_authToken=tok-" + secret + "\n",
	})
}

// silent checks that no secret got out: not to the installer, not to the log.
func (w *world) silent(t testing.TB, bodies ...string) {
	t.Helper()
	if all := strings.Join(bodies, "\n") + w.log.String(); strings.Contains(all, secret) {
		t.Errorf("a secret got out: %s", all)
	}
}

func basic(user, word string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+word))
}

// TestPage: what an index says in either form, the installer gets as HTML with links
// that lead back, wheels only.
func TestPage(t *testing.T) {
	html := `<!-- <a href="no-1-py3-none-any.whl">commented</a> --><BASE href="http://index.test/files/"><a href='` + wheel + `#sha256=` + sum("x") + `' data-requires-python="&gt;=3.8" data-dist-info-metadata="sha256=` + sum("m") + `" data-yanked="bad &amp; old">x</a>
<a href=demo-1.0.tar.gz>sdist</a><a name=nothing>no</a><a href="http://files.index.test/d/demo-2.0-py3-none-any.whl">two</a><a href="../../etc/passwd">up</a>
<a href="javascript:alert(1)//` + wheel + `">js</a><a href="file:///etc/` + wheel + `">file</a><a href="%2e%2e%2f` + wheel + `">dots</a>`
	page := `{"meta":{"api-version":"1.1"},"name":"demo","files":[
 {"filename":"` + wheel + `","url":"/files/` + wheel + `","hashes":{"md5":"00","sha256":"` + sum("x") + `"},"requires-python":">=3.8","core-metadata":{"sha256":"` + sum("m") + `"},"yanked":"bad & old"},
 {"filename":"demo-1.0.tar.gz","url":"/files/demo-1.0.tar.gz","hashes":{}},
 {"filename":"demo-2.0-py3-none-any.whl","url":"http://files.index.test/d/demo-2.0-py3-none-any.whl","hashes":{},"yanked":false},
 {"filename":"../x-1-py3-none-any.whl","url":"/files/x","hashes":{}},{"filename":"` + wheel + `","url":"","hashes":{}}]}`
	for kind, body := range map[string]string{"text/html; charset=utf-8": html, simpleHTML: html, simpleJSON: page} {
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t)
			w.pages["index.test/simple/demo/"] = text(kind, body)
			s := w.open(t, Pip, w.options(operator(t)))
			status, got, err := s.get(t, "pip/0/Demo/")
			check(t, err)
			if status != 200 {
				t.Fatalf("%d %s", status, got)
			}
			want := `#sha256=` + sum("x") + `" data-requires-python="&gt;=3.8" data-dist-info-metadata="sha256=` + sum("m") + `" data-core-metadata="sha256=` + sum("m") + `" data-yanked="bad &amp; old">` + wheel + `</a>`
			if !strings.Contains(got, want) || strings.Contains(got, "tar.gz") || strings.Contains(got, "index.test") || strings.Contains(got, "..") || strings.Contains(got, "commented") {
				t.Error(got)
			}
			for _, at := range hrefs(got) {
				if !strings.HasPrefix(at, "/"+s.token+"/file/") {
					t.Errorf("a link leads to %s", at)
				}
			}
			if p := s.Report().Projects["demo"]; !p.Found || p.Sources != 1 || p.Wheels < 2 {
				t.Errorf("%+v", p)
			}
			if r := w.requests(); len(r) != 1 || r[0].auth != basic("me", secret) || r[0].path != "/simple/demo/" {
				t.Errorf("%+v", r)
			}
			w.silent(t, got)
		})
	}
}

// TestFiles: files come from hosts that are listed, with the credential of their own
// origin and no other, whole or not at all.
func TestFiles(t *testing.T) {
	good := strings.Repeat("wheel", 60_000)
	w := newWorld(t)
	page := func(links ...string) http.HandlerFunc {
		return text("text/html", `<a href="`+strings.Join(links, `">x</a><a href="`)+`">x</a>`)
	}
	w.pages["index.test/simple/demo/"] = page(
		"/files/"+wheel+"#sha256="+sum(good), "http://files.test/"+wheel+"#sha256="+sum(good), "http://files.test/bad/"+wheel+"#sha256="+sum("other"),
		"http://elsewhere.test/"+wheel, "http://private.wild.test/"+wheel, "http://files.test/cut/"+wheel, "http://files.test/long/"+wheel,
		"http://files.test/gone/"+wheel, "http://files.test/login/"+wheel, "http://files.test/down/"+wheel, "http://169.254.169.254/"+wheel,
	)
	for _, at := range []string{"index.test/files/", "files.test/"} {
		w.pages[at+wheel] = text("application/zip", good)
	}
	w.pages["files.test/bad/"+wheel] = text("application/zip", good)
	w.pages["files.test/cut/"+wheel] = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "500000")
		_, _ = io.WriteString(w, good)
	}
	w.pages["files.test/long/"+wheel] = func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, good); err != nil {
				return
			}
		}
	}
	for at, status := range map[string]int{"login": 401, "down": 503} {
		w.pages["files.test/"+at+"/"+wheel] = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
	}
	o := w.options(operator(t))
	o.Domains = []string{"index.test, files.test *.wild.test"}
	o.Limits = limit(t, config.RegistryFile, 1<<20)
	s := w.open(t, Pip, o)
	_, body, err := s.get(t, "pip/0/demo/")
	check(t, err)
	want := []struct {
		reason Reason
		status int
		host   string
	}{
		{"", 200, ""},
		{"", 200, ""},
		{Mismatch, 200, "files.test"},
		{NotAllowed, 403, "elsewhere.test"},
		{NotAllowed, 403, "private.wild.test"},
		{Cut, 200, "files.test"},
		{TooLarge, 200, "files.test"},
		{Missing, 404, "files.test"},
		{Denied, 403, "files.test"},
		{Failing, 503, "files.test"},
		{NotAllowed, 403, "169.254.169.254"},
	}
	for i, at := range hrefs(body) {
		before := len(s.Report().Troubles)
		status, got, err := s.get(t, at)
		troubles := s.Report().Troubles[before:]
		switch {
		case status != want[i].status:
			t.Errorf("%d: status %d: %.200s", i, status, got)
		case want[i].reason == "":
			if err != nil || got != good || len(troubles) > 0 {
				t.Errorf("%d: %d bytes, %v, %v", i, len(got), err, troubles)
			}
		case len(troubles) != 1 || troubles[0].Reason != want[i].reason || troubles[0].Host != want[i].host || troubles[0].What != wheel:
			t.Errorf("%d: %+v", i, troubles)
		case status == 200 && (err == nil || len(got) >= len(good) && want[i].reason != TooLarge):
			t.Errorf("%d: %d bytes of a file that is not good, %v", i, len(got), err)
		case status == 403 && want[i].reason == NotAllowed && !strings.Contains(got, "--code-exec-install-domains"):
			t.Errorf("%d: %s", i, got)
		}
		w.silent(t, got)
	}
	for _, r := range w.requests() {
		if (r.auth != "") != (r.host == "index.test") {
			t.Errorf("%+v", r)
		}
		if r.host == "elsewhere.test" || r.host == "private.wild.test" || r.host == "169.254.169.254" {
			t.Errorf("%s was asked", r.host)
		}
	}
}

// TestRedirects: a redirect is followed to listed hosts only, and takes no credential
// along.
func TestRedirects(t *testing.T) {
	tests := []struct {
		to     string
		want   int
		reason Reason
	}{
		{"http://files.test/simple/demo/", 200, ""},
		{"/simple/other/", 200, ""},
		{"http://elsewhere.test/", 403, NotAllowed},
		{"http://127.0.0.1:1/", 403, NotAllowed},
		{"http://[::1]/", 403, NotAllowed},
		{"file:///etc/passwd", 403, NotAllowed},
		{"http://private.wild.test/", 403, NotAllowed},
		{"/simple/demo/", 502, Broken},
		{"", 502, Broken},
		{"http://%zz/", 502, Broken},
	}
	for _, tt := range tests {
		t.Run(tt.to, func(t *testing.T) {
			w := newWorld(t)
			w.pages["index.test/simple/demo/"] = func(w http.ResponseWriter, _ *http.Request) {
				if tt.to != "" {
					w.Header().Set("Location", tt.to)
				}
				w.WriteHeader(http.StatusFound)
			}
			for _, at := range []string{"files.test/simple/demo/", "index.test/simple/other/"} {
				w.pages[at] = text("text/html", `<a href="`+wheel+`">x</a>`)
			}
			o := w.options(operator(t))
			o.Domains = []string{"index.test", "files.test", "*.wild.test"}
			s := w.open(t, Pip, o)
			status, body, err := s.get(t, "pip/0/demo/")
			check(t, err)
			if _, ok := s.Report().First(tt.reason); status != tt.want || ok != (tt.reason != "") {
				t.Errorf("%d %s %+v", status, body, s.Report())
			}
			for _, r := range w.requests() {
				if r.host != "index.test" && r.auth != "" {
					t.Errorf("%s got a credential", r.host)
				}
			}
			w.silent(t, body)
		})
	}
}

// TestBadPages: a page that is none, or too much, is refused in bounded memory.
func TestBadPages(t *testing.T) {
	bomb := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		for range 8 {
			if _, err := z.Write(make([]byte, 1<<20)); err != nil || r.Context().Err() != nil {
				return
			}
		}
		_ = z.Close()
	}
	endless := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 1<<16)); err != nil {
				return
			}
		}
	}
	tests := map[string]struct {
		page   http.HandlerFunc
		status int
		reason Reason
	}{
		"wrong kind": {text("image/png", "x"), 502, Broken},
		"no kind": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = nil
			_, _ = w.Write([]byte("x"))
		}, 502, Broken},
		"no JSON":      {text(simpleJSON, "{"), 502, Broken},
		"other JSON":   {text(simpleJSON, `{"message":"hello"}`), 502, Broken},
		"gzip bomb":    {bomb, 403, TooLarge},
		"endless":      {endless, 403, TooLarge},
		"many links":   {text("text/html", strings.Join(many(20_000), "")), 403, TooLarge},
		"missing":      {http.NotFound, 404, ""},
		"login":        {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) }, 403, Denied},
		"server error": {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no "+secret, 500) }, 503, Failing},
		"teapot":       {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(418) }, 502, Broken},
		"half": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.Header().Set("Content-Length", "99")
			_, _ = w.Write([]byte("x"))
		}, 502, Cut},
		"hung up": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 503, Unreachable},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.pages["index.test/simple/demo/"] = tt.page
			o := w.options(operator(t))
			o.Limits = limit(t, config.RegistryPage, 1<<20)
			s := w.open(t, Pip, o)
			status, body, err := s.get(t, "pip/0/demo/")
			check(t, err)
			if _, ok := s.Report().First(tt.reason); status != tt.status || ok != (tt.reason != "") {
				t.Errorf("%d %.200s %+v", status, body, s.Report())
			}
			w.silent(t, body)
		})
	}
}

// many are links that are all different, in less than 1 MiB; what is kept of them is more.
func many(n int) []string {
	links := make([]string, n)
	for i := range links {
		links[i] = fmt.Sprintf("<a href=/%d/%s>", i, wheel)
	}
	return links
}

// TestPackument: the files of a package lead back, its hash is checked here as well, and
// scopes have registries of their own.
func TestPackument(t *testing.T) {
	tarball := strings.Repeat("tgz", 40_000)
	h := sha512.Sum512([]byte(tarball))
	good, bad := "sha512-"+base64.StdEncoding.EncodeToString(h[:]), "sha512-"+base64.StdEncoding.EncodeToString(make([]byte, 64))
	version := func(url, integrity string) string {
		return `{"name":"x","bin":{"x":"x.js"},"dist":{"tarball":"` + url + `","integrity":"` + integrity + `","fileCount":3}}`
	}
	w := newWorld(t)
	w.pages["npm.test/left-pad"] = text("application/json", `{"name":"left-pad","dist-tags":{"latest":"1.0.0"},"versions":{"1.0.0":`+version("http://npm.test/left-pad/-/l.tgz", good)+`,"2.0.0":`+version("http://npm.test/left-pad/-/l.tgz", bad)+`,"3.0.0":`+version("git+ssh://x", "")+`,"4.0.0":{"dist":{}},"5.0.0":{}}}`)
	w.pages["npm.test/left-pad/-/l.tgz"] = text("application/octet-stream", tarball)
	w.pages["corp.test/n/@corp/a"] = text("application/json", `{"versions":{"1.0.0":`+version("a.tgz", "")+`}}`)
	w.pages["npm.test/broken"] = text("application/json", `[]`)
	settings := read(t, nil, map[string]string{"/home/op/.npmrc": "registry=http://npm.test/\n//npm.test/:_authToken=tok-" + secret + "\n@corp:registry=http://corp.test/n\n//corp.test/n/:_authToken=corp-" + secret + "\n//corp.test/other/:_authToken=other-" + secret})
	s := w.open(t, Npm, w.options(settings))
	_, body, err := s.get(t, "npm/left-pad")
	check(t, err)
	var page struct {
		Tags     map[string]string `json:"dist-tags"`
		Versions map[string]struct {
			Bin  map[string]string `json:"bin"`
			Dist struct {
				Tarball string `json:"tarball"`
				Files   int    `json:"fileCount"`
			} `json:"dist"`
		} `json:"versions"`
	}
	check(t, json.Unmarshal([]byte(body), &page))
	if len(page.Versions) != 3 || page.Tags["latest"] != "1.0.0" || page.Versions["1.0.0"].Bin["x"] != "x.js" || page.Versions["1.0.0"].Dist.Files != 3 {
		t.Fatal(body)
	}
	base := "http://" + s.addr
	for v, want := range map[string]Reason{"1.0.0": "", "2.0.0": Mismatch, "3.0.0": NotAllowed} {
		at, ok := strings.CutPrefix(page.Versions[v].Dist.Tarball, base)
		if !ok {
			t.Fatal(page.Versions[v].Dist.Tarball)
		}
		status, got, err := s.get(t, at)
		if _, seen := s.Report().First(want); seen != (want != "") || want == "" && (got != tarball || err != nil) || want == Mismatch && status == 200 {
			t.Errorf("%s: %d bytes, %v, %+v", v, len(got), err, s.Report())
		}
	}
	status, _, err := s.get(t, "npm/@corp%2fa")
	check(t, err)
	if two, _, _ := s.get(t, "npm/@corp/a"); status != 200 || two != 200 {
		t.Errorf("%d, %d", status, two)
	}
	if status, _, _ := s.get(t, "npm/broken"); status != 502 {
		t.Error(status)
	}
	for _, r := range w.requests() {
		want := "Bearer tok-" + secret
		if r.host == "corp.test" {
			want = "Bearer corp-" + secret
		}
		if r.auth != want || strings.Contains(r.path, "@corp") && r.path != "/n/@corp%2fa" {
			t.Errorf("%+v", r)
		}
	}
	w.silent(t, body)
}

// TestForeignPaths: nothing is served that no page has named, and nobody without the
// token.
func TestForeignPaths(t *testing.T) {
	w := newWorld(t)
	s := w.open(t, Pip, w.options(operator(t)))
	for _, path := range []string{
		"/", "/pip/0/demo/", "/wrong/pip/0/demo/", "pip/1/demo/", "pip/-1/demo/", "pip/x/demo/", "pip/0/a%2fb/", "pip/0/%2e%2e/", "pip/0/-x/", "npm/left-pad",
		"file/000000000000000000000000/" + wheel, "links/0/", "dir/0/" + wheel, "pip/0/", "file", "pip/0/demo/" + wheel,
	} {
		if status, body, err := s.get(t, path); status != 404 || err != nil {
			t.Errorf("%s: %d %s %v", path, status, body, err)
		}
	}
	if r := w.requests(); len(r) != 0 {
		t.Errorf("%+v", r)
	}
	resp, err := http.Post("http://"+s.addr+"/"+s.token+"/pip/0/demo/", "text/plain", nil)
	check(t, err)
	_ = resp.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	if resp.StatusCode != 405 {
		t.Error(resp.Status)
	}
}

// TestFindLinks: a directory of the host shows its wheels and nothing else.
func TestFindLinks(t *testing.T) {
	dir := t.TempDir()
	for name, body := range map[string]string{wheel: "w", "demo-1.0.tar.gz": "s", "notes.txt": "n"} {
		check(t, os.WriteFile(filepath.Join(dir, name), []byte(body), 0o600))
	}
	outside := filepath.Join(t.TempDir(), "x")
	check(t, os.WriteFile(outside, []byte(secret), 0o600))
	leak := "leak-1.0-py3-none-any.whl"
	check(t, os.Symlink(outside, filepath.Join(dir, leak)))
	w := newWorld(t)
	w.pages["l.test/page.html"] = text("text/html", `<a href="`+wheel+`">x</a><a href="x.zip">`)
	s := w.open(t, Pip, w.options(read(t, []string{"PIP_NO_INDEX=1", "PIP_FIND_LINKS=" + dir + " http://l.test/page.html /none"}, nil)))
	_, body, err := s.get(t, "links/0/")
	check(t, err)
	if got := hrefs(body); len(got) != 2 || !strings.HasSuffix(got[0], "/"+wheel) {
		t.Error(body)
	}
	if _, got, _ := s.get(t, "dir/0/"+wheel); got != "w" {
		t.Error(got)
	}
	for _, name := range []string{"notes.txt", "demo-1.0.tar.gz", leak, "..%2f" + wheel} {
		if status, got, _ := s.get(t, "dir/0/"+name); status != 404 || strings.Contains(got, secret) {
			t.Errorf("%s: %d %s", name, status, got)
		}
	}
	if _, body, _ := s.get(t, "links/1/"); len(hrefs(body)) != 1 {
		t.Error(body)
	}
	if status, body, _ := s.get(t, "links/2/"); status != 200 || len(hrefs(body)) != 0 {
		t.Error(status, body)
	}
	want := []string{"PIP_NO_INDEX=1", "PIP_FIND_LINKS=http://127.0.0.1:3128/T/links/0/ http://127.0.0.1:3128/T/links/1/ http://127.0.0.1:3128/T/links/2/"}
	env := s.Environ("")
	for i := range env {
		env[i] = strings.ReplaceAll(env[i], s.token, "T")
	}
	if diff := cmp.Diff(want, env); diff != "" {
		t.Error(diff)
	}
}

// TestMetadata: a wheel's metadata is checked by its own hash and bounded as a page.
func TestMetadata(t *testing.T) {
	w := newWorld(t)
	w.pages["index.test/simple/demo/"] = text("text/html", `<a href="/f/`+wheel+`" data-core-metadata="sha256=`+sum("meta")+`">x</a><a href="/g/`+wheel+`" data-core-metadata="sha256=`+sum("other")+`">x</a><a href="/h/`+wheel+`">x</a>`)
	for _, at := range []string{"f", "g", "h"} {
		w.pages["index.test/"+at+"/"+wheel+".metadata"] = text("text/plain", "meta")
	}
	s := w.open(t, Pip, w.options(operator(t)))
	_, body, err := s.get(t, "pip/0/demo/")
	check(t, err)
	at := hrefs(body)
	if _, got, err := s.get(t, at[0]+".metadata"); got != "meta" || err != nil {
		t.Error(got, err)
	}
	if status, got, _ := s.get(t, at[1]+".metadata"); status != 502 {
		t.Errorf("%q is handed over", got)
	}
	if status, _, _ := s.get(t, at[2]+".metadata"); status != 404 {
		t.Error(status)
	}
}

// TestCertificates: the operator's own certificates count, and nothing less unless the
// operator says so.
func TestCertificates(t *testing.T) {
	w := &world{pages: map[string]http.HandlerFunc{}}
	w.pages["example.com/simple/demo/"] = text("text/html", `<a href="`+wheel+`">x</a>`)
	w.Server = newTLS(w)
	defer w.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	check(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: w.Certificate().Raw}), 0o600))
	index := "PIP_INDEX_URL=https://example.com/simple"
	for name, tt := range map[string]struct {
		environ []string
		want    int
	}{
		"system's":     {[]string{index}, 403},
		"PIP_CERT":     {[]string{index, "PIP_CERT=" + ca}, 200},
		"requests":     {[]string{index, "REQUESTS_CA_BUNDLE=" + ca}, 200},
		"SSL":          {[]string{index, "SSL_CERT_FILE=" + ca}, 200},
		"trusted host": {[]string{index, "PIP_TRUSTED_HOST=example.com"}, 200},
		"another host": {[]string{index, "PIP_TRUSTED_HOST=example.org"}, 403},
	} {
		t.Run(name, func(t *testing.T) {
			s := w.open(t, Pip, w.options(read(t, tt.environ, nil)))
			status, body, err := s.get(t, "pip/0/demo/")
			check(t, err)
			if status != tt.want {
				t.Errorf("%d %s", status, body)
			}
			if _, ok := s.Report().First(Untrusted); ok != (tt.want == 403) {
				t.Errorf("%+v", s.Report())
			}
		})
	}
	for _, bad := range []string{filepath.Join(t.TempDir(), "none"), os.DevNull} {
		if _, err := New(Options{Settings: read(t, []string{"PIP_CERT=" + bad}, nil)}); err == nil {
			t.Errorf("%s is taken for certificates", bad)
		}
	}
	// From here the page leads out of the encrypted.
	w.pages["example.com/simple/demo/"] = func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://example.com:443/x", http.StatusFound)
	}
	s := w.open(t, Pip, w.options(read(t, []string{index, "PIP_CERT=" + ca}, nil)))
	if status, body, _ := s.get(t, "pip/0/demo/"); status != 403 {
		t.Errorf("%d %s", status, body)
	}
}

func TestHosts(t *testing.T) {
	files := companion(strings.TrimSuffix(strings.TrimPrefix(publicIndex(), "https://"), "/simple"))
	if files == "" {
		t.Fatal("the public index has no host of files")
	}
	tests := []struct {
		domains []string
		allowed []string
		refused []string
	}{
		{nil, []string{publicIndex(), publicRegistry(), "https://" + files + "/x"}, []string{"https://example.com", "https://x." + files, "ftp://" + files}},
		{[]string{"a.test;*.b.test  c.test:8443"}, []string{"https://a.test", "http://A.test:99", "https://x.y.b.test", "https://c.test:8443"}, []string{"https://b.test", "https://xb.test", "https://c.test", publicIndex(), "https://a.test.evil.test"}},
		{[]string{""}, []string{"https://anything.test"}, []string{"file:///x", "https://"}},
		{[]string{"10.0.0.1"}, []string{"http://10.0.0.1:8080"}, []string{"http://10.0.0.2"}},
	}
	for _, tt := range tests {
		h, err := Options{Settings: read(t, nil, nil), Domains: tt.domains}.hosts()
		check(t, err)
		for _, u := range tt.allowed {
			if ok, _ := h.allow(mustURL(t, u)); !ok {
				t.Errorf("%v refuses %s", tt.domains, u)
			}
		}
		for _, u := range tt.refused {
			if ok, _ := h.allow(mustURL(t, u)); ok {
				t.Errorf("%v allows %s", tt.domains, u)
			}
		}
	}
	for _, bad := range []string{"https://a.test", "*", "*.com", "a..b", "a b.test:0x", "a.test:70000", "user@a.test"} {
		if _, err := New(Options{Settings: read(t, nil, nil), Domains: []string{bad}}); err == nil || !strings.Contains(err.Error(), "--code-exec-install-domains: the entry") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestPublic(t *testing.T) {
	for _, a := range []string{"1.1.1.1", "8.8.8.8", "2606:4700::1111", "::ffff:1.1.1.1"} {
		if !isPublic(netip.MustParseAddr(a)) {
			t.Errorf("%s is refused", a)
		}
	}
	for _, a := range []string{
		"0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.1.1", "127.0.0.1", "169.254.169.254", "172.16.0.1", "192.168.1.1", "198.18.0.1", "224.0.0.1", "240.0.0.1", "168.63.129.16",
		"::", "::1", "::ffff:127.0.0.1", "::127.0.0.1", "fe80::1", "fe80::1%eth0", "fc00::1", "ff02::1", "64:ff9b::a00:1", "2002:a00:1::", "2001::1",
	} {
		if isPublic(netip.MustParseAddr(a)) {
			t.Errorf("%s passes for public", a)
		}
	}
}

func TestSentences(t *testing.T) {
	s := (&Front{flag: domainsFlag}).Session(Pip)
	var got []string
	for _, r := range []Reason{NotAllowed, Missing, Denied, Failing, Unreachable, Untrusted, Late, Broken, TooLarge, Mismatch, Cut} {
		got = append(got, fmt.Sprintf("%s (%d): %s", r, statusOf(r), s.sentence(Trouble{Reason: r, Host: "host.test", What: "demo"})))
	}
	golden(t, "sentences.txt", strings.Join(got, "\n")+"\n")
}
