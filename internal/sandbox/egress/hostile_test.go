package egress

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/metier-run/metier/internal/config"
)

// TestGreeting: a tunnel carries only TLS that names its host, and until that is known
// the server hears nothing.
func TestGreeting(t *testing.T) {
	named := func(name string) []byte { return greeting{extensions: names(name)}.bytes() }
	alert := func(d byte) string { return string([]byte{recordAlert, 3, 3, 0, 2, 2, d}) }
	tests := []struct {
		what string
		sent []byte
		want Code // empty: it passes
		told string
	}{
		{"the host", named("example.com"), "", ""},
		{"the host in mixed case", named("ExAmPle.COM"), "", ""},
		{"the host in many records", reframed(named("example.com"), 2), "", ""},
		{"a front", named("other.test"), CodeOtherName, alert(112)},
		{"a listed host that is another", named("files.example.com"), CodeOtherName, alert(112)},
		{"a dot at the end", named("example.com."), CodeOtherName, alert(112)},
		{"a NUL at the end", named("example.com\x00"), CodeOtherName, alert(112)},
		{"an address", named(publicIP), CodeOtherName, alert(112)},
		{"no name", greeting{}.bytes(), CodeNoName, alert(112)},
		{"two names", greeting{extensions: names("example.com", "other.test")}.bytes(), CodeHello, alert(50)},
		{"HTTP", []byte("GET / HTTP/1.1\r\nHost: example.com\r\n\r\n"), CodeNotTLS, ""},
		{"a second CONNECT", []byte("CONNECT other.test:443 HTTP/1.1\r\n\r\n"), CodeNotTLS, ""},
		{"too much", bytes.Repeat(reframed(named("example.com"), 1)[:6], 4000), CodeHello, alert(50)},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			e := newEar(t)
			r := newRig(t, e.addr)
			conn := r.open()
			// All in one write: the head must not be read beyond its end.
			if resp := r.ask(conn, "CONNECT example.com:443 HTTP/1.1\r\n\r\n"+string(tt.sent)); resp.StatusCode != http.StatusOK {
				t.Fatal(resp.Status)
			}
			server := e.accept(t)
			if tt.want != "" {
				if got := string(ended(t, conn)); got != tt.told {
					t.Errorf("the client is told %q", got)
				}
				if got := ended(t, server); len(got) > 0 {
					t.Errorf("the server heard %q", got)
				}
				r.wantLog("code=" + string(tt.want) + " ")
				return
			}
			got := make([]byte, len(tt.sent))
			if _, err := io.ReadFull(server, got); err != nil || !bytes.Equal(got, tt.sent) {
				t.Errorf("the server heard %q, %v", got, err)
			}
		})
	}
}

// TestGreetingFolds: only the case of ASCII letters is of no account.
func TestGreetingFolds(t *testing.T) {
	r := newRig(t, newEar(t).addr)
	conn, _ := r.connect("files.example.com:443")
	if _, err := conn.Write(greeting{extensions: names("file\u017f.example.com")}.bytes()); err != nil {
		t.Fatal(err)
	}
	ended(t, conn)
	r.wantLog("code=other-server-name")
}

// TestOneRequest: after a refusal nothing more is read from a connection as a request.
func TestOneRequest(t *testing.T) {
	r := newRig(t, newEar(t).addr)
	conn := r.open()
	resp := r.ask(conn, "CONNECT other.test:443 HTTP/1.1\r\n\r\nCONNECT example.com:443 HTTP/1.1\r\n\r\n")
	if resp.StatusCode != http.StatusForbidden || !resp.Close {
		t.Errorf("%s, close: %v", resp.Status, resp.Close)
	}
	if rest := ended(t, conn); len(rest) > 0 {
		t.Errorf("more came: %q", rest)
	}
	if got := r.dials(); len(got) > 0 {
		t.Errorf("dialled %q", got)
	}
}

// hold opens a tunnel through a hello and gives both its ends.
func hold(t testing.TB, r *rig, e *ear) (client, server *net.TCPConn) {
	t.Helper()
	hello := greeting{extensions: names("example.com")}.bytes()
	conn, resp := r.connect("example.com:443")
	if resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status)
	}
	far := e.accept(t)
	if _, err := conn.Write(hello); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(far, make([]byte, len(hello))); err != nil {
		t.Fatal(err)
	}
	// The splice begins when the server answers.
	if _, err := io.WriteString(far, "\x17\x03\x03\x00\x02ok"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, make([]byte, 7)); err != nil {
		t.Fatal(err)
	}
	return conn.(*net.TCPConn), far.(*net.TCPConn)
}

func TestHalfClose(t *testing.T) {
	e := newEar(t)
	r := newRig(t, e.addr)
	for _, first := range []string{"client", "server"} {
		client, server := hold(t, r, e)
		near, far := client, server
		if first == "server" {
			near, far = server, client
		}
		if _, err := io.WriteString(near, "the last words"); err != nil {
			t.Fatal(err)
		}
		if err := near.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if got := string(ended(t, far)); got != "the last words" {
			t.Errorf("%s first: got %q", first, got)
		}
		if _, err := io.WriteString(far, "and the answer"); err != nil {
			t.Fatal(err)
		}
		_ = far.Close()
		if got := string(ended(t, near)); got != "and the answer" {
			t.Errorf("%s first: back came %q", first, got)
		}
	}
	r.wantLog("tunnels=2")
}

// TestReset: a side that breaks off ends the other side too.
func TestReset(t *testing.T) {
	e := newEar(t)
	r := newRig(t, e.addr)
	for _, first := range []string{"client", "server"} {
		near, far := hold(t, r, e)
		if first == "server" {
			near, far = far, near
		}
		if err := near.SetLinger(0); err != nil {
			t.Fatal(err)
		}
		_ = near.Close()
		ended(t, far)
	}
}

// TestNeverReads: a client that takes nothing is given up, and so is one of which the
// server takes nothing.
func TestNeverReads(t *testing.T) {
	e := newEar(t)
	r := newRig(t, e.addr, func(r *rig) { r.options.Limits = limits(t, map[config.Name]int64{config.EgressIdle: 1}) })
	for _, who := range []string{"client", "server"} {
		client, server := hold(t, r, e)
		writer, mute := server, client
		if who == "server" {
			writer, mute = client, server
		}
		// With this direction at its end, only the other's writes can find out.
		if err := mute.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		chunk := make([]byte, 1<<20)
		for {
			if _, err := writer.Write(chunk); err != nil {
				if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
					t.Errorf("the %s that reads nothing is still served", who)
				}
				break
			}
		}
	}
	r.wantLog("idle:2")
}

// TestPlaces: so many are served, as many wait, and the rest is turned away at once.
func TestPlaces(t *testing.T) {
	e := newEar(t)
	r := newRig(t, e.addr, func(r *rig) {
		r.options.Limits = limits(t, map[config.Name]int64{config.EgressAtOnce: 2, config.EgressWait: 1})
	})
	first, server := hold(t, r, e)
	hold(t, r, e)
	const head = "CONNECT example.com:443 HTTP/1.1\r\n\r\n"
	var waiting []net.Conn
	for range 2 {
		c := r.open()
		if _, err := io.WriteString(c, head); err != nil {
			t.Fatal(err)
		}
		waiting = append(waiting, c)
	}
	extra := r.open()
	if got := string(ended(t, extra)); !strings.Contains(got, "503 more than 2 connections") {
		t.Errorf("the fifth is told %q", got)
	}
	for i, c := range waiting {
		if got := string(ended(t, c)); !strings.HasPrefix(got, "HTTP/1.1 503 ") {
			t.Errorf("waiting client %d is told %q", i, got)
		}
	}
	if got := len(r.dials()); got != 2 {
		t.Errorf("%d dials with two places", got)
	}
	// Whoever comes once a place is free gets it.
	_ = first.Close()
	_ = server.Close()
	for range 20 { // each try waits for egress-wait, and a busy machine is slow
		if _, resp := r.connect("example.com:443"); resp.StatusCode == http.StatusOK {
			e.accept(t)
			return
		}
	}
	t.Error("the place of the one that has gone is not given away")
}

// TestManyRefused: refusals leave nothing behind, and write few lines.
func TestManyRefused(t *testing.T) {
	r := newRig(t, newEar(t).addr)
	before := runtime.NumGoroutine()
	const many = 10000
	errs := make(chan error)
	const at = 8
	for w := range at {
		go func() {
			var err error
			for i := w; i < many && err == nil; i += at {
				err = refusedOnce(r.addr)
			}
			errs <- err
		}()
	}
	for range at {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	r.wantLog("host-not-listed:10000", "further refusals of this launch are only counted")
	if lines := strings.Count(r.log.String(), "\n"); lines > 70 {
		t.Errorf("%d lines of log", lines)
	}
	// What answered the last refusals ends in its own time.
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	after := runtime.NumGoroutine()
	for end := time.Now().Add(10 * time.Second); after > before && time.Now().Before(end); after = runtime.NumGoroutine() {
		<-tick.C
	}
	if after > before {
		t.Errorf("%d goroutines before and %d after", before, after)
	}
}

func refusedOnce(addr string) error {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := io.WriteString(c, "CONNECT other.test:443 HTTP/1.1\r\n\r\n"); err != nil {
		return err
	}
	b := make([]byte, len("HTTP/1.1 403"))
	if _, err := io.ReadFull(c, b); err != nil {
		return err
	}
	if string(b) != "HTTP/1.1 403" {
		return errors.New(string(b))
	}
	return nil
}

// TestFlood: thousands of silent connections hold neither memory nor places for longer
// than they may, and an honest client is served afterwards.
func TestFlood(t *testing.T) {
	server, roots := site(t)
	r := newRig(t, server, func(r *rig) {
		r.options.Limits = limits(t, map[config.Name]int64{config.EgressAtOnce: 16, config.EgressWait: 1})
	})
	for range 3000 {
		c, err := net.Dial("tcp", r.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	if got := runtime.NumGoroutine(); got > 200 {
		t.Errorf("%d goroutines", got)
	}
	c := r.client(roots)
	deadline := time.Now().Add(20 * time.Second)
	for {
		resp, err := c.Get("https://example.com/")
		if err == nil {
			_ = resp.Body.Close()
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("no place is free after the flood: %v", err)
		}
		runtime.Gosched()
	}
}

// TestSlowServerHello: a server that does not answer the greeting is given up.
func TestSlowServerHello(t *testing.T) {
	e := newEar(t)
	r := newRig(t, e.addr, func(r *rig) { r.options.Limits = limits(t, map[config.Name]int64{config.EgressWait: 1}) })
	conn, resp := r.connect("example.com:443")
	if resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status)
	}
	server := e.accept(t)
	if _, err := conn.Write(helloOf(t, &tls.Config{ServerName: "example.com"})); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(server, "\x16\x03\x03"); err != nil { // and no more
		t.Fatal(err)
	}
	ended(t, conn)
	r.wantLog("code=server-timeout")
}

// TestServerAlert: what a server says instead of a hello arrives.
func TestServerAlert(t *testing.T) {
	for _, said := range []string{
		"\x15\x03\x01\x00\x02\x02\x28",
		"\x15\x03\x01\x00\x02\x01\x70\x16\x03\x03\x00\x04\x02\x00\x00\x00",
		"HTTP/1.1 400 Bad Request\r\n\r\n", "no", "",
	} {
		e := newEar(t)
		r := newRig(t, e.addr)
		conn, _ := r.connect("example.com:443")
		server := e.accept(t)
		if _, err := conn.Write(greeting{extensions: names("example.com")}.bytes()); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(server, said); err != nil {
			t.Fatal(err)
		}
		if err := server.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if got := string(ended(t, conn)); got != said {
			t.Errorf("of %q came %q", said, got)
		}
	}
}

// TestCancelWhileDialling: the end of a launch does not wait for a host.
func TestCancelWhileDialling(t *testing.T) {
	dialling := make(chan struct{})
	r := newRig(t, newEar(t).addr, func(r *rig) {
		r.options.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
			close(dialling)
			<-ctx.Done()
			return nil, ctx.Err()
		}
	})
	conn := r.open()
	if _, err := io.WriteString(conn, "CONNECT example.com:443 HTTP/1.1\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-dialling
	start := time.Now()
	r.stop()
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
	if got := ended(t, conn); len(got) > 0 {
		t.Errorf("the client is told %q", got)
	}
	if strings.Contains(r.log.String(), "refused") {
		t.Errorf("the log blames the host:\n%s", r.log)
	}
}
