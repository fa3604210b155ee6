package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metier-run/metier/internal/access"
	"github.com/metier-run/metier/internal/cli"
)

// TestServeWithKeys: with a key in the file the server listens beyond this
// machine, serves who has the key, and nobody else.
func TestServeWithKeys(t *testing.T) {
	key, hash := access.NewKey()
	dir := t.TempDir()
	conf := filepath.Join(dir, "metier.toml")
	text := "[serve]\nhost = \"0.0.0.0\"\nport = 0\nupstream = \"demo\"\n[skills]\nno-skills = true\n" +
		"[code]\ncode-exec-allow-install = true\n[key.laptop]\nhash = \"" + hash + "\"\n"
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("METIER_HOME", dir)
	ctx, stop := context.WithCancel(t.Context())
	out, in := io.Pipe()
	var said bytes.Buffer
	ended := make(chan int, 1)
	go func() {
		code := cli.Main(ctx, cli.IO{In: strings.NewReader(""), Out: in, Err: &said}, "v0-test", []string{"serve", "-c", conf})
		_ = in.Close()
		ended <- code
	}()
	defer func() {
		stop()
		http.DefaultClient.CloseIdleConnections()
		if code := <-ended; code != 0 {
			t.Errorf("serve ended with %d: %s", code, said.String())
		}
		if !strings.Contains(said.String(), "code: off; --code-exec turns it on\n") {
			t.Errorf("serve said nothing of code that waits: %s", said.String())
		}
		if !strings.Contains(said.String(), "keys: 1; a request needs one") || strings.Contains(said.String(), hash) {
			t.Errorf("serve said %s", said.String())
		}
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	_, port, found := strings.Cut(line, "0.0.0.0:")
	if err != nil || !found {
		t.Fatalf("serve printed %q, %v", line, err)
	}
	url := "http://127.0.0.1:" + strings.TrimSpace(port) + "/v1/models"
	for given, want := range map[string]int{"": 401, "wrong": 401, key.Reveal(): 200} {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Api-Key", given)
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("with the key %q: %d, want %d", given, res.StatusCode, want)
		}
	}
}
