package install

import (
	"errors"
	"io/fs"
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
		r.runner(runnerRefused(a))
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

// runner lets a package runner run where it could reach nothing more by it, and
// refuses it elsewhere (B1 13.3).
func (r *reader) runner(sentence string) {
	if r.options.Network && r.options.Allowed && len(r.options.Packages) == 0 {
		return
	}
	r.refuse(sentence)
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
		s.Provided = r.provides(req.Kind, name, *s)
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
	req.Tool = a.shown
	if p.dir != nil && *p.dir != unknownDir {
		req.Dir = *p.dir
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
