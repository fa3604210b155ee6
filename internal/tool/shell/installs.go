package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/guard"
	"github.com/metier-run/metier/internal/interpreter"
	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/sandbox/registry"
	"github.com/metier-run/metier/internal/workspace"
	"github.com/metier-run/metier/internal/workspace/install"
	"github.com/metier-run/metier/internal/workspace/packages"
)

// installs reads the installs out of the line and performs them (B1 13). over reports
// that nothing else is left: the sentence is then the answer.
func (r *run) installs(ctx context.Context) (sentence string, over bool, err error) {
	reading := install.Read(r.args.command, install.Options{
		Allowed: r.o.Installer != nil, Network: r.o.Facts.Network == sandbox.NetworkOpen, Packages: r.o.Facts.Packages,
		Manifest: r.manifest, Most: r.limits.Int(config.InstallNames),
	})
	if reading.Refusal != "" {
		r.failed = true
		return reading.Refusal, true, nil
	}
	if len(reading.Requests) == 0 {
		return "", false, nil
	}
	if r.args.background {
		r.failed = true
		return backgroundInstall, true, nil
	}
	var outcomes []install.Outcome
	var results []bool
	for _, request := range reading.Requests {
		more, ok, err := r.perform(ctx, request)
		if err != nil {
			return "", false, err
		}
		outcomes = append(outcomes, more...)
		results = append(results, ok)
		r.failed = r.failed || !ok
	}
	r.line = reading.Line(results)
	if note := install.Note(outcomes); note != "" {
		r.notes = append(r.notes, note)
	}
	if reading.Only {
		return joined(r.notes...), true, nil
	}
	return "", false, nil
}

// perform carries one request out, unless one before it has failed.
func (r *run) perform(ctx context.Context, request install.Request) (outcomes []install.Outcome, ok bool, err error) {
	if o, is := request.BuiltIn(); is {
		outcomes = append(outcomes, o)
	}
	var specs []packages.Spec
	var already, wanted []string
	kind := kindOf(request.Kind)
	for _, s := range request.Needs() {
		spec := packages.Spec{Name: s.Name, Extras: s.Extras, Version: s.Version, Marker: s.Marker}
		if r.has(kind, spec) {
			already = append(already, r.installed(kind, []packages.Spec{spec})...)
			continue
		}
		specs = append(specs, spec)
		wanted = append(wanted, s.Text(request.Kind))
	}
	if len(already) > 0 && !request.Manifest {
		outcomes = append(outcomes, install.Outcome{Kind: request.Kind, State: install.Already, Names: already})
	}
	switch {
	case r.failed:
		return append(outcomes, install.Outcome{Kind: request.Kind, State: install.Skipped, Names: wanted}), false, nil
	case len(specs) == 0:
		if request.Manifest {
			outcomes = append(outcomes, install.Outcome{Kind: request.Kind, State: install.ManifestDone})
		}
		return outcomes, true, nil
	}
	names, reason, err := r.install(ctx, kind, specs)
	switch {
	case err != nil:
		return nil, false, err
	case reason != "":
		return append(outcomes, install.Outcome{Kind: request.Kind, State: install.Failed, Names: wanted, Reason: reason}), false, nil
	case request.Manifest:
		return append(outcomes, install.Outcome{Kind: request.Kind, State: install.ManifestDone, Names: names}), true, nil
	}
	return append(outcomes, install.Outcome{Kind: request.Kind, State: install.Installed, Names: names}), true, nil
}

func kindOf(k install.Kind) interpreter.Kind {
	if k == install.Npm {
		return interpreter.Node
	}
	return interpreter.Python
}

func registryKind(k interpreter.Kind) registry.Kind {
	if k == interpreter.Node {
		return registry.Npm
	}
	return registry.Pip
}

// install makes the set of what the workspace has and what it wants besides. reason says
// why that cannot be, for the model.
func (s *Set) install(ctx context.Context, kind interpreter.Kind, specs []packages.Spec) (names []string, reason string, err error) {
	s.mu.Lock()
	have := slices.Clone(s.specs[kind])
	s.mu.Unlock()
	request := packages.Request{Kind: registryKind(kind), Have: have, Add: specs}
	if own, ok := s.o.Workspace.Own(kind); ok {
		request.Use = own
	}
	set, err := s.o.Installer.Install(ctx, request)
	if bad, ok := errors.AsType[*packages.Failure](err); ok {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, spec := range specs {
			s.lost[string(kind)+" "+spec.Name] = strings.TrimSuffix(bad.Text, ".")
		}
		return nil, strings.TrimSuffix(bad.Text, "."), nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("%s: install: %w", Name, err)
	}
	use := workspace.Packages{Kind: kind, Dir: set.Dir, Bin: set.Bin, Imports: set.Python, Release: set.Close}
	if kind == interpreter.Node {
		use.Imports = []string{set.NodePath}
	}
	s.o.Workspace.Use(use)
	s.mu.Lock()
	s.names[kind] = set.Names
	s.specs[kind] = append(have, specs...)
	s.mu.Unlock()
	return s.installed(kind, specs), "", nil
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
	if kind == interpreter.Python {
		return registry.Fold(a) == registry.Fold(b)
	}
	return a == b
}

// installed are specs with the versions that came.
func (s *Set) installed(kind interpreter.Kind, specs []packages.Spec) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for _, spec := range specs {
		name := spec.Name
		for _, have := range s.names[kind] {
			if sameName(kind, have.Name, spec.Name) {
				name += " " + have.Version
				break
			}
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

// refusedBefore is why a distribution could not be installed.
func (s *Set) refusedBefore(kind interpreter.Kind, name string) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	reason, ok := s.lost[string(kind)+" "+name]
	return reason, ok
}

// manifest reads a file of the workspace for an install, by its path from where the
// line starts.
func (r *run) manifest(name string) ([]byte, error) {
	rel, err := r.relative(name)
	if err != nil {
		return nil, err
	}
	data, err := r.read(rel)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s is not there", name)
	case err != nil:
		return nil, err
	}
	return data, nil
}

// relative is a path from where the command begins, relative to the work folder.
func (r *run) relative(name string) (string, error) {
	if path.IsAbs(name) || strings.HasPrefix(name, "~") {
		return r.o.Workspace.Resolve(name)
	}
	return guard.Clean(path.Join(r.began, name))
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
		err = fmt.Errorf("%s has more than %d bytes", rel, most)
	}
	return data, err
}
