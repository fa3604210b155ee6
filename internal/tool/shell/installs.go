package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/guard"
	"github.com/metier-run/metier/internal/interpreter"
	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/sandbox/registry"
	"github.com/metier-run/metier/internal/workspace"
	"github.com/metier-run/metier/internal/workspace/diagnose"
	"github.com/metier-run/metier/internal/workspace/install"
	"github.com/metier-run/metier/internal/workspace/packages"
)

// installs reads the installs out of the line and performs them (B1 13). done reports
// that nothing else is left: the result is then the answer.
func (r *run) installs(ctx context.Context) (result journal.Result, done bool, err error) {
	o := r.options(ctx)
	o.Manifest = r.manifest
	reading := install.Read(r.args.command, o)
	switch {
	case reading.Refusal != "" && r.o.NoRecovery:
		return journal.Result{}, false, nil // the shell says which program it lacks
	case reading.Refusal != "":
		return r.say(false, reading.Refusal), true, nil
	case len(reading.Requests) == 0:
		r.line = reading.Line(nil)
		return journal.Result{}, false, nil
	case r.args.background:
		return r.say(false, backgroundInstall), true, nil
	}
	results, err := r.performAll(ctx, reading.Requests)
	if err != nil {
		return journal.Result{}, false, err
	}
	r.line = reading.Line(results)
	if !reading.Only {
		return journal.Result{}, false, nil
	}
	var warning string
	if !r.o.NoRecovery {
		warning = r.attempts.Record(r.args.command, r.failed)
	}
	return r.say(!r.failed, warning), true, nil
}

// options say what may be installed, and what is there already.
func (r *run) options(ctx context.Context) install.Options {
	return install.Options{
		Allowed: r.o.Installer != nil, Network: r.o.Facts.Network == sandbox.NetworkOpen, Packages: r.o.Facts.Packages,
		Provided: r.provides(ctx), Host: r.isHost, Program: r.program, Brings: brings, Most: r.limits.Int(config.InstallNames),
	}
}

// brings is the package that is well known to bring a program.
func brings(kind install.Kind, program string) string {
	return diagnose.Brings(kind.Interpreter(), program)
}

// performAll carries the requests of a line out in their order, and notes what became of
// them. A fallback is tried where the request before it has failed, and makes up for it.
func (r *run) performAll(ctx context.Context, requests []install.Request) (results []bool, err error) {
	var outcomes []install.Outcome
	before := false // whether an install had failed before those of which one is enough
	for i, request := range requests {
		switch {
		case !request.Fallback:
			before = r.failed
		case results[i-1]:
			results = append(results, true)
			continue
		default:
			r.failed = before
		}
		more, ok, err := r.perform(ctx, request)
		if err != nil {
			return nil, err
		}
		outcomes = append(outcomes, more...)
		results = append(results, ok)
		r.failed = r.failed || !ok
	}
	if note := install.Note(outcomes); note != "" {
		r.notes = append(r.notes, note)
	}
	r.notes = append(r.notes, r.environments(requests, results)...)
	return results, nil
}

// perform carries one request out, unless one before it has failed.
func (r *run) perform(ctx context.Context, request install.Request) (outcomes []install.Outcome, ok bool, err error) {
	if o, is := request.BuiltIn(); is {
		outcomes = append(outcomes, o)
	}
	kind := request.Kind.Interpreter()
	var specs, already []packages.Spec
	var wanted []string
	for _, s := range request.Needs() {
		spec := packages.Spec{Name: s.Name, Extras: s.Extras, Version: s.Version, Marker: s.Marker}
		if r.has(kind, spec) {
			already = append(already, spec)
			continue
		}
		specs = append(specs, spec)
		wanted = append(wanted, s.Text(request.Kind))
	}
	add := func(state install.State, names []string, reason string) {
		outcomes = append(outcomes, install.Outcome{Kind: request.Kind, State: state, Names: names, Reason: reason})
	}
	if len(already) > 0 && !request.Manifest {
		add(install.Already, r.installed(kind, already), "")
	}
	switch {
	case len(specs) == 0 && request.Manifest:
		add(install.ManifestDone, r.installed(kind, already), "")
		return outcomes, true, nil
	case len(specs) == 0:
		return outcomes, true, nil
	case r.failed:
		add(install.Skipped, wanted, "")
		return outcomes, false, nil
	}
	names, bad, err := r.install(ctx, kind, specs)
	switch {
	case err != nil:
		return nil, false, err
	case bad != nil:
		at := slices.IndexFunc(specs, func(s packages.Spec) bool { return sameName(kind, s.Name, bad.Package) })
		if at < 0 || len(wanted) == 1 {
			add(install.Failed, wanted, bad.Text)
			return outcomes, false, nil
		}
		add(install.Failed, wanted[at:at+1], bad.Text)
		add(install.Together, slices.Delete(slices.Clone(wanted), at, at+1), wanted[at])
		return outcomes, false, nil
	case request.Manifest:
		add(install.ManifestDone, append(r.installed(kind, already), names...), "")
	default:
		add(install.Installed, names, "")
	}
	return outcomes, true, nil
}

// lost is why a distribution could not be installed. passing says that the next try may
// end otherwise, so that the host makes it by itself.
type lost struct {
	reason  string
	passing bool
}

// passes reports whether a failed install may do better soon.
func passes(r packages.Reason) bool {
	switch r {
	case packages.Busy, packages.NoAnswer, packages.Late, packages.Damaged:
		return true
	}
	return false
}

// blamed are those of the packages of a failed install that cannot be had, as far as that
// is known: one that is fine by itself must not be held for lost.
func blamed(kind interpreter.Kind, specs []packages.Spec, bad *packages.Failure) []packages.Spec {
	if len(specs) == 1 || passes(bad.Reason) && bad.Package == "" || bad.Reason == packages.NoInstaller {
		return specs
	}
	return slices.DeleteFunc(slices.Clone(specs), func(s packages.Spec) bool { return !sameName(kind, s.Name, bad.Package) })
}

// install makes the set of what the workspace has and what it wants besides. bad says why
// that cannot be, for the model.
func (r *run) install(ctx context.Context, kind interpreter.Kind, specs []packages.Spec) (names []string, bad *packages.Failure, err error) {
	r.progress(specs)
	s := r.Set
	s.mu.Lock()
	have := slices.Clone(s.specs[kind])
	s.mu.Unlock()
	request := packages.Request{Kind: kind, Have: have, Add: specs}
	// The host's interpreter, also where the conversation has unpacked its own: an
	// installer reaches the registries, so nothing of the workspace is run as one.
	if with, err := s.o.Workspace.Interpreter(kind); err == nil {
		request.Use = with
	}
	set, err := s.o.Installer.Install(ctx, request)
	if bad, ok := errors.AsType[*packages.Failure](err); ok && ctx.Err() == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, spec := range blamed(kind, specs, bad) {
			s.lost[lostKey(kind, spec.Name)] = lost{reason: strings.TrimSuffix(bad.Text, "."), passing: passes(bad.Reason)}
		}
		return nil, bad, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: install: %w", Name, err)
	}
	use := workspace.Packages{Kind: kind, Dir: set.Dir, Bin: set.Bin, Imports: set.Python, Release: set.Close}
	if kind == interpreter.Node {
		use.Imports = []string{set.NodePath}
	}
	s.o.Workspace.Use(use)
	s.mu.Lock()
	s.names[kind] = set.Names
	for _, spec := range specs {
		// The later word on a name counts.
		have = slices.DeleteFunc(have, func(h packages.Spec) bool { return sameName(kind, h.Name, spec.Name) })
		delete(s.lost, lostKey(kind, spec.Name))
	}
	s.specs[kind] = append(have, specs...)
	s.mu.Unlock()
	return s.installed(kind, specs), nil, nil
}

// progress tells whoever watches the call why it takes its time.
func (r *run) progress(specs []packages.Spec) {
	if r.env.Progress == nil {
		return
	}
	names := make([]string, len(specs))
	for i, s := range specs {
		names[i] = s.Name
	}
	r.env.Progress(fmt.Appendf(nil, installing, strings.Join(names, ", ")))
}

func lostKey(kind interpreter.Kind, name string) string {
	return string(kind) + " " + folded(kind, name)
}

// folded is a name as its registry compares it.
func folded(kind interpreter.Kind, name string) string {
	if kind == interpreter.Python {
		return registry.Fold(name)
	}
	return name
}

// has reports whether the workspace has asked for the same before and got it.
func (s *Set) has(kind interpreter.Kind, want packages.Spec) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.specs[kind], func(have packages.Spec) bool {
		same := sameName(kind, have.Name, want.Name) && slices.Equal(have.Extras, want.Extras) && have.Marker == want.Marker
		return same && (want.Version == "" || have.Version == want.Version)
	})
}

func sameName(kind interpreter.Kind, a, b string) bool {
	return folded(kind, a) == folded(kind, b)
}

// installed are specs with the versions that came.
func (s *Set) installed(kind interpreter.Kind, specs []packages.Spec) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for _, spec := range specs {
		name, came := spec.Name, false
		for _, have := range s.names[kind] {
			if sameName(kind, have.Name, spec.Name) {
				name, came = name+" "+have.Version, true
				break
			}
		}
		if !came && spec.Marker != "" {
			name += leftOut // pip passes over what its condition rules out
		}
		names = append(names, name)
	}
	return names
}

// hasDistribution reports whether a distribution is in the set of a kind, also one that
// came with another.
func (s *Set) hasDistribution(kind interpreter.Kind, name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.names[kind], func(i packages.Installed) bool { return sameName(kind, i.Name, name) })
}

// lostBefore is why a distribution could not be installed.
func (s *Set) lostBefore(kind interpreter.Kind, name string) (lost, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, ok := s.lost[lostKey(kind, name)]
	return l, ok
}

// listed reports whether the operator's list of packages has a name (B1 13.15).
func (s *Set) listed(kind interpreter.Kind, name string) bool {
	list := s.o.Facts.Packages
	return len(list) == 0 || slices.ContainsFunc(list, func(l string) bool { return sameName(kind, l, name) })
}

// manifest reads a file of the workspace for an install, by its path from where the
// line starts (B1 13.6).
func (r *run) manifest(name string) ([]byte, error) {
	rel, err := r.relativeTo(r.began, name)
	if err != nil {
		return nil, err
	}
	return r.read(rel)
}

// relativeTo is a path as a line or an output names it, from a folder of the workspace.
func (r *run) relativeTo(dir, name string) (string, error) {
	if path.IsAbs(name) || filepath.IsAbs(name) || strings.HasPrefix(name, "~") {
		return r.o.Workspace.Resolve(name)
	}
	return guard.Clean(path.Join(dir, name))
}

// read is a file of the work folder, up to the size that the file tools take.
func (r *run) read(rel string) ([]byte, error) {
	root, err := r.o.Workspace.Files()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := root.Open(rel)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	most := r.limits.Get(config.FileSize)
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("it has more than %d bytes", most)
	}
	return data, err
}
