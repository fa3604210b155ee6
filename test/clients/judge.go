package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/metier-run/metier/internal/llm/scripted"
)

// patience bounds one agent's task. Some take long to end when nothing but this
// machine answers.
const patience = 150 * time.Second

// row is what came of one agent.
type row struct {
	agent    agent
	problems []string // none: it passed
	took     time.Duration
}

func (r row) passed() bool { return len(r.problems) == 0 }

// judge installs an agent, lets it do its task, and looks at what it said and at what
// went upstream.
func judge(ctx context.Context, o options, a agent, stderr io.Writer) row {
	r := row{agent: a}
	node, err := installed(ctx, o.cache, nodePackage(), nodeVersion, nil)
	if err != nil {
		r.problems = []string{err.Error()}
		return r
	}
	path := []string{filepath.Join(node, "node_modules", nodePackage(), "bin")}
	folder, err := installed(ctx, o.cache, a.pkg, a.version, path)
	if err != nil {
		r.problems = []string{err.Error()}
		return r
	}
	// Not below the temporary folder: some agents will not keep their helpers there.
	dir, err := os.MkdirTemp(o.cache, "run-"+a.name+"-")
	if err != nil {
		r.problems = []string{err.Error()}
		return r
	}
	r = o.watch(ctx, a, dir, append([]string{filepath.Join(folder, "node_modules", ".bin")}, path...))
	if o.keep || !r.passed() {
		fmt.Fprintf(stderr, "  kept: %s\n", dir)
		return r
	}
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintf(stderr, "  %v\n", err)
	}
	return r
}

// watch runs the agent in its own surroundings, and keeps what was said in the folder.
func (o options) watch(ctx context.Context, a agent, dir string, path []string) row {
	r := row{agent: a}
	h, err := open(ctx, o, a, dir)
	if err != nil {
		r.problems = []string{err.Error()}
		return r
	}
	defer h.close()
	began := time.Now()
	said, err := runAgent(ctx, a, h.url, dir, path)
	r.took = time.Since(began)
	found := h.evidence(said)
	r.problems = append(verdict(a, found), explain(err)...)
	if err := found.keep(dir); err != nil {
		r.problems = append(r.problems, err.Error())
	}
	return r
}

func explain(err error) []string {
	if err == nil {
		return nil
	}
	return []string{"it ended badly: " + err.Error()}
}

// runAgent starts the program in a home of its own and returns what it said.
func runAgent(ctx context.Context, a agent, url, dir string, path []string) (string, error) {
	s := seat{url: url, key: selectingKey, model: a.name, home: filepath.Join(dir, "home"), prompt: prompt}
	if a.by == byHeader {
		s.key, s.skills = plainKey, skillName
	}
	p := a.point(s)
	work := filepath.Join(dir, "work")
	for _, folder := range []string{work, filepath.Join(dir, "tmp"), s.home} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return "", err
		}
	}
	for name, text := range p.files {
		file := filepath.Join(s.home, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return "", err
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	bounded, stop := context.WithTimeout(ctx, patience)
	defer stop()
	program := filepath.Join(path[0], a.bin)
	cmd := exec.CommandContext(bounded, program, p.args...)
	cmd.Dir = work
	cmd.Env = append([]string{
		"PATH=" + joined(path), "HOME=" + s.home, "TMPDIR=" + filepath.Join(dir, "tmp"), "LANG=C.UTF-8", "SHELL=/bin/bash",
		"XDG_CONFIG_HOME=" + filepath.Join(s.home, ".config"), "XDG_CACHE_HOME=" + filepath.Join(s.home, ".cache"),
		"XDG_DATA_HOME=" + filepath.Join(s.home, ".local", "share"), "XDG_STATE_HOME=" + filepath.Join(s.home, ".local", "state"),
		// Nothing but this machine: everything else goes to a proxy that is not there.
		"HTTP_PROXY=" + nowhere, "HTTPS_PROXY=" + nowhere, "http_proxy=" + nowhere, "https_proxy=" + nowhere,
		"NO_PROXY=127.0.0.1,localhost", "no_proxy=127.0.0.1,localhost",
	}, p.env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = grace
	inGroup(cmd)
	err := cmd.Run()
	endGroup(cmd)
	if errors.Is(bounded.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("it did not end within %s", patience)
	}
	return out.String(), err
}

// nowhere is a port at which nobody listens.
const nowhere = "http://127.0.0.1:9"

// evidence is what a task left behind.
type evidence struct {
	said     string             // by the agent
	asked    []scripted.Request // of the model
	sent     []exchange         // between the agent and the server
	log      string             // the server's
	problems []string
}

func (h *house) evidence(said string) *evidence {
	return &evidence{said: said, asked: h.upstream.Requests(), sent: h.tap.seen(), log: h.said()}
}

func (e *evidence) blame(format string, args ...any) {
	e.problems = append(e.problems, fmt.Sprintf(format, args...))
}

// verdict lists what is not as it must be.
func verdict(a agent, e *evidence) []string {
	if !strings.Contains(flat(e.said), answer) {
		e.blame("it did not say the answer; its last words: %s", lastLines(e.said, 8))
	}
	var steps []int
	for _, q := range e.asked {
		if q.Step == 0 {
			e.blame("the model had no answer for a request: it was put together wrongly")
		}
		if q.Step <= taskSteps {
			steps = append(steps, q.Step)
		}
	}
	if want := []int{1, 2, taskSteps}; !slices.Equal(steps, want) {
		e.blame("the model was asked for the steps %v, want %v", steps, want)
	}
	arrived := false
	for _, x := range e.sent {
		ours := x.method == a.method() && x.path == a.route
		arrived = arrived || ours
		if ours && x.status >= http.StatusBadRequest {
			e.blame("%s %s: %d %s", x.method, x.path, x.status, lastLines(x.answer.String(), 3))
		}
		for _, hidden := range []string{hostTool, bodySays, rulesSay} {
			if bytes.Contains(x.answer.Bytes(), []byte(hidden)) {
				e.blame("%s %s shows the client %q, which is the host's", x.method, x.path, hidden)
			}
		}
	}
	if !arrived {
		e.blame("nothing arrived at %s", a.route)
	}
	for line := range strings.Lines(e.log) {
		if strings.Contains(line, `"level":"ERROR"`) || strings.Contains(line, `"msg":"panic"`) {
			e.blame("the server logged a fault of its own: %s", strings.TrimSpace(line))
		}
	}
	return slices.Compact(e.problems)
}

// method is with which its turns begin.
func (a agent) method() string {
	if a.socket {
		return http.MethodGet
	}
	return http.MethodPost
}

// flat is a text without the line ends that a terminal puts in.
func flat(s string) string { return strings.Join(strings.Fields(s), " ") }

// keep writes what was sent and said into a folder, for whoever looks for a fault.
func (e *evidence) keep(dir string) error {
	files := map[string][]byte{"said.txt": []byte(e.said), "server.log": []byte(e.log)}
	for i, x := range e.sent {
		name := fmt.Sprintf("client-%02d", i+1)
		files[name+"-request.json"] = x.request
		head := fmt.Sprintf("%s %s: %d\n", x.method, x.path, x.status)
		files[name+"-answer.txt"] = append([]byte(head), x.answer.Bytes()...)
	}
	for i, q := range e.asked {
		files[fmt.Sprintf("upstream-%02d-step-%d.json", i+1, q.Step)] = q.Body
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			return fmt.Errorf("keep what was said: %w", err)
		}
	}
	return nil
}
