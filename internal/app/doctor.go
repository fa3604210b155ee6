package app

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"runtime"
	"strings"

	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/internal/interpreter"
	"github.com/metier-run/metier/internal/launch"
	"github.com/metier-run/metier/internal/llm/upstream"
	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/sandbox/egress"
	"github.com/metier-run/metier/internal/workspace"
)

// Diagnosis is what this host has of what Metier needs. It holds facts; the command
// line puts them into words.
type Diagnosis struct {
	System  string // operating system and architecture
	Scripts Scripts
	// Chosen is the backend that the policy takes; empty when Problem says why there
	// is none.
	Chosen   string
	Problem  error
	Backends []launch.Row
	Programs []Program
	Home     Home
	// Upstream says which model endpoint was found; UpstreamProblem why none was.
	Upstream        string
	UpstreamProblem error
}

// OK reports whether the policy can be met.
func (d Diagnosis) OK() bool { return d.Problem == nil }

// Program is an interpreter as it was looked for.
type Program struct {
	Kind interpreter.Kind
	interpreter.Interpreter
	Problem error // nil when it was found
}

// Home is METIER_HOME.
type Home struct {
	Dir string
	// Problem says why it cannot be written; nil when it can.
	Problem error
	// FileSystem and Free are empty and negative where they are not known.
	FileSystem string
	Free       int64 // bytes
}

// Examine tries every sandbox that this host may have, and looks for programs, for
// room and for an upstream. No model is asked, and nothing is left running; METIER_HOME
// is made if it is missing.
func Examine(ctx context.Context, s Settings, logger *slog.Logger) (Diagnosis, error) {
	d := Diagnosis{System: runtime.GOOS + "/" + runtime.GOARCH, Scripts: s.Scripts}
	d.Scripts.Policy = s.Scripts.policy()
	d.Home = examineHome(s.Home)
	for _, kind := range []interpreter.Kind{interpreter.Python, interpreter.Node, interpreter.Bash} {
		p := Program{Kind: kind}
		p.Interpreter, p.Problem = s.Scripts.Interpreters.Find(kind)
		d.Programs = append(d.Programs, p)
	}
	if err := d.examineBackends(ctx, s, logger); err != nil {
		return d, err
	}
	transport := upstream.NewTransport(s.Limits)
	defer transport.CloseIdleConnections()
	d.Upstream, d.UpstreamProblem = lookAt(ctx, s.Upstream, transport)
	if fault.ExitCode(d.UpstreamProblem) == fault.ExitUsage {
		return d, d.UpstreamProblem
	}
	return d, ctx.Err()
}

// examineBackends tries them in a scratch of METIER_HOME, where scripts would work:
// what its file system cannot do shows there. An error is a wrong call.
func (d *Diagnosis) examineBackends(ctx context.Context, s Settings, logger *slog.Logger) error {
	network := s.Scripts.Network
	if _, err := egress.ParseList(network.Domains); err != nil {
		return fault.Usage("%s: %w", network.Flag, err)
	}
	place, err := workspace.OpenArea(scratchDir(s.Home), logger)
	if err != nil {
		d.Problem = err
		return nil
	}
	defer func() {
		if err := place.Close(); err != nil {
			logger.Warn("scratch left behind; the next start removes it", "dir", place.Dir(), "error", err)
		}
	}()
	found := launch.Look(ctx, s.launchOptions(s.Scripts.policy(), place.Dir(), logger))
	d.Chosen, d.Problem, d.Backends = found.Chosen, found.Problem, found.Rows
	if d.Problem != nil || s.Scripts.NetworkMode() != sandbox.NetworkProxied {
		return nil
	}
	for _, row := range d.Backends {
		if row.Name == d.Chosen && !row.Capabilities.Holds(sandbox.Domains) {
			d.Problem = cannotLimit(row.Name, network.Flag)
		}
	}
	return nil
}

// examineHome makes METIER_HOME and writes a file there.
func examineHome(dir string) Home {
	h := Home{Dir: dir, Free: -1}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		h.Problem = err
		return h
	}
	f, err := os.CreateTemp(dir, "doctor-*")
	if err == nil {
		err = errors.Join(f.Close(), os.Remove(f.Name()))
	}
	h.Problem = err
	h.FileSystem, h.Free = disk(dir)
	return h
}

// lookAt finds the upstream as a start would. A usage error is a wrong call; any
// other says that there is none.
func lookAt(ctx context.Context, u Upstream, transport http.RoundTripper) (string, error) {
	if u.URL == Demo {
		return demoChosen, nil
	}
	_, chosen, err := locate(ctx, u, transport)
	if err != nil && u.URL == "" {
		// The rest is for who wanted to start a server now.
		first, _, _ := strings.Cut(err.Error(), "\n")
		return "", errors.New(first)
	}
	return chosen, err
}
