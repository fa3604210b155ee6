package workspace

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/sandbox"
)

// TestProxies: an address with credentials in any form is not handed on.
func TestProxies(t *testing.T) {
	got := proxies([]string{
		"HTTP_PROXY=http://proxy:3128", "https_proxy=http://user:secret@proxy:3128", "ALL_PROXY=socks5://proxy:1080", "no_proxy=localhost,.example.com",
		"GRPC_PROXY=user@proxy", "FTP_PROXY=http://proxy", "http_proxy=",
	})
	want := []string{
		"http_proxy=http://proxy:3128", "HTTP_PROXY=http://proxy:3128", "all_proxy=socks5://proxy:1080", "ALL_PROXY=socks5://proxy:1080",
		"no_proxy=localhost,.example.com", "NO_PROXY=localhost,.example.com",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, value := range []string{"http://a:b@c", "a:b@c:1", "http://c/?key=x", "http://", "http://c\nX=1", "://"} {
		if got := proxies([]string{"HTTP_PROXY=" + value}); len(got) != 0 {
			t.Errorf("%q is handed on: %q", value, got)
		}
	}
}

func certificate(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// TestNetwork: launches with the host's network get its public certificates, and
// nothing else that lies in the file; other launches get nothing of either.
func TestNetwork(t *testing.T) {
	one := certificate(t)
	key := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("secret")})
	broken := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("secret")})
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, slices.Concat([]byte("# secret\n"), key, one, broken), 0o600); err != nil {
		t.Fatal(err)
	}
	w, err := New(Options{
		Area: t.TempDir(), Direct: []sandbox.Purpose{sandbox.Shell},
		Environ: []string{"SSL_CERT_FILE=" + file, "PIP_CERT=" + file, "CURL_CA_BUNDLE=" + file + ".missing", "HTTP_PROXY=http://proxy:1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	bundle := filepath.Join(w.State(), bundleName)
	direct, closed := w.Launch(sandbox.Shell, ".", Extra{}).Env, w.Launch(sandbox.Script, ".", Extra{}).Env
	for _, e := range []string{"SSL_CERT_FILE=" + bundle, "PIP_CERT=" + bundle, "http_proxy=http://proxy:1"} {
		if !slices.Contains(direct, e) || slices.Contains(closed, e) {
			t.Errorf("%s: with the network %t, without %t", e, slices.Contains(direct, e), slices.Contains(closed, e))
		}
	}
	if slices.ContainsFunc(direct, func(e string) bool { return strings.HasPrefix(e, "CURL_CA_BUNDLE=") }) {
		t.Error("a variable leads to a file that is not there")
	}
	got, err := os.ReadFile(bundle)
	if err != nil || string(got) != string(one) {
		t.Errorf("%v\n%s", err, got)
	}
	if _, err := certificates(file, 10); err == nil {
		t.Error("a file that is too large is read")
	}
	if _, err := certificates(t.TempDir(), config.Values{}.Get(config.Certificates)); err == nil {
		t.Error("a directory is read")
	}
}
