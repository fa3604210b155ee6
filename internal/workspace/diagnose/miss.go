package diagnose

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/metier-run/metier/internal/interpreter"
)

// Form is how a name was asked for that a library has not.
type Form string

// The forms (B1 10.6). An argument that a function does not take is one of them, for
// it costs a model as many rounds.
const (
	Attribute   Form = "attribute"   // of an object of Python; Owner is its class
	ModuleName  Form = "module"      // of a module of Python, as an attribute or by "from"
	SubModule   Form = "submodule"   // of a package of Python
	Keyword     Form = "keyword"     // argument of a function of Python
	Member      Form = "member"      // of an object of JavaScript; Owner is the expression before it
	Constructor Form = "constructor" // as Member, with "new"
	Export      Form = "export"      // of a module of JavaScript
	SubPath     Form = "subpath"     // of a package of JavaScript
)

// Miss is a name that a library has not.
type Miss struct {
	Kind  interpreter.Kind // [interpreter.Python] or [interpreter.Node]
	Form  Form
	Owner string // what should have it
	Name  string
	// Files are those that the traceback names, the deepest first.
	Files []string
}

// Shapes of misses: Python 3.8 to 3.14 with and without "Did you mean", Node 18 to 24.
var (
	missAttribute  = regexp.MustCompile(`(?:^|\| |\s)AttributeError: (?:type object |partially initialized module |module )?'([\w.]+)'(?: object)? has no attribute '(\w{1,80})'`)
	missKind       = regexp.MustCompile(`AttributeError: (type object|partially initialized module|module)?`)
	missImport     = regexp.MustCompile(`ImportError: cannot import name '(\w{1,80})' from (partially initialized module )?'([\w.]+)'`)
	missKeyword    = regexp.MustCompile(`TypeError: ([A-Za-z_][\w.]*)\(\) got an unexpected keyword argument '(\w{1,80})'`)
	missMember     = regexp.MustCompile(`TypeError: (?:\(0 ?, ([\w$.]+)\)|([\w$.]+)) is not a (function|constructor)`)
	missExport     = regexp.MustCompile(`SyntaxError: (?:The requested module|Named export '([\w$]{1,80})' not found\. The requested module) '([^'\s]+)'(?: does not provide an export named '([\w$]{1,80})')?`)
	missSubPath    = regexp.MustCompile(`Package subpath '\./([\w@./-]+)' is not defined by "exports" in \S*?node_modules/((?:@[\w.-]{1,100}/)?[\w.-]{1,100})/package\.json`)
	notTheLibrarys = regexp.MustCompile(`circular import|consider renaming`)
)

// lastMiss finds the last name in an output that a library has not. A name that the
// model's own file has not, or that None has not, is none.
func lastMiss(output string) (Miss, bool) {
	output = clean(output)
	for _, read := range []func(string) (Miss, bool){pythonMiss, nodeMiss} {
		if m, ok := read(output); ok {
			return m, true
		}
	}
	return Miss{}, false
}

// pythonMiss reads the header of the last traceback.
func pythonMiss(output string) (Miss, bool) {
	traces := pythonTraces(output)
	if len(traces) == 0 {
		return Miss{}, false
	}
	t := traces[len(traces)-1]
	m := Miss{Kind: interpreter.Python}
	for _, p := range slices.Backward(t.frames) {
		if !slices.Contains(m.Files, p.File) {
			m.Files = append(m.Files, p.File)
		}
	}
	if notTheLibrarys.MatchString(t.header) {
		return Miss{}, false
	}
	if g := missImport.FindStringSubmatch(t.header); g != nil && g[2] == "" {
		m.Form, m.Owner, m.Name = ModuleName, g[3], g[1]
		return m, true
	}
	if g := missKeyword.FindStringSubmatch(t.header); g != nil {
		m.Form, m.Owner, m.Name = Keyword, g[1], g[2]
		return m, true
	}
	g := missAttribute.FindStringSubmatch(t.header)
	if g == nil || g[1] == "NoneType" {
		return Miss{}, false
	}
	m.Form, m.Owner, m.Name = Attribute, g[1], g[2]
	if strings.HasPrefix(missKind.FindStringSubmatch(t.header)[1], "module") {
		m.Form = ModuleName
	}
	return m, true
}

// nodeMiss reads the last error of Node.
func nodeMiss(output string) (Miss, bool) {
	m := Miss{Kind: interpreter.Node}
	for _, p := range nodePlaces(output) {
		if p.File != "" && !slices.Contains(m.Files, p.File) && !strings.HasPrefix(p.File, "node:") {
			m.Files = append(m.Files, p.File)
		}
	}
	if g := last(missExport, output); g != nil && g[1]+g[3] != "" && g[2][0] != '.' && g[2][0] != '/' {
		m.Form, m.Owner, m.Name = Export, g[2], g[1]+g[3]
		return m, true
	}
	if g := last(missSubPath, output); g != nil {
		m.Form, m.Owner, m.Name = SubPath, g[2], g[1]
		return m, true
	}
	if g := last(missMember, output); g != nil {
		whole := g[1] + g[2]
		m.Form = Member
		if g[3] == "constructor" {
			m.Form = Constructor
		}
		m.Name = whole
		if i := strings.LastIndexByte(whole, '.'); i >= 0 {
			m.Owner, m.Name = whole[:i], whole[i+1:]
		}
		return m, m.Name != "" && len(m.Files) > 0
	}
	return Miss{}, false
}

func last(shape *regexp.Regexp, text string) []string {
	all := shape.FindAllStringSubmatch(text, -1)
	if len(all) == 0 {
		return nil
	}
	return all[len(all)-1]
}

// submodule is the miss of a part of a package that is installed.
func submodule(m Module, output string) Miss {
	miss := Miss{Kind: interpreter.Python, Form: SubModule}
	if m.Tool == Npm {
		return Miss{Kind: interpreter.Node, Form: SubPath, Owner: m.Name, Name: strings.TrimPrefix(m.Whole, m.Name+"/")}
	}
	i := strings.LastIndexByte(m.Whole, '.')
	miss.Owner, miss.Name = m.Whole[:i], m.Whole[i+1:]
	for _, p := range pythonPlaces(output) {
		if !slices.Contains(miss.Files, p.File) {
			miss.Files = append(miss.Files, p.File)
		}
	}
	return miss
}

// ownPython reports whether a module is a file of the workspace.
func ownPython(module string, read func(string) ([]byte, bool)) bool {
	name := strings.ReplaceAll(module, ".", "/")
	for _, file := range []string{name + ".py", path.Join(name, "__init__.py")} {
		if _, ok := read(file); ok {
			return true
		}
	}
	return false
}
