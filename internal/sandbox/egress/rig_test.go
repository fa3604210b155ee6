package egress

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/metier-run/metier/internal/config"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const flagName = "--skills-network-domains"

// The one address that the rig's names lead to; nothing is ever sent there.
const publicIP = "93.184.215.14"

// book is a resolver that answers from a table and remembers what it was asked.
type book struct {
	mu    sync.Mutex
	hosts map[string][][]netip.Addr // the answers in turn; the last one stays
	asked []string
}

func (b *book) LookupNetIP(_ context.Context, network, host string) ([]netip.Addr, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked = append(b.asked, network+" "+host)
	answers, ok := b.hosts[host]
	if !ok {
		return nil, &net.DNSError{Err: "no such host", Name: host, Server: "10.0.0.53:53", IsNotFound: true}
	}
	if len(answers) > 1 {
		b.hosts[host] = answers[1:]
	}
	return answers[0], nil
}

func (b *book) questions() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.asked)
}

func addrs(texts ...string) []netip.Addr {
	list := make([]netip.Addr, len(texts))
	for i, s := range texts {
		list[i] = netip.MustParseAddr(s)
	}
	return list
}

// paper is a log that tests read.
type paper struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (p *paper) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.buf.Write(b)
}

func (p *paper) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.buf.String()
}

// rig is a proxy with a listener, and names that lead to one server on loopback.
type rig struct {
	t       testing.TB
	book    *book
	log     *paper
	options Options
	addr    string // of the proxy
	server  string // where each dial ends
	stop    func() // closes the listener and waits for Serve

	mu     sync.Mutex
	dialed []string
}

// newRig makes a rig with the policy of the public internet; change alters its options
// before it starts.
func newRig(t testing.TB, server string, change ...func(*rig)) *rig {
	t.Helper()
	r := &rig{t: t, log: &paper{}, server: server, book: &book{hosts: map[string][][]netip.Addr{
		"example.com.":       {addrs(publicIP)},
		"files.example.com.": {addrs("::ffff:"+publicIP, "2606:4700::1111")},
		"other.test.":        {addrs(publicIP)},
	}}}
	r.options = Options{
		List: mustList(t, "example.com", "*.example.com", "example.com:8443"), Flag: flagName,
		Resolver: r.book, Dial: r.dial, AllowAddress: public,
		Logger: slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	for _, c := range change {
		c(r)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.addr = l.Addr().String()
	done := make(chan struct{})
	go func() {
		defer close(done)
		New(r.options).Serve(context.Background(), l)
	}()
	r.stop = sync.OnceFunc(func() {
		_ = l.Close()
		<-done
	})
	t.Cleanup(r.stop)
	return r
}

func (r *rig) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	r.mu.Lock()
	r.dialed = append(r.dialed, addr)
	r.mu.Unlock()
	return (&net.Dialer{}).DialContext(ctx, network, r.server)
}

func (r *rig) dials() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.dialed)
}

func limits(t testing.TB, set map[config.Name]int64) config.Values {
	var v config.Values
	for name, value := range set {
		var err error
		if v, err = v.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
	return v
}

// open connects to the proxy. The connection fails a test that waits for it too long.
func (r *rig) open() net.Conn {
	r.t.Helper()
	c, err := net.Dial("tcp", r.addr)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	return c
}

// connect sends a CONNECT and reads the answer.
func (r *rig) connect(to string) (net.Conn, *http.Response) {
	r.t.Helper()
	c := r.open()
	return c, r.ask(c, "CONNECT "+to+" HTTP/1.1\r\nHost: "+to+"\r\n\r\n")
}

// ask sends a head and reads the answer, and no byte more of a tunnel that opens.
func (r *rig) ask(c net.Conn, head string) *http.Response {
	r.t.Helper()
	if _, err := io.WriteString(c, head); err != nil {
		r.t.Fatal(err)
	}
	var got []byte
	for one := make([]byte, 1); !bytes.HasSuffix(got, []byte("\r\n\r\n")); got = append(got, one[0]) {
		if _, err := io.ReadFull(c, one); err != nil {
			r.t.Fatalf("after %q: %v", got, err)
		}
	}
	resp, err := http.ReadResponse(bufio.NewReader(io.MultiReader(bytes.NewReader(got), c)), &http.Request{Method: http.MethodConnect})
	if err != nil {
		r.t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		body, err := io.ReadAll(io.LimitReader(c, max(resp.ContentLength, 0)))
		if err != nil {
			r.t.Fatal(err)
		}
		resp.Body = io.NopCloser(bytes.NewReader(body))
	}
	return resp
}

// client is one that uses the proxy as programs do.
func (r *rig) client(roots *x509.CertPool) *http.Client {
	tr := &http.Transport{
		Proxy:           http.ProxyURL(&url.URL{Scheme: "http", Host: r.addr}),
		TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true,
	}
	r.t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// certificate is good for example.com and all below it.
func certificate(t testing.TB) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		DNSNames: []string{"example.com", "*.example.com", "other.test"},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(cert)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, roots
}

// site is an HTTPS server on loopback that tells which host it was asked for.
func site(t testing.TB, change ...func(*tls.Config)) (addr string, roots *x509.CertPool) {
	t.Helper()
	cert, roots := certificate(t)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		if err == nil {
			fmt.Fprintf(w, "%s %s sent %d", q.TLS.ServerName, q.Host, len(body))
		}
	}))
	s.EnableHTTP2 = true
	s.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
	for _, c := range change {
		c(s.TLS)
	}
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.Listener.Addr().String(), roots
}

// ear is a server that speaks nothing: tests hold its ends of the connections.
type ear struct {
	addr  string
	conns chan net.Conn
}

func newEar(t testing.TB) *ear {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e := &ear{addr: l.Addr().String(), conns: make(chan net.Conn)}
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			select {
			case e.conns <- c:
			case <-quit:
				_ = c.Close()
			}
		}
	}()
	t.Cleanup(func() {
		close(quit)
		_ = l.Close()
		<-done
	})
	return e
}

func (e *ear) accept(t testing.TB) net.Conn {
	t.Helper()
	select {
	case c := <-e.conns:
		t.Cleanup(func() { _ = c.Close() })
		_ = c.SetDeadline(time.Now().Add(20 * time.Second))
		return c
	case <-time.After(20 * time.Second):
		t.Fatal("nothing came to the server")
		return nil
	}
}

// ended reads a connection to its end and gives what came before it.
func ended(t testing.TB, c net.Conn) []byte {
	t.Helper()
	b, err := io.ReadAll(c)
	if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
		t.Fatalf("the connection is still open after %q", b)
	}
	return b
}

// wantLog stops the rig and looks for texts in its log.
func (r *rig) wantLog(texts ...string) {
	r.t.Helper()
	r.stop()
	for _, text := range texts {
		if !strings.Contains(r.log.String(), text) {
			r.t.Errorf("the log does not say %q:\n%s", text, r.log)
		}
	}
}
