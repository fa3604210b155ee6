package diagnose

import (
	_ "embed"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/metier-run/metier/internal/interpreter"
)

// What a probe looks at and prints at most (B1 10.6).
const (
	mostRoots     = 6  // modules that are imported to find something
	mostNames     = 80 // names of one answer
	mostNear      = 5  // names that are close to the one asked for
	rootFileBytes = 512 << 10
)

//go:embed probe.py
var pythonProbe string

//go:embed probe.mjs
var nodeProbe string

// Program is a small program that prints what a library has. It is to be run without
// a network, where the failed command ran, with the host's own variables for installed
// packages and without what the model exported, which could lead to its own code. Its
// output is given to [ReadProbe].
type Program struct {
	// Kind is the interpreter that runs it.
	Kind interpreter.Kind
	// Source is the text of the program.
	Source string
	// Args are its arguments: what is looked for and where.
	Args []string
}

// Argv is what follows the interpreter: the program as an argument, so that no file is
// needed, and its own arguments.
func (p Program) Argv() []string {
	flags := []string{"-B", "-W", "ignore", "-c", p.Source}
	if p.Kind == interpreter.Node {
		flags = []string{"--no-warnings", "--input-type=module", "-e", p.Source, "--"}
	}
	return append(flags, p.Args...)
}

// Probe makes the program that looks for a miss. command is the line that failed; read
// gives a file of the workspace by its path from where the command ran. What to import
// is taken from the command, the files that it names and those of the traceback; the
// model's own modules are read and never imported, because that would run them. The
// program ends by itself a little before most has passed. ok is false when there is
// nothing to look at.
func (m Miss) Probe(command string, read func(path string) ([]byte, bool), most time.Duration) (p Program, ok bool) {
	if read == nil || m.Name == "" {
		return Program{}, false
	}
	seconds := strconv.Itoa(max(1, int(most.Seconds())-2))
	s := sources{read: read}
	s.collect(m.Files, command)
	if m.Kind == interpreter.Node {
		return m.probeNode(s, seconds)
	}
	return m.probePython(s, seconds)
}

// sources are the texts that imports are read from.
type sources struct {
	read  func(string) ([]byte, bool)
	texts []string
}

var (
	sourceWord = regexp.MustCompile(`[\w./@+-]+\.(?:py|[cm]?[jt]sx?)\b`)
	dashModule = regexp.MustCompile(`\s-m\s+([A-Za-z_][\w.]*)`)
)

// collect reads the files of a traceback and those that a command names, then takes
// the command itself, which may hold a program.
func (s *sources) collect(files []string, command string) {
	names := slices.Clone(files)
	for _, w := range sourceWord.FindAllString(command, mostFiles) {
		names = append(names, path.Clean(w))
	}
	for _, m := range dashModule.FindAllStringSubmatch(command, mostRoots) {
		name := strings.ReplaceAll(m[1], ".", "/")
		names = append(names, name+".py", name+"/__main__.py")
	}
	seen := map[string]bool{}
	for _, name := range names {
		if name = path.Clean(slashed(name)); seen[name] || len(s.texts) >= mostRoots || packageFile(name) {
			continue
		}
		seen[name] = true
		if data, ok := s.read(name); ok && len(data) <= rootFileBytes {
			s.texts = append(s.texts, string(data))
		}
	}
	s.texts = append(s.texts, command)
}

var (
	pyFrom   = regexp.MustCompile(`(?m)(?:^|[;"'])[ \t]*from[ \t]+([A-Za-z_][\w.]*)[ \t]+import\b`)
	pyImport = regexp.MustCompile(`(?m)(?:^|[;"'])[ \t]*import[ \t]+([A-Za-z_][\w., \t]*)`)
)

// pythonRoots are the modules that texts import, without the model's own.
func (s sources) pythonRoots() []string {
	var roots []string
	add := func(name string) {
		name, _, _ = strings.Cut(strings.TrimSpace(name), " ")
		top, _, _ := strings.Cut(name, ".")
		if !pythonModule.MatchString(top) || name == "__future__" || slices.Contains(roots, name) || ownPython(top, s.read) {
			return
		}
		roots = append(roots, name)
	}
	for _, text := range s.texts {
		for _, m := range pyFrom.FindAllStringSubmatch(text, -1) {
			add(m[1])
		}
		for _, m := range pyImport.FindAllStringSubmatch(text, -1) {
			for name := range strings.SplitSeq(m[1], ",") {
				add(name)
			}
		}
	}
	return roots
}

func (m Miss) probePython(s sources, seconds string) (Program, bool) {
	var roots []string
	switch m.Form {
	case ModuleName, SubModule:
		if top, _, _ := strings.Cut(m.Owner, "."); ownPython(top, s.read) {
			return Program{}, false
		}
		roots = []string{m.Owner}
	default:
		roots = s.pythonRoots()
		roots = roots[:min(len(roots), mostRoots)]
	}
	return Program{Kind: interpreter.Python, Source: pythonProbe, Args: append([]string{string(m.Form), m.Owner, m.Name, seconds}, roots...)}, true
}

// binding is what a variable of JavaScript stands for: a module, or a name of it, or
// an object that a class of it made.
type binding struct {
	module string
	path   string // of names, with dots; empty for the module itself
	made   bool   // an object of the class at path
}

var (
	jsRequire = regexp.MustCompile(`(?:const|let|var)\s+([\w$]+|\{[^}]*\})\s*=\s*(?:await\s+)?(?:require|import)\s*\(\s*['"]([^'"\n]+)['"]\s*\)(?:\.([\w$.]+))?`)
	jsImport  = regexp.MustCompile(`import\s+(?:([\w$]+)\s*,?\s*)?(?:\*\s*as\s+([\w$]+)\s*|(\{[^}]*\})\s*)?from\s*['"]([^'"\n]+)['"]`)
	jsNew     = regexp.MustCompile(`(?:const|let|var)?\s*([\w$]+)\s*=\s*new\s+([\w$.]+)`)
)

// bindings reads what variables stand for, and which packages there are.
func (s sources) bindings() (bound map[string]binding, packages []string) {
	bound = map[string]binding{}
	for _, text := range s.texts {
		bind := func(names, module, at string) {
			if strings.HasPrefix(module, ".") || strings.HasPrefix(module, "/") || len(module) == 0 {
				return
			}
			if !slices.Contains(packages, module) {
				packages = append(packages, module)
			}
			bindNames(bound, names, module, at)
		}
		for _, m := range jsRequire.FindAllStringSubmatch(text, -1) {
			bind(m[1], m[2], m[3])
		}
		for _, m := range jsImport.FindAllStringSubmatch(text, -1) {
			for _, names := range m[1:4] {
				bind(names, m[4], "")
			}
		}
		for _, m := range jsNew.FindAllStringSubmatch(text, -1) {
			first, rest, _ := strings.Cut(m[2], ".")
			if b, ok := bound[first]; ok && !b.made {
				bound[m[1]] = binding{module: b.module, path: join(b.path, rest), made: true}
			}
		}
	}
	return bound, packages
}

// bindNames takes in one variable or the names between braces.
func bindNames(bound map[string]binding, names, module, at string) {
	inner, braces := strings.CutPrefix(names, "{")
	if !braces {
		if names != "" {
			bound[names] = binding{module: module, path: at}
		}
		return
	}
	for part := range strings.SplitSeq(strings.TrimSuffix(inner, "}"), ",") {
		words := strings.FieldsFunc(part, func(r rune) bool { return r == ' ' || r == ':' || r == '\n' || r == '\t' || r == '\r' })
		words = slices.DeleteFunc(words, func(w string) bool { return w == "as" || w == "type" })
		if len(words) > 0 {
			bound[words[len(words)-1]] = binding{module: module, path: join(at, words[0])}
		}
	}
}

func join(a, b string) string { return strings.Trim(a+"."+b, ".") }

func (m Miss) probeNode(s sources, seconds string) (Program, bool) {
	args := func(b binding, name string) (Program, bool) {
		how := "object"
		if b.made {
			how = "made"
		}
		return Program{Kind: interpreter.Node, Source: nodeProbe, Args: []string{string(m.Form), b.path, name, seconds, how, b.module}}, true
	}
	if m.Form == Export || m.Form == SubPath {
		return args(binding{module: m.Owner}, m.Name)
	}
	bound, packages := s.bindings()
	if m.Owner == "" {
		// The name itself is what a module was asked for.
		b, ok := bound[m.Name]
		if !ok || b.made {
			return Program{}, false
		}
		above, name := "", b.path
		if i := strings.LastIndexByte(b.path, '.'); i >= 0 {
			above, name = b.path[:i], b.path[i+1:]
		}
		if name == "" {
			name = "default"
		}
		return args(binding{module: b.module, path: above}, name)
	}
	first, rest, _ := strings.Cut(m.Owner, ".")
	if b, ok := bound[first]; ok {
		if b.made && rest != "" {
			return Program{}, false
		}
		b.path = join(b.path, rest)
		return args(b, m.Name)
	}
	if len(packages) == 0 || first == "this" || first == "super" {
		return Program{}, false
	}
	packages = packages[:min(len(packages), mostRoots)]
	return Program{Kind: interpreter.Node, Source: nodeProbe, Args: append([]string{string(m.Form), "", m.Name, seconds, "search"}, packages...)}, true
}

// probeMark begins what a probe prints; what stands before it is noise of the library.
const probeMark = "\nmetier-probe 1\n"

var (
	anyName   = regexp.MustCompile(`^[\p{L}_$#][\p{L}\p{N}_$.:/-]{0,79}$`)
	exactName = regexp.MustCompile(`^[\p{L}_$][\p{L}\p{N}_$.-]{0,79}$`)
)

// ReadProbe turns what the program of a miss printed into a sentence: the nearest
// names first, then what there is. Only what looks like a name is taken over. It is
// empty when nothing was found.
func ReadProbe(m Miss, output string) string {
	_, text, ok := strings.Cut("\n"+clean(output), probeMark)
	if !ok || !anyName.MatchString(m.Name) {
		return ""
	}
	var near, has []string
	what, more := "", 0
	for line := range strings.Lines(text) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch word {
		case "what":
			what = whatWords(rest)
		case "near":
			near = takeNames(m, near, rest, mostNear)
		case "has":
			has = takeNames(m, has, rest, mostNames)
		case "more":
			if n, err := strconv.Atoi(rest); err == nil && n > 0 && n < 1e6 {
				more = n
			}
		}
	}
	if len(has)+len(near) == 0 {
		return ""
	}
	return probeSentence(m, what, near, has, more)
}

// whatWords is a kind of thing and its name, of the few kinds that there are.
func whatWords(text string) string {
	kind, name, _ := strings.Cut(text, " ")
	words, ok := map[string]string{"module": "module", "class": "class", "function": "function", "package": "package", "object": "object"}[kind]
	if !ok || !anyName.MatchString(name) {
		return ""
	}
	return "the " + words + " " + name
}

func takeNames(m Miss, names []string, text string, most int) []string {
	shape := exactName
	if m.Form == SubPath {
		shape = anyName
	}
	for _, name := range strings.Fields(text) {
		if len(names) < most && shape.MatchString(name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func probeSentence(m Miss, what string, near, has []string, more int) string {
	if what == "" {
		what = probeIt
	}
	var b strings.Builder
	switch {
	case m.Form == Keyword:
		fmt.Fprintf(&b, probeNoArgument, what, m.Name)
	default:
		fmt.Fprintf(&b, probeNoName, what, m.Name)
	}
	if len(near) > 0 {
		fmt.Fprintf(&b, probeNear, strings.Join(near, ", "))
	}
	if len(has) > 0 {
		list := strings.Join(has, ", ")
		if more > 0 {
			list += fmt.Sprintf(probeMore, more)
		}
		form := probeHas
		if m.Form == Keyword {
			form = probeTakes
		}
		fmt.Fprintf(&b, form, list)
	}
	b.WriteString(probeHow)
	return b.String()
}
