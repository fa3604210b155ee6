package egress

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metier-run/metier/internal/config"
)

// pipes is a listener whose connections need no kernel, so that a synctest bubble's
// clock runs for them.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	select {
	case <-p.closed:
	default:
		close(p.closed)
	}
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) open() net.Conn {
	near, far := net.Pipe()
	p.conns <- far
	return near
}

type one netip.Addr

func (o one) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.Addr(o)}, nil
}

// bubble runs a proxy in a bubble; servers gets the far end of each dial.
func bubble(t *testing.T, run func(t *testing.T, p *pipes, servers chan net.Conn)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l, servers := newPipes(), make(chan net.Conn, 1)
		proxy := New(Options{
			List: mustList(t, "example.com"), Resolver: one(netip.MustParseAddr(publicIP)),
			Dial: func(context.Context, string, string) (net.Conn, error) {
				near, far := net.Pipe()
				servers <- far
				return near, nil
			},
		})
		done := make(chan struct{})
		go func() {
			defer close(done)
			proxy.Serve(t.Context(), l)
		}()
		run(t, l, servers)
		_ = l.Close()
		<-done
	})
}

func waits() (wait, idle time.Duration) {
	return config.Values{}.Duration(config.EgressWait), config.Values{}.Duration(config.EgressIdle)
}

// drip sends a byte every second until the other side is gone or n are sent.
func drip(c net.Conn, text string) error {
	for _, b := range []byte(text) {
		if _, err := c.Write([]byte{b}); err != nil {
			return err
		}
		<-time.After(time.Second)
	}
	return nil
}

// TestSlowHead: a head has its time in all, not for each of its bytes.
func TestSlowHead(t *testing.T) {
	wait, _ := waits()
	bubble(t, func(t *testing.T, l *pipes, _ chan net.Conn) {
		start := time.Now()
		c := l.open()
		var wg sync.WaitGroup
		defer wg.Wait()
		wg.Go(func() { _ = drip(c, "CONNECT example.com:443 HTTP/1.1\r\nA: "+strings.Repeat("a", 100)) })
		got, _ := io.ReadAll(c)
		if took := time.Since(start); took > wait || !strings.HasPrefix(string(got), "HTTP/1.1 408 ") {
			t.Errorf("after %s: %q", took, got)
		}
		_ = c.Close()
	})
}

// TestNoAnswerTaken: a client that does not read its refusal is not waited for longer
// than for its request.
func TestNoAnswerTaken(t *testing.T) {
	wait, _ := waits()
	bubble(t, func(t *testing.T, l *pipes, _ chan net.Conn) {
		c := l.open()
		if _, err := io.WriteString(c, "CONNECT other.test:443 HTTP/1.1\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		<-time.After(wait + time.Second)
		if b, err := io.ReadAll(c); err != nil || len(b) > 0 {
			t.Errorf("after the wait: %q, %v", b, err)
		}
	})
}

// opened asks for a tunnel and takes the answer.
func opened(t *testing.T, c net.Conn) {
	t.Helper()
	if _, err := io.WriteString(c, "CONNECT example.com:443 HTTP/1.1\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, make([]byte, len(established))); err != nil {
		t.Fatal(err)
	}
}

// TestSlowGreeting: nor is a greeting waited for longer than that.
func TestSlowGreeting(t *testing.T) {
	wait, _ := waits()
	bubble(t, func(t *testing.T, l *pipes, servers chan net.Conn) {
		c := l.open()
		opened(t, c)
		start := time.Now()
		if err := drip(c, string(greeting{extensions: names("example.com")}.bytes())); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("a slow greeting: %v", err)
		}
		if took := time.Since(start); took > wait+time.Second {
			t.Errorf("it was read for %s", took)
		}
		if b, err := io.ReadAll(<-servers); err != nil || len(b) > 0 {
			t.Errorf("the server heard %q, %v", b, err)
		}
	})
}

// TestIdle: a tunnel lives as long as a byte moves in either direction within the
// bound, and no longer.
func TestIdle(t *testing.T) {
	_, idle := waits()
	bubble(t, func(t *testing.T, l *pipes, servers chan net.Conn) {
		c := l.open()
		opened(t, c)
		hello := greeting{extensions: names("example.com")}.bytes()
		if _, err := c.Write(hello); err != nil {
			t.Fatal(err)
		}
		server := <-servers
		if _, err := io.ReadFull(server, make([]byte, len(hello))); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		defer wg.Wait()
		wg.Go(func() {
			for range 5 {
				_, _ = server.Write([]byte("\x17\x03\x03\x00\x00"))
				<-time.After(idle - time.Second)
			}
		})
		start := time.Now()
		got, _ := io.ReadAll(c)
		took := time.Since(start)
		if want := 4*(idle-time.Second) + idle; took != want || len(got) != 25 {
			t.Errorf("%d bytes, closed after %s, want %s", len(got), took, want)
		}
		if _, err := io.ReadAll(server); err != nil {
			t.Error(err)
		}
	})
}
