package native

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/metier-run/metier/internal/sandbox"
)

// leastLandlock is the version of Landlock's interface that confines signals. With
// an older one a launch could end the host, and its tree could not be ended.
const leastLandlock = 6

// FindLandlock makes the backend and starts its spawner and one supervisor: what
// this kernel refuses shows here. That it confines is for the caller to try.
//
// It reports tier partial when the host is root and launches get users of their
// own, else tier weak. The environment of a launch is the caller's: HOME and TMPDIR
// inside a directory that may be written, since there is no /tmp, and
// GIT_CONFIG_NOSYSTEM=1, since git gives up over a file that it may not read.
func FindLandlock(ctx context.Context, o Options) sandbox.Finding {
	b, err := newLandlock(o)
	if err == nil {
		err = b.probe(ctx)
	}
	if err != nil {
		return sandbox.Finding{Name: LandlockName, Problem: explainLandlock(err)}
	}
	if err := sandbox.Trial(ctx, b, o.Scratch); err != nil {
		_ = b.Close() // err is what matters
		return sandbox.Finding{Name: LandlockName, Problem: err}
	}
	return sandbox.Finding{Name: LandlockName, Backend: b}
}

// probe has one supervisor get ready, and ends it.
func (b *Landlock) probe(ctx context.Context) error {
	c, err := b.spawn(ctx)
	if err != nil {
		_ = b.Close() // err is what matters
		return err
	}
	b.release(c)
	return nil
}

// landlockHere says why this kernel's Landlock does not do; nil if it does.
func landlockHere() error {
	abi := landlockABI()
	fix := "use Linux 6.12 or newer"
	switch {
	case abi >= leastLandlock:
		return nil
	case abi == 0:
		return landlockUnavailable("look for Landlock", errors.New("this kernel has none, or has it switched off"), fix+`, with landlock among its security modules (the boot parameter "lsm")`)
	}
	return landlockUnavailable("look for Landlock", fmt.Errorf("version %d of it, which Linux %s has, confines no signals", abi, kernel()), fix)
}

// passable says who cannot be let into a directory because of its modes or of
// those above it: the name of the first that strangers may not pass. What is not
// there yet is not looked at.
func passable(dir string) (blocked string) {
	if dir == "" {
		return ""
	}
	for at := filepath.Clean(dir); ; at = filepath.Dir(at) {
		if info, err := os.Stat(at); err == nil && info.Mode()&0o001 == 0 {
			blocked = at // the highest one is named
		}
		if at == filepath.Dir(at) {
			return blocked
		}
	}
}

// found are the capabilities on this host.
func (b *Landlock) found() sandbox.Capabilities {
	tier, user, writes := sandbox.TierPartial, "a user of its own", "Landlock, and a user of its own"
	if !b.own {
		tier, user = sandbox.TierWeak, "Metier's own user"
		writes = "Landlock; the modes and times of what it may read can be changed through an open file"
		if b.filterFD {
			writes = "Landlock; modes, owners and attributes cannot be changed at all, so that some honest work fails"
		}
		if b.why != "" {
			user += ", because " + b.why
		}
	}
	memory := "each process by a limit, the tree by looking every 50 ms; no memory files"
	if b.groups.memory != "" {
		memory = "a control group"
	}
	all := []sandbox.Capability{
		{Aspect: sandbox.Writes, Held: true, Note: writes},
		{Aspect: sandbox.Home, Held: true, Note: "Landlock; that a path exists can be seen"},
		{Aspect: sandbox.NoNetwork, Held: true, Note: "no sockets at all"},
		{Aspect: sandbox.Domains, Held: false, Note: "Landlock knows ports and no names"},
		{Aspect: sandbox.Tree, Held: true, Note: "a Landlock domain, killed as one"},
		{Aspect: sandbox.Hidden, Held: false, Note: "the command lines of other processes can be read in /proc; they can be neither signalled nor looked into"},
		{Aspect: sandbox.Kernel, Held: true, Note: "a system call filter, no capabilities; it runs as " + user},
		{Aspect: sandbox.Memory, Held: true, Note: memory},
		{Aspect: sandbox.Processes, Held: true, Note: b.processesNote()},
		{Aspect: sandbox.Disk, Held: true, Note: "a limit of each file, the directory by looking every 250 ms; no private /tmp"},
	}
	return sandbox.Capabilities{Backend: LandlockName, Version: fmt.Sprintf("Linux %s, Landlock %d", kernel(), landlockABI()), Tier: tier, All: all}
}

func (b *Landlock) processesNote() string {
	switch {
	case b.groups.pids != "":
		return "a control group"
	case b.own:
		return "a limit of its user"
	}
	if os.Geteuid() == 0 {
		return "by looking every 50 ms"
	}
	return "a limit beyond what the user runs already, or by looking every 50 ms"
}

// explainLandlock makes an error that an operator can act on.
func explainLandlock(err error) error {
	if u, ok := errors.AsType[*sandbox.Unavailable](err); ok {
		return u
	}
	s, ok := errors.AsType[*stepError](err)
	if !ok {
		return landlockUnavailable("start a launch", err, "")
	}
	fix := ""
	switch {
	case errors.Is(s.err, unix.EPERM) && s.step == stepKeep:
		fix = "let this container use Landlock: its seccomp profile refuses it"
	case errors.Is(s.err, unix.EACCES):
		fix = "let every user pass the folders above it (chmod o+x), or put METIER_HOME and the skills elsewhere"
	}
	return landlockUnavailable(s.step, s.err, fix)
}
