package egress

import (
	"bytes"
	"context"
	"crypto/ecdh"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
)

const helloLimit = 16 << 10

// helloOf is the first record that a client of crypto/tls sends.
func helloOf(t testing.TB, cfg *tls.Config) []byte {
	t.Helper()
	near, far := net.Pipe()
	defer far.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = tls.Client(near, cfg).Handshake()
		_ = near.Close()
	}()
	rec, err := readRecord(far, helloLimit)
	if err != nil {
		t.Fatal(err)
	}
	_ = far.Close()
	<-done
	return rec
}

// reframed cuts what stands in the records of b into records of size bytes.
func reframed(b []byte, size int) []byte {
	var out []byte
	for rest := b[recordHead:]; len(rest) > 0; {
		n := min(size, len(rest))
		out = append(out, b[0], 3, 1)
		out = binary.BigEndian.AppendUint16(out, uint16(n))
		out = append(out, rest[:n]...)
		rest = rest[n:]
	}
	return out
}

// stock is what crypto/tls makes of a client's first bytes.
func stock(b []byte) (name string, read bool) {
	server := tls.Server(replay{Reader: bytes.NewReader(b)}, &tls.Config{
		GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
			name, read = h.ServerName, true
			return nil, errors.New("seen enough")
		},
	})
	_ = server.HandshakeContext(context.Background())
	return name, read
}

// replay is a connection that holds what a client sent.
type replay struct {
	io.Reader
	net.Conn
}

func (r replay) Read(b []byte) (int, error)  { return r.Reader.Read(b) }
func (r replay) Write(b []byte) (int, error) { return len(b), nil }
func (r replay) Close() error                { return nil }

func configs() map[string]*tls.Config {
	return map[string]*tls.Config{
		"usual":      {ServerName: "example.com"},
		"mixed case": {ServerName: "ExAmple.COM"},
		"1.2":        {ServerName: "example.com", MaxVersion: tls.VersionTLS12},
		"1.3 only":   {ServerName: "a.b.example.com", MinVersion: tls.VersionTLS13},
		"alpn":       {ServerName: "example.com", NextProtos: []string{"h2", "http/1.1", strings.Repeat("x", 200)}},
		"classic":    {ServerName: "example.com", CurvePreferences: []tls.CurveID{tls.X25519}},
	}
}

func TestHello(t *testing.T) {
	for what, cfg := range configs() {
		whole := helloOf(t, cfg)
		for _, size := range []int{len(whole), 300, 17, 1} {
			sent := reframed(whole, size)
			raw, name, err := readHello(bytes.NewReader(append(bytes.Clone(sent), "more"...)), helloLimit, false)
			if err != nil || name != cfg.ServerName {
				t.Errorf("%s in records of %d: name %q, %v", what, size, name, err)
			}
			if !bytes.Equal(raw, sent) {
				t.Errorf("%s in records of %d: other bytes than were sent", what, size)
			}
		}
	}
}

// TestHelloECH: of an encrypted hello the outer name is read, which the listed
// server's front has.
func TestHelloECH(t *testing.T) {
	key, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	hello := helloOf(t, &tls.Config{
		ServerName: "secret.example.net", MinVersion: tls.VersionTLS13,
		EncryptedClientHelloConfigList: echConfig(key.PublicKey().Bytes(), "front.example.com"),
	})
	if _, name, err := readHello(bytes.NewReader(hello), helloLimit, false); err != nil || name != "front.example.com" {
		t.Errorf("name %q, %v", name, err)
	}
}

// echConfig is a list with one configuration (RFC 9849).
func echConfig(public []byte, name string) []byte {
	body := append([]byte{1, 0, 0x20, 0, byte(len(public))}, public...)
	body = append(body, 0, 4, 0, 1, 0, 1, 32, byte(len(name)))
	body = append(append(body, name...), 0, 0)
	config := append([]byte{0xfe, 0x0d, 0, byte(len(body))}, body...)
	return append([]byte{0, byte(len(config))}, config...)
}

// greeting builds a hello by hand.
type greeting struct {
	extensions []byte
	none       bool   // no block of extensions at all
	after      string // in the message, after the extensions
	tail       string // in the record, after the message
	version    byte
}

func extension(kind byte, data []byte) []byte {
	return append([]byte{0, kind, 0, byte(len(data))}, data...)
}

func names(list ...string) []byte {
	var body []byte
	for _, n := range list {
		body = append(append(body, 0, 0, byte(len(n))), n...)
	}
	return extension(0, append([]byte{0, byte(len(body))}, body...))
}

func (g greeting) bytes() []byte {
	body := append([]byte{3 + g.version, 3}, make([]byte, 32)...)
	body = append(body, 0, 0, 2, 0x13, 0x01, 1, 0)
	if !g.none {
		body = append(body, 0, byte(len(g.extensions)))
		body = append(body, g.extensions...)
	}
	body = append(body, g.after...)
	message := append([]byte{messageClientHello, 0, 0, byte(len(body))}, body...)
	message = append(message, g.tail...)
	return append([]byte{recordHandshake, 3, 1, 0, byte(len(message))}, message...)
}

func TestHelloRefuses(t *testing.T) {
	good := greeting{extensions: names("example.com")}.bytes()
	if _, name, err := readHello(bytes.NewReader(good), helloLimit, false); err != nil || name != "example.com" {
		t.Fatalf("the plain one: %q, %v", name, err)
	}
	ccs := []byte{recordCipherSpec, 3, 3, 0, 1, 1}
	tests := []struct {
		what  string
		sent  []byte
		limit int
		want  error
	}{
		{"HTTP", []byte("GET / HTTP/1.1\r\n\r\n"), 0, errNotTLS},
		{"SSH", []byte("SSH-2.0-x\r\n"), 0, errNotTLS},
		{"one byte of something", []byte("x"), 0, errNotTLS},
		{"SSL 2", []byte{0x80, 0x2e, 1, 3, 1}, 0, errNotTLS},
		{"another major version", []byte{recordHandshake, 2, 0, 0, 5, 1, 0, 0, 1, 0}, 0, errNotTLS},
		{"a record too long for TLS", []byte{recordHandshake, 3, 1, 0xff, 0xff}, 0, errNotTLS},
		{"a record over the limit", []byte{recordHandshake, 3, 1, 0x40, 0x00}, 1024, errLarge},
		{"a message over the limit", []byte{recordHandshake, 3, 1, 0, 4, 1, 0xff, 0xff, 0xff}, 1024, errLarge},
		{"many records over the limit", reframed(good, 1), 100, errLarge},
		{"application data", []byte{recordData, 3, 3, 0, 1, 1}, 0, errHello},
		{"a change of cipher first", append(bytes.Clone(ccs), good...), 0, errHello},
		{"another message", []byte{recordHandshake, 3, 1, 0, 4, 16, 0, 0, 0}, 0, errHello},
		{"an empty fragment", []byte{recordHandshake, 3, 1, 0, 0}, 0, errHello},
		{"an empty message", []byte{recordHandshake, 3, 1, 0, 4, 1, 0, 0, 0}, 0, errHello},
		{"a second message in its record", greeting{extensions: names("example.com"), tail: "\x01\x00\x00\x00"}.bytes(), 0, errHello},
		{"bytes after its extensions", greeting{extensions: names("example.com"), after: "x"}.bytes(), 0, errHello},
		{"another version", greeting{extensions: names("example.com"), version: 1}.bytes(), 0, errHello},
		{"no extensions", greeting{none: true}.bytes(), 0, errNoName},
		{"no name", greeting{extensions: extension(10, []byte{0, 2, 0, 29})}.bytes(), 0, errNoName},
		{"an empty name", greeting{extensions: names("")}.bytes(), 0, errNoName},
		{"two names", greeting{extensions: names("example.com", "other.test")}.bytes(), 0, errHello},
		{"two extensions of names", greeting{extensions: append(names("other.test"), names("example.com")...)}.bytes(), 0, errHello},
		{"an empty list", greeting{extensions: extension(0, []byte{0, 0})}.bytes(), 0, errHello},
		{"an empty extension", greeting{extensions: extension(0, nil)}.bytes(), 0, errHello},
		{"a name of another kind", greeting{extensions: extension(0, []byte{0, 4, 1, 0, 1, 'a'})}.bytes(), 0, errHello},
		{"a list cut short", greeting{extensions: extension(0, []byte{0, 9, 0, 0, 1, 'a'})}.bytes(), 0, errHello},
		{"bytes after the list", greeting{extensions: extension(0, []byte{0, 4, 0, 0, 1, 'a', 0})}.bytes(), 0, errHello},
		{"an extension cut short", greeting{extensions: []byte{0, 0, 0, 9, 0}}.bytes(), 0, errHello},
		{"the end of the connection", good[:20], 0, io.ErrUnexpectedEOF},
		{"nothing", nil, 0, io.EOF},
	}
	for _, tt := range tests {
		limit := tt.limit
		if limit == 0 {
			limit = helloLimit
		}
		if _, name, err := readHello(bytes.NewReader(tt.sent), limit, false); !errors.Is(err, tt.want) {
			t.Errorf("%s: name %q, error %v; want %v", tt.what, name, err, tt.want)
		}
	}
}

func TestSecondHello(t *testing.T) {
	good := greeting{extensions: names("example.com")}.bytes()
	before := []byte{recordCipherSpec, 3, 3, 0, 1, 1, recordData, 3, 3, 0, 2, 9, 9}
	sent := append(bytes.Clone(before), good...)
	raw, name, err := readHello(bytes.NewReader(sent), helloLimit, true)
	if err != nil || name != "example.com" || !bytes.Equal(raw, sent) {
		t.Errorf("%q, %v", name, err)
	}
	cut := reframed(good, 30)
	split := append(append(bytes.Clone(cut[:35]), before...), cut[35:]...)
	if _, _, err := readHello(bytes.NewReader(split), helloLimit, true); !errors.Is(err, errHello) {
		t.Errorf("with records between its parts: %v", err)
	}
	if _, _, err := readHello(bytes.NewReader(bytes.Repeat(before, 1000)), 1024, true); !errors.Is(err, errLarge) {
		t.Errorf("after endless early data: %v", err)
	}
}

// FuzzHello: a name that is found is the one that crypto/tls finds in the same bytes.
func FuzzHello(f *testing.F) {
	for _, cfg := range configs() {
		hello := helloOf(f, cfg)
		f.Add(hello)
		f.Add(reframed(hello, 100))
	}
	f.Add(greeting{extensions: names("example.com")}.bytes())
	f.Add(greeting{extensions: append(names("a.test"), names("b.test")...)}.bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		raw, name, err := readHello(bytes.NewReader(b), helloLimit, false)
		theirs, read := stock(b)
		if err != nil {
			return
		}
		if !bytes.HasPrefix(b, raw) {
			t.Errorf("other bytes than were sent")
		}
		if read && name != theirs {
			t.Errorf("name %q here, %q in crypto/tls", name, theirs)
		}
	})
}

// TestHelloStock: crypto/tls reads each of its own hellos as it is read here, so
// that the comparison of FuzzHello compares something.
func TestHelloStock(t *testing.T) {
	for what, cfg := range configs() {
		for _, sent := range [][]byte{helloOf(t, cfg), reframed(helloOf(t, cfg), 50)} {
			if name, read := stock(sent); !read || name != cfg.ServerName {
				t.Errorf("%s: %q, %v", what, name, read)
			}
		}
	}
}
