package app

import (
	"context"
	"log/slog"
	"path/filepath"

	"github.com/metier-run/metier/internal/code"
	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/internal/interpreter"
	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/sandbox/registry"
	toolshell "github.com/metier-run/metier/internal/tool/shell"
	"github.com/metier-run/metier/internal/workspace"
	"github.com/metier-run/metier/internal/workspace/packages"
	"github.com/metier-run/metier/internal/workspace/shell"
	"github.com/metier-run/metier/skill"
)

// policy is what is asked of a sandbox for commands. Whoever accepts that they run
// unconfined gets the best that there is.
func (c Code) policy(scripts sandbox.Policy) sandbox.Policy {
	if c.Unconfined && scripts.Mode == sandbox.Required {
		scripts.Mode = sandbox.Preferred
	}
	return scripts
}

// work is all that code work needs.
type work struct {
	runner
	service *code.Service
	area    *workspace.Area
	front   *registry.Front
	own     *launches // a launcher under another policy than that of scripts; nil when it is the same
	logger  *slog.Logger
}

// openWork makes code work possible. That no command can run on this host is no error:
// see [Confinement].
func openWork(ctx context.Context, s Settings, l *launches, roots []skill.Root, logger *slog.Logger) (w *work, err error) {
	w = &work{logger: logger}
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	launcher := l
	if policy := s.Code.policy(s.Scripts.policy()); policy != s.Scripts.policy() {
		if w.own, err = openLauncher(ctx, s, policy, logger); err != nil {
			return w, err
		}
		launcher = w.own
	}
	w.runner = launcher.commands()
	if w.area, err = workspace.OpenArea(filepath.Join(s.Home, "workspaces"), logger); err != nil {
		return w, err
	}
	program, err := shell.Find(s.Code.Shell, s.Scripts.Interpreters)
	if err != nil {
		return w, fault.Usage("%w", err)
	}
	o := code.Options{
		Workspaces: workspace.Options{
			Area: w.area.Dir(), Interpreters: s.Scripts.Interpreters, Environ: s.Scripts.Environ, Hide: l.hide(roots), Limits: s.Limits, Logger: logger, Direct: w.direct(s),
			NoShims: s.Code.NoRecovery,
		},
		Launcher: w.runner, Shell: program, Refusal: w.Refusal, Artifacts: l.files, FilesURL: s.Scripts.FilesURL,
		NoRecovery: s.Code.NoRecovery, Prepare: s.Code.Prepare, Inspect: s.Code.Inspect, Logger: logger,
	}
	if s.Code.Install {
		if o.Installer, err = w.installer(s, l, roots); err != nil {
			return w, err
		}
	}
	o.Facts = w.facts(s, program)
	w.service = code.New(o)
	return w, nil
}

// direct are the purposes whose launches have this host's network.
func (w *work) direct(s Settings) []sandbox.Purpose {
	var purposes []sandbox.Purpose
	if s.Code.Network.Open {
		purposes = append(purposes, sandbox.Shell)
	}
	if s.Scripts.Network.Open {
		purposes = append(purposes, sandbox.Script)
	}
	return purposes
}

// commands is the launcher as the commands of a model see it.
func (l *launches) commands() runner {
	return runner{launcher: l.launcher, purpose: sandbox.Shell, network: l.o.Code.Network, life: l.life}
}

// installer performs the installs that commands ask for.
func (w *work) installer(s Settings, l *launches, roots []skill.Root) (*packages.Store, error) {
	settings, err := registry.ReadSettings(registry.Surroundings{Environ: s.Scripts.Environ, Home: s.Scripts.Interpreters.Home, Index: s.Code.Index})
	if err != nil {
		return nil, fault.Usage("%w", err)
	}
	for _, warning := range settings.Warnings() {
		w.logger.Warn("package registry", "warning", warning)
	}
	if w.front, err = registry.New(registry.Options{Settings: settings, Domains: s.Code.Domains, Limits: s.Limits, Logger: w.logger}); err != nil {
		return nil, fault.Usage("%w", err)
	}
	dir := filepath.Join(s.Home, "packages")
	return packages.Open(packages.Options{
		Dir: dir, Limits: s.Limits, Runner: w.runner, Front: w.front, Interpreters: s.Scripts.Interpreters, Hide: l.hide(roots),
		Open: s.Code.Unconfined && !w.Capabilities().Holds(sandbox.Domains), Logger: w.logger,
	})
}

// facts are what models are told of the shell.
func (w *work) facts(s Settings, program shell.Program) toolshell.Facts {
	able := w.Capabilities()
	mode, domains := w.Network()
	backend, policy := able.Backend, able.Tier.String()+" confinement"
	if w.Refusal() != nil {
		backend, policy = "none", "so every command is refused"
	}
	var found []interpreter.Interpreter
	for _, kind := range []interpreter.Kind{interpreter.Python, interpreter.Node} {
		if i, err := s.Scripts.Interpreters.Find(kind); err == nil {
			found = append(found, i)
		}
	}
	return toolshell.Facts{
		Dialect: string(program.Dialect), System: toolshell.System(), Backend: backend, Policy: policy,
		Network: mode, Domains: domains, Holds: len(able.Gaps(sandbox.Network{Mode: mode})) == 0,
		Installs: s.Code.Install, Packages: s.Code.Packages, Links: s.Scripts.FilesURL != "", Files: true,
		Programs: toolshell.FindPrograms(s.Scripts.Interpreters.Search(found...)),
		Timeout:  s.Limits.Duration(config.CodeTime), Longest: max(s.Limits.Duration(config.CodeTime), s.Limits.Duration(config.CodeLongest)),
	}
}

// close removes what is left of workspaces. Conversations are to have ended.
func (w *work) close() {
	if w.front != nil {
		w.front.Close()
	}
	if w.own != nil {
		w.own.close()
	}
	if w.area == nil {
		return
	}
	if err := w.area.Close(); err != nil {
		w.logger.Warn("workspaces left behind; the next start removes them", "dir", w.area.Dir(), "error", err)
	}
}

// LookAtCode says how commands would be confined, without keeping anything open.
func LookAtCode(ctx context.Context, s Settings, logger *slog.Logger) (Confinement, error) {
	l, err := openLauncher(ctx, s, s.Code.policy(s.Scripts.policy()), logger)
	if err != nil {
		return Confinement{}, err
	}
	defer l.close()
	return l.commands().confinement(), nil
}

// CodeConfinement is how commands are confined; false when none may run.
func (a *App) CodeConfinement() (Confinement, bool) {
	if a.work == nil {
		return Confinement{}, false
	}
	return a.work.confinement(), true
}

// OpenCode begins a conversation that goes on over several requests; nil when a model
// may not work with files. Close what it returns.
func (a *App) OpenCode() *code.Conversation {
	if a.work == nil {
		return nil
	}
	return a.work.service.Open("", nil)
}
