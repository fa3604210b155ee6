package egress

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestAnswers pins what a person or a model reads.
func TestAnswers(t *testing.T) {
	p := New(Options{List: mustList(t, "example.com", "*.example.org", "example.net:8443"), Flag: flagName})
	empty := New(Options{Flag: flagName})
	host := target{"example.com", 443}
	cause := errors.New("lookup on 10.0.0.53:53: a secret of the host")
	_, slash := parseTarget("https://example.com:443")
	_, wide := parseTarget("b\u00fccher.example:443")
	_, port := parseTarget("example.com:99999")
	_, dot := parseTarget("example.com.:443")
	_, none := parseTarget("example.com")
	_, address := parseTarget("[::1]:443")
	var got bytes.Buffer
	for _, r := range []*refusal{
		badHead("a CONNECT has no body"), largeHead(16384), slowHead(), notConnect(),
		slash, wide, port, dot, none, address,
		p.notListed(target{"other.test", 443}), p.notListed(target{"example.com", 22}), empty.notListed(host),
		unresolved(host, cause), private(host, cause), undialled(host, cause), lateDial(host, 10*time.Second, cause), busy(64),
	} {
		checkAnswer(t, r)
		got.Write(bytes.ReplaceAll(r.answer(), []byte("\r\n"), []byte("\n")))
		got.WriteString("\n")
	}
	if bytes.Contains(got.Bytes(), []byte("secret")) {
		t.Error("an answer tells the cause")
	}
	for _, r := range []*refusal{unspoken(CodeOtherName, host, errNoName), silentServer(host, errNoName), idle(host)} {
		got.WriteString("log: " + r.Error() + "\n")
	}
	name := filepath.Join("testdata", "answers.golden")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
}
