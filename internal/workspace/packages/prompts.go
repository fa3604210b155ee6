package packages

import (
	"fmt"
	"strings"
	"time"

	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/sandbox/registry"
)

// The sentences that a model reads when an install did not happen. Each says what to do
// next.
const (
	noPip         = "This host's Python has no pip, so no Python package can be installed. Use the standard library, or another language, and tell the user that the operator can install pip for this Python (Debian and Ubuntu: the package python3-pip)."
	noNpm         = "This host has no npm beside its Node, so no npm package can be installed. Use what Node itself brings, or another language, and tell the user that the operator can install npm."
	busySentence  = "Too many commands run on this host at the moment. Nothing was installed; try the same install again."
	outOfRoom     = "The packages need more room than an install may use. Nothing was installed. Choose a smaller package, or fewer of them at once."
	integrity     = "A file from the registry is not the one that the registry describes, so nothing was installed. Try once more; if that fails too, choose another version."
	refusedSuffix = " Nothing was installed. Choose another package or version."
)

func installer(kind registry.Kind) string {
	if kind == registry.Npm {
		return "Node"
	}
	return "Python"
}

func noInterpreter(kind registry.Kind) string {
	return fmt.Sprintf("This host has no %s that can be used, so %s cannot install anything. Use another language, or tell the user that the operator can install %s.", installer(kind), kind, installer(kind))
}

func noPackage(name string, kind registry.Kind) string {
	if name == "" {
		name = "one of the packages"
	}
	text := fmt.Sprintf("No registry that this host uses has a package named %s. Check the spelling", name)
	if kind == registry.Pip {
		text += "; the name to install can differ from the name to import"
	}
	return text + "."
}

func noVersion(wanted, name string, have []string) string {
	text := fmt.Sprintf("There is no version of %s that fits %s.", name, wanted)
	if len(have) > 0 {
		text += " The latest that can be installed here: " + strings.Join(have, ", ") + "."
	}
	return text + " Ask for one that exists, or leave the version out."
}

func onlySource(name string) string {
	return fmt.Sprintf("%s is there, but only as source code that would have to be built, and this host installs ready-made wheels only. Choose another package, or another version that has a wheel.", name)
}

func noWheel(wanted, version, requires string) string {
	text := fmt.Sprintf("%s has no wheel for this system", wanted)
	if version != "" {
		text += " and Python " + version
	}
	if requires != "" {
		text += " (it asks for Python " + requires + ")"
	}
	return text + ", and this host builds nothing. Choose another version or package."
}

func conflict(what string, causes []string) string {
	text := "The packages do not go together: " + what
	if !strings.HasSuffix(text, ".") {
		text += "."
	}
	for _, c := range causes {
		text += "\n  " + c
	}
	return text + "\nLoosen the versions, or leave one of them out. What was installed before counts as well."
}

func notAllowed(t registry.Trouble) string {
	return fmt.Sprintf("The install needs %s from %s, which is not among the hosts that installs may use here. Nothing was installed. Choose another package, or tell the user that the operator can add the host with --code-exec-install-domains.", t.What, t.Host)
}

func denied(t registry.Trouble) string {
	if t.Reason == registry.Untrusted {
		return fmt.Sprintf("The certificate of the registry %s is not trusted on this host. Nothing was installed, and trying again will not help: tell the user.", t.Host)
	}
	return fmt.Sprintf("The registry %s refuses this host's access to %s. Nothing was installed, and trying again will not help: tell the user that the operator's login for it is missing or no longer good.", t.Host, t.What)
}

func noAnswer(t registry.Trouble) string {
	what := "did not answer"
	if t.Reason == registry.Failing {
		what = "answered with an error"
	}
	return fmt.Sprintf("The registry %s %s, so nothing was installed. Try again later, or go on without the package.", t.Host, what)
}

func broken(t registry.Trouble) string {
	var what string
	switch t.Reason {
	case registry.Mismatch:
		what = "is not the file that the registry describes"
	case registry.Cut:
		what = "ended early"
	case registry.TooLarge:
		return fmt.Sprintf("What %s sends as %s is larger than an install may fetch. Nothing was installed. Choose a smaller package.", t.Host, t.What)
	default:
		what = "is not what a registry sends"
	}
	return fmt.Sprintf("What %s sent as %s %s, so nothing was installed. Try once more; if that fails too, choose another version.", t.Host, t.What, what)
}

func timeIsUp(limit time.Duration, host string) string {
	text := fmt.Sprintf("The install was not done after %d s and was stopped", int(limit.Seconds()))
	if host != "" {
		text += "; " + host + " was slow to answer"
	}
	return text + ". Nothing was installed. Ask for fewer or smaller packages at once, or try again later."
}

func stopped(kind registry.Kind, ended sandbox.Ended) string {
	what := "was stopped"
	switch ended {
	case sandbox.OutOfMem:
		what = "needed more memory than it may use"
	case sandbox.TooMany:
		what = "started more processes than it may"
	}
	return fmt.Sprintf("%s %s before it was done. Nothing was installed. Ask for fewer packages at once.", kind, what)
}

func unknown(kind registry.Kind, line string) string {
	text := fmt.Sprintf("%s failed, and nothing was installed.", kind)
	if line != "" {
		text += " It said: " + line
	}
	return text
}

func tooLarge(total int64) string {
	return fmt.Sprintf("The packages are larger than the %d bytes that this host keeps of installed packages. Nothing was installed. Choose smaller ones.", total)
}

func noRoom(total int64) string {
	return fmt.Sprintf("The %d bytes that this host keeps of installed packages are all in use. Nothing was installed. Go on without the package, or try again later.", total)
}

// sentence is what a model is told of a tree that is refused.
func (e *treeError) sentence() string {
	if e.full {
		return outOfRoom
	}
	return fmt.Sprintf("The packages bring something that is not allowed: %s %s.", clip(e.path), e.why) + refusedSuffix
}
