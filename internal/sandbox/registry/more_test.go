package registry

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/metier-run/metier/internal/config"
)

// TestSlow: a launch that ends leaves nothing under way, and the report says who was
// waited for.
func TestSlow(t *testing.T) {
	w := newWorld(t)
	reached := make(chan struct{})
	w.pages["index.test/simple/demo/"] = func(_ http.ResponseWriter, r *http.Request) {
		close(reached)
		<-r.Context().Done()
	}
	f, err := New(w.options(operator(t)))
	check(t, err)
	defer f.Close()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	check(t, err)
	s := f.Session(Pip)
	served := make(chan struct{})
	go func() { defer close(served); s.Serve(t.Context(), l) }()
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get("http://" + l.Addr().String() + "/" + s.token + "/pip/0/demo/")
		if err == nil {
			_ = resp.Body.Close()
		}
	}()
	<-reached
	check(t, l.Close())
	<-served
	<-asked
	if trouble, ok := s.Report().First(Late); !ok || trouble.Host != "index.test" || trouble.What != "demo" {
		t.Errorf("%+v", s.Report())
	}
}

// TestProxied: the operator's proxy is used, with its credential, which goes nowhere
// else.
func TestProxied(t *testing.T) {
	var got []string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.URL.String()+" "+r.Header.Get("Proxy-Authorization"))
		text("text/html", `<a href="`+wheel+`">x</a>`)(w, r)
	}))
	defer proxy.Close()
	w := newWorld(t)
	at := "http://p:" + secret + "@" + proxy.Listener.Addr().String()
	o := w.options(read(t, []string{"PIP_INDEX_URL=http://index.test/simple", "http_proxy=" + at}, nil))
	o.Dial = nil
	s := w.open(t, Pip, o)
	status, body, err := s.get(t, "pip/0/demo/")
	check(t, err)
	if status != 200 || len(got) != 1 || got[0] != "http://index.test/simple/demo/ "+basic("p", secret) {
		t.Errorf("%d %s %q", status, body, got)
	}
	w.silent(t, body)
	proxy.Close()
	status, body, err = s.get(t, "pip/0/demo/")
	check(t, err)
	if status != 503 {
		t.Errorf("%d %s", status, body)
	}
	w.silent(t, body)
}

// TestFlood: connections beyond the bound are closed, and those within go on.
func TestFlood(t *testing.T) {
	w := newWorld(t)
	w.pages["index.test/simple/demo/"] = text("text/html", "")
	o := w.options(operator(t))
	o.Limits = limit(t, config.EgressAtOnce, 2)
	s := w.open(t, Pip, o)
	var held []net.Conn
	for range 2 {
		c, err := net.Dial("tcp4", s.addr)
		check(t, err)
		held = append(held, c)
	}
	// The two are accepted before the third, which is closed unread.
	c, err := net.Dial("tcp4", s.addr)
	check(t, err)
	if data, _ := io.ReadAll(c); len(data) > 0 { // a reset is as good as an end
		t.Errorf("one too many is answered %q", data)
	}
	_ = c.Close()
	for _, c := range held {
		_, err := io.WriteString(c, "GET / HTTP/1.0\r\n\r\n")
		check(t, err)
		if data, err := io.ReadAll(c); err != nil || !strings.HasPrefix(string(data), "HTTP/1.0 404") {
			t.Errorf("%q %v", data, err)
		}
		_ = c.Close()
	}
}

func FuzzPage(f *testing.F) {
	f.Add(`<a href="x-1-py3-none-any.whl#sha256=00" data-yanked>x</a><base href=/>`, `{"files":[{"url":"x","filename":"x","core-metadata":{"sha256":"00"}}]}`)
	f.Add("<a", "{}")
	f.Add("<!--<a href=x><a href=y><a href='", `{"files":[]}`)
	front := &Front{page: 1 << 20}
	f.Fuzz(func(t *testing.T, html, page string) {
		base := &url.URL{Scheme: "https", Host: "a.test", Path: "/simple/x/"}
		files := parseHTML([]byte(html), base)
		more, _ := parseJSON([]byte(page), base)
		s := front.Session(Pip)
		out := httptest.NewRecorder()
		s.page503(out, source{url: base}, "x", wheelsOf(append(files, more...)))
		for _, at := range hrefs(out.Body.String()) {
			if parts := strings.Split(at, "/"); len(parts) != 5 || parts[1] != s.token || parts[2] != "file" || !wheelName.MatchString(mustUnescape(parts[4])) {
				t.Errorf("a link leads to %q", at)
			}
		}
	})
}

func mustUnescape(text string) string {
	plain, err := url.PathUnescape(text)
	if err != nil {
		return "\x00"
	}
	return plain
}

func FuzzPackument(f *testing.F) {
	f.Add(`{"versions":{"1":{"dist":{"tarball":"http://x/y.tgz","integrity":"sha512-AA=="}}}}`)
	f.Add(`{"versions":{"1":{"dist":{"tarball":"\u0000"}}}}`)
	front := &Front{page: 1 << 20}
	f.Fuzz(func(t *testing.T, page string) {
		s := front.Session(Npm)
		base := "http://127.0.0.1:3128/" + s.token
		out, reason := s.rewritten("x", []byte(page), &url.URL{Scheme: "https", Host: "a.test"}, source{}, base)
		if reason != "" {
			return
		}
		if again, reason := front.Session(Npm).rewritten("x", out, &url.URL{Scheme: "https", Host: "a.test"}, source{}, base); reason != "" {
			t.Errorf("%q became %q, and then %q", page, out, again)
		}
	})
}

// TestEnded: a session whose context is over answers nothing.
func TestEnded(t *testing.T) {
	w := newWorld(t)
	f, err := New(w.options(operator(t)))
	check(t, err)
	defer f.Close()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	check(t, err)
	s := f.Session(Pip)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s.Serve(ctx, l)
	defer func() {
		if recover() == nil {
			t.Error("a session that has ended answers")
		}
	}()
	s.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
}
