package cli

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"github.com/spf13/pflag"

	"github.com/metier-run/metier/internal/app"
	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/internal/launch"
	"github.com/metier-run/metier/internal/sandbox"
)

// The flags that say whether a model works with files and runs commands, and with
// what (B1 18.3). Its limits are rows of the table of limits.
const (
	flagCode           = "code-exec"
	flagUnconfined     = "code-exec-unconfined"
	flagInstall        = "code-exec-allow-install"
	flagPackages       = "code-exec-packages"
	flagIndex          = "code-exec-install-index"
	flagInstallDomains = "code-exec-install-domains"
	flagCodeNetwork    = "code-exec-allow-network"
	flagCodeDomains    = "code-exec-network-domains"
	flagTemperature    = "code-exec-temperature"
	flagShell          = "code-exec-shell"
	flagLanguages      = "code-exec-languages" // removed
)

// codeFlags are their values.
type codeFlags struct {
	allow, unconfined, install, network      bool
	packages, installDomains, networkDomains []string
	index, shell                             string
	temperature                              *float64
}

// codeFlags are those of commands that let a model work with code, or tell how it
// would.
func (s *session) codeFlags(set *pflag.FlagSet) {
	f := &s.flags.code
	set.BoolVar(&f.allow, flagCode, false, "let a model work with files and run commands (metier doctor says how they are confined here)")
	set.BoolVar(&f.unconfined, flagUnconfined, false, "run commands with the best confinement there is, even if that is none: they can then do whatever you can do")
	set.BoolVar(&f.install, flagInstall, false, "install the packages that commands ask for, by the host itself: names and versions alone, wheels only, no install scripts")
	set.Var(words{&f.packages}, flagPackages, "name of a package that may be installed, and no other (repeatable, or with commas)")
	set.StringVar(&f.index, flagIndex, "", "URL of the Python index to install from, in place of the one that your pip is configured for")
	set.Var(words{&f.installDomains}, flagInstallDomains, "host that installs may reach, and no other: example.com or *.example.com (repeatable, or with commas); an empty list holds none back; without it the hosts that your pip and npm are configured for")
	set.BoolVar(&f.network, flagCodeNetwork, false, "let commands reach the network, that of this machine included")
	set.Var(words{&f.networkDomains}, flagCodeDomains, "host that commands may reach, and no other: example.com, *.example.com or example.com:8443 (repeatable, or with commas)")
	set.Var(temperature{&f.temperature}, flagTemperature, "temperature of turns with code where the client gives none, 0 to 2; a negative one leaves it to the upstream, as does leaving this out")
	set.StringVar(&f.shell, flagShell, "", "path of the shell that commands run in; without it bash or sh, on Windows PowerShell")
	set.Var(removed{flagLanguages, "a command runs whatever program the sandbox shows it: leave this out, and say with --" + flagPackages + " what may be installed"}, flagLanguages, "removed")
	set.Lookup(flagLanguages).Hidden = true
}

// code resolves what these flags say. Flags that contradict each other, or say nothing
// without another one, are wrong calls.
func (s *session) code() (app.Code, error) {
	f := s.flags.code
	for _, check := range []func() error{s.codeNeeds, s.codeAgrees, s.checkPackages, s.checkIndex} {
		if err := check(); err != nil {
			return app.Code{}, err
		}
	}
	out := app.Code{
		Allowed: f.allow, Install: f.install, Unconfined: f.unconfined,
		Network:  launch.Network{Open: f.network, Domains: f.networkDomains, Flag: s.said(flagCodeDomains)},
		Packages: f.packages, Index: f.index, Domains: f.installDomains, Temperature: f.temperature,
	}
	var err error
	out.Shell, err = s.shell()
	return out, err
}

// needs are the flags that say nothing without another one, in the order in which they
// are complained of.
func needs() [][2]string {
	return [][2]string{
		{flagUnconfined, flagCode},
		{flagInstall, flagCode},
		{flagCodeNetwork, flagCode},
		{flagCodeDomains, flagCode},
		{flagTemperature, flagCode},
		{flagShell, flagCode},
		{flagPackages, flagInstall},
		{flagIndex, flagInstall},
		{flagInstallDomains, flagInstall},
	}
}

// codeNeeds refuses a flag of the command line that would change nothing. A file and
// the environment are shared by many calls, and may say what only some of them use;
// and whoever turns something off for once need not take back all that hangs on it.
func (s *session) codeNeeds() error {
	on := map[string]bool{flagCode: s.flags.code.allow, flagInstall: s.flags.code.install}
	for _, n := range needs() {
		flag, need := n[0], n[1]
		if s.typed[flag] && !on[need] && !s.typed[need] {
			return fault.Usage("--%s does nothing without --%s: add it, or leave --%s out", flag, need, flag)
		}
	}
	return nil
}

// codeAgrees refuses flags of which one takes back what another one says.
func (s *session) codeAgrees() error {
	f := s.flags.code
	switch backend := strings.ToLower(s.flags.scripts.backend); {
	case f.network && len(f.networkDomains) > 0:
		return fault.Usage("%s gives commands the whole network and %s only a part of it: keep one", s.said(flagCodeNetwork), s.said(flagCodeDomains))
	case f.unconfined && s.given(flagMinimum):
		return fault.Usage("%s runs commands with whatever confinement there is and %s asks for %s: keep one", s.said(flagUnconfined), s.said(flagMinimum), s.flags.scripts.minimum)
	case f.unconfined && backend != "" && backend != sandbox.Bare:
		return fault.Usage("%s runs commands with whatever confinement there is and %s asks for %s: keep one", s.said(flagUnconfined), s.said(flagBackend), backend)
	}
	return nil
}

// bareName is the name of a package, with its scope where it has one (B1 13.15).
var bareName = regexp.MustCompile(`^(@[A-Za-z0-9_~-][A-Za-z0-9._~-]*/)?[A-Za-z0-9_~-][A-Za-z0-9._~-]*$`)

// checkPackages wants names alone: with anything else on it, an entry would match
// nothing. An empty list, as of a variable that was not set, must not mean any package.
func (s *session) checkPackages() error {
	names := s.flags.code.packages
	if names != nil && len(names) == 0 {
		return fault.Usage("%s names no package: name one, or leave it out to allow any", s.said(flagPackages))
	}
	for _, name := range names {
		if !bareName.MatchString(name) {
			return fault.Usage("%s: %q is not the bare name of a package: give the name alone, such as requests or @scope/tool, without a version", s.said(flagPackages), name)
		}
	}
	return nil
}

// checkIndex wants a URL. It may hold a password, so no error repeats it.
func (s *session) checkIndex() error {
	text := s.flags.code.index
	if text == "" {
		return nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http" || u.Fragment != "" || u.RawQuery != "" {
		return fault.Usage("%s: this is not the URL of a package index: give one such as https://packages.example/simple", s.said(flagIndex))
	}
	return nil
}

// shell is the absolute path of the shell that was named. What is named must be there:
// another one would read commands otherwise.
func (s *session) shell() (string, error) {
	name := s.flags.code.shell
	if name == "" || !s.flags.code.allow {
		return "", nil
	}
	path, err := filepath.Abs(name)
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", s.said(flagShell), name, err)
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "", fault.Usage("%s: %w: give the path of a shell, such as /bin/bash", s.said(flagShell), err)
	case !info.Mode().IsRegular() || runtime.GOOS != "windows" && info.Mode().Perm()&0o111 == 0:
		return "", fault.Usage("%s %s: it is no program: give the path of a shell, such as /bin/bash", s.said(flagShell), path)
	}
	return path, nil
}
