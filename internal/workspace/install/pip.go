package install

import (
	"iter"
	"path"
	"regexp"
	"strings"
)

// The grammar of a requirement (PEP 508) and of what a version is compared with
// (PEP 440).
var (
	pipName     = regexp.MustCompile(`^[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?`)
	pipExtras   = regexp.MustCompile(`^\s*\[\s*([A-Za-z0-9._-]+(?:\s*,\s*[A-Za-z0-9._-]+)*)\s*\]`)
	pipExtra    = regexp.MustCompile(`^[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?$`)
	pipRelease  = regexp.MustCompile(`^(?i)v?(?:\d+!)?\d+(?:\.\d+)*(?:[-_.]?(?:a|b|c|rc|alpha|beta|pre|preview)[-_.]?\d*)?(?:-\d+|[-_.]?(?:post|rev|r)[-_.]?\d*)?(?:[-_.]?dev[-_.]?\d*)?(?:\+[a-z0-9]+(?:[-_.][a-z0-9]+)*)?$`)
	pipPrefix   = regexp.MustCompile(`^v?(?:\d+!)?\d+(?:\.\d+)*\.\*$`)
	pipAny      = regexp.MustCompile(`^[A-Za-z0-9._+!-]+$`)
	pipOperator = regexp.MustCompile(`^(===|==|!=|<=|>=|~=|<|>)\s*(\S+)$`)
	pipMarker   = regexp.MustCompile(`^(?:[\s()]|(?:and|or|not|in)\b|[a-z_]+(?:\.[a-z_]+)?|'[A-Za-z0-9 ._+*!#-]*'|"[A-Za-z0-9 ._+*!#-]*"|[<>=!~]=?=?)+$`)
	pipRuns     = regexp.MustCompile(`[-_.]+`)
	urlStart    = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://`)
	gitStart    = regexp.MustCompile(`^(?:git|hg|svn|bzr)\+`)
	userInfo    = regexp.MustCompile(`//[^/@\s]*@`)
)

// normal is a Python package's name as its registry compares it (PEP 503).
func normal(name string) string {
	return strings.ToLower(pipRuns.ReplaceAllString(name, "-"))
}

// requirement reads a package with its version as pip writes them. A problem is
// the reason that it is refused for, and empty when there is none.
func requirement(text string) (s Spec, problem string) {
	text = strings.TrimSpace(text)
	if problem := elsewhere(text); problem != "" {
		return Spec{}, problem
	}
	s.Name = pipName.FindString(text)
	if s.Name == "" {
		return Spec{}, notAPipName
	}
	rest := text[len(s.Name):]
	if m := pipExtras.FindStringSubmatch(rest); m != nil {
		for extra := range strings.SplitSeq(m[1], ",") {
			extra = strings.TrimSpace(extra)
			if !pipExtra.MatchString(extra) {
				return Spec{}, notAPipName
			}
			s.Extras = append(s.Extras, extra)
		}
		rest = rest[len(m[0]):]
	}
	rest, marker, conditional := strings.Cut(rest, ";")
	if conditional {
		s.Marker = strings.Join(strings.Fields(marker), " ")
		if !pipMarker.MatchString(s.Marker) {
			return Spec{}, notAMarker
		}
	}
	s.Version, problem = comparisons(rest)
	return s, problem
}

// elsewhere is the reason for which a word is refused that names no package of
// the registry but a place (B1 13.8).
func elsewhere(text string) string {
	_, direct, at := strings.Cut(text, "@")
	direct = strings.TrimSpace(direct)
	lower := strings.ToLower(text)
	switch {
	case gitStart.MatchString(text), at && gitStart.MatchString(direct):
		return isGit
	case strings.HasPrefix(lower, "file:"), at && strings.HasPrefix(direct, "file:"):
		return isPath
	case urlStart.MatchString(text), at && urlStart.MatchString(direct):
		return isURL
	case strings.HasPrefix(text, "."), strings.HasPrefix(text, "~"), strings.HasPrefix(text, "/"), strings.Contains(text, `\`):
		return isPath
	case strings.HasSuffix(lower, ".whl"), strings.HasSuffix(lower, ".tar.gz"), strings.HasSuffix(lower, ".tgz"), strings.HasSuffix(lower, ".zip"):
		return isPath
	case !strings.HasPrefix(text, "@") && strings.Contains(strings.SplitN(text, ";", 2)[0], "/"):
		return isPath
	}
	return ""
}

// comparisons reads "==1.2, <2", with or without parentheses, and gives it back
// without spaces.
func comparisons(text string) (version, problem string) {
	text = strings.TrimSpace(text)
	if inner, found := strings.CutPrefix(text, "("); found {
		inner, closed := strings.CutSuffix(inner, ")")
		if !closed {
			return "", notAVersion
		}
		text = strings.TrimSpace(inner)
	}
	if text == "" {
		return "", ""
	}
	if text[0] == '=' && !strings.HasPrefix(text, "==") || text[0] == '@' {
		return "", wantsTwoEquals
	}
	var all []string
	for part := range strings.SplitSeq(strings.TrimSuffix(text, ","), ",") {
		m := pipOperator.FindStringSubmatch(strings.TrimSpace(part))
		if m == nil || !fits(m[1], m[2]) {
			return "", notAVersion
		}
		all = append(all, m[1]+m[2])
	}
	return strings.Join(all, ","), ""
}

// fits says whether an operator takes such a version.
func fits(operator, version string) bool {
	switch operator {
	case "===":
		return pipAny.MatchString(version)
	case "==", "!=":
		return pipRelease.MatchString(version) || pipPrefix.MatchString(version)
	}
	return pipRelease.MatchString(version)
}

// pip reads what is asked of pip.
func (r *reader) pip(a ask, p place) {
	known := r.known[Pip]
	for _, w := range a.early {
		if name, _, _, o, _ := find(known, w); w.isOption() && !o.skip {
			r.refuse(optionRefused(a, name, o.why))
			return
		}
	}
	switch a.verb {
	case "download", "wheel":
		r.refuse(archivesRefused(a))
		return
	}
	specs, good := r.pipArgs(a, p)
	if !good {
		return
	}
	if len(specs) == 0 {
		r.refuse(nothingAsked(a))
		return
	}
	req := Request{Kind: Pip, Specs: specs}
	r.own(&req, a.at, p)
	r.request(a, p, req)
}

// own notes on a request whether its program is not of the Python that this host has
// packages for, and which one it is of.
func (r *reader) own(req *Request, program word, p place) {
	hosts := func() bool { return r.options.Host != nil && r.options.Host(program.text) }
	switch {
	case program.expands:
		req.Own = true
	case strings.Contains(program.text, "/"):
		if req.Own = !path.IsAbs(program.text) || !hosts(); req.Own {
			req.Environment = p.environment(program)
		}
	case r.activated:
		req.Own, req.Environment = true, r.environment
	case !anyPython(program) && !hosts():
		req.Own, req.Program = true, program.text
	}
}

// pipArgs reads the words behind pip install; good is false if they are refused.
func (r *reader) pipArgs(a ask, p place) (specs []Spec, good bool) {
	plain := false // behind "--" nothing is an option
	for i := 0; i < len(a.args); i++ {
		w := a.args[i]
		if plain || !w.isOption() {
			if w.expands {
				r.refuse(expansionRefused(a, w))
				return nil, false
			}
			s, problem := pipWord(w)
			if problem != "" {
				r.refuse(specRefused(a, w, problem))
				return nil, false
			}
			specs = append(specs, s)
			continue
		}
		if w.is("--") {
			plain = true
			continue
		}
		name, value, attached, o, _ := find(r.known[Pip], w)
		switch {
		case name == "-r" || name == "--requirement":
			if !attached && value == "" && i+1 < len(a.args) {
				i++
				w, value = a.args[i], a.args[i].text
			}
			switch {
			case w.expands:
				r.refuse(expansionRefused(a, w))
				return nil, false
			case value == "":
				r.refuse(nothingAsked(a))
				return nil, false
			}
			more, good := r.requirements(a, p, value)
			if !good {
				return nil, false
			}
			specs = append(specs, more...)
		case !o.skip:
			r.refuse(optionRefused(a, name, o.why))
			return nil, false
		case w.expands && !attached:
			r.refuse(expansionRefused(a, w))
			return nil, false
		case o.value && !attached:
			i++
		}
	}
	return specs, true
}

// pipWord reads a word as a package.
func pipWord(w word) (Spec, string) {
	if w.text != "" && strings.Trim(w.text, "=<>!~") == "" {
		return Spec{}, isLoose
	}
	s, problem := requirement(w.text + w.glued)
	if problem != "" && w.glued != "" {
		return Spec{}, wantsQuotes
	}
	return s, problem
}

// requirements reads a file of them (B1 13.6): a package a line, comments apart.
// Options in it are refused: another file, another index, a hash.
func (r *reader) requirements(a ask, p place, name string) ([]Spec, bool) {
	text, at, problem := r.manifest(p, name)
	if problem != "" {
		r.refuse(fileRefused(a, at, problem))
		return nil, false
	}
	var specs []Spec
	for number, line := range requirementLines(string(text)) {
		problem := isFileOption
		var s Spec
		if !strings.HasPrefix(line, "-") && !strings.Contains(line, " --") {
			s, problem = requirement(line)
		}
		if problem != "" {
			r.refuse(lineRefused(a, at, number, line, problem))
			return nil, false
		}
		specs = append(specs, s)
	}
	if len(specs) == 0 {
		r.refuse(fileRefused(a, at, isEmptyFile))
		return nil, false
	}
	return specs, true
}

// requirementLines are the lines of a requirements file that say something, with
// the number of the line that each ends on.
func requirementLines(text string) iter.Seq2[int, string] {
	// A byte order mark and line ends of Windows are no part of the text.
	text = strings.ReplaceAll(strings.TrimPrefix(text, "\ufeff"), "\r\n", "\n")
	return func(yield func(int, string) bool) {
		number, joined := 0, ""
		for line := range strings.SplitSeq(text, "\n") {
			number++
			if head, more := strings.CutSuffix(line, `\`); more {
				joined += head
				continue
			}
			line, joined = strings.TrimSpace(uncomment(joined+line)), ""
			if line != "" && !yield(number, line) {
				return
			}
		}
		if joined = strings.TrimSpace(uncomment(joined)); joined != "" {
			yield(number, joined)
		}
	}
}

// uncomment drops what stands behind a "#" that begins a word.
func uncomment(line string) string {
	for i := range len(line) {
		if line[i] == '#' && (i == 0 || line[i-1] == ' ' || line[i-1] == '\t') {
			return line[:i]
		}
	}
	return line
}
