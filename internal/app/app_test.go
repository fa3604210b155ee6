package app_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/metier-run/metier/internal/app"
	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/internal/llm/scripted"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

func serve(t *testing.T, s app.Settings) string {
	t.Helper()
	a, err := app.Open(t.Context(), s, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(a.Server(true))
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		srv.Close()
		a.Close()
	})
	return srv.URL
}

func upstream(t *testing.T, o scripted.Options) string {
	t.Helper()
	h, err := scripted.New(o)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.URL + "/v1"
}

func ask(t *testing.T, url, model, text string) string {
	t.Helper()
	body := `{"model":"` + model + `","messages":[{"role":"user","content":"` + text + `"}]}`
	res, err := http.Post(url+"/v1/chat/completions", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK {
		t.Fatalf("%d %s", res.StatusCode, b)
	}
	return string(b)
}

// TestRecord: a recorded turn can be played again by the scripted upstream, and
// holds no credentials.
func TestRecord(t *testing.T) {
	const key = "sk-operators-own-key-0001"
	dir := filepath.Join(t.TempDir(), "recordings")
	skills := []string{"../../examples/skills"}
	live := serve(t, app.Settings{
		Home: t.TempDir(), SkillsDirs: skills, Record: dir,
		Upstream: app.Upstream{URL: upstream(t, scripted.Options{Key: key}), Type: "openai", Key: config.NewSecret(key)},
	})
	answer := ask(t, live, "usage-cached", "my key is sk-live-0123456789abcdef, keep it")

	files, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err != nil || len(files) != 1 {
		t.Fatalf("recordings %v, %v, want one", files, err)
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{key, "sk-live-0123456789abcdef", "Authorization"} {
		if strings.Contains(string(b), secret) {
			t.Errorf("the recording holds %q:\n%s", secret, b)
		}
	}
	if info, err := os.Stat(files[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v, want 0600", info.Mode(), err)
	}

	model := strings.TrimSuffix(filepath.Base(files[0]), ".txtar")
	again := serve(t, app.Settings{
		Home: t.TempDir(), SkillsDirs: skills,
		Upstream: app.Upstream{URL: upstream(t, scripted.Options{FS: os.DirFS(dir)}), Type: "openai"},
	})
	if got := ask(t, again, model, "anything"); got != answer {
		t.Errorf("the replay answered otherwise:\n%s\n%s", got, answer)
	}
}

func TestSettings(t *testing.T) {
	for _, c := range []struct {
		name string
		s    app.Settings
		want string
	}{
		{"missing root", app.Settings{SkillsDirs: []string{"/no/such/root"}, Upstream: app.Upstream{URL: app.Demo}}, "--skills-dir /no/such/root"},
		{"root is a file", app.Settings{SkillsDirs: []string{"app_test.go"}, Upstream: app.Upstream{URL: app.Demo}}, "not a directory"},
		{"upstream without scheme", app.Settings{NoSkills: true, Upstream: app.Upstream{URL: "localhost:1"}}, "--upstream localhost:1"},
		{"unknown type", app.Settings{NoSkills: true, Upstream: app.Upstream{URL: "http://127.0.0.1:1", Type: "x"}}, "--upstream-type x"},
	} {
		c.s.Home = t.TempDir()
		_, err := app.Open(t.Context(), c.s, slog.New(slog.DiscardHandler))
		if fault.ExitCode(err) != fault.ExitUsage || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want a usage error with %q", c.name, err, c.want)
		}
	}
}

func TestSilentUpstreamIsNoReasonNotToStart(t *testing.T) {
	a, err := app.Open(t.Context(), app.Settings{Home: t.TempDir(), NoSkills: true, Upstream: app.Upstream{URL: "http://127.0.0.1:1"}}, slog.New(slog.DiscardHandler))
	if err != nil || !strings.Contains(a.Chosen, "http://127.0.0.1:1/v1, which could not be looked at") {
		t.Errorf("Open: %v, %+v", err, a)
	}
	a.Close()
}

func TestUpstreamKey(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "vendor")
	t.Setenv("ANTHROPIC_API_KEY", "other vendor")
	t.Setenv("MINE", "mine")
	for _, c := range []struct{ url, variable, want string }{
		{"https://api.openai.com/v1", "", "vendor"},
		{"https://api.anthropic.com", "", "other vendor"},
		{"http://127.0.0.1:11434", "", ""}, // a vendor's key goes to the vendor only
		{"https://api.openai.com.evil.example/v1", "", ""},
		{"http://127.0.0.1:11434", "MINE", "mine"},
		{"", "", ""},
	} {
		key, err := app.UpstreamKey(c.url, c.variable)
		if err != nil || key.Reveal() != c.want {
			t.Errorf("UpstreamKey(%q, %q) = %q, %v, want %q", c.url, c.variable, key.Reveal(), err, c.want)
		}
	}
}
