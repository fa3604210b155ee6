package egress

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"testing"
)

// chunk is what one iteration of BenchmarkSplice moves.
const chunk = 64 << 20

// BenchmarkSplice moves bytes from a server to a client: without a proxy, and through
// one.
func BenchmarkSplice(b *testing.B) {
	serve := func(b *testing.B, client, server net.Conn) {
		b.SetBytes(chunk)
		for b.Loop() {
			failed := make(chan error, 1)
			go func() {
				_, err := io.CopyN(server, zeros{}, chunk)
				failed <- err
			}()
			if _, err := io.CopyN(io.Discard, client, chunk); err != nil {
				b.Fatal(err)
			}
			if err := <-failed; err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("direct", func(b *testing.B) {
		e := newEar(b)
		client, err := net.Dial("tcp", e.addr)
		if err != nil {
			b.Fatal(err)
		}
		defer client.Close()
		server := e.accept(b)
		serve(b, client, server)
	})
	b.Run("proxy", func(b *testing.B) {
		e := newEar(b)
		r := newRig(b, e.addr)
		client, server := hold(b, r, e)
		serve(b, client, server)
	})
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { return len(b), nil }

// BenchmarkRequest is one small HTTPS request on a connection of its own.
func BenchmarkRequest(b *testing.B) {
	addr, roots := site(b)
	r := newRig(b, addr)
	for name, c := range map[string]*http.Client{
		"direct": {Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "example.com"}, DisableKeepAlives: true}},
		"proxy":  r.client(roots),
	} {
		url := "https://" + addr + "/"
		if name == "proxy" {
			url = "https://example.com/"
			c.Transport.(*http.Transport).DisableKeepAlives = true
		}
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				resp, err := c.Get(url)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := io.Copy(io.Discard, resp.Body); err != nil {
					b.Fatal(err)
				}
				_ = resp.Body.Close()
			}
		})
	}
}
