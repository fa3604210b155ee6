// Package install reads out of a command line what it asks to have installed, so
// that the host can do it in the line's place (seed 1, "Running scripts"; B1
// section 13). A pip or npm command of the line is understood or refused, never
// half understood: an option that would be dropped in silence would install
// something else than was asked for and call it a success.
//
// The package starts nothing, installs nothing and opens no file: a requirements
// file or a package.json comes through [Options.Manifest]. It says nothing about
// what a failed command means.
//
// What it reads, it reads before the line runs. Installs are found in every part
// of the line that a shell would run, conditions and functions included, and in
// the text of a sh -c; one in a heredoc for a shell is refused. The text of other
// heredocs, of other strings and of files that the line runs is not looked into.
// What is installed by other ways than a command of the line meets the confinement
// and nothing else.
//
// Start at [Read]; [Reading.Line] is the line that is left to run, [Note] the
// words on what was done.
package install

import (
	"slices"
	"strings"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/interpreter"
)

// Kind is whose packages a request is for.
type Kind string

// The kinds of installs that a host performs (B1 13.4).
const (
	Pip Kind = "pip" // packages for Python
	Npm Kind = "npm" // packages for Node; pnpm and yarn ask for them, too
)

// KindOf is whose packages the scripts of an interpreter use.
func KindOf(k interpreter.Kind) Kind {
	if k == interpreter.Node {
		return Npm
	}
	return Pip
}

// Interpreter is what runs code that uses such packages.
func (k Kind) Interpreter() interpreter.Kind {
	if k == Npm {
		return interpreter.Node
	}
	return interpreter.Python
}

// Options say what may be installed.
type Options struct {
	// Allowed is the operator's word that packages may be installed at all.
	Allowed bool
	// Network is the operator's word that commands have the network. With it,
	// with Allowed and with no Packages, package runners are commands like any
	// other (B1 13.3).
	Network bool
	// Packages are the names that may be installed, without versions; empty
	// allows all. Python's names are compared as its registry does, in any case
	// and with "-", "_" and "." alike; npm's exactly.
	Packages []string
	// Provided says whether the host itself has a package, so that nothing needs
	// to be fetched (B1 13.16). Python's names are given in their normal form.
	// Nil has none.
	Provided func(kind Kind, name string) bool
	// Host says whether a program is of the Python that Provided is about, which a line
	// names by its whole path, or by a name that is not that of every Python, as
	// python3.12 is. Nil has none: what is named by a path may be that of a virtual
	// environment, which has nothing of the host's.
	Host func(program string) bool
	// Program says whether a program is there, so that a runner such as npx has nothing
	// to fetch: by its name one that comes with an installed package, by a path a file
	// of the workspace, seen as by Manifest. Nil has none.
	Program func(name string) bool
	// Brings names the package that is known to bring a program, or nothing. Nil knows
	// none.
	Brings func(kind Kind, program string) string
	// Manifest is a file of the workspace, by its path from where the line
	// starts, with "/" between names; an absolute path comes as it was written.
	// Its errors are shown to the model, so they name no path of the host. Nil
	// has no files.
	Manifest func(path string) ([]byte, error)
	// Most is the number of packages in one install; 0 is the default of
	// [config.InstallNames]. What a package.json lists is not counted.
	Most int
}

// Spec is a package that is asked for. All its texts have been checked against
// the registry's grammar: none begins with "-", none names a place.
type Spec struct {
	Name string
	// Version is what follows the name in the registry's own spelling: for pip
	// comparisons ("==1.2,<2"), for npm a version, a range or a tag ("^1.2",
	// "latest"). Empty is any.
	Version string
	Extras  []string // of pip: "standard" in uvicorn[standard]
	Marker  string   // of pip: the condition after ";"
	// Provided says that the host itself has the package and it needs no fetch.
	// Where installs are off the version was not looked at.
	Provided bool
}

// Text is the spec as the kind's own installer takes it in one argument.
func (s Spec) Text(kind Kind) string {
	if kind == Npm {
		if s.Version == "" {
			return s.Name
		}
		return s.Name + "@" + s.Version
	}
	text := s.Name
	if len(s.Extras) > 0 {
		text += "[" + strings.Join(s.Extras, ",") + "]"
	}
	text += s.Version
	if s.Marker != "" {
		text += " ; " + s.Marker
	}
	return text
}

// Request is one install of a line.
type Request struct {
	Kind  Kind
	Specs []Spec
	// Manifest says that the specs are what a package.json lists.
	Manifest bool
	// Fallback says that the request stands behind an "||" and is for the case alone
	// that the request before it fails.
	Fallback bool
	// Own says that the command is one of another Python than the host's, such as that
	// of a virtual environment, and Environment which folder that has, seen from where
	// the line starts, if that is known; or else Program is the name that tells which
	// Python it is of, such as pip3.12. What is installed goes to where all of them find
	// it.
	Own         bool
	Environment string
	Program     string
}

// Needs are the specs that the host does not have by itself.
func (r Request) Needs() []Spec {
	return slices.DeleteFunc(slices.Clone(r.Specs), func(s Spec) bool { return s.Provided })
}

// Reading is what a line asks for. The zero Reading asks for nothing, and its
// line is run as it is.
type Reading struct {
	// Requests are the installs in the order in which they stand. They are
	// performed in that order, and none after one that failed (B1 13.10) but for a
	// fallback.
	Requests []Request
	// Refusal is a sentence for the model. When it is set nothing of the line
	// runs, and there are no requests.
	Refusal string
	// Only says that nothing but installs is in the line, so that what they gave
	// is the whole answer and the rest need not run.
	Only bool

	script script
}

// script is a text of the shell with what is to be replaced in it.
type script struct {
	text  string
	edits []edit
}

// Read reads a line in the dialect of bash. A line that its parser cannot read
// is refused if an install seems to be a command in it, and otherwise left to
// the shell, which will say what is wrong.
func Read(line string, o Options) Reading {
	if o.Most <= 0 {
		o.Most = config.Values{}.Int(config.InstallNames)
	}
	r := &reader{
		options: o, tools: tools(), wrappers: wrappers(), files: map[string]written{},
		known:  map[Kind]map[string]option{Pip: pipOptions(), Npm: npmOptions()},
		listed: listed(o.Packages),
	}
	if !r.possible(line) {
		return Reading{script: script{text: line}}
	}
	s, only := r.readScript(line)
	if r.refusal == "" && len(r.requests) > 0 && len(r.routes) > 0 {
		r.refuse(settingRefused(r.routes[0]))
	}
	if r.refusal != "" {
		return Reading{Refusal: r.refusal, script: script{text: line}}
	}
	return Reading{Requests: r.requests, Only: only && len(r.requests) > 0, script: s}
}

// possible says whether the name of an installer is a word of a line at all, or
// the end of a path in it. Nearly every line ends here, before anything is
// parsed.
func (r *reader) possible(line string) bool {
	names := strings.FieldsFuncSeq(line, func(c rune) bool {
		return c != '_' && c != '.' && c != '-' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z')
	})
	for name := range names {
		t, known := r.tools[programOf(word{text: name})]
		if known && t.family != shell && t.family != evals && t.family != traps && t.family != feeds || strings.HasPrefix(name, "-") && strings.HasSuffix(name, "mpip") {
			return true
		}
	}
	return false
}
