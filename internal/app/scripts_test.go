package app_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/metier-run/metier/internal/access"
	"github.com/metier-run/metier/internal/app"
	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/gateway"
	"github.com/metier-run/metier/internal/launch"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/sandbox"
)

// probeSkill is a root with a skill whose scripts show what a script sees.
func probeSkill(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{
		"probe/SKILL.md":        "---\nname: probe\ndescription: Shows what a script sees. Use when a test asks.\n---\nRun a script.\n",
		"probe/scripts/make.sh": "echo hello > out.txt\nenv\necho \"args: $*\"\n",
		"probe/scripts/wait.sh": "exec sleep \"$1\"\n",
	} {
		file := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// rig is a server whose model makes the calls that it is asked for.
type rig struct {
	app *app.App
	url string
}

func newRig(t *testing.T, home string, scripts app.Scripts, keys ...access.Key) rig {
	t.Helper()
	scripts = scripts.FromEnvironment()
	scripts.FilesURL = app.ArtifactsURL
	a, err := app.Open(t.Context(), app.Settings{
		Home: home, SkillsDirs: []string{"../../examples/skills", probeSkill(t)}, Keys: keys, Scripts: scripts,
		Upstream: app.Upstream{URL: caller(t), Type: "openai"},
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(a.Server(true))
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		srv.Close()
		a.Close()
	})
	return rig{a, srv.URL}
}

// confined is a rig with scripts on, or skips the test where nothing confines them.
func confined(t *testing.T, home string, keys ...access.Key) rig {
	t.Helper()
	r := newRig(t, home, app.Scripts{Allowed: true}, keys...)
	if c, _ := r.app.Confinement(); c.Problem != nil {
		t.Skip(c.Problem)
	}
	return r
}

func (r rig) get(t *testing.T, path, key string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return fetch(t, req, key)
}

func fetch(t *testing.T, req *http.Request, key string) (int, string) {
	t.Helper()
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

func (r rig) request(ctx context.Context, t *testing.T, call string) *http.Request {
	t.Helper()
	b, err := json.Marshal(map[string]any{"model": "m", "messages": []any{map[string]any{"role": "user", "content": call}}})
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url+"/v1/chat/completions", strings.NewReader(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	return req
}

// run has the model run a script, and is the answer that the client gets.
func (r rig) run(t *testing.T, call, key string) string {
	t.Helper()
	status, body := fetch(t, r.request(t.Context(), t, call), key)
	var answer struct {
		Choices []struct {
			Message struct {
				Content string `json:"content"`
			} `json:"message"`
		} `json:"choices"`
	}
	if err := json.Unmarshal([]byte(body), &answer); status != http.StatusOK || err != nil {
		t.Fatalf("%d %s: %v", status, body, err)
	}
	return answer.Choices[0].Message.Content
}

// allows checks what the listing of skills says of scripts.
func (r rig) allows(t *testing.T, want string) {
	t.Helper()
	if _, body := r.get(t, "/api/skills", ""); !strings.Contains(body, `"allowScripts":`+want) {
		t.Errorf("allowScripts is not %s: %.200s", want, body)
	}
}

const labelCall = `{"skill":"unit-pricing","path":"scripts/label.py","args":"--product Rice --price 0.938 --content 0.4 --per 1 --unit kg"}`

// TestScript: a model runs a script of an example skill, confined, and the answer
// holds what it printed.
func TestScript(t *testing.T) {
	r := confined(t, t.TempDir())
	got := r.run(t, labelCall, "")
	for _, want := range []string{"unit-pricing/scripts/label.py: exit 0", "sandbox: native", "LARK | Rice | 0.938 EUR | 2.34 EUR per 1 kg | Z"} {
		if !strings.Contains(got, want) {
			t.Errorf("the answer lacks %q:\n%s", want, got)
		}
	}
	r.allows(t, "true")
	if strings.Contains(got, "Not confined") {
		t.Errorf("full confinement has gaps:\n%s", got)
	}
}

// TestScriptSecrets: no variable of the host reaches a script, and no path of it an
// answer.
func TestScriptSecrets(t *testing.T) {
	t.Setenv("AWS_SECRET_ACCESS_KEY", "hunter2-hunter2")
	t.Setenv("METIER_KEY", "hunter2-hunter2")
	home := t.TempDir()
	r := confined(t, home)
	got := r.run(t, `{"skill":"probe","path":"scripts/make.sh"}`, "")
	if !strings.Contains(got, "PATH=") {
		t.Fatalf("the script did not run:\n%s", got)
	}
	for _, secret := range []string{"hunter2", "AWS_", "METIER_", home} {
		if strings.Contains(got, secret) {
			t.Errorf("the script saw %q:\n%s", secret, got)
		}
	}
}

// TestArtifacts: a file that a script made is fetched by the link in the answer, by
// the caller whose turn it was and by nobody else.
func TestArtifacts(t *testing.T) {
	mine, mineHash := key("mine")
	other, otherHash := key("other")
	r := confined(t, t.TempDir(), mineHash, otherHash)
	got := r.run(t, `{"skill":"probe","path":"scripts/make.sh"}`, mine)
	link := regexp.MustCompile(`\((/api/code/artifacts/[0-9a-f]{16}/out\.txt)\)`).FindStringSubmatch(got)
	if link == nil {
		t.Fatalf("there is no link to the file:\n%s", got)
	}
	if status, body := r.get(t, link[1], mine); status != http.StatusOK || body != "hello\n" {
		t.Errorf("its owner got %d %q", status, body)
	}
	if status, body := r.get(t, link[1], other); status != http.StatusNotFound {
		t.Errorf("another caller got %d %q", status, body)
	}
	if status, _ := r.get(t, link[1], ""); status != http.StatusUnauthorized {
		t.Errorf("a caller without a key got %d", status)
	}
}

func key(id string) (string, access.Key) {
	text := "sk-metier-" + id
	return text, access.Key{ID: id, Hash: access.Hash(config.NewSecret(text))}
}

// TestScriptsOff: without the operator's word no script runs, the model is told so,
// and nothing is made for scripts.
func TestScriptsOff(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	r := newRig(t, home, app.Scripts{})
	if got := r.run(t, labelCall, ""); !strings.Contains(got, "Scripts are disabled") || strings.Contains(got, "LARK") {
		t.Errorf("the answer is:\n%s", got)
	}
	r.allows(t, "false")
	if status, body := r.get(t, app.ArtifactsURL+"/0123456789abcdef", ""); status != http.StatusNotFound || !strings.Contains(body, "--skills-allow-exec") {
		t.Errorf("the files of scripts: %d %s", status, body)
	}
	made, err := filepath.Glob(filepath.Join(home, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range made {
		if !strings.HasPrefix(filepath.Base(name), "metier.db") {
			t.Errorf("a place for scripts was made: %s", name)
		}
	}
	if _, on := r.app.Confinement(); on {
		t.Error("scripts count as on")
	}
}

// TestScriptsRefused: where nothing confines as much as is asked, no script runs; the
// model and the operator get the reason.
func TestScriptsRefused(t *testing.T) {
	broken := launch.Finder{Name: "native", Tier: sandbox.TierFull, Find: func(context.Context, launch.Options) sandbox.Finding {
		return sandbox.Finding{Name: "native", Problem: &sandbox.Unavailable{Backend: "native", Step: "make namespaces", Err: errors.New("not permitted"), Fix: "do this"}}
	}}
	for name, s := range map[string]app.Scripts{
		"nothing here":       {Allowed: true, Finders: []launch.Finder{broken}},
		"bare is not enough": {Allowed: true, Finders: append([]launch.Finder{broken}, bare()...)},
		"no limited network": {Allowed: true, Finders: bare(), Policy: sandbox.Policy{Mode: sandbox.Off}, Network: launch.Network{Domains: []string{"a.example"}}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, t.TempDir(), s)
			c, on := r.app.Confinement()
			if !on || c.Problem == nil {
				t.Fatalf("confinement is %+v, %v", c, on)
			}
			r.allows(t, "false")
			got := r.run(t, labelCall, "")
			if !strings.Contains(got, "scripts cannot run on this host") || !strings.Contains(got, c.Problem.Error()) || strings.Contains(got, "LARK") {
				t.Errorf("the problem is %v, the answer:\n%s", c.Problem, got)
			}
		})
	}
}

func bare() []launch.Finder {
	var found []launch.Finder
	for _, f := range launch.Finders() {
		if f.Name == sandbox.Bare {
			found = append(found, f)
		}
	}
	return found
}

// TestScriptsUnconfined: only by the operator's word, and then each result names what
// is not confined.
func TestScriptsUnconfined(t *testing.T) {
	r := newRig(t, t.TempDir(), app.Scripts{Allowed: true, Finders: bare(), Policy: sandbox.Policy{Mode: sandbox.Off}})
	c, _ := r.app.Confinement()
	if len(c.Gaps()) == 0 {
		t.Fatal("no gaps are named")
	}
	got := r.run(t, labelCall, "")
	if !strings.Contains(got, "LARK | Rice") || !strings.Contains(got, "Not confined on this host: "+strings.Join(c.Gaps(), "; ")) {
		t.Errorf("the answer is:\n%s", got)
	}
}

// TestCallersOwnRun: a client that brings a tool called skills_run has it to itself, and
// the model is told of no other.
func TestCallersOwnRun(t *testing.T) {
	r := newRig(t, t.TempDir(), app.Scripts{Allowed: true, Policy: sandbox.Policy{Mode: sandbox.Off}, Finders: bare()})
	for _, own := range []bool{false, true} {
		request := gateway.Request{
			Request: &llm.Request{Model: "m", Messages: []llm.Message{llm.TextMessage(llm.User, "hello")}}, Skills: []string{"unit-pricing"},
		}
		if own {
			request.Tools = []llm.Declaration{{Name: "skills_run", Description: "mine"}}
		}
		turn, err := r.app.Gateway.Prepare(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		asked, err := turn.Preview(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var declared []string
		for _, d := range asked.Tools {
			if d.Name == "skills_run" {
				declared = append(declared, d.Description)
			}
		}
		if told := strings.Contains(asked.Messages[0].Text(), "skills_run"); told == own || len(declared) != 1 || (declared[0] == "mine") != own {
			t.Errorf("own %t: told %t, declared %q", own, told, declared)
		}
	}
}
