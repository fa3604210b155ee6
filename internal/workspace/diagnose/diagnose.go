// Package diagnose says what the output of a failed command means, and what a
// model does best next.
//
// It is pure: text, file contents and facts go in, classes and sentences come out. It
// runs nothing, opens nothing and keeps nothing but the table of [Attempts]. Whatever
// it reads was written by programs that a model chose, so all that it quotes is
// clipped and freed of control characters, and names are quoted only if they have the
// shape of names. Where it does not know, it says nothing: it never says that code is
// right.
//
// Start at [Read] and [Failure.Coach]. [Missing], [Miss.Probe], [Repair], [Benign],
// [Rewrites], [Redirects], [Attempts] and [Paths] stand for themselves.
package diagnose

import (
	"iter"
	"regexp"
	"slices"
	"strings"
)

// Class is what a failure comes from (B1 10.5).
type Class string

// The classes. Those of the environment are looked for before [Code].
const (
	Unknown        Class = ""                // no claim is made
	MissingModule  Class = "module"          // an import of a package that is not there
	OwnFile        Class = "own file"        // an import of the model's own file, which lies off the path or hides a package
	MissingCommand Class = "command"         // a program that is not there, or is there under another name
	NoNetwork      Class = "network"         // a connection, where there is no network
	Denied         Class = "denied"          // a write or a look that the confinement does not allow
	OldInterpreter Class = "old interpreter" // syntax or a module that this host's version has not
	MissingLibrary Class = "library"         // a native library of the system
	BrokenPackage  Class = "package"         // an import that fails inside an installed package
	NestedSandbox  Class = "nested sandbox"  // a program that starts a sandbox of its own inside ours
	APIMiss        Class = "api"             // a name that a library has not; where its probe is silent it is [Code]
	Code           Class = "code"            // an error in what the model wrote
)

// Facts are what the host knows and the output does not tell. Each may be left out.
type Facts struct {
	// PowerShell says that the command line is one of PowerShell, and not of a POSIX shell.
	PowerShell bool
	// Network says that commands have the host's network.
	Network bool
	// Installs says that packages may be installed.
	Installs bool
	// Installed reports whether a distribution is installed for the workspace.
	Installed func(tool Tool, distribution string) bool
	// Refused is why an install of a distribution failed before.
	Refused func(tool Tool, distribution string) (reason string, failed bool)
	// Files are the files of the workspace, by their paths from where the command ran,
	// with slashes.
	Files iter.Seq[string]
	// Program reports whether a command can find a program of a name.
	Program func(name string) bool
	// Python is the version of the interpreter, such as "3.11.7".
	Python string
}

func (o Facts) installed(tool Tool, distribution string) bool {
	return o.Installed != nil && o.Installed(tool, distribution)
}

func (o Facts) program(name string) bool { return o.Program != nil && o.Program(name) }

func (o Facts) refused(tool Tool, distribution string) (string, bool) {
	if o.Refused == nil {
		return "", false
	}
	return o.Refused(tool, distribution)
}

// Failure is what an output was found to mean.
type Failure struct {
	Class Class
	// Module is set with [MissingModule], [OwnFile] and, where a module shows it,
	// [OldInterpreter].
	Module Module
	// Command is the program of a [MissingCommand].
	Command string
	// Path is the model's own file of an [OwnFile].
	Path string
	// Library is the file or the name of a [MissingLibrary].
	Library string
	// Miss is what an [APIMiss] is about.
	Miss Miss

	facts  Facts
	detail string // tells apart what one class has several sentences for
}

// Read says what the output of a failed command means. The output should have gone
// through [Paths.Rewrite], after which an absolute path is one outside of the
// workspace.
func Read(output string, o Facts) Failure {
	output = clean(output)
	for _, look := range []func(string, Facts) (Failure, bool){
		readNested, readHidden, readModule, readCommand, readOld, readLibrary, readPackage, readNetwork, readDenied, readMiss, readCode,
	} {
		if f, ok := look(output, o); ok {
			f.facts = o
			return f
		}
	}
	return Failure{facts: o}
}

// What the messages of systems and programs look like. The shapes are those of glibc,
// macOS, Node, Python, Go and curl.
var (
	networkCodes = regexp.MustCompile(`\b(?:ENETUNREACH|EHOSTUNREACH|EAI_AGAIN|ENOTFOUND|NewConnectionError|NameResolutionError)\b`)
	readOnlySign = regexp.MustCompile(`\bEROFS\b`)
	deniedSign   = regexp.MustCompile(`\b(?:EACCES|EPERM)\b`)
	absolutePath = regexp.MustCompile(`(?:^|[\s'"(=‘` + "`" + `])(?:/[\w.-]|[A-Za-z]:\\)`)
	sharedObject = regexp.MustCompile(`(?:error while loading shared libraries: |ImportError: |OSError: |dlopen: )([\w.+-]{1,80}\.(?:so(?:\.\d+)*|dylib|dll)): cannot open shared object|Library not loaded: (?:\S*/)?([\w.+-]{1,80}\.dylib)|[Cc]annot load library '([\w.+-]{1,80})'|no library called "([\w.+-]{1,80})" was found|DLL load failed while importing (\w{1,80})`)
	nestedSigns  = regexp.MustCompile(`No usable sandbox!|without --no-sandbox is not supported|setuid sandbox (?:is not|binary)|Failed to move to new namespace|sandbox_apply: Operation not permitted|sandbox initialization failed|zygote_host_impl_linux|bwrap: (?:setting up uid map|No permissions to creat|Creating new namespace failed|Can't mount proc)|unshare(?:\(\w*\))?(?: failed)?: Operation not permitted|clone\(CLONE_NEW\w+\)|credentials\.cc.{0,80}Operation not permitted`)
)

// readNested is about a program that starts a sandbox inside ours (B1 10.13).
func readNested(output string, _ Facts) (Failure, bool) {
	if !holdsAny(output, []string{"sandbox", "namespace", "bwrap", "unshare", "CLONE_NEW", "zygote_host", "credentials.cc"}) {
		return Failure{}, false
	}
	sign := nestedSigns.FindString(output)
	if sign == "" {
		return Failure{}, false
	}
	f := Failure{Class: NestedSandbox}
	if strings.Contains(output, "--no-sandbox") || strings.Contains(sign, "No usable sandbox") || strings.Contains(sign, "zygote") || strings.Contains(sign, "credentials.cc") || strings.Contains(sign, "setuid sandbox") {
		f.detail = "chromium"
	}
	return f, true
}

// networkWords are what resolvers and connections say, in small letters.
func networkWords() []string {
	return []string{
		"temporary failure in name resolution", "name or service not known", "no address associated with hostname", "nodename nor servname",
		"network is unreachable", "no route to host", "could not resolve host", "couldn't connect to server", "failed to resolve", "server misbehaving",
		"dial tcp: lookup", "err_name_not_resolved", "err_internet_disconnected", "getaddrinfo failed",
	}
}

// readNetwork is about a connection where commands have none (B1 10.5). Where they
// have one, the failure may come from anything.
func readNetwork(output string, o Facts) (Failure, bool) {
	return Failure{Class: NoNetwork}, !o.Network && (holdsAny(strings.ToLower(output), networkWords()) || networkCodes.MatchString(output))
}

func holdsAny(text string, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}

// readDenied is about what the confinement does not allow. A refusal that names no
// place outside of the workspace may be the model's own doing, such as a script that
// is not executable.
func readDenied(output string, _ Facts) (Failure, bool) {
	if strings.Contains(strings.ToLower(output), "read-only file system") || readOnlySign.MatchString(output) {
		return Failure{Class: Denied}, true
	}
	words := []string{"permission denied", "operation not permitted", "access is denied", "access to the path"}
	for line := range strings.Lines(output) {
		if (holdsAny(strings.ToLower(line), words) || deniedSign.MatchString(line)) && absolutePath.MatchString(line) {
			return Failure{Class: Denied}, true
		}
	}
	return Failure{}, false
}

// readLibrary is about a library of the system that a package needs.
func readLibrary(output string, _ Facts) (Failure, bool) {
	if !holdsAny(output, []string{"shared object", "Library not loaded", "load library", "no library called", "DLL load failed"}) {
		return Failure{}, false
	}
	for _, m := range sharedObject.FindAllStringSubmatch(output, 1) {
		for _, name := range m[1:] {
			if name != "" {
				return Failure{Class: MissingLibrary, Library: name}, true
			}
		}
	}
	return Failure{}, false
}

// brokenSigns are what packages say that were built for something else.
func brokenSigns() []string {
	return []string{
		"numpy.dtype size changed", "numpy.ndarray size changed", "compiled using NumPy 1.x cannot be run in", "Module did not self-register",
		"compiled against a different Node.js version", "invalid ELF header", "wrong ELF class", "undefined symbol: ", "incompatible architecture",
	}
}

// readPackage is about an import that fails inside an installed package: the frame
// that the error comes from is not the model's.
func readPackage(output string, _ Facts) (Failure, bool) {
	if holdsAny(output, brokenSigns()) {
		return Failure{Class: BrokenPackage}, true
	}
	for _, t := range pythonTraces(output) {
		if strings.HasPrefix(t.header, "ImportError") && t.last && packageFile(t.deepest().File) {
			return Failure{Class: BrokenPackage, detail: packageOf(t.deepest().File)}, true
		}
	}
	return Failure{}, false
}

// readMiss is about a name that a library has not.
func readMiss(output string, _ Facts) (Failure, bool) {
	m, ok := lastMiss(output)
	return Failure{Class: APIMiss, Miss: m}, ok
}

// readCode is about an error with a place in a source.
func readCode(output string, _ Facts) (Failure, bool) {
	for range places(output) {
		return Failure{Class: Code}, true
	}
	return Failure{}, false
}
