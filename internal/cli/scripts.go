package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/metier-run/metier/internal/app"
	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/internal/launch"
	"github.com/metier-run/metier/internal/sandbox"
)

// The flags that say whether scripts run, and how they are confined.
const (
	flagAllowExec    = "skills-allow-exec"
	flagSandbox      = "skills-sandbox"
	flagAllowNetwork = "skills-allow-network"
	flagDomains      = "skills-network-domains"
	flagMinimum      = "sandbox-minimum"
	flagBackend      = "sandbox-backend"
)

// scriptFlags are their values.
type scriptFlags struct {
	allow        bool
	sandbox      string
	allowNetwork bool
	domains      []string
	minimum      string
	backend      string
}

// scriptFlags are those of commands that run scripts, or tell how they would run.
func (s *session) scriptFlags(set *pflag.FlagSet) {
	f := &s.flags.scripts
	set.BoolVar(&f.allow, flagAllowExec, false, "let a model run the scripts that skills ship (metier doctor says how they are confined here)")
	set.StringVar(&f.sandbox, flagSandbox, sandbox.Required.String(), "what becomes of scripts and commands that cannot be confined enough: required refuses them, preferred runs them and names the gaps, off confines none")
	set.BoolVar(&f.allowNetwork, flagAllowNetwork, false, "let scripts reach the network, that of this machine included")
	set.StringSliceVar(&f.domains, flagDomains, nil, "host that scripts may reach, and no other: example.com, *.example.com or example.com:8443 (repeatable, or with commas)")
	set.StringVar(&f.minimum, flagMinimum, sandbox.TierFull.String(), "weakest confinement that counts as enough: strong, full, partial or weak")
	set.StringVar(&f.backend, flagBackend, "", "the one sandbox to use: "+strings.Join(launch.Names(), ", ")+"; without it the best that there is")
}

// scripts resolves what these flags say.
func (s *session) scripts() (app.Scripts, error) {
	f := s.flags.scripts
	out := app.Scripts{
		Allowed: f.allow,
		Network: launch.Network{Open: f.allowNetwork, Domains: f.domains, Flag: s.said(flagDomains)},
	}
	var err error
	if out.Policy, err = s.policy(); err != nil {
		return out, err
	}
	if f.allowNetwork && len(f.domains) > 0 {
		return out, fault.Usage("%s gives scripts the whole network and %s only a part of it: keep one", s.said(flagAllowNetwork), s.said(flagDomains))
	}
	return out.FromEnvironment(), nil
}

// policy is what is asked of a sandbox. A command without these flags asks for the
// default.
func (s *session) policy() (sandbox.Policy, error) {
	f := s.flags.scripts
	p := sandbox.DefaultPolicy()
	var err error
	if p.Mode, err = sandbox.ParseMode(cmp.Or(f.sandbox, p.Mode.String())); err != nil {
		return p, fault.Usage("%s: %w", s.said(flagSandbox), err)
	}
	if p.Minimum, err = sandbox.ParseTier(cmp.Or(f.minimum, p.Minimum.String())); err != nil {
		return p, fault.Usage("%s: %w", s.said(flagMinimum), err)
	}
	if p.Minimum == sandbox.TierNone {
		return p, fault.Usage("%s none: give strong, full, partial or weak; to confine nothing, say --%s off", s.said(flagMinimum), flagSandbox)
	}
	p.Backend = strings.ToLower(f.backend)
	switch names := launch.Names(); {
	case p.Backend == "":
	case !slices.Contains(names, p.Backend):
		return p, fault.Usage("%s %s: there is no such sandbox: give one of %s", s.said(flagBackend), f.backend, strings.Join(names, ", "))
	case p.Mode == sandbox.Off && p.Backend != sandbox.Bare:
		return p, fault.Usage("%s off confines nothing, and %s asks for %s: keep one", s.said(flagSandbox), s.said(flagBackend), p.Backend)
	}
	return p, nil
}

// said is how errors name a setting: by its place in a file, or as a flag.
func (s *session) said(flag string) string { return cmp.Or(s.file.from[flag], "--"+flag) }

// notConfined is what listings, results and startup lines say before gaps (seed 1,
// "What each platform enforces").
const notConfined = "Not confined on this host: "

// sayScripts tells whether scripts run, what does not confine them, and which network
// they have. That they are off needs no word.
func sayScripts(w io.Writer, c app.Confinement, on bool) {
	sayConfinement(w, "scripts", c, on)
	if on && c.Problem == nil {
		sayNetworks(w, "scripts", flagAllowNetwork, c)
	}
}

// sayNetworks names the network that scripts or commands have, if any, and the flag that
// opens it whole.
func sayNetworks(w io.Writer, what, flag string, c app.Confinement) {
	switch c.Network {
	case sandbox.NetworkOpen:
		fmt.Fprintf(w, "%s: the network is open to them (--%s)\n", what, flag)
	case sandbox.NetworkProxied:
		fmt.Fprintf(w, "%s: the network is open to them for %s only\n", what, printable(strings.Join(c.Domains, ", ")))
	}
}

// sayConfinement is what a start says of scripts, or of code, without what the operator
// chose by name.
func sayConfinement(w io.Writer, what string, c app.Confinement, on bool) {
	switch {
	case !on:
	case c.Problem != nil:
		fmt.Fprintf(w, "%s: refused on this host: %s (metier doctor says more)\n", what, printable(c.Problem.Error()))
	default:
		fmt.Fprintf(w, "%s: on, sandbox %s (%s)\n", what, c.Capabilities.Backend, c.Capabilities.Tier)
		if gaps := c.Gaps(); len(gaps) > 0 {
			fmt.Fprintf(w, "%s: %s%s\n", what, notConfined, strings.Join(gaps, "; "))
		}
	}
}

// confinement is how scripts would be confined, for a listing; false when none may
// run.
func (s *session) confinement(ctx context.Context, settings app.Settings) (app.Confinement, bool, error) {
	if !settings.Scripts.Allowed {
		return app.Confinement{}, false, nil
	}
	logger, err := s.logger(slog.LevelError)
	if err != nil {
		return app.Confinement{}, false, err
	}
	c, err := app.LookAtScripts(ctx, settings, logger)
	return c, err == nil, err
}
