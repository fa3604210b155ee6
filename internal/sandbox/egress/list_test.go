package egress

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func mustList(t testing.TB, entries ...string) List {
	t.Helper()
	l, err := ParseList(entries)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestAllows(t *testing.T) {
	l := mustList(t, "Example.com", " *.Example.org ", "example.net:8443", "*.example.net:9443", "xn--bcher-kva.example", "r3---sn-x.example.com", "example.com")
	tests := []struct {
		host string
		port int
		want bool
	}{
		{"example.com", 443, true},
		{"EXAMPLE.com", 443, true},
		{"example.com", 80, false},
		{"example.com.", 443, false},
		{"www.example.com", 443, false},
		{"notexample.com", 443, false},
		{"example.com.evil.test", 443, false},
		{"example.org", 443, false},
		{"a.example.org", 443, true},
		{"a.b.example.org", 443, true},
		{".example.org", 443, false},
		{"a..example.org", 443, false},
		{"notexample.org", 443, false},
		{"127.0.0.1.example.org", 443, true}, // a name like any other
		{"example.net", 443, false},
		{"example.net", 8443, true},
		{"a.example.net", 9443, true},
		{"a.example.net", 8443, false},
		{"xn--bcher-kva.example", 443, true},
		{"bücher.example", 443, false},
		{"r3---sn-x.example.com", 443, true},
		{"*.example.org", 443, false},
		{"a_b.example.org", 443, false},
		{"a\u212a.example.org", 443, false}, // the Kelvin sign
		{"", 443, false},
	}
	for _, tt := range tests {
		if got := l.Allows(tt.host, tt.port); got != tt.want {
			t.Errorf("Allows(%q, %d) = %v", tt.host, tt.port, got)
		}
	}
	if (List{}).Allows("example.com", 443) {
		t.Error("the zero List allows something")
	}
	want := "example.com, *.example.org, example.net:8443, *.example.net:9443, xn--bcher-kva.example, r3---sn-x.example.com"
	if diff := cmp.Diff(want, l.String()); diff != "" {
		t.Errorf("String (-want +got):\n%s", diff)
	}
}

func TestParseListRefuses(t *testing.T) {
	tests := []struct{ entry, says string }{
		{"", "is empty"},
		{"*", "flag that allows the whole network"},
		{"*.com", "write *.example.com with"},
		{"*.", "has no host"},
		{"localhost", "such as localhost.example.com"},
		{"https://Files.example.com/simple/", "write the host alone, such as files.example.com"},
		{"example.com/path", "such as example.com"},
		{"user@example.com", "write the host alone"},
		{"ex%61mple.com", "write the host alone"},
		{"example.com.", "write it without"},
		{"bücher.example", "begin with xn--"},
		{"example。com", "begin with xn--"},
		{"ex ample.com", `part "ex ample"`},
		{"a..example.com", `part ""`},
		{"-a.example.com", `part "-a"`},
		{"a_b.example.com", `part "a_b"`},
		{"a.*.example.com", `part "*"`},
		{"**.example.com", `part "**"`},
		{"*example.com", `part "*example"`},
		{"127.0.0.1", "is an address"},
		{"127.1", "is an address"},
		{"0x7f000001", "is an address"},
		{"*.0x7f", "is an address"},
		{"2130706433:443", "is an address"},
		{"[::1]:443", "is an address"},
		{"::1", "is an address"},
		{"fe80::1%eth0", "write the host alone"},
		{"example.com:", "from 1 to 65535"},
		{"example.com:0", "from 1 to 65535"},
		{"example.com:65536", "from 1 to 65535"},
		{"example.com:0443", "from 1 to 65535"},
		{"example.com:+443", "from 1 to 65535"},
		{"example.com:443:443", "from 1 to 65535"},
		{"example.com:*", "from 1 to 65535"},
		{strings.Repeat("a", 64) + ".example.com", "no part of a host name"},
		{strings.Repeat("a.", 130) + "example.com", "longer than a host name"},
	}
	for _, tt := range tests {
		_, err := ParseList([]string{"example.org", tt.entry})
		if err == nil {
			t.Errorf("ParseList(%q) accepts it", tt.entry)
			continue
		}
		if text := err.Error(); !strings.Contains(text, tt.says) || !strings.HasPrefix(text, "network domains: the entry ") {
			t.Errorf("ParseList(%q): %v; want it to say %q", tt.entry, err, tt.says)
		}
	}
}

// FuzzList: whatever an entry is, it opens only plain names below or equal to what
// it says, never an address and never a name that is not written in it.
func FuzzList(f *testing.F) {
	for _, s := range []string{"example.com", "*.example.com:8443", "*", "*.com", "1.2.3.4", "[::1]", "a.0x1"} {
		f.Add(s, "www.example.com", 443)
	}
	f.Fuzz(func(t *testing.T, text, host string, port int) {
		l, err := ParseList([]string{text})
		if err != nil || !l.Allows(host, port) {
			return
		}
		host = lower(host)
		written := strings.TrimPrefix(lower(strings.TrimSpace(text)), "*.")
		written, _, _ = strings.Cut(written, ":")
		if host != written && !strings.HasSuffix(host, "."+written) {
			t.Errorf("%q opens %q", text, host)
		}
		if nameFault(host) != "" || endsInNumber(host) {
			t.Errorf("%q opens the target %q, which is no name", text, host)
		}
	})
}
