package index_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metier-run/metier/test/tasks/index"
	"github.com/metier-run/metier/test/tasks/task"
)

func serve(t *testing.T) string {
	t.Helper()
	h, err := index.New(os.DirFS(filepath.Join("..", "testdata", "index")))
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func TestPages(t *testing.T) {
	at := serve(t)
	for _, c := range []struct {
		path, want string
		status     int
	}{
		{index.PipPath + "gridtext/", "gridtext-1.2.0-py3-none-any.whl#sha256=", 200},
		{index.PipPath + "gridtext/", "gridtext-2.0.0-py3-none-any.whl#sha256=", 200},
		{index.PipPath + "no-such-package/", "", 404},
		{"/pip/files/inkroman-2.1.0-py3-none-any.whl", "inkroman/__init__.py", 200},
		{"/pip/files/../index.go", "", 404},
		{index.NpmPath + "padlines", `"latest":"1.0.3"`, 200},
		{index.NpmPath + "padlines/-/padlines-1.0.3.tgz", "", 200},
		{index.NpmPath + "lodash", "", 404},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close() // read to its end
		if resp.StatusCode != c.status || !strings.Contains(string(body), c.want) {
			t.Errorf("GET %s: %d, %.200q; want %d and %q", c.path, resp.StatusCode, body, c.status, c.want)
		}
	}
}

// The real installers take what is served.
func TestInstallers(t *testing.T) {
	if testing.Short() {
		t.Skip("costly: starts pip and npm")
	}
	at := serve(t)
	dir := t.TempDir()
	env := append(task.Environ(dir, dir), "PIP_CONFIG_FILE="+os.DevNull, "PIP_DISABLE_PIP_VERSION_CHECK=1", "npm_config_cache="+dir)
	for _, argv := range [][]string{
		{"python3", "-m", "pip", "install", "--quiet", "--target", "env", "--only-binary", ":all:", "--index-url", at + index.PipPath, "inkroman", "gridtext==1.2.0"},
		{"npm", "install", "--silent", "--ignore-scripts", "--no-audit", "--no-fund", "--registry", at + index.NpmPath, "padlines"},
	} {
		if _, err := exec.LookPath(argv[0]); err != nil {
			t.Skipf("%s is not on this host", argv[0])
		}
		output, exit, err := task.Bare(t.Context(), dir, env, argv)
		if strings.Contains(string(output), "No module named pip") {
			t.Skip("pip is not on this host")
		}
		if err != nil || exit != 0 {
			t.Fatalf("%v: status %d, %v: %s", argv, exit, err, output)
		}
	}
	for _, name := range []string{"env/inkroman/__init__.py", "env/gridtext/__init__.py", "node_modules/padlines/index.js"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}
