package egress

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/metier-run/metier/internal/config"
)

const headLimit = 4096

func headOf(text string) (target, error) {
	head, err := readHead(bufio.NewReader(strings.NewReader(text)), headLimit)
	if err != nil {
		return target{}, err
	}
	to, r := parseHead(head)
	if r != nil {
		return target{}, r
	}
	return to, nil
}

func TestHead(t *testing.T) {
	const end = "\r\n\r\n"
	tests := []struct {
		text string
		want string // host:port, or the code of the refusal
	}{
		{"CONNECT example.com:443 HTTP/1.1" + end, "example.com:443"},
		{"CONNECT Example.COM:8443 HTTP/1.0" + end, "example.com:8443"},
		{"CONNECT example.com:443 HTTP/1.1\r\nHost: other.test\r\nUser-Agent: x \xe9\r\nProxy-Connection: keep-alive\r\nContent-Length: 0" + end, "example.com:443"},

		{"GET http://example.com/ HTTP/1.1\r\nHost: example.com" + end, "not-connect"},
		{"POST http://example.com/ HTTP/1.1\r\nContent-Length: 3" + end + "abc", "not-connect"},
		{"GET / HTTP/1.1" + end, "not-connect"},
		{"connect example.com:443 HTTP/1.1" + end, "not-connect"},

		{"CONNECT example.com:443 HTTP/1.1\r\nContent-Length: 3" + end + "abc", "bad-request"},
		{"CONNECT example.com:443 HTTP/1.1\r\nContent-Length: 00" + end, "bad-request"},
		{"CONNECT example.com:443 HTTP/1.1\r\ntransfer-encoding: chunked" + end, "bad-request"},
		{"CONNECT example.com:443 HTTP/1.1\r\nContent-Length : 0" + end, "bad-request"},
		{"CONNECT example.com:443 HTTP/1.1\r\n folded: x" + end, "bad-request"},
		{"CONNECT example.com:443 HTTP/1.1\r\nnothing" + end, "bad-request"},
		{"CONNECT example.com:443 HTTP/1.1\n\n", "bad-request"},
		{"CONNECT example.com:443 HTTP/1.1\r\nA: b\n\r\n", "bad-request"},
		{"CONNECT example.com:443 HTTP/1.1\rA: b" + end, "bad-request"},
		{"CONNECT example.com:443\r\r\n HTTP/1.1" + end, "bad-request"},
		{"CONNECT example.com:443 HTTP/1.1\r\nA: \x00" + end, "bad-request"},
		{"\r\nCONNECT example.com:443 HTTP/1.1" + end, "bad-request"},
		{"CONNECT  example.com:443 HTTP/1.1" + end, "bad-request"},
		{"CONNECT example.com:443 HTTP/1.1 " + end, "bad-request"},
		{"CONNECT\texample.com:443\tHTTP/1.1" + end, "bad-request"},
		{"CONNECT example.com:443 HTTP/2.0" + end, "bad-request"},
		{"CONNECT example.com:443" + end, "bad-request"},
		{"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "bad-request"},
		{"\x16\x03\x01\x02\x00", "bad-request"},
		{"\x05\x01\x00", "bad-request"}, // SOCKS
		{"CONNECT example.com:443 HTTP/1.1\r\nA: " + strings.Repeat("a", headLimit) + end, "head-too-large"},
		{strings.Repeat("A", headLimit), "head-too-large"},

		{"CONNECT example.com HTTP/1.1" + end, "bad-host"},
		{"CONNECT example.com: HTTP/1.1" + end, "bad-host"},
		{"CONNECT :443 HTTP/1.1" + end, "bad-host"},
		{"CONNECT example.com:0443 HTTP/1.1" + end, "bad-host"},
		{"CONNECT example.com:65536 HTTP/1.1" + end, "bad-host"},
		{"CONNECT example.com:-1 HTTP/1.1" + end, "bad-host"},
		{"CONNECT example.com:https HTTP/1.1" + end, "bad-host"},
		{"CONNECT example.com.:443 HTTP/1.1" + end, "bad-host"},
		{"CONNECT example..com:443 HTTP/1.1" + end, "bad-host"},
		{"CONNECT user@example.com:443 HTTP/1.1" + end, "bad-host"},
		{"CONNECT user:pass@example.com:443 HTTP/1.1" + end, "bad-host"},
		{"CONNECT example.com%00.test:443 HTTP/1.1" + end, "bad-host"},
		{"CONNECT ex%61mple.com:443 HTTP/1.1" + end, "bad-host"},
		{"CONNECT https://example.com:443 HTTP/1.1" + end, "bad-host"},
		{"CONNECT example.com/:443 HTTP/1.1" + end, "bad-host"},
		{"CONNECT example\u3002com:443 HTTP/1.1" + end, "bad-host"},
		{"CONNECT b\u00fccher.example:443 HTTP/1.1" + end, "bad-host"},
		{"CONNECT example.com,other.test:443 HTTP/1.1" + end, "bad-host"},
		{"CONNECT *.example.com:443 HTTP/1.1" + end, "bad-host"},
		{"CONNECT 127\u30020\u30020\u30021:443 HTTP/1.1" + end, "bad-host"},

		{"CONNECT 127.0.0.1:443 HTTP/1.1" + end, "address-literal"},
		{"CONNECT 127.0.0.1.:443 HTTP/1.1" + end, "address-literal"},
		{"CONNECT 127.1:443 HTTP/1.1" + end, "address-literal"},
		{"CONNECT 2130706433:443 HTTP/1.1" + end, "address-literal"},
		{"CONNECT 0177.0.0.01:443 HTTP/1.1" + end, "address-literal"},
		{"CONNECT 0X7F.0x0.0.0X1:443 HTTP/1.1" + end, "address-literal"},
		{"CONNECT 0x7f000001:443 HTTP/1.1" + end, "address-literal"},
		{"CONNECT example.com.0x:443 HTTP/1.1" + end, "address-literal"},
		{"CONNECT [::1]:443 HTTP/1.1" + end, "address-literal"},
		{"CONNECT [::ffff:127.0.0.1]:443 HTTP/1.1" + end, "address-literal"},
		{"CONNECT [fe80::1%25eth0]:443 HTTP/1.1" + end, "address-literal"},
		{"CONNECT [example.com]:443 HTTP/1.1" + end, "address-literal"},
		{"CONNECT ::1:443 HTTP/1.1" + end, "address-literal"},
		{"CONNECT example.com:443:443 HTTP/1.1" + end, "address-literal"},
	}
	for _, tt := range tests {
		to, err := headOf(tt.text)
		got := to.String()
		if r, ok := errors.AsType[*refusal](err); ok {
			got = string(r.code)
		} else if err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%q: %s, want %s", tt.text[:min(len(tt.text), 80)], got, tt.want)
		}
	}
}

// TestHeadTakesNoMore: what follows the head is left to the tunnel.
func TestHeadTakesNoMore(t *testing.T) {
	in := bufio.NewReader(strings.NewReader("CONNECT example.com:443 HTTP/1.1\r\n\r\n\x16rest\r\n\r\n"))
	if _, err := readHead(in, headLimit); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(in)
	if err != nil || string(rest) != "\x16rest\r\n\r\n" {
		t.Errorf("the tunnel gets %q, %v", rest, err)
	}
}

// FuzzHead: a head that is taken is one that the standard library reads the same way,
// its target is a plain name, and every refusal is a response of three lines or more in
// ASCII whose reason is one line.
func FuzzHead(f *testing.F) {
	for _, s := range []string{
		"CONNECT example.com:443 HTTP/1.1\r\n\r\n", "CONNECT example.com:443 HTTP/1.1\r\nHost: a\r\n\r\nCONNECT b:1 HTTP/1.1\r\n\r\n",
		"GET http://a/ HTTP/1.1\r\n\r\n", "CONNECT [::1]:443 HTTP/1.0\r\nA: b\r\n\r\n", "CONNECT a\u3002b:443 HTTP/1.1\r\n\r\n",
	} {
		f.Add([]byte(s))
	}
	p := New(Options{List: mustList(f, "*.example.com"), Flag: "--f"})
	f.Fuzz(func(t *testing.T, b []byte) {
		to, err := headOf(string(b))
		if r, ok := errors.AsType[*refusal](err); ok {
			checkAnswer(t, r)
			return
		}
		if err != nil {
			return
		}
		if nameFault(to.host) != "" || endsInNumber(to.host) || to.port < 1 || to.port > 65535 {
			t.Fatalf("%q: target %+v", b, to)
		}
		checkAnswer(t, p.notListed(to))
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(b)))
		if err != nil {
			return // it is kinder in most places and stricter in some
		}
		if r.Method != http.MethodConnect || lower(r.URL.Host) != to.String() || r.ContentLength > 0 || len(r.TransferEncoding) > 0 {
			t.Errorf("%q: read as %v here and as %s %s there", b, to, r.Method, r.URL.Host)
		}
	})
}

func checkAnswer(t *testing.T, r *refusal) {
	t.Helper()
	if i := strings.IndexFunc(r.text+r.more, func(r rune) bool { return r < ' ' || r > '~' }); i >= 0 {
		t.Errorf("the reason %q is no line of ASCII", r.text+r.more)
	}
	resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(r.answer())), nil)
	if err != nil {
		t.Fatalf("the answer %q: %v", r.answer(), err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || !strings.HasPrefix(string(body), r.text+"\n") || resp.StatusCode != r.status || resp.Header.Get("X-Metier-Refused") != string(r.code) {
		t.Errorf("the answer %q: body %q, %v", r.answer(), body, err)
	}
	if _, phrase, _ := strings.Cut(resp.Status, " "); phrase != r.text {
		t.Errorf("the phrase is %q, want %q", phrase, r.text)
	}
}

func TestDefaultsFit(t *testing.T) {
	if limit := (config.Values{}).Int(config.EgressHead); limit <= recordHead+plainFragment/2 {
		t.Errorf("egress-head is %d, too small for greetings with large key shares", limit)
	}
}
