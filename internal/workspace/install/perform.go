package install

import (
	"errors"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// perform turns what was recognised into a request, or refuses it.
func (r *reader) perform(a ask, p place) {
	allowed := r.options.Allowed
	refused := r.refusal
	switch {
	case a.unclear && !allowed: // it can fetch nothing, and may be no install
		return
	case a.unclear:
		r.refuse(unclearRefused(a))
	case a.family == pip:
		r.pip(a, p)
	case a.family == npm:
		r.npm(a, p)
	case a.family == runner:
		r.runner(a, p, runnerRefused(a))
	case a.family == feeds:
		r.refuse(fedRefused(a))
	default:
		r.refuse(otherRefused(a))
	}
	// Where nothing may be installed, what is wrong with the wish is no matter.
	if !allowed && refused == "" && r.refusal != "" {
		r.refusal = offRefused(a)
	}
}

// runner runs the program itself where it is there. Else a package runner runs where it
// could reach nothing more by it, and is refused elsewhere (B1 13.3).
func (r *reader) runner(a ask, p place, sentence string) {
	free := r.options.Network && r.options.Allowed && len(r.options.Packages) == 0
	if r.runs(a, p, free) || free {
		return
	}
	if w, ok := runnable(a.args); ok && r.options.Brings != nil {
		kind := a.kind()
		if name := r.options.Brings(kind, w.text); name != "" {
			sentence = programRefused(a, kind, name, w.text)
		}
	}
	r.refuse(sentence)
}

// kind is whose packages a runner fetches.
func (a ask) kind() Kind {
	switch a.name {
	case "uvx", "uv", "pipx":
		return Pip
	}
	return Npm
}

// runs has the line run a program that is installed, in place of the runner, which does
// not look where the host installs. So it does for one that the line may install before:
// what its packages bring is not known yet. free says that the runner could fetch it.
func (r *reader) runs(a ask, p place, free bool) bool {
	w, ok := runnable(a.args)
	if !ok || p.escaped || strings.ContainsAny(p.text[a.at.from:w.to], "<>") {
		return false
	}
	if _, tool := r.tools[programOf(w)]; tool || reserved(w.text) {
		return false
	}
	kind := a.kind()
	bin, found := r.bin(kind, p, w.text)
	if !found && (free || !slices.ContainsFunc(r.requests, func(q Request) bool { return q.Kind == kind })) {
		return false
	}
	*p.edits = append(*p.edits, edit{from: a.at.from, to: w.to, program: bin + w.raw})
	return true
}

// bin is where a program is, as a command writes it: "" on PATH.
func (r *reader) bin(kind Kind, p place, name string) (bin string, found bool) {
	if r.options.Program == nil {
		return "", false
	}
	if kind == Npm && p.dir != nil && *p.dir != unknownDir {
		// Node looks in the folders above as well.
		for dir, up := *p.dir, ""; r.looks < mostLooks; dir, up = path.Dir(dir), up+"../" {
			r.looks++
			if r.options.Program(path.Join(dir, localBin, name)) {
				return up + localBin + "/", true
			}
			if dir == path.Dir(dir) || dir == ".." || strings.HasSuffix(dir, "/..") {
				break
			}
		}
	}
	return "", r.options.Program(name)
}

// localBin is where npm puts programs of packages.
const localBin = "node_modules/.bin"

// runnable is the program that a runner is to run, if it is a plain name behind options
// that only say how it is fetched.
func runnable(words []word) (program word, ok bool) {
	for i := 0; i < len(words); i++ {
		w := words[i]
		switch name, _, attached := w.option(); {
		case !w.isOption():
			return w, !w.expands && programName.MatchString(w.text)
		case w.expands:
			return word{}, false
		case w.is("-y", "--yes", "--no-install", "--no", "-q", "--quiet", "--silent", "--offline", "--prefer-offline", "--bun", "--"), name == "--loglevel" && attached:
		case name == "-p", name == "--package", name == "--from":
			if !attached {
				i++
			}
		default:
			return word{}, false
		}
	}
	return word{}, false
}

var programName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*$`)

// reserved says whether a name begins something else than a program where it is the
// first word of a command.
func reserved(name string) bool {
	switch name {
	case "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "in", "function", "select", "time", "coproc":
		return true
	}
	_, wraps := wrappers()[name]
	return wraps || version(name, "python") || version(name, "pypy") || name == "py"
}

// request judges a request that was read, and adds it.
func (r *reader) request(a ask, p place, req Request) {
	switch {
	case p.loops:
		r.refuse(loopRefused(a))
		return
	case p.escaped:
		r.refuse(backquotesRefused(a))
		return
	case !req.Manifest && len(req.Specs) > r.options.Most:
		r.refuse(tooManyRefused(a, len(req.Specs), r.options.Most))
		return
	}
	may := r.listed[req.Kind]
	for i := range req.Specs {
		s := &req.Specs[i]
		name := s.Name
		if req.Kind == Pip {
			name = normal(name)
		}
		s.Provided = !req.Own && r.provides(req.Kind, name, *s)
		switch {
		case s.Provided:
		case !r.options.Allowed:
			r.refuse(offRefused(a))
			return
		case len(may) > 0 && !may[name]:
			r.refuse(unlistedRefused(s.Name, r.options.Packages))
			return
		}
	}
	r.requests = append(r.requests, req)
}

// provides says whether a spec is met by what the host has. Which version that
// is, nobody knows here: where it may be fetched, one that is named is fetched.
func (r *reader) provides(kind Kind, name string, s Spec) bool {
	if r.options.Provided == nil || !r.options.Provided(kind, name) {
		return false
	}
	return !r.options.Allowed || s.Version == "" && len(s.Extras) == 0
}

// listed are the packages that may be installed, as they are compared (B1 13.15).
func listed(packages []string) map[Kind]map[string]bool {
	all := map[Kind]map[string]bool{Pip: {}, Npm: {}}
	for _, name := range packages {
		all[Pip][normal(name)] = true
		all[Npm][name] = true
	}
	return all
}

// manifest reads a file that a command names, as it will be when the command
// runs: the line itself may write it.
func (r *reader) manifest(p place, name string) (text []byte, at, problem string) {
	at = name
	switch {
	case urlStart.MatchString(name):
		return nil, withoutUser(name), isURL
	case name == "-" || name == "/dev/stdin":
		return nil, at, isInput
	case p.dir == nil:
		return nil, at, isNowhere
	}
	if at = join(*p.dir, name); at == unknownDir {
		return nil, name, isNowhere
	}
	if w, written := r.files[at]; written {
		if !w.known {
			return nil, at, isWritten
		}
		return []byte(w.text), at, ""
	}
	switch r.reads++; {
	case r.options.Manifest == nil:
		return nil, at, isNoFiles
	case r.reads > r.options.Most: // each may be long
		return nil, at, isManyFiles
	}
	text, err := r.options.Manifest(at)
	switch {
	case err == nil:
		return text, at, ""
	case errors.Is(err, fs.ErrNotExist):
		return nil, at, isMissing
	}
	// The paths of these errors are the host's.
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	return nil, at, cannotRead(err)
}
