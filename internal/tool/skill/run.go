package skill

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/interpreter"
	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/tool"
	"github.com/metier-run/metier/internal/workspace/artifact"
	"github.com/metier-run/metier/skill"
)

// Runner launches scripts as the operator allows it. It is safe for concurrent use.
type Runner interface {
	// Run starts a launch and waits for its end. The runner chooses what confines it,
	// and fills in its network, the variables that belong to that, and its limits of
	// memory, processes and disk. An [*sandbox.Refusal] or [*sandbox.Unavailable] says
	// that nothing ran because of this host, and is told to the model.
	Run(ctx context.Context, l sandbox.Launch) (sandbox.Result, error)
	// Capabilities are those of what confines the launches.
	Capabilities() sandbox.Capabilities
	// Network is what scripts can reach, and when that is a proxy, the domains behind
	// it.
	Network() (sandbox.NetworkMode, []string)
	// Refusal says why no script can run on this host although the operator allows
	// scripts; nil when they can.
	Refusal() error
}

// Artifacts keeps the files that scripts make; [artifact.Store] is one.
type Artifacts interface {
	Capture(ctx context.Context, owner, dir string, before artifact.Snapshot) (artifact.Capture, error)
	// Dir is the directory of a run's files on this host.
	Dir(runID string) string
}

// Scripts say how scripts are run. All but Interpreters and Scratch may be left out.
type Scripts struct {
	// Kinds are the extensions of the files that may run, with the dot, and what runs
	// them; nil is [DefaultKinds]. A file's own "#!" line is never asked.
	Kinds map[string]interpreter.Kind
	// Interpreters finds the programs.
	Interpreters interpreter.Options
	// Environ is the environment of this program, of which a script gets the language
	// and the time zone.
	Environ []string
	// Scratch is the directory below which each call gets a working directory of its
	// own, which is gone when the call is answered. It is made if it is missing. It means
	// nothing where there is a Place.
	Scratch string
	// Hide are the directories that no script sees but for its own skill: the roots
	// of all skills. What is not there is passed over.
	Hide []string
	// Artifacts keeps what scripts leave in their working directory; nil keeps
	// nothing. Owner may fetch it.
	Artifacts Artifacts
	Owner     string
	// FilesURL is the address below which kept files are served; empty names them by
	// their paths on this host.
	FilesURL string
	// Place gives the workspace in which scripts run with the model's commands; nil has
	// each run in a directory of its own, below Scratch.
	Place func(ctx context.Context) (Place, error)
	// Limits holds those of skills-run and of artifacts.
	Limits config.Values
	Logger *slog.Logger // nil logs nothing
}

// DefaultKinds is what runs unless the operator says otherwise (seed 1, "Running
// scripts"). Bash, because many scripts use more than sh has.
func DefaultKinds() map[string]interpreter.Kind {
	return map[string]interpreter.Kind{
		".py": interpreter.Python, ".js": interpreter.Node, ".mjs": interpreter.Node, ".sh": interpreter.Bash, ".bash": interpreter.Bash,
	}
}

// run answers skills_run with what one script did.
func (s *Set) run(ctx context.Context, text string, e tool.Env) (journal.Result, error) {
	if err := s.runner.Refusal(); err != nil {
		return failure("", "", runRefused, err), nil
	}
	call, err := parseRun(text)
	if err != nil && !isArgsError(err) {
		return failure("", "", runBadArguments), nil
	}
	k, name, found := s.locate(call.target)
	if !found {
		return s.notFound(call.skill), nil
	}
	place, broken := s.place(ctx)
	if broken != nil {
		return journal.Result{}, fmt.Errorf("%s: %w", RunName, broken)
	}
	if attached, is := place.attached(call.line); is {
		call.args, err = []string{attached}, nil
	}
	if err != nil {
		return failure(k.Name, name, "%s", argsMistake(err)), nil
	}
	file, kind, refused := s.scriptFile(ctx, k, name, call)
	if refused != nil {
		return *refused, nil
	}
	if sentence := s.argsRefusal(call.args); sentence != "" {
		return failure(k.Name, file.Path, "%s", sentence), nil
	}
	c := script{skill: k, file: file, kind: kind, args: call.args, packages: call.packages, others: call.others}
	if place == nil {
		return s.inScratch(ctx, c, e)
	}
	return s.inWorkspace(ctx, *place, c, e)
}

// isArgsError reports whether a call can be understood but for the script's
// arguments.
func isArgsError(err error) bool {
	return errors.Is(err, errArgsObject) || errors.Is(err, errArgsList) || errors.Is(err, errArgsQuote)
}

func argsMistake(err error) string {
	switch {
	case errors.Is(err, errArgsList):
		return argsList
	case errors.Is(err, errArgsObject):
		return argsObject
	}
	return argsQuote
}

func (s *Set) argsRefusal(args []string) string {
	size := 0
	for _, arg := range args {
		if strings.IndexByte(arg, 0) >= 0 {
			return argsNUL
		}
		size += len(arg) + 1
	}
	if most := s.scripts.Limits.Get(config.ScriptArgs); int64(size) > most {
		return fmt.Sprintf(argsLong, size, most)
	}
	return ""
}

// scriptFile is the file that a call means and what runs it, or the answer that
// says why it is none.
func (s *Set) scriptFile(ctx context.Context, k skill.Skill, name string, call runCall) (skill.File, interpreter.Kind, *journal.Result) {
	refuse := func(format string, args ...any) (skill.File, interpreter.Kind, *journal.Result) {
		r := failure(k.Name, name, format, args...)
		return skill.File{}, "", &r
	}
	if call.path == "" && name == mainFile {
		return refuse("%s", fmt.Sprintf(runNoPath, k.Name)+s.scriptsOf(k))
	}
	file, err := k.Lookup(name)
	if err != nil {
		return refuse("%s", s.noScript(k, name, call, err))
	}
	kind, ok := s.scripts.Kinds[strings.ToLower(path.Ext(file.Path))]
	switch {
	case file.Kind == skill.KindManifest || !ok && file.Text && file.Kind != skill.KindScript:
		return refuse("%s", fmt.Sprintf(runReadable, k.Name, file.Path, k.Name, file.Path)+s.scriptsOf(k))
	case !file.Text:
		return refuse("%s", fmt.Sprintf(runBinary, k.Name, file.Path)+s.scriptsOf(k))
	case !ok:
		return refuse("%s", fmt.Sprintf(runOtherKind, k.Name, file.Path, strings.Join(s.extensions(), ", "), k.Name, file.Path)+s.scriptsOf(k))
	}
	// The disk is asked now: the file may be gone, or be another.
	page, err := k.Read(ctx, file.Path, 0, 1)
	if bad, refused := errors.AsType[*skill.ReadError](err); refused {
		r := refusal(k, file.Path, bad)
		return skill.File{}, "", &r
	}
	if err != nil || page.Binary {
		return refuse(runBinary, k.Name, file.Path)
	}
	return file, kind, nil
}

// noScript says what a path is that names no file.
func (s *Set) noScript(k skill.Skill, name string, call runCall, err error) string {
	if at, args := glued(k, asWritten(call, name)); at != "" {
		return fmt.Sprintf(runGlued, exampleCall(k.Name, at, append(args, call.args...)))
	}
	if bad, ok := errors.AsType[*skill.ReadError](err); ok && errors.Is(bad, skill.ErrPath) {
		return fmt.Sprintf(refused, k.Name, bad.Message)
	}
	text := fmt.Sprintf(noFile, k.Name, name)
	if errors.Is(err, skill.ErrFolder) {
		text = fmt.Sprintf(runFolder, k.Name, name)
	} else if near := s.nearestScript(k, name); near != "" {
		text += fmt.Sprintf(didYouMean, near)
	}
	return text + s.scriptsOf(k)
}

// asWritten is the path as the model wrote it, if it wrote one.
func asWritten(call runCall, name string) string {
	if call.path != "" {
		return call.path
	}
	return name
}

// glued finds a script in a path to which arguments, or the program that runs it, are
// glued (B1 15.9).
func glued(k skill.Skill, text string) (string, []string) {
	words, err := splitWords(text)
	if err != nil || len(words) < 2 {
		return "", nil
	}
	for i, w := range words[:2] {
		at := cleanPath(k, w)
		if f, err := k.Lookup(at); err == nil && f.Kind == skill.KindScript {
			return f.Path, words[i+1:]
		}
	}
	return "", nil
}

// runnable lists the scripts of a skill that can run here, first those that are most
// likely meant to be run: directly in scripts/, and not named like a module's inside.
func (s *Set) runnable(k skill.Skill) []skill.File {
	var files []skill.File
	for _, f := range k.Files {
		if _, ok := s.scripts.Kinds[strings.ToLower(path.Ext(f.Path))]; ok && f.Text && f.Kind == skill.KindScript {
			files = append(files, f)
		}
	}
	rank := func(f skill.File) int {
		switch {
		case path.Dir(f.Path) == "scripts" && path.Base(f.Path)[0] != '_':
			return 0
		case path.Dir(f.Path) == "." || strings.HasPrefix(f.Path, "scripts/"):
			return 1
		}
		return 2
	}
	slices.SortStableFunc(files, func(a, b skill.File) int { return rank(a) - rank(b) })
	return files
}

func (s *Set) extensions() []string { return slices.Sorted(maps.Keys(s.scripts.Kinds)) }

func (s *Set) nearestScript(k skill.Skill, name string) string {
	k.Files = s.runnable(k)
	return nearestFile(k, name)
}

// scriptsOf names the scripts that there are.
func (s *Set) scriptsOf(k skill.Skill) string {
	files := s.runnable(k)
	if len(files) == 0 {
		return fmt.Sprintf(runNone, k.Name)
	}
	var names []string
	for _, f := range files[:min(len(files), namesInSentence)] {
		names = append(names, f.Path)
	}
	text := strings.Join(names, ", ")
	if more := len(files) - namesInSentence; more > 0 {
		text += fmt.Sprintf(listMore, more)
	}
	return fmt.Sprintf(runScripts, text)
}
