package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/config"
)

func get(t *testing.T, c *http.Client, url, body string) string {
	t.Helper()
	resp, err := c.Post(url, "text/plain", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestPasses(t *testing.T) {
	server, roots := site(t)
	r := newRig(t, server)
	c := r.client(roots)
	for _, tt := range []struct{ url, want string }{
		{"https://example.com/", "example.com example.com sent 100000"},
		{"https://EXAMPLE.com:8443/", "example.com EXAMPLE.com:8443 sent 100000"},
		{"https://files.example.com/", "files.example.com files.example.com sent 100000"},
	} {
		if got := lower(get(t, c, tt.url, strings.Repeat("x", 100000))); got != lower(tt.want) {
			t.Errorf("%s: %q", tt.url, got)
		}
	}
	want := []string{publicIP + ":443", publicIP + ":8443", publicIP + ":443"}
	if diff := cmp.Diff(want, r.dials()); diff != "" {
		t.Errorf("dialled (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"ip example.com.", "ip example.com.", "ip files.example.com."}, r.book.questions()); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	c.CloseIdleConnections()
	r.wantLog("tunnels=3", "refused=map[]")
}

// TestNoLookUp: what is not on the list never reaches a resolver.
func TestNoLookUp(t *testing.T) {
	r := newRig(t, newEar(t).addr)
	for _, to := range []string{
		"other.test:443", "example.com:80", "a.b.other.test:443", "secret-data.evil.test:443", "example.com.:443", "example.com.evil.test:443",
		"127.0.0.1:443", "2130706433:443", "0x7f.1:443", "[::1]:443", "localhost:443", "ex%61mple.com:443", "u@example.com:443", "example\u3002com:443",
	} {
		_, resp := r.connect(to)
		if resp.StatusCode != http.StatusForbidden || resp.Header.Get("X-Metier-Refused") == "" {
			t.Errorf("%s: %s", to, resp.Status)
		}
	}
	if asked := r.book.questions(); len(asked) > 0 {
		t.Errorf("the resolver was asked for %q", asked)
	}
	if dialled := r.dials(); len(dialled) > 0 {
		t.Errorf("dialled %q", dialled)
	}
	r.wantLog("code=host-not-listed", "target=other.test:443", "code=port-not-listed", "address-literal:4")
}

// TestRebinding: the address that was checked is dialled, and the name is not resolved
// again.
func TestRebinding(t *testing.T) {
	server, roots := site(t)
	r := newRig(t, server, func(r *rig) {
		r.book.hosts["example.com."] = [][]netip.Addr{addrs(publicIP), addrs("127.0.0.1")}
	})
	get(t, r.client(roots), "https://example.com/", "x")
	if diff := cmp.Diff([]string{publicIP + ":443"}, r.dials()); diff != "" {
		t.Errorf("dialled (-want +got):\n%s", diff)
	}
	if _, resp := r.connect("example.com:443"); resp.Header.Get("X-Metier-Refused") != string(CodePrivate) {
		t.Errorf("after the name leads to loopback: %s", resp.Status)
	}
	if got := len(r.book.questions()); got != 2 {
		t.Errorf("asked %d times for two connections", got)
	}
}

func TestAddresses(t *testing.T) {
	r := newRig(t, newEar(t).addr, func(r *rig) {
		r.options.AllowAddress = nil
		r.book.hosts = map[string][][]netip.Addr{
			"mapped.example.com.":   {addrs("::ffff:10.0.0.1")},
			"mixed.example.com.":    {addrs(publicIP, "192.168.0.1")},
			"metadata.example.com.": {addrs("169.254.169.254")},
			"zone.example.com.":     {addrs("fe80::1%eth0")},
			"zero.example.com.":     {addrs("0.0.0.0")},
			"none.example.com.":     {nil},
			"self.example.com.":     {addrs(publicIP)}, // the rig's dial ends on this machine
		}
	})
	for host, want := range map[string]Code{
		"mapped": CodePrivate, "mixed": CodePrivate, "metadata": CodePrivate, "zone": CodePrivate, "zero": CodePrivate,
		"none": CodeUnresolved, "missing": CodeUnresolved, "self": CodePrivate,
	} {
		_, resp := r.connect(host + ".example.com:443")
		if got := resp.Header.Get("X-Metier-Refused"); got != string(want) {
			t.Errorf("%s: %s (%s), want %s", host, got, resp.Status, want)
		}
		body, _ := io.ReadAll(resp.Body)
		for _, secret := range []string{"10.0.0", "192.168", "169.254", publicIP} {
			if strings.Contains(resp.Status+string(body), secret) {
				t.Errorf("%s: the answer tells of the host's network: %s", host, body)
			}
		}
	}
	if diff := cmp.Diff([]string{publicIP + ":443"}, r.dials()); diff != "" {
		t.Errorf("dialled (-want +got):\n%s", diff)
	}
	r.wantLog("resolves to 192.168.0.1", "an address of this machine", "10.0.0.53")
}

// TestDialFails: each address is tried, and the client learns what happened.
func TestDialFails(t *testing.T) {
	server, roots := site(t)
	var fail []error // one for each call, then it works
	r := newRig(t, server, func(r *rig) {
		r.options.Limits = limits(t, map[config.Name]int64{config.EgressWait: 1})
		dial := r.options.Dial
		r.options.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := dial(ctx, network, addr)
			if len(fail) == 0 || err != nil {
				return c, err
			}
			_ = c.Close()
			err, fail = fail[0], fail[1:]
			if err == nil {
				<-ctx.Done()
				err = ctx.Err()
			}
			return nil, err
		}
	})
	refused := errors.New("connect: connection refused by 10.1.2.3")
	fail = []error{refused, refused}
	if _, resp := r.connect("files.example.com:443"); resp.StatusCode != http.StatusBadGateway || !strings.Contains(resp.Status, "files.example.com is allowed but does not accept") || strings.Contains(resp.Status, "10.1.2.3") {
		t.Errorf("all refuse: %s", resp.Status)
	}
	fail = []error{nil, nil}
	if _, resp := r.connect("files.example.com:443"); resp.StatusCode != http.StatusBadGateway || !strings.Contains(resp.Status, "did not answer on port 443 within 1s") {
		t.Errorf("none answers: %s", resp.Status)
	}
	fail = []error{nil}
	get(t, r.client(roots), "https://files.example.com/", "x")
	dialled := r.dials()
	if diff := cmp.Diff([]string{publicIP + ":443", "[2606:4700::1111]:443"}, dialled[len(dialled)-2:]); diff != "" {
		t.Errorf("dialled (-want +got):\n%s", diff)
	}
}

func TestPlainHTTP(t *testing.T) {
	r := newRig(t, newEar(t).addr)
	resp, err := r.client(nil).Post("http://example.com/", "text/plain", strings.NewReader(strings.Repeat("x", 10<<10)))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusMethodNotAllowed || !strings.Contains(string(body), "only CONNECT") || resp.Header.Get("Allow") != "CONNECT" {
		t.Errorf("%s: %s", resp.Status, body)
	}
}

// TestReason: the phrase of the status line is the sentence, since that is all that pip,
// urllib and npm print.
func TestReason(t *testing.T) {
	r := newRig(t, newEar(t).addr)
	_, resp := r.connect("other.test:443")
	if want := "403 host other.test is not on the list " + flagName + ": "; !strings.HasPrefix(resp.Status, want) {
		t.Errorf("status %q", resp.Status)
	}
	if _, err := r.client(nil).Get("https://other.test/"); err == nil || !strings.Contains(err.Error(), flagName) {
		t.Errorf("a client of net/http says: %v", err)
	}
}

// TestEnvironment: a client that follows the variables comes to the proxy.
func TestEnvironment(t *testing.T) {
	got := map[string]string{}
	for _, e := range Environment() {
		name, value, _ := strings.Cut(e, "=")
		if _, twice := got[name]; twice {
			t.Errorf("%s is set twice", name)
		}
		got[name] = value
	}
	const proxy = "http://127.0.0.1:3128"
	want := map[string]string{
		"http_proxy": proxy, "https_proxy": proxy, "all_proxy": proxy, "no_proxy": "",
		"HTTP_PROXY": proxy, "HTTPS_PROXY": proxy, "ALL_PROXY": proxy, "NO_PROXY": "",
		"npm_config_proxy": proxy, "npm_config_https_proxy": proxy, "npm_config_noproxy": "",
		"PIP_PROXY": proxy, "NODE_USE_ENV_PROXY": "1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Environment (-want +got):\n%s", diff)
	}
}

// TestRetry: a server that asks for a second hello gets it.
func TestRetry(t *testing.T) {
	server, roots := site(t, func(c *tls.Config) { c.CurvePreferences = []tls.CurveID{tls.CurveP521} })
	r := newRig(t, server)
	if got := get(t, r.client(roots), "https://example.com/", "x"); got != "example.com example.com sent 1" {
		t.Errorf("got %q", got)
	}
}

// meddler is a client that names another host in its second hello.
type meddler struct {
	net.Conn
	hellos int
}

func (m *meddler) Write(b []byte) (int, error) {
	if len(b) > recordHead && b[0] == recordHandshake && b[recordHead] == messageClientHello {
		if m.hellos++; m.hellos == 2 {
			changed := strings.Replace(string(b), "example.com", "fxample.com", 1)
			_, err := m.Conn.Write([]byte(changed))
			return len(b), err
		}
	}
	return m.Conn.Write(b)
}

func TestRetryWithAnotherName(t *testing.T) {
	server, roots := site(t, func(c *tls.Config) { c.CurvePreferences = []tls.CurveID{tls.CurveP521} })
	r := newRig(t, server)
	conn, resp := r.connect("example.com:443")
	if resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status)
	}
	m := &meddler{Conn: conn}
	if err := tls.Client(m, &tls.Config{ServerName: "example.com", RootCAs: roots}).Handshake(); err == nil || m.hellos != 2 {
		t.Errorf("handshake after %d hellos: %v", m.hellos, err)
	}
	r.wantLog("code=other-server-name", "fxample.com")
}

// TestServeReturns: a proxy serves launch after launch, and each Serve ends with its
// listener although a tunnel is open, or with its context.
func TestServeReturns(t *testing.T) {
	e := newEar(t)
	r := newRig(t, e.addr)
	hello := helloOf(t, &tls.Config{ServerName: "example.com"})
	r.stop()
	for _, how := range []string{"listener", "context"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		r.addr = l.Addr().String()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			New(r.options).Serve(ctx, l)
		}()
		waiting := r.open() // has sent nothing
		conn, resp := r.connect("example.com:443")
		if resp.StatusCode != http.StatusOK {
			t.Fatal(resp.Status)
		}
		server := e.accept(t)
		if _, err := conn.Write(hello); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(server, make([]byte, len(hello))); err != nil {
			t.Fatal(err)
		}
		if how == "listener" {
			_ = l.Close()
		} else {
			cancel()
		}
		<-done
		cancel()
		for _, c := range []net.Conn{waiting, conn, server} {
			if b := ended(t, c); len(b) > 0 {
				t.Errorf("%s: %q came", how, b)
			}
		}
		if _, err := net.Dial("tcp", r.addr); err == nil {
			t.Errorf("%s: the listener is open", how)
		}
	}
}

// TestPanic: a defect in one connection ends that one.
func TestPanic(t *testing.T) {
	server, roots := site(t)
	r := newRig(t, server, func(r *rig) {
		dial := r.options.Dial
		r.options.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if strings.HasSuffix(addr, ":8443") {
				panic("a defect")
			}
			return dial(ctx, network, addr)
		}
	})
	conn := r.open()
	if _, err := io.WriteString(conn, "CONNECT example.com:8443 HTTP/1.1\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if b := ended(t, conn); len(b) > 0 {
		t.Errorf("got %q", b)
	}
	get(t, r.client(roots), "https://example.com/", "x")
	r.wantLog("a defect")
}

// brittle is a listener that fails a few times before it works.
type brittle struct {
	net.Listener
	left int
}

func (b *brittle) Accept() (net.Conn, error) {
	if b.left > 0 {
		b.left--
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", errors.New("too many open files"))}
	}
	return b.Listener.Accept()
}

func TestAcceptFails(t *testing.T) {
	server, roots := site(t)
	r := newRig(t, server)
	r.stop()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.addr = l.Addr().String()
	done := make(chan struct{})
	go func() {
		defer close(done)
		New(r.options).Serve(t.Context(), &brittle{Listener: l, left: 3})
	}()
	get(t, r.client(roots), "https://example.com/", "x")
	_ = l.Close()
	<-done
	if got := strings.Count(r.log.String(), "accept failed"); got != 1 {
		t.Errorf("%d lines about one row of failures", got)
	}
}
