package cli

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/metier-run/metier/internal/app"
	"github.com/metier-run/metier/internal/sandbox"
)

// sayCode tells whether a model works with code, what does not confine its commands,
// and what they may reach and have installed. That it does not needs no word, unless
// something was said of how it would.
func (s *session) sayCode(w io.Writer, code app.Code, c app.Confinement) {
	if !code.Allowed {
		if s.codeWaits() {
			fmt.Fprintf(w, "code: off; --%s turns it on\n", flagCode)
		}
		return
	}
	sayConfinement(w, "code", c, true)
	if c.Problem != nil {
		return
	}
	sayNetworks(w, "code", flagCodeNetwork, c)
	if !code.Install {
		return
	}
	what := "packages that commands ask for are installed"
	if len(code.Packages) > 0 {
		what = "of the packages that commands ask for, these are installed: " + strings.Join(code.Packages, ", ")
	}
	fmt.Fprintf(w, "code: %s (--%s)\n", printable(what), flagInstall)
	if c.Network == sandbox.NetworkOpen && (len(code.Packages) > 0 || len(code.Domains) > 0) {
		fmt.Fprintf(w, "code: the network is open to commands, so --%s and --%s hold nothing back\n", flagPackages, flagInstallDomains)
	}
}

// codeWaits reports that a file or the environment says something of code that is not
// turned on, and not turned off by name either.
func (s *session) codeWaits() bool {
	if s.given(flagCode) {
		return false
	}
	for _, n := range needs() {
		if s.given(n[0]) {
			return true
		}
	}
	return false
}

// sayCodeVerdict is what a doctor says of code: whether it may run, how, and whether
// that can be had.
func sayCodeVerdict(w io.Writer, d finding) {
	if !d.Code.Allowed {
		item(w, "They are off: no model can work with a file or run a command. --"+flagCode+" turns them on.")
		return
	}
	item(w, "A model may work with files of its own and run commands (--"+flagCode+").")
	if d.Code.Unconfined {
		item(w, fmt.Sprintf("Rule: with the best confinement there is, even if that is none (--%s).", flagUnconfined))
	} else {
		item(w, "Rule: that of scripts, above.")
	}
	sayNetwork(w, d.Code.Network, flagCodeNetwork, flagCodeDomains)
	sayInstalls(w, d.Code)
	c := d.Confinement
	_, refused := errors.AsType[*sandbox.Refusal](c.Problem)
	switch {
	case refused:
		item(w, "NOT POSSIBLE HERE, as scripts are not: each command would be refused.")
		item(w, fmt.Sprintf("What would help: what is said of scripts, or --%s, with which a command can do whatever you can do.", flagUnconfined))
	case c.Problem != nil:
		item(w, "NOT POSSIBLE HERE: each command would be refused. "+c.Problem.Error())
	default:
		item(w, "Possible here: "+c.Capabilities.Backend+" would be used.")
		if gaps := c.Gaps(); len(gaps) > 0 {
			item(w, notConfined+"a command "+strings.Join(gaps, "; ")+".")
		}
	}
}

// sayInstalls says what may be installed, and where from.
func sayInstalls(w io.Writer, code app.Code) {
	if !code.Install {
		item(w, "Installs: none.")
		return
	}
	what := "any package"
	if len(code.Packages) > 0 {
		what = strings.Join(code.Packages, ", ") + " and nothing else"
	}
	var from []string
	if u, err := url.Parse(code.Index); err == nil && u.Hostname() != "" {
		from = append(from, u.Hostname()) // and nothing else of it: a password may be there
	}
	from = append(from, code.Domains...)
	switch {
	case code.Domains == nil:
		from = append(from, "the hosts that your pip and npm are configured for")
	case len(code.Domains) == 0:
		from = []string{"any host"}
	}
	item(w, fmt.Sprintf("Installs: %s, from %s (--%s).", what, strings.Join(from, ", "), flagInstall))
}
