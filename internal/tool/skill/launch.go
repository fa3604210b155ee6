package skill

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/interpreter"
	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/tool"
	"github.com/metier-run/metier/internal/workspace"
	"github.com/metier-run/metier/internal/workspace/artifact"
)

// prepare finds the programs and the places of a script. A sentence says why that
// cannot be.
func (s *Set) prepare(c *script, find func(interpreter.Kind) (interpreter.Interpreter, error)) string {
	var err error
	if c.dir, err = canonical(c.skill.Dir()); err != nil {
		return fmt.Sprintf(goneFile, c.skill.Name, c.file.Path)
	}
	// Not even a part of the path may be a link now.
	if real, err := filepath.EvalSymlinks(c.path()); err != nil || real != c.path() {
		return fmt.Sprintf(goneFile, c.skill.Name, c.file.Path)
	}
	if c.with, err = find(c.kind); err != nil {
		s.scripts.Logger.Warn("no interpreter", "skill", c.skill.Name, "path", c.file.Path, "error", err)
		return fmt.Sprintf(runNoProgram, c.kind, c.skill.Name, c.file.Path)
	}
	kinds := slices.Sorted(maps.Values(s.scripts.Kinds))
	for _, other := range slices.Compact(kinds) {
		if found, err := find(other); other != c.kind && err == nil {
			c.beside = append(c.beside, found)
		}
	}
	return ""
}

// canonical is a path of this host from its root, without links.
func canonical(dir string) (string, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", err
	}
	return filepath.Abs(real)
}

// launch is what runs a script in scratch.
func (s *Set) launch(c script, scratch string) sandbox.Launch {
	read := []string{c.dir}
	for _, i := range c.interpreters() {
		for _, dir := range i.Read {
			if !slices.Contains(read, dir) {
				read = append(read, dir)
			}
		}
	}
	return sandbox.Launch{
		Purpose: sandbox.Script, Argv: c.argv(),
		Dir: scratch, Env: s.environ(c, scratch),
		Write: []string{scratch}, Read: read, Hide: s.hidden(c),
		Deadline: s.scripts.Limits.Duration(config.ScriptTime),
		Output:   s.scripts.Limits.Get(config.ScriptOutput),
	}
}

// hidden are the roots of skills, and the reachable skills that lie elsewhere.
func (s *Set) hidden(c script) []string {
	var hide []string
	add := func(dir string) {
		real, err := canonical(dir)
		if err != nil || filepath.Dir(real) == real || sandbox.Within(c.dir, real) {
			return
		}
		if !slices.ContainsFunc(hide, func(h string) bool { return sandbox.Within(h, real) }) {
			hide = append(hide, real)
		}
	}
	for _, dir := range s.scripts.Hide {
		add(dir)
	}
	for _, k := range s.skills {
		add(k.Dir())
	}
	return hide
}

// start launches a script and waits for its end. refused is the answer where this
// host ran nothing.
func (s *Set) start(ctx context.Context, c script, l sandbox.Launch, e tool.Env) (ended sandbox.Result, refused *journal.Result, err error) {
	if e.Progress != nil {
		l.Watch = func(_ sandbox.Stream, p []byte) { e.Progress(p) }
	}
	refuse := func(format string, args ...any) (sandbox.Result, *journal.Result, error) {
		r := failure(c.skill.Name, c.file.Path, format, args...)
		return sandbox.Result{}, &r, nil
	}
	ended, err = s.runner.Run(ctx, l)
	if errors.Is(err, sandbox.ErrBusy) {
		return refuse(runBusy)
	}
	if why := hostReason(err); why != "" && ctx.Err() == nil {
		s.scripts.Logger.WarnContext(ctx, "script refused", "skill", c.skill.Name, "path", c.file.Path, "error", err)
		return refuse(runRefused, why)
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return sandbox.Result{}, nil, fmt.Errorf("%s %s: %w", RunName, c.name(), err)
	}
	return ended, nil, nil
}

// hostReason is why this host runs no script, if that is what an error says.
func hostReason(err error) string {
	if bad, ok := errors.AsType[*sandbox.Refusal](err); ok {
		return bad.Error()
	}
	if bad, ok := errors.AsType[*sandbox.Unavailable](err); ok {
		return bad.Error()
	}
	return ""
}

// site is where a script runs.
type site struct {
	// place is the conversation's, nil in a scratch.
	place *Place
	// root is what the script may write to, cwd its working directory, in root.
	root, cwd string
}

// inScratch launches a script in a directory of its own, keeps what it made, and clears
// away the rest.
func (s *Set) inScratch(ctx context.Context, c script, e tool.Env) (journal.Result, error) {
	if sentence := s.prepare(&c, s.scripts.Interpreters.Find); sentence != "" {
		return failure(c.skill.Name, c.file.Path, "%s", sentence), nil
	}
	scratch, err := makeScratch(s.scripts.Scratch)
	if err != nil {
		return journal.Result{}, fmt.Errorf("%s: %w", RunName, err)
	}
	defer func() {
		// The answer stands; who has the host can clear up.
		if err := workspace.Remove(scratch); err != nil {
			s.scripts.Logger.ErrorContext(ctx, "scratch left behind", "dir", scratch, "error", err)
		}
	}()
	before, err := artifact.Take(ctx, scratch, artifact.Scope{
		Ignore:  artifact.DefaultIgnore(),
		Entries: s.scripts.Limits.Int(config.ArtifactEntries), Depth: s.scripts.Limits.Int(config.ArtifactDepth),
	})
	if err != nil {
		return journal.Result{}, fmt.Errorf("%s: %w", RunName, err)
	}
	ended, refused, err := s.start(ctx, c, s.launch(c, scratch), e)
	if err != nil {
		return journal.Result{}, err
	}
	if refused != nil {
		return *refused, nil
	}
	r := s.report(c, site{root: scratch, cwd: scratch}, ended, e)
	r.hinted = r.hints(ctx)
	if len(c.packages) > 0 {
		r.notes = append(r.notes, packagesOff)
	}
	var files []journal.File
	r.files, files = s.keep(ctx, c, scratch, before)
	return r.result(files), nil
}

// keep has what a script left kept, and tells where it is (B1 14).
func (s *Set) keep(ctx context.Context, c script, scratch string, before artifact.Snapshot) (string, []journal.File) {
	if s.scripts.Artifacts == nil {
		return "", nil
	}
	kept, err := s.scripts.Artifacts.Capture(ctx, s.scripts.Owner, scratch, before)
	if err != nil {
		s.scripts.Logger.ErrorContext(ctx, "files of a script lost", "skill", c.skill.Name, "path", c.file.Path, "error", err)
		return tool.FilesLost, nil
	}
	return tool.Kept(kept, s.scripts.FilesURL, s.scripts.Artifacts.Dir(kept.RunID))
}

// inWorkspace launches a script where the shell of the conversation is, with what
// belongs around it (B1 15.3, 15.4, 15.8).
func (s *Set) inWorkspace(ctx context.Context, p Place, c script, e tool.Env) (journal.Result, error) {
	unlock, err := p.Workspace.Lock(ctx)
	if err != nil {
		return journal.Result{}, fmt.Errorf("%s: %w", RunName, err)
	}
	defer unlock()
	lost, err := p.Workspace.Restore()
	if err != nil {
		return journal.Result{}, fmt.Errorf("%s: %w", RunName, err)
	}
	if sentence := s.prepare(&c, s.finder(p)); sentence != "" {
		return failure(c.skill.Name, c.file.Path, "%s", sentence), nil
	}
	w := &work{Set: s, script: c, place: p, env: e}
	if lost {
		w.notes = append(w.notes, workLost)
	}
	if p.Notes != nil {
		w.notes = append(w.notes, p.Notes()...)
	}
	sentence, err := w.setUp(ctx)
	if err != nil {
		return journal.Result{}, fmt.Errorf("%s: %w", RunName, err)
	}
	if sentence != "" {
		return failure(c.skill.Name, c.file.Path, "%s", sentence), nil
	}
	return w.run(ctx)
}

// run runs a script that all is ready for.
func (w *work) run(ctx context.Context) (journal.Result, error) {
	keeper := w.place.Artifacts
	var before artifact.Snapshot
	if keeper != nil {
		var err error
		if before, err = keeper.Before(ctx); err != nil {
			return journal.Result{}, fmt.Errorf("%s: %w", RunName, err)
		}
	}
	at, limit := w.site(), w.scripts.Limits.Duration(config.ScriptTime)
	until := w.now().Add(limit)
	ended, refused, err := w.attempt(ctx, at, limit)
	if err != nil {
		return journal.Result{}, err
	}
	if refused != nil {
		return *refused, nil
	}
	r := w.report(w.script, at, ended, w.env)
	if err := w.autoInstall(ctx, &r, until); err != nil {
		return journal.Result{}, err
	}
	r.notes = w.notes
	r.hinted = r.hints(ctx)
	var files []journal.File
	r.repair = w.repair(ctx, r)
	if keeper != nil {
		r.files, files = keeper.Keep(ctx, before)
	}
	result := r.result(files)
	result.Workspace = true
	return result, nil
}
