package app

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"

	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/internal/launch"
	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/workspace"
	"github.com/metier-run/metier/internal/workspace/artifact"
	"github.com/metier-run/metier/skill"
)

// launches is what starts anything for a model in this process: the scripts of skills,
// and the commands that a model writes.
type launches struct {
	o        Settings
	logger   *slog.Logger
	launcher *launch.Launcher
	scratch  *workspace.Area
	files    *artifact.Store
	life     context.Context
	end      context.CancelCauseFunc
	tasks    sync.WaitGroup
}

var errStopping = errors.New("this process is stopping")

// openLaunches finds what confines launches, and opens the store for what they make.
// That nothing confines them here is no error: see [Confinement].
func openLaunches(ctx context.Context, s Settings, logger *slog.Logger) (*launches, error) {
	l, err := openLauncher(ctx, s, s.Scripts.policy(), logger)
	if err != nil {
		return nil, err
	}
	l.files, err = artifact.Open(artifact.Options{Dir: filepath.Join(s.Home, "artifacts"), Limits: s.Limits, Logger: logger})
	if err != nil {
		l.close()
		return nil, err
	}
	l.tasks.Go(func() { l.files.Run(l.life) })
	return l, nil
}

// openLauncher is openLaunches without the store, under a policy.
func openLauncher(ctx context.Context, s Settings, policy sandbox.Policy, logger *slog.Logger) (*launches, error) {
	l := &launches{o: s, logger: logger}
	var err error
	if l.scratch, err = workspace.OpenArea(scratchDir(s.Home), logger); err != nil {
		return nil, err
	}
	l.launcher, err = launch.Open(ctx, s.launchOptions(policy, l.scratch.Dir(), logger))
	l.life, l.end = context.WithCancelCause(context.WithoutCancel(ctx))
	switch {
	case err == nil:
		return l, nil
	case l.launcher != nil:
		l.close()
	default:
		l.dropScratch()
	}
	if ctx.Err() != nil {
		return nil, err
	}
	return nil, fault.Usage("%w", err)
}

func scratchDir(home string) string { return filepath.Join(home, "scratch") }

func (s Settings) launchOptions(policy sandbox.Policy, scratch string, logger *slog.Logger) launch.Options {
	return launch.Options{
		Policy: policy, Networks: map[sandbox.Purpose]launch.Network{sandbox.Script: s.Scripts.Network, sandbox.Shell: s.Code.Network},
		Scratch: scratch, Search: s.Scripts.Interpreters.Path, Limits: s.Limits, Logger: logger, Finders: s.Scripts.Finders,
	}
}

// scripts is the launcher as the scripts of skills see it.
func (l *launches) scripts() runner {
	return runner{launcher: l.launcher, purpose: sandbox.Script, network: l.o.Scripts.Network, life: l.life}
}

// hide are the directories that no launch sees but for its own: the roots of all
// skills, and what this process keeps for itself.
func (l *launches) hide(roots []skill.Root) []string {
	hide := []string{l.o.Home}
	for _, root := range roots {
		hide = append(hide, root.Dir)
	}
	return hide
}

// close ends what still runs, waits for it, and removes the scratch.
func (l *launches) close() {
	l.end(errStopping)
	if err := l.launcher.Close(); err != nil {
		l.logger.Warn("sandbox not closed", "error", err)
	}
	l.tasks.Wait()
	l.dropScratch()
}

func (l *launches) dropScratch() {
	if err := l.scratch.Close(); err != nil {
		l.logger.Warn("scratch left behind; the next start removes it", "dir", l.scratch.Dir(), "error", err)
	}
}
