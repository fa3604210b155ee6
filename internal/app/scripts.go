package app

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"

	"github.com/metier-run/metier/internal/code"
	"github.com/metier-run/metier/internal/interpreter"
	"github.com/metier-run/metier/internal/launch"
	"github.com/metier-run/metier/internal/sandbox"
	doorartifacts "github.com/metier-run/metier/internal/server/artifacts"
	toolskill "github.com/metier-run/metier/internal/tool/skill"
	"github.com/metier-run/metier/skill"
)

// ArtifactsURL is where a server has the files that scripts made.
const ArtifactsURL = doorartifacts.Prefix

// Scripts say whether the scripts of skills may run, and how they are confined. The
// zero value runs none.
type Scripts struct {
	Allowed bool
	// Policy is what the operator asks of a sandbox. A minimum of none means full.
	Policy  sandbox.Policy
	Network launch.Network
	// Interpreters find the programs that run scripts; Environ is the environment of
	// this process, of which scripts get next to nothing.
	Interpreters interpreter.Options
	Environ      []string
	// FilesURL is where the files that scripts make are served; empty names them by
	// their paths on this host.
	FilesURL string
	// Finders are the backends to look for; nil means all.
	Finders []launch.Finder
}

// policy is what is asked, never by omission less than full confinement.
func (s Scripts) policy() sandbox.Policy {
	p := s.Policy
	if p.Minimum == sandbox.TierNone {
		p.Minimum = sandbox.TierFull
	}
	return p
}

// NetworkMode is what scripts are to reach.
func (s Scripts) NetworkMode() sandbox.NetworkMode {
	switch {
	case s.Network.Open:
		return sandbox.NetworkOpen
	case len(s.Network.Domains) > 0:
		return sandbox.NetworkProxied
	}
	return sandbox.NetworkDenied
}

// Confinement is how scripts are confined on this host, for startup lines and
// listings.
type Confinement struct {
	Capabilities sandbox.Capabilities
	Network      sandbox.NetworkMode
	// Domains are what a proxied network reaches.
	Domains []string
	// Problem says why no script runs although scripts are allowed; nil when they do.
	Problem error
}

// Gaps are phrases for what a script may do that a sandbox would refuse.
func (c Confinement) Gaps() []string {
	if c.Problem != nil {
		return nil
	}
	return c.Capabilities.Gaps(sandbox.Network{Mode: c.Network})
}

// runner is the launcher as one purpose sees it.
type runner struct {
	launcher *launch.Launcher
	purpose  sandbox.Purpose
	network  launch.Network
	// life ends when the process does: no launch outlives it, whoever still waits.
	life context.Context
}

var (
	_ toolskill.Runner = runner{}
	_ code.Launcher    = runner{}
)

// Run starts a launch and waits for its end.
func (r runner) Run(ctx context.Context, l sandbox.Launch) (sandbox.Result, error) {
	job, err := r.Start(ctx, l)
	if err != nil {
		return sandbox.Result{}, err
	}
	return job.Wait(), nil
}

// Start starts a launch, which ends with ctx and with this process.
func (r runner) Start(ctx context.Context, l sandbox.Launch) (sandbox.Job, error) {
	if err := r.Refusal(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(r.life, func() { cancel(context.Cause(r.life)) })
	job, err := r.launcher.Start(ctx, l)
	if err != nil {
		stop()
		cancel(nil)
		return nil, err
	}
	return &lived{Job: job, done: sync.OnceFunc(func() { stop(); cancel(nil) })}, nil
}

// lived is a job that lets go of its context when it has ended.
type lived struct {
	sandbox.Job
	done func()
}

// Wait returns when the whole tree is gone.
func (l *lived) Wait() sandbox.Result {
	defer l.done()
	return l.Job.Wait()
}

// Capabilities are those of the backend in use.
func (r runner) Capabilities() sandbox.Capabilities { return r.launcher.Capabilities() }

// Network is what the purpose's launches reach.
func (r runner) Network() (sandbox.NetworkMode, []string) {
	mode := r.launcher.Network(r.purpose)
	if mode != sandbox.NetworkProxied {
		return mode, nil
	}
	return mode, r.network.Domains
}

// Refusal says why nothing can run. A network that the backend cannot limit as the
// operator asks is a reason, too.
func (r runner) Refusal() error {
	if err := r.launcher.Problem(); err != nil {
		return err
	}
	able := r.launcher.Capabilities()
	if r.launcher.Network(r.purpose) != sandbox.NetworkProxied || able.Holds(sandbox.Domains) {
		return nil
	}
	return cannotLimit(able.Backend, r.network.Flag)
}

func cannotLimit(backend, flag string) error {
	return &sandbox.Unavailable{
		Backend: backend, Step: "limit the network to domains", Err: errors.New("it cannot on this host"),
		Fix: "leave " + flag + " out, or use a sandbox that can",
	}
}

func (r runner) confinement() Confinement {
	mode, domains := r.Network()
	return Confinement{Capabilities: r.Capabilities(), Network: mode, Domains: domains, Problem: r.Refusal()}
}

// forTools is what the scripts of a request need. The roots of all skills are hidden,
// and so is what this process keeps for itself.
func (l *launches) forTools(roots []skill.Root) toolskill.Scripts {
	return toolskill.Scripts{
		Interpreters: l.o.Scripts.Interpreters, Environ: l.o.Scripts.Environ, Scratch: l.scratch.Dir(), Hide: l.hide(roots),
		Artifacts: l.files, FilesURL: l.o.Scripts.FilesURL, Limits: l.o.Limits, Logger: l.logger,
	}
}

// LookAtScripts says how scripts would be confined, without keeping anything open.
func LookAtScripts(ctx context.Context, s Settings, logger *slog.Logger) (Confinement, error) {
	l, err := openLauncher(ctx, s, s.Scripts.policy(), logger)
	if err != nil {
		return Confinement{}, err
	}
	defer l.close()
	return l.scripts().confinement(), nil
}

// FromEnvironment fills in what scripts need to know of this process: where its
// programs are, and its language. A directory that cannot be told is left out: there
// is then none to keep programs from, or out of sight.
func (s Scripts) FromEnvironment() Scripts {
	dir, err := os.Getwd()
	if err != nil {
		dir = ""
	}
	home, err := os.UserHomeDir()
	if err != nil {
		home = ""
	}
	s.Environ = os.Environ()
	s.Interpreters = interpreter.Options{
		Path: os.Getenv("PATH"), Home: home, Dir: dir,
		PyenvRoot: os.Getenv("PYENV_ROOT"), AsdfData: os.Getenv("ASDF_DATA_DIR"),
		MiseData: os.Getenv("MISE_DATA_DIR"), VoltaHome: os.Getenv("VOLTA_HOME"),
	}
	return s
}
