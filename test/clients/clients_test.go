package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/go-json-experiment/json"
	"go.uber.org/goleak"

	"github.com/metier-run/metier/internal/llm/scripted"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestScenarios: each step answers what the task comes to, and nothing else does.
func TestScenarios(t *testing.T) {
	for _, a := range agents() {
		t.Run(a.name, func(t *testing.T) {
			h, err := scripted.New(scripted.Options{FS: fstest.MapFS{a.name + scripted.Ext: {Data: scenario(a)}}})
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range []struct {
				name  string
				said  []string
				tools []string
				step  int
			}{
				{"the task", []string{skillName, prompt}, []string{hostTool, a.shell}, 1},
				{"the skill is read", []string{skillName, prompt, bodySays}, []string{hostTool, a.shell}, 2},
				{"all is there", []string{skillName, prompt, bodySays, rulesSay, printed}, []string{hostTool, a.shell}, taskSteps},
				{"a title", []string{skillName, prompt}, []string{hostTool}, taskSteps + 1},
				{"no skill", []string{prompt}, []string{a.shell}, taskSteps + 1},
				{"a skill that was not selected", []string{skillName, otherName, prompt}, []string{hostTool, a.shell}, taskSteps + 1},
				{"the skill is forgotten", []string{skillName, prompt, printed, rulesSay}, []string{hostTool, a.shell}, 1},
				{"the command printed nothing", []string{skillName, prompt, bodySays, rulesSay}, []string{hostTool, a.shell}, taskSteps + 1},
			} {
				h.ServeHTTP(httptest.NewRecorder(), chat(t, a.name, c.said, c.tools))
				if got := h.Requests(); got[len(got)-1].Step != c.step {
					t.Errorf("%s: step %d, want %d", c.name, got[len(got)-1].Step, c.step)
				}
			}
		})
	}
}

// chat is a request in which one message says all.
func chat(t *testing.T, model string, said, tools []string) *http.Request {
	t.Helper()
	type function struct {
		Name string `json:"name"`
	}
	type tool struct {
		Type     string   `json:"type"`
		Function function `json:"function"`
	}
	body := map[string]any{
		"model": model, "stream": true,
		"messages": []map[string]string{{"role": "user", "content": strings.Join(said, "\n")}},
	}
	var declared []tool
	for _, name := range tools {
		declared = append(declared, tool{"function", function{name}})
	}
	body["tools"] = declared
	data, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	return httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/chat/completions", bytes.NewReader(data))
}

// TestVerdict: what went well passes, and each thing that can go wrong is said.
func TestVerdict(t *testing.T) {
	a := agents()[0]
	good := func() *evidence {
		e := &evidence{
			said:  "thinking\n" + strings.ReplaceAll(answer, "New", "\n  New") + "\n",
			asked: []scripted.Request{{Step: taskSteps + 1}, {Step: 1}, {Step: 2}, {Step: taskSteps}},
			sent:  []exchange{{method: "HEAD", path: "/", status: 404}, {method: "POST", path: a.route, status: 200}},
			log:   `{"level":"INFO","msg":"turn"}`,
		}
		e.sent[1].answer.WriteString("data: {}")
		return e
	}
	if problems := verdict(a, good()); len(problems) > 0 {
		t.Fatalf("a task that went well is blamed: %q", problems)
	}
	for want, spoil := range map[string]func(*evidence){
		"did not say":             func(e *evidence) { e.said = "I could not." },
		"put together wrongly":    func(e *evidence) { e.asked[0].Step = 0 },
		"want [1 2 3]":            func(e *evidence) { e.asked = e.asked[:3] },
		"500 data":                func(e *evidence) { e.sent[1].status = 500 },
		"nothing arrived":         func(e *evidence) { e.sent[1].path = "/v1/chat/other" },
		"which is the host's":     func(e *evidence) { e.sent[1].answer.WriteString(`{"name":"skills_read"}`) },
		"logged a fault":          func(e *evidence) { e.log += "\n" + `{"level":"ERROR","msg":"upstream"}` },
		`"Drop what no user can`:  func(e *evidence) { e.sent[1].answer.WriteString(bodySays) },
		`"Trains are named after`: func(e *evidence) { e.sent[0].answer.WriteString(rulesSay) },
	} {
		e := good()
		spoil(e)
		if problems := verdict(a, e); !strings.Contains(strings.Join(problems, "\n"), want) {
			t.Errorf("blamed with %q, want %q", problems, want)
		}
	}
}

// TestSeats: every agent is given the server, its key and the model, and the header
// where it is the one that selects.
func TestSeats(t *testing.T) {
	for _, a := range agents() {
		s := seat{url: "http://127.0.0.1:1", key: "the-key", model: "the-model", home: "/home", prompt: prompt}
		if a.by == byHeader {
			s.skills = skillName
		}
		p := a.point(s)
		all := strings.Join(append(p.args, p.env...), "\n")
		for _, text := range p.files {
			all += "\n" + text
		}
		for _, want := range []string{s.url, s.key, s.model, prompt, s.skills} {
			if !strings.Contains(all, want) {
				t.Errorf("%s: there is no %q in\n%s", a.name, want, all)
			}
		}
	}
}

// TestTap: events go through as they come, and a copy stays.
func TestTap(t *testing.T) {
	goOn := make(chan struct{})
	behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "first %s\n", body)
		_ = http.NewResponseController(w).Flush()
		<-goOn
		fmt.Fprintln(w, "second")
	}))
	defer behind.Close()
	target, err := url.Parse(behind.URL)
	if err != nil {
		t.Fatal(err)
	}
	tapped := newTap(target)
	front := httptest.NewServer(tapped)
	defer front.Close()
	defer http.DefaultClient.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, front.URL+"/v1/x", strings.NewReader("question"))
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	line := make([]byte, len("first question\n"))
	if _, err := io.ReadFull(res.Body, line); err != nil || string(line) != "first question\n" {
		t.Fatalf("got %q, %v", line, err)
	}
	close(goOn)
	if rest, err := io.ReadAll(res.Body); err != nil || string(rest) != "second\n" {
		t.Fatalf("got %q, %v", rest, err)
	}
	seen := tapped.seen()
	if len(seen) != 1 || seen[0].path != "/v1/x" || seen[0].status != 200 || string(seen[0].request) != "question" || seen[0].answer.String() != "first question\nsecond\n" {
		t.Errorf("kept %+v", seen)
	}
}

// TestTapOfSockets: so it is when the connection is taken over.
func TestTapOfSockets(t *testing.T) {
	behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nframes")
	}))
	defer behind.Close()
	target, err := url.Parse(behind.URL)
	if err != nil {
		t.Fatal(err)
	}
	tapped := newTap(target)
	front := httptest.NewServer(tapped)
	defer front.Close()
	defer http.DefaultClient.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, front.URL+"/v1/responses", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "websocket")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if got, err := io.ReadAll(res.Body); err != nil || string(got) != "frames" {
		t.Fatalf("got %q, %v", got, err)
	}
	if seen := tapped.seen(); len(seen) != 1 || seen[0].method != "GET" || seen[0].status != 101 || seen[0].answer.String() != "frames" {
		t.Errorf("kept %+v", seen)
	}
}

// TestInstalledOnce: what is there is not installed again, and an installation that
// breaks off is none.
func TestInstalledOnce(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the stand-in for npm is a shell script")
	}
	bin, cache := t.TempDir(), t.TempDir()
	log := filepath.Join(bin, "log")
	npm := func(then string) {
		script := "#!/bin/sh\necho \"$@\" >> " + log + "\n" + then + "\n"
		if err := os.WriteFile(filepath.Join(bin, "npm"), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	npm("mkdir -p node_modules/@a/b; echo no space left >&2; exit 1")
	if _, err := installed(t.Context(), cache, "@a/b", "1.2.3", nil); err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Fatalf("got %v", err)
	}
	if left, err := os.ReadDir(cache); err != nil || len(left) > 0 {
		t.Errorf("half an installation is left: %v, %v", left, err)
	}
	npm("mkdir -p node_modules/@a/b; echo '{}' > node_modules/@a/b/package.json")
	for range 2 {
		folder, err := installed(t.Context(), cache, "@a/b", "1.2.3", nil)
		if err != nil || folder != filepath.Join(cache, "a-b-1.2.3") {
			t.Fatalf("got %s, %v", folder, err)
		}
	}
	asked, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(asked), "\n"); n != 2 || !strings.Contains(string(asked), "--save-exact @a/b@1.2.3") {
		t.Errorf("npm was called %d times: %s", n, asked)
	}
}

// TestPageRows: -write changes the rows that were judged, and no other.
func TestPageRows(t *testing.T) {
	all := agents()
	page := "# Title\n\n" + tableBegins + "\n| client |\n| --- |\n| " + all[1].name + " | kept |\n| " + all[0].name + " | old |\n| gone | row |\n" + tableEnds + "\n\nMore.\n"
	rows := []row{{agent: all[0]}, {agent: all[2], problems: []string{"it said a|b\nand c", "more"}}}
	got, err := withRows(page, rows, time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	want := "# Title\n\n" + tableBegins + "\n| client | package | dialect | skill selected by | verdict | date |\n| --- | --- | --- | --- | --- | --- |\n" +
		fmt.Sprintf("| %s | `%s` %s | %s | %s | passed | 2026-12-01 |\n", all[0].name, all[0].pkg, all[0].version, all[0].speaks, all[0].by) +
		"| " + all[1].name + " | kept |\n" +
		fmt.Sprintf("| %s | `%s` %s | %s | %s | failed: it said a\\|b and c | 2026-12-01 |\n", all[2].name, all[2].pkg, all[2].version, all[2].speaks, all[2].by) +
		tableEnds + "\n\nMore.\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if _, err := withRows("# Title\n", rows, time.Now()); err == nil {
		t.Error("a page without the lines is written")
	}
}

// TestPageIsOfToday: the page names each agent with the version that is judged, and each
// library with the version that the tests of test/sdk pin.
func TestPageIsOfToday(t *testing.T) {
	page, err := os.ReadFile("../../docs/compat.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range agents() {
		if want := fmt.Sprintf("| %s | `%s` %s |", a.name, a.pkg, a.version); !strings.Contains(string(page), want) {
			t.Errorf("docs/compat.md has no row %q: run make clients", want)
		}
	}
	for _, want := range pinned(t) {
		if !strings.Contains(string(page), want) {
			t.Errorf("docs/compat.md does not say %q", want)
		}
	}
}

// pinned are the libraries with their versions, as the page writes them.
func pinned(t *testing.T) []string {
	t.Helper()
	var found []string
	for file, pattern := range map[string]*regexp.Regexp{
		"../sdk/node/package.json":       regexp.MustCompile(`"((?:@ai-sdk/|@anthropic|ai|ollama|openai)[^"]*)": "(?:npm:[^"]*@)?([0-9.]+)"`),
		"../sdk/go/go.mod":               regexp.MustCompile(`(github\.com/(?:anthropics|ollama|openai)/\S+) (v[0-9.]+)`),
		"../sdk/python/requirements.txt": regexp.MustCompile(`(?m)^(anthropic|openai)==([0-9.]+)`),
	} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		matches := pattern.FindAllStringSubmatch(string(data), -1)
		if len(matches) < 2 {
			t.Fatalf("%s: found %v", file, matches)
		}
		for _, m := range matches {
			name := strings.ReplaceAll(m[1], "anthropic-sdk-2023", "@anthropic-ai/sdk")
			found = append(found, fmt.Sprintf("`%s` %s", name, m[2]))
		}
	}
	slices.Sort(found)
	return found
}

func TestParse(t *testing.T) {
	for _, args := range [][]string{{"-only", "nobody"}, {"more"}, {"-none"}} {
		if _, err := parse(args, io.Discard); err == nil {
			t.Errorf("%v is taken", args)
		}
	}
	o, err := parse([]string{"-only", "pi,codex", "-write"}, io.Discard)
	if err != nil || !slices.Equal(o.only, []string{"pi", "codex"}) || !o.write {
		t.Errorf("got %+v, %v", o, err)
	}
}
