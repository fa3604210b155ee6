package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metier-run/metier/internal/guard"
)

// TestFoundFile: a file that lies about is read only if nobody else could have
// written it.
func TestFoundFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "metier.toml")
	if err := os.WriteFile(name, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	owner, known := guard.Owner(info)
	if !known {
		t.Skip("this system has no owners of files")
	}
	if err := checkFound(name, info, owner); err != nil {
		t.Errorf("one's own file: %v", err)
	}
	if err := checkFound(name, info, owner+1); err == nil || !strings.Contains(err.Error(), "-c metier.toml") {
		t.Errorf("another user's file: %v", err)
	}
	for _, mode := range []os.FileMode{0o666, 0o646} {
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := readFound(name); err == nil || !strings.Contains(err.Error(), "chmod o-w") {
			t.Errorf("mode %o: %v", mode, err)
		}
	}
	link := name + ".link"
	if err := os.Symlink(name, link); err != nil {
		t.Fatal(err)
	}
	if _, err := readFound(link); err == nil || !strings.Contains(err.Error(), "chmod o-w") {
		t.Errorf("a link to a file that others can write: %v", err)
	}
	if err := os.Chmod(name, 0o664); err != nil {
		t.Fatal(err)
	}
	if text, err := readFound(link); err != nil || string(text) != "x" {
		t.Errorf("a link to one's own file: %q, %v", text, err)
	}
}

// TestOnThisMachine: only the spelling counts, and doubt is no.
func TestOnThisMachine(t *testing.T) {
	for address, want := range map[string]bool{
		"http://127.0.0.1:8080/v1": true, "http://LOCALHOST/v1": true, "http://[::1]:1": true, "http://127.9.9.9": true,
		"https://example.com/v1": false, "http://localhost.example.com": false, "http://127.0.0.1.example.com": false,
		"http://127.0.0.1@example.com": false, "http://0.0.0.0:1": false, "http://127.1": false, "http://%zz": false, "": false,
	} {
		if got := onThisMachine(address); got != want {
			t.Errorf("%q: %v", address, got)
		}
	}
}
