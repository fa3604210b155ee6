package skill

import (
	"context"
	"crypto/sha256"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/metier-run/metier/internal/bash"
	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/interpreter"
	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/tool"
	"github.com/metier-run/metier/internal/workspace/diagnose"
	"github.com/metier-run/metier/internal/workspace/install"
)

// The files in which skills list the packages that their scripts need.
const (
	requirementsFile = "requirements.txt"
	packageFile      = "package.json"
)

// setUp has the packages installed that the call asks for and that the skill lists.
// The sentence says why the script does not run.
func (w *work) setUp(ctx context.Context) (sentence string, err error) {
	if sentence, err = w.asked(ctx); err != nil || sentence != "" {
		return sentence, err
	}
	if w.place.NoRecovery || !w.place.options(ctx).Allowed {
		return "", nil
	}
	return "", w.listed(ctx)
}

// asked installs what the call asks for, by the rules for a command that asks for the
// same (B1 3.1).
func (w *work) asked(ctx context.Context) (sentence string, err error) {
	o := w.place.options(ctx)
	switch {
	case len(w.packages) == 0:
		return "", nil
	case !o.Allowed:
		// The host may have them; if not, the script says so.
		w.notes = append(w.notes, packagesOff)
		return "", nil
	}
	for _, p := range w.packages {
		if strings.HasPrefix(p, "-") { // an option would be one to the command as well
			return fmt.Sprintf(packagesBad, tool.Clip(p)), nil
		}
	}
	reading := install.Read(installLine(install.KindOf(w.kind), w.packages), o)
	if reading.Refusal != "" {
		return fmt.Sprintf(packagesAsked, reading.Refusal), nil
	}
	if !reading.Only {
		return fmt.Sprintf(packagesBad, tool.Clip(strings.Join(w.packages, ", "))), nil
	}
	for _, request := range reading.Requests {
		outcomes, ok, err := w.place.Packages.Perform(ctx, request)
		if err != nil {
			return "", err
		}
		if !ok {
			return fmt.Sprintf(packagesFailed, install.Note(outcomes)), nil
		}
		w.notes = append(w.notes, install.Note(outcomes))
	}
	return "", nil
}

// installLine is the command that asks for packages, so that there is one judge of what
// may be asked for. Each is one word of it, whatever is in it.
func installLine(kind install.Kind, packages []string) string {
	words := []string{string(kind), "install"}
	for _, p := range packages {
		words = append(words, bash.Argument(p))
	}
	return strings.Join(words, " ")
}

// listed installs what the skill itself lists, at its top and beside the script, once a
// conversation (B1 15.4). What cannot be installed is told, and is no reason not to run
// the script: it may not need it.
func (w *work) listed(ctx context.Context) error {
	folders := []string{".", path.Dir(w.file.Path)}
	for _, folder := range slices.Compact(folders) {
		if w.kind != interpreter.Node {
			if err := w.list(ctx, path.Join(folder, requirementsFile), w.requirements); err != nil {
				return err
			}
		}
		if w.kind != interpreter.Python {
			if err := w.list(ctx, path.Join(folder, packageFile), w.manifest); err != nil {
				return err
			}
		}
	}
	return nil
}

// list applies one file, unless the conversation has done so.
func (w *work) list(ctx context.Context, name string, read func(ctx context.Context, name, text string, whole bool) install.Request) error {
	file, err := w.skill.Lookup(name)
	if err != nil || !file.Text {
		return nil
	}
	page, err := w.skill.Read(ctx, file.Path, 0, w.scripts.Limits.Get(config.PageSize))
	if err != nil || page.Binary {
		return ctx.Err() // one that cannot be read lists nothing
	}
	key := fmt.Sprintf("%s/%s %x", w.skill.Name, file.Path, sha256.Sum256([]byte(page.Text)))
	if w.place.Applied.has(key) {
		return nil
	}
	if request := read(ctx, file.Path, page.Text, !page.More()); len(request.Needs()) > 0 {
		outcomes, _, err := w.place.Packages.Perform(ctx, request)
		if err != nil {
			return err
		}
		outcomes = slices.DeleteFunc(outcomes, func(o install.Outcome) bool { return o.State == install.Already || o.State == install.BuiltIn })
		if note := install.Note(outcomes); note != "" {
			w.notes = append(w.notes, fmt.Sprintf(needsApplied, file.Path, note))
		}
	}
	w.place.Applied.add(key)
	return nil
}

// requirements reads names and versions, one a line. Other lines are passed over and
// told: an option or an address may not decide where packages come from, and the rest
// of the list is of use without it.
func (w *work) requirements(ctx context.Context, name, text string, whole bool) install.Request {
	request := install.Request{Kind: install.Pip}
	o := w.place.options(ctx)
	var passed []string
	for i, line := range requirementLines(text) {
		if i == o.Most {
			whole = false
			break
		}
		reading := install.Read(installLine(install.Pip, []string{line}), o)
		if len(reading.Requests) != 1 {
			passed = append(passed, tool.Clip(line))
			continue
		}
		request.Specs = append(request.Specs, reading.Requests[0].Specs...)
	}
	if len(passed) > 0 {
		w.notes = append(w.notes, fmt.Sprintf(needsPassed, name, strings.Join(passed, ", ")))
	}
	if !whole {
		w.notes = append(w.notes, fmt.Sprintf(needsMany, name, o.Most))
	}
	return request
}

// requirementLines are the lines that are no comment, as pip joins them.
func requirementLines(text string) []string {
	text = strings.ReplaceAll(strings.TrimPrefix(text, "\ufeff"), "\r\n", "\n")
	var lines []string
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		line = " " + strings.ReplaceAll(line, "\t", " ")
		line, _, _ = strings.Cut(line, " #")
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// manifest reads a package.json for what the skill needs to run.
func (w *work) manifest(ctx context.Context, name, text string, whole bool) install.Request {
	o := w.place.options(ctx)
	o.Manifest = func(string) ([]byte, error) { return []byte(text), nil }
	reading := install.Read("npm install --omit=dev", o)
	if !whole || len(reading.Requests) != 1 {
		w.notes = append(w.notes, fmt.Sprintf(manifestPassed, name))
		return install.Request{}
	}
	return reading.Requests[0]
}

// autoInstall installs what a script misses and runs it again, within the script's own
// time (B1 15.4, 10.1).
func (w *work) autoInstall(ctx context.Context, r *report, until time.Time) error {
	if w.place.NoRecovery {
		return nil
	}
	tried := map[string]bool{}
	for range w.scripts.Limits.Int(config.InstallAuto) {
		m, request, ok := r.missing(ctx)
		if !ok || tried[m.Distribution] {
			return nil
		}
		tried[m.Distribution] = true
		outcomes, ok, err := w.place.Packages.Perform(ctx, request)
		if err != nil {
			return err
		}
		if !ok {
			return nil // the report says why
		}
		var names []string
		for _, o := range outcomes {
			names = append(names, o.Names...)
		}
		came := strings.Join(names, ", ")
		left := until.Sub(w.now())
		if left <= 0 {
			w.notes = append(w.notes, fmt.Sprintf(autoLate, m.Name, came))
			return nil
		}
		ended, refused, err := w.attempt(ctx, r.site, left)
		if err != nil {
			return err
		}
		if refused != nil {
			w.notes = append(w.notes, fmt.Sprintf(autoLate, m.Name, came))
			return nil
		}
		w.notes = append(w.notes, fmt.Sprintf(autoInstalled, m.Name, came))
		*r = w.report(w.script, r.site, ended, w.env)
	}
	return nil
}

// missing is the package that a script failed for, with the request for it, if it is
// one that the host may install.
func (r report) missing(ctx context.Context) (m diagnose.Module, request install.Request, ok bool) {
	if r.place == nil || r.place.Packages == nil || r.ended.OK() || r.ended.Ended != sandbox.Exited {
		return m, request, false
	}
	f := r.read(ctx)
	m = f.Module
	kind := m.Tool.Interpreter()
	switch _, again, failed := r.place.Packages.Failed(kind, m.Distribution); {
	case f.Class != diagnose.MissingModule, m.Distribution == "", partOf(r.skill, m.Name) != "",
		failed && !again, r.place.Packages.Has(kind, m.Distribution):
		return m, request, false
	}
	reading := install.Read(installLine(install.KindOf(kind), []string{m.Distribution}), r.place.options(ctx))
	if len(reading.Requests) != 1 || len(reading.Requests[0].Needs()) == 0 {
		return m, request, false
	}
	return m, reading.Requests[0], true
}

// read says what the output of a script that failed means.
func (r report) read(ctx context.Context) diagnose.Failure {
	facts := diagnose.Facts{Network: r.network == sandbox.NetworkOpen, Python: r.python()}
	if r.place != nil && r.place.Packages != nil {
		facts.Installs = r.place.options(ctx).Allowed
		facts.Installed = func(t diagnose.Tool, name string) bool {
			return r.place.Packages.Has(t.Interpreter(), name)
		}
		facts.Refused = func(t diagnose.Tool, name string) (string, bool) {
			reason, _, failed := r.place.Packages.Failed(t.Interpreter(), name)
			return reason, failed
		}
	}
	return diagnose.Read(r.output(), facts)
}

// python is the version of Python that scripts find, if it is known.
func (r report) python() string {
	for _, i := range r.interpreters() {
		if i.Kind == interpreter.Python {
			return i.Version
		}
	}
	return ""
}
