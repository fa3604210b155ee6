package launch

import (
	"context"
	"errors"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/sandbox/bare"
	"github.com/metier-run/metier/internal/sandbox/bwrap"
	"github.com/metier-run/metier/internal/sandbox/jobobject"
	"github.com/metier-run/metier/internal/sandbox/native"
	"github.com/metier-run/metier/internal/sandbox/oci"
	"github.com/metier-run/metier/internal/sandbox/seatbelt"
)

// Finder looks for one kind of backend.
type Finder struct {
	// Name is what an operator calls it.
	Name string
	// Tier is the best that it can be. One that cannot be enough is not looked for.
	Tier sandbox.Tier
	Find func(ctx context.Context, o Options) sandbox.Finding
}

// Finders are the kinds that this system may have, in the order in which they are
// preferred: what costs least to start first, and one with a kernel of its own only
// when nothing before it is enough.
func Finders() []Finder { return findersOf(runtime.GOOS) }

func findersOf(system string) []Finder {
	bareKind := Finder{Name: sandbox.Bare, Tier: sandbox.TierNone, Find: alone(bare.Find)}
	switch system {
	case "linux":
		return []Finder{
			{Name: native.Name, Tier: sandbox.TierFull, Find: findNative},
			{Name: bwrap.Name, Tier: sandbox.TierFull, Find: findBwrap},
			{Name: oci.Runc, Tier: sandbox.TierFull, Find: findRuntime(oci.Runc)},
			{Name: oci.Crun, Tier: sandbox.TierFull, Find: findRuntime(oci.Crun)},
			{Name: native.LandlockName, Tier: sandbox.TierPartial, Find: findLandlock},
			{Name: oci.Runsc, Tier: sandbox.TierStrong, Find: findRuntime(oci.Runsc)},
			bareKind,
		}
	case "darwin":
		return []Finder{{Name: seatbelt.Name, Tier: sandbox.TierFull, Find: alone(seatbelt.Find)}, bareKind}
	case "windows":
		return []Finder{{Name: jobobject.Name, Tier: sandbox.TierNone, Find: alone(jobobject.Find)}, bareKind}
	}
	return []Finder{bareKind}
}

func findNative(ctx context.Context, o Options) sandbox.Finding {
	return native.Find(ctx, native.Options{SetUp: o.Limits.Duration(config.SandboxSetUp), Scratch: o.Scratch})
}

func findLandlock(ctx context.Context, o Options) sandbox.Finding {
	return native.FindLandlock(ctx, native.Options{SetUp: o.Limits.Duration(config.SandboxSetUp), Scratch: o.Scratch})
}

func findBwrap(ctx context.Context, o Options) sandbox.Finding {
	return bwrap.Find(ctx, bwrap.Options{Search: o.Search, SetUp: o.Limits.Duration(config.SandboxSetUp)})
}

func findRuntime(name string) func(context.Context, Options) sandbox.Finding {
	return func(ctx context.Context, o Options) sandbox.Finding {
		return oci.Find(ctx, name, oci.Options{Search: o.Search, SetUp: o.Limits.Duration(config.SandboxSetUp)})
	}
}

// alone is the finder of a backend that has no options.
func alone(find func(context.Context) sandbox.Finding) func(context.Context, Options) sandbox.Finding {
	return func(ctx context.Context, _ Options) sandbox.Finding { return find(ctx) }
}

func (o Options) finders() []Finder {
	if o.Finders != nil {
		return o.Finders
	}
	return Finders()
}

// choose takes the first backend that the policy accepts, and closes the others
// that it found on the way.
func (o Options) choose(ctx context.Context) (sandbox.Backend, error) {
	var found []sandbox.Finding
	var chosen sandbox.Backend
	var problem error
	for _, f := range o.finders() {
		if o.skips(f) {
			continue
		}
		found = append(found, f.try(ctx, o))
		if chosen, problem = o.Policy.Choose(found); problem == nil && (o.Policy.Mode != sandbox.Preferred || o.enough(chosen)) {
			break
		}
	}
	if chosen == nil {
		_, problem = o.Policy.Choose(found)
		o.nameOthers(problem)
	}
	closeOthers(found, chosen)
	return chosen, problem
}

// nameOthers says in a refusal of the backend that confines nothing which ones do.
func (o Options) nameOthers(problem error) {
	if r, ok := errors.AsType[*sandbox.Refusal](problem); ok && o.Policy.Backend == sandbox.Bare {
		others := slices.DeleteFunc(Names(), func(name string) bool { return name == sandbox.Bare })
		r.Why = append(r.Why, "those that do are "+strings.Join(others, ", "))
	}
}

// enough reports whether nothing better needs to be looked for.
func (o Options) enough(b sandbox.Backend) bool {
	return b.Capabilities().Tier >= max(o.Policy.Minimum, sandbox.TierFull)
}

// skips reports whether a kind cannot be the one.
func (o Options) skips(f Finder) bool {
	switch {
	case o.Policy.Mode == sandbox.Off:
		return f.Name != sandbox.Bare
	case o.Policy.Backend != "":
		return f.Name != o.Policy.Backend
	}
	return o.Policy.Mode == sandbox.Required && f.Tier < o.Policy.Minimum
}

func closeOthers(found []sandbox.Finding, chosen sandbox.Backend) {
	for _, f := range found {
		if f.Backend != nil && f.Backend != chosen {
			_ = f.Backend.Close() // it has run nothing but trials
		}
	}
}

// try finds a backend and has it prove what it says.
func (f Finder) try(ctx context.Context, o Options) sandbox.Finding {
	if err := os.MkdirAll(o.Scratch, 0o711); err != nil {
		return sandbox.Finding{Name: f.Name, Problem: &sandbox.Unavailable{Backend: f.Name, Step: "make a directory to try it in", Err: err}}
	}
	found := f.Find(ctx, o)
	if found.Backend == nil || found.Backend.Capabilities().Tier == sandbox.TierNone {
		return found
	}
	if err := o.trial(ctx, found.Backend); err != nil {
		_ = found.Backend.Close() // err is what matters
		return sandbox.Finding{Name: found.Name, Problem: err}
	}
	return found
}

// Survey is every backend of this host as it was found, for doctor. The caller
// does not own any: all are closed.
type Survey struct {
	// Chosen is the name of the one that the policy takes; empty when Problem says
	// why there is none.
	Chosen  string
	Problem error
	Rows    []Row
}

// Row is one backend of a survey.
type Row struct {
	Name         string
	Problem      error
	Capabilities sandbox.Capabilities
}

// Look tries every backend, also those that the policy would not take.
func Look(ctx context.Context, o Options) Survey {
	var found []sandbox.Finding
	for _, f := range o.finders() {
		found = append(found, f.try(ctx, o))
	}
	var s Survey
	chosen, err := o.Policy.Choose(found)
	s.Problem = err
	if chosen != nil {
		s.Chosen = chosen.Name()
	}
	for _, f := range found {
		row := Row{Name: f.Name, Problem: f.Problem}
		if f.Backend != nil {
			row.Capabilities = f.Backend.Capabilities()
		}
		s.Rows = append(s.Rows, row)
	}
	closeOthers(found, nil)
	return s
}

// Names are the words for a backend that an operator may give.
func Names() []string {
	var names []string
	for _, f := range Finders() {
		names = append(names, f.Name)
	}
	return slices.Compact(names)
}
