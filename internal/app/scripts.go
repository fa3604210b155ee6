package app

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/internal/interpreter"
	"github.com/metier-run/metier/internal/launch"
	"github.com/metier-run/metier/internal/sandbox"
	doorartifacts "github.com/metier-run/metier/internal/server/artifacts"
	toolskill "github.com/metier-run/metier/internal/tool/skill"
	"github.com/metier-run/metier/internal/workspace"
	"github.com/metier-run/metier/internal/workspace/artifact"
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

// runner is the launcher as scripts see it.
type runner struct {
	launcher *launch.Launcher
	domains  []string
	// life ends when the process does: no launch outlives it, whoever still waits.
	life context.Context
}

var _ toolskill.Runner = runner{}

// Run starts a launch and waits for its end.
func (r runner) Run(ctx context.Context, l sandbox.Launch) (sandbox.Result, error) {
	if err := r.Refusal(); err != nil {
		return sandbox.Result{}, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(r.life, func() { cancel(context.Cause(r.life)) })()
	return r.launcher.Run(ctx, l)
}

// Capabilities are those of the backend in use.
func (r runner) Capabilities() sandbox.Capabilities { return r.launcher.Capabilities() }

// Network is what scripts reach.
func (r runner) Network() (sandbox.NetworkMode, []string) {
	mode := r.launcher.Network(sandbox.Script)
	if mode != sandbox.NetworkProxied {
		return mode, nil
	}
	return mode, r.domains
}

// Refusal says why no script can run. A network that the backend cannot limit as
// the operator asks is a reason, too.
func (r runner) Refusal() error {
	if err := r.launcher.Problem(); err != nil {
		return err
	}
	able := r.launcher.Capabilities()
	if r.launcher.Network(sandbox.Script) != sandbox.NetworkProxied || able.Holds(sandbox.Domains) {
		return nil
	}
	return cannotLimit(able.Backend)
}

func cannotLimit(backend string) error {
	return &sandbox.Unavailable{
		Backend: backend, Step: "limit the network to domains", Err: errors.New("it cannot on this host"),
		Fix: "leave --skills-network-domains out, or use a sandbox that can",
	}
}

func (r runner) confinement() Confinement {
	mode, domains := r.Network()
	return Confinement{Capabilities: r.Capabilities(), Network: mode, Domains: domains, Problem: r.Refusal()}
}

// scripts is all that running scripts needs.
type scripts struct {
	runner
	o       Settings
	logger  *slog.Logger
	scratch *workspace.Area
	files   *artifact.Store
	end     context.CancelCauseFunc
	tasks   sync.WaitGroup
}

var errStopping = errors.New("this process is stopping")

// openScripts finds what confines scripts, and opens the store for what they make.
// That nothing confines them here is no error: see [Confinement].
func openScripts(ctx context.Context, s Settings, logger *slog.Logger) (*scripts, error) {
	r, err := openLauncher(ctx, s, logger)
	if err != nil {
		return nil, err
	}
	r.files, err = artifact.Open(artifact.Options{Dir: filepath.Join(s.Home, "artifacts"), Limits: s.Limits, Logger: logger})
	if err != nil {
		r.close()
		return nil, err
	}
	r.tasks.Go(func() { r.files.Run(r.life) })
	return r, nil
}

// openLauncher is openScripts without the store.
func openLauncher(ctx context.Context, s Settings, logger *slog.Logger) (*scripts, error) {
	r := &scripts{o: s, logger: logger}
	r.domains = s.Scripts.Network.Domains
	var err error
	if r.scratch, err = workspace.OpenArea(scratchDir(s.Home), logger); err != nil {
		return nil, err
	}
	r.launcher, err = launch.Open(ctx, s.launchOptions(r.scratch.Dir(), logger))
	r.life, r.end = context.WithCancelCause(context.WithoutCancel(ctx))
	switch {
	case err == nil:
		return r, nil
	case r.launcher != nil:
		r.close()
	default:
		r.dropScratch()
	}
	if ctx.Err() != nil {
		return nil, err
	}
	return nil, fault.Usage("%w", err)
}

func scratchDir(home string) string { return filepath.Join(home, "scratch") }

func (s Settings) launchOptions(scratch string, logger *slog.Logger) launch.Options {
	return launch.Options{
		Policy: s.Scripts.policy(), Networks: map[sandbox.Purpose]launch.Network{sandbox.Script: s.Scripts.Network},
		Scratch: scratch, Search: s.Scripts.Interpreters.Path, Limits: s.Limits, Logger: logger, Finders: s.Scripts.Finders,
	}
}

// forTools is what the tools of a request need. The roots of all skills are hidden,
// and so is what this process keeps for itself.
func (r *scripts) forTools(roots []skill.Root) toolskill.Scripts {
	hide := []string{r.o.Home}
	for _, root := range roots {
		hide = append(hide, root.Dir)
	}
	return toolskill.Scripts{
		Interpreters: r.o.Scripts.Interpreters, Environ: r.o.Scripts.Environ, Scratch: r.scratch.Dir(), Hide: hide,
		Artifacts: r.files, FilesURL: r.o.Scripts.FilesURL, Limits: r.o.Limits, Logger: r.logger,
	}
}

// close ends what still runs, waits for it, and removes the scratch.
func (r *scripts) close() {
	r.end(errStopping)
	if err := r.launcher.Close(); err != nil {
		r.logger.Warn("sandbox not closed", "error", err)
	}
	r.tasks.Wait()
	r.dropScratch()
}

func (r *scripts) dropScratch() {
	if err := r.scratch.Close(); err != nil {
		r.logger.Warn("scratch left behind; the next start removes it", "dir", r.scratch.Dir(), "error", err)
	}
}

// LookAtScripts says how scripts would be confined, without keeping anything open.
func LookAtScripts(ctx context.Context, s Settings, logger *slog.Logger) (Confinement, error) {
	r, err := openLauncher(ctx, s, logger)
	if err != nil {
		return Confinement{}, err
	}
	defer r.close()
	return r.confinement(), nil
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
