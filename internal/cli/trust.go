package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/metier-run/metier/internal/app"
	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/internal/guard"
	"github.com/metier-run/metier/internal/sandbox"
)

// A metier.toml that merely lies in the working directory may be somebody else's:
// it came with a repository, or another user of the machine put it there. What it
// says is obeyed as far as no secret leaves this machine and nobody is let in.
// Whoever names it with -c has looked at it.

// trusted tells how to lift what this file refuses.
const trusted = "-c " + config.FileName

// readFound reads a file that nobody named. What is checked and what is read is
// one open file: its name may come to mean another one meanwhile.
func readFound(name string) ([]byte, error) {
	link, err := os.Lstat(name)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		err = errors.Join(checkFound(name, link, os.Geteuid()), checkFound(name, info, os.Geteuid()))
	}
	var text []byte
	if err == nil {
		text, err = io.ReadAll(f)
	}
	return text, errors.Join(err, f.Close())
}

// checkFound refuses a file that another user owns or could have written. A link
// has no mode of its own. Its group may write: where that is usual, each user has a
// group of their own.
func checkFound(name string, info fs.FileInfo, user int) error {
	owner, known := guard.Owner(info)
	switch {
	case !known:
		return nil
	case owner != user:
		return fmt.Errorf("%s is owned by the user %d and not by you (%d): look at it, then name it with %s", name, owner, user, trusted)
	case info.Mode()&fs.ModeSymlink == 0 && info.Mode().Perm()&0o002 != 0:
		return fmt.Errorf("%s can be written by other users (%s): run chmod o-w %s, or name it with %s", name, info.Mode(), name, trusted)
	}
	return nil
}

// mayOpen refuses a setting that lets everybody in, runs what came with the file, or
// loosens what confines it.
func (f file) mayOpen(v config.Setting) error {
	if !f.found {
		return nil
	}
	what := opens(v.Flag, v.Values)
	if what == "" {
		return nil
	}
	return fault.Usage("%s: a file that was not named cannot %s: pass --%s, or name the file with %s", v.From, what, v.Flag, trusted)
}

// opens says what a setting does that only the operator may do; empty for any other.
// Whatever makes a sandbox tighter than it is by default is no such thing.
func opens(flag string, values []string) string {
	if len(values) == 0 {
		return ""
	}
	on := values[0] == "true"
	switch flag {
	case "insecure":
		return when(on, "let everybody in")
	case "no-auth":
		return when(on, "show sessions to everybody on this machine")
	case flagDB:
		return when(!below(values[0]), "say that conversations are kept outside its folder")
	case flagAllowExec:
		return when(on, "have scripts run")
	case flagAllowNetwork:
		return when(on, "give scripts the network")
	case flagDomains:
		return "give scripts a network"
	case flagSandbox:
		return when(values[0] != sandbox.Required.String(), "loosen the sandbox")
	case flagMinimum:
		tier, err := sandbox.ParseTier(values[0])
		return when(err != nil || tier < sandbox.TierFull, "loosen the sandbox")
	case flagBackend:
		return "choose the sandbox"
	case flagCode:
		return when(on, "let a model run commands")
	case flagUnconfined:
		return when(on, "loosen the sandbox")
	case flagInstall:
		return when(on, "have packages installed")
	case flagIndex, flagInstallDomains:
		return "choose where packages come from"
	case flagCodeNetwork:
		return when(on, "give commands the network")
	case flagCodeDomains:
		return "give commands a network"
	case flagShell:
		return "choose the shell"
	}
	return widens(flag, values[0])
}

// widens says that a setting lets a script or a command have more time, memory or room
// than it has by default.
func widens(flag, value string) string {
	who := "scripts"
	switch {
	case strings.HasPrefix(flag, "code-exec-"), flag == string(config.WorkspaceBytes):
		who = "commands"
	case strings.HasPrefix(flag, "sandbox-"), strings.HasPrefix(flag, "skills-run-"):
	default:
		return ""
	}
	for _, l := range config.Limits() {
		if l.Flag == flag {
			n, err := strconv.ParseInt(value, 10, 64)
			return when(err != nil || n > l.Default, "give "+who+" more than they have by default")
		}
	}
	return ""
}

func when(is bool, what string) string {
	if is {
		return what
	}
	return ""
}

// maySend refuses to send a key to an address that the file chose and that is not
// on this machine. from is where the file says the address, or empty when the
// operator did.
func (f file) maySend(from, variable, address string) error {
	if !f.found || from == "" || variable == "" || address == "" || address == app.Demo || onThisMachine(address) {
		return nil
	}
	return fault.Usage("%s: a file that was not named cannot send the variable %s to %s: look at it, then name it with %s", from, variable, address, trusted)
}

// onThisMachine reports whether a URL's host is loopback by its spelling. No name
// is looked up: who answers for names is not known here.
func onThisMachine(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	if strings.EqualFold(u.Hostname(), "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return err == nil && ip.IsLoopback()
}

// below reports whether a path is in the working directory or under it, where a file that
// was found lies.
func below(path string) bool {
	if strings.Contains(path, "://") {
		return false
	}
	wd, err := os.Getwd()
	if err != nil {
		return false
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(wd, path)
	}
	rel, err := filepath.Rel(wd, path)
	return err == nil && filepath.IsLocal(rel)
}
