package app_test

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/metier-run/metier/internal/app"
	"github.com/metier-run/metier/internal/interpreter"
)

// TestCodeClientGone: a client that goes away mid-command takes its command, what that
// left in the background, and its workspace with it.
func TestCodeClientGone(t *testing.T) {
	t.Parallel()
	c := newCoder(t, nil).able(t)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	req := c.request(ctx, t, task(step{"shell", map[string]any{"command": "sleep 50.16180", "run_in_background": true}}, run("touch a.txt; sleep 50.57721")))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if res, err := http.DefaultClient.Do(req); err == nil {
			_, _ = io.Copy(io.Discard, res.Body) // it is cut
			_ = res.Body.Close()
		}
	}()
	until(t, "both commands run", func() bool { return running(t, "50.16180") && running(t, "50.57721") })
	if n := len(c.workspaces(t)); n != 1 {
		t.Errorf("there are %d workspaces", n)
	}
	leave()
	<-ended
	until(t, "the commands are gone", func() bool { return !running(t, "50.16180") && !running(t, "50.57721") })
	until(t, "the workspace is gone", func() bool { return len(c.workspaces(t)) == 0 })
}

// TestBackgroundEnds: what runs in the background ends with the answer.
func TestBackgroundEnds(t *testing.T) {
	t.Parallel()
	c := newCoder(t, nil).able(t)
	c.do(t, "", step{"shell", map[string]any{"command": "sleep 50.69314", "run_in_background": true}}, run("true"))
	if running(t, "50.69314") {
		t.Error("the command outlives its request")
	}
	if left := c.workspaces(t); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// TestCodeClose: closing ends what runs, and leaves no workspace.
func TestCodeClose(t *testing.T) {
	t.Parallel()
	c := newCoder(t, nil).able(t)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if res, err := http.DefaultClient.Do(c.request(context.WithoutCancel(t.Context()), t, task(run("sleep 50.30103")))); err == nil {
			_, _ = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
		}
	}()
	until(t, "the command runs", func() bool { return running(t, "50.30103") })
	c.app.Close()
	if running(t, "50.30103") {
		t.Error("the command runs on")
	}
	<-ended
	until(t, "the workspace is gone", func() bool { return len(c.workspaces(t)) == 0 })
}

// sees is a command that prints whatever there is to find of secrets.
func sees(files ...string) string {
	return `env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline /proc/self/mountinfo 2>/dev/null | tr '\0' '\n'; ` +
		`cat ` + strings.Join(files, " ") + `; for d in "$HOME"/.. "$HOME"/../.. "$HOME"/../../..; do ls -aR "$d" 2>/dev/null; grep -rs -e hunter "$d"; done; true`
}

// TestCodeSecrets: no variable of the host, and nothing that lies in METIER_HOME,
// reaches a command, a result or the model.
func TestCodeSecrets(t *testing.T) {
	t.Setenv("AWS_SECRET_ACCESS_KEY", "hunter2-env")
	t.Setenv("METIER_KEY", "hunter2-key")
	home := t.TempDir()
	secret := filepath.Join(home, "metier.db")
	kept := filepath.Join(home, "artifacts", "note.txt")
	for _, file := range []string{kept, filepath.Join(home, "workspaces", "note.txt"), filepath.Join(home, "packages", "note.txt")} {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("hunter2-file"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c := newCoder(t, func(s *app.Settings) { s.Home = home }).able(t)
	got := c.do(t, "", run(sees("'"+secret+"'", "'"+kept+"'")), step{"read_file", map[string]any{"path": secret}}, run("ln -s '"+secret+"' db; true"), step{"read_file", map[string]any{"path": "db"}})
	if !strings.Contains(got[0], "PATH=") || !strings.Contains(got[0], "exit 0 (") {
		t.Fatalf("the command did not run: %.800s", got[0])
	}
	for i, text := range got {
		for _, secret := range []string{"hunter2", "AWS_", "METIER_", "SQLite format"} {
			if strings.Contains(text, secret) {
				t.Errorf("result %d holds %q:\n%s", i, secret, text)
			}
		}
	}
}

// wheel is a package of Python without anything in it.
func wheel(t *testing.T, name string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	info := name + "-1.0.dist-info/"
	for _, f := range [][2]string{
		{name + ".py", "print('I am " + name + "')\n"},
		{info + "METADATA", "Metadata-Version: 2.1\nName: " + name + "\nVersion: 1.0\n"},
		{info + "WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
		{info + "RECORD", name + ".py,,\n" + info + "METADATA,,\n" + info + "WHEEL,,\n" + info + "RECORD,,\n"},
	} {
		w, err := z.Create(f[0])
		if err == nil {
			_, err = io.WriteString(w, f[1])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// index is a package index that wants a password, and looks for it in this host's
// processes whenever it is asked.
type index struct {
	*httptest.Server
	t        *testing.T
	password string
	data     []byte

	mu    sync.Mutex
	asked int
}

func newIndex(t *testing.T, password string) *index {
	x := &index{t: t, password: password, data: wheel(t, "larkdemo")}
	x.Server = httptest.NewServer(x)
	t.Cleanup(x.Close)
	return x
}

func (x *index) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x.mu.Lock()
	x.asked++
	x.mu.Unlock()
	if _, password, _ := r.BasicAuth(); password != x.password {
		http.Error(w, "who are you", http.StatusUnauthorized)
		return
	}
	exposed(x.t, x.password)
	switch {
	case strings.HasSuffix(r.URL.Path, ".whl"):
		_, _ = w.Write(x.data)
	case strings.HasPrefix(r.URL.Path, "/simple/larkdemo"):
		w.Header().Set("Content-Type", "text/html")
		sum := sha256.Sum256(x.data)
		fmt.Fprintf(w, `<a href="/files/larkdemo-1.0-py3-none-any.whl#sha256=%s">larkdemo-1.0-py3-none-any.whl</a>`, hex.EncodeToString(sum[:]))
	default:
		http.NotFound(w, r)
	}
}

// exposed complains when a process of this host shows a word in its command line or
// environment.
func exposed(t *testing.T, word string) {
	for _, pattern := range []string{"/proc/[0-9]*/cmdline", "/proc/[0-9]*/environ"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Error(err)
		}
		for _, f := range files {
			if b, err := os.ReadFile(f); err == nil && bytes.Contains(b, []byte(word)) {
				t.Errorf("%s has the password: %.300q", f, b)
			}
		}
	}
}

// TestIndexPassword: the password of --code-exec-install-index is used, and is in no
// log, result, request, file, child's environment or command line.
func TestIndexPassword(t *testing.T) {
	t.Parallel()
	password := "hunter2-" + "index"
	x := newIndex(t, password)
	c := newCoder(t, func(s *app.Settings) {
		s.Code.Install = true
		s.Code.Index = strings.Replace(x.URL, "http://", "http://me:"+password+"@", 1) + "/simple"
	}).able(t)
	if _, err := c.app.Settings.Scripts.Interpreters.Find(interpreter.Python); err != nil {
		t.Skip(err)
	}
	got := c.do(t, "", run("pip install larkdemo && python3 -c 'import larkdemo'"), run("pip install absent-package"), run(sees("~/.netrc ~/.config/pip/pip.conf")))
	if !strings.Contains(got[0], "I am larkdemo") || x.asked == 0 {
		t.Fatalf("%d requests to the index; the result:\n%s", x.asked, got[0])
	}
	places := map[string]string{"the log": c.log.String(), "the results": strings.Join(got, between)}
	for _, sent := range c.bodies() {
		places["the requests upstream"] += string(sent)
	}
	err := filepath.WalkDir(c.home, func(at string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			var data []byte
			data, err = os.ReadFile(at)
			places[at] = string(data)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	for place, text := range places {
		for _, secret := range []string{password, base64.StdEncoding.EncodeToString([]byte("me:" + password))} {
			if strings.Contains(text, secret) {
				t.Errorf("%s holds the password: %.2000s", place, text)
			}
		}
	}
}
