package shell

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/workspace/shell"
)

// Facts are what a model is told of the shell before it calls it (B1 3.4). They stay
// the same while the host runs, so that the declaration does.
type Facts struct {
	// Dialect is the shell's language, as [shell.Dialect] has it.
	Dialect string
	// System is the operating system and architecture.
	System string
	// Backend is the sandbox's name and tier, Policy the operator's word for what becomes
	// of commands that cannot be confined.
	Backend, Policy string
	// Network is what commands can reach, and Domains are what a proxied one leads to.
	Network sandbox.NetworkMode
	Domains []string
	// Holds says that the network is really limited as Network says.
	Holds bool
	// Installs: the host installs packages; Packages are the names that it does, if not
	// all.
	Installs bool
	Packages []string
	// Links: produced files come back as links.
	Links bool
	// Files: there are file tools beside the shell, and files stay between calls.
	Files bool
	// Programs were found on this host.
	Programs []string
	// Timeout is how long a command runs if its call does not say, Longest how long one
	// may ask for.
	Timeout, Longest time.Duration
}

// System is this host's.
func System() string { return runtime.GOOS + "/" + runtime.GOARCH }

// description puts the parts together, in the order of B1 3.4.
func (f Facts) description() string {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	add(descPurpose, f.Dialect)
	if f.Files {
		add(descStays)
	} else {
		add(descNothingStays)
	}
	if f.Network == sandbox.NetworkOpen {
		add(descServers)
	}
	add(descHost, f.System, f.Backend, f.Policy)
	switch {
	case f.Installs && len(f.Packages) > 0:
		lines = append(lines, descInstalls+" "+fmt.Sprintf(descOnlyPackages, strings.Join(f.Packages, ", ")))
	case f.Installs:
		add(descInstalls)
	default:
		add(descNoInstalls)
	}
	lines = append(lines, f.network())
	switch {
	case f.Links:
		add(descLinks)
	case f.Files:
		add(descNoLinks)
	default:
		add(descGone)
	}
	add(descResult)
	switch {
	case f.Files:
		add(descFileTools)
	case f.powerShell():
		add(descHereString)
	default:
		add(descHeredoc)
	}
	if f.powerShell() {
		add(descUsefulPowerShell)
	} else {
		add(descUseful)
	}
	if len(f.Programs) > 0 {
		add(descPrograms, strings.Join(f.Programs, ", "))
	}
	return strings.Join(lines, "\n")
}

func (f Facts) powerShell() bool { return shell.Dialect(f.Dialect) == shell.PowerShell }

func (f Facts) network() string {
	switch {
	case f.Network == sandbox.NetworkOpen:
		return descOpen
	case !f.Holds:
		return descNotLimited
	case f.Network == sandbox.NetworkProxied:
		return fmt.Sprintf(descProxied, strings.Join(f.Domains, ", "))
	}
	return descDenied
}

func (f Facts) parameters() string {
	timeout := fmt.Sprintf(paramTimeout, f.Timeout.Milliseconds(), f.Longest.Milliseconds())
	workdir, background := `,`+paramWorkdir, `,`+paramBackground
	if !f.Files {
		workdir, background = "", ""
	}
	return `{"type":"object","properties":{` + paramCommand + workdir + `,` + timeout + background + `},"required":["command"]}`
}

// useful are programs that a model asks for, in the order in which it is told of them.
func useful() []string {
	return []string{
		"python3", "node", "npm", "git", "rg", "grep", "sed", "awk", "jq", "curl", "tar", "zip", "unzip", "make", "gcc", "go", "cargo", "java", "ruby", "perl", "php",
		"sqlite3", "ffmpeg", "magick", "convert", "pandoc", "soffice", "pdftotext", "tesseract", "dot", "xmllint",
	}
}

// FindPrograms are those of a fixed list that the directories have.
func FindPrograms(dirs []string) []string {
	var found []string
	for _, name := range useful() {
		if runs(dirs, name) {
			found = append(found, name)
		}
	}
	return found
}

func runs(dirs []string, name string) bool {
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	for _, dir := range dirs {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && runnable(info) {
			return true
		}
	}
	return false
}

func runnable(info fs.FileInfo) bool {
	return info.Mode().IsRegular() && (runtime.GOOS == "windows" || info.Mode()&0o111 != 0)
}
