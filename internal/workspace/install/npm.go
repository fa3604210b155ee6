package install

import (
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The grammar of npm's names and of what may stand behind "@".
var (
	npmName  = regexp.MustCompile(`^(?:@[A-Za-z0-9~-][A-Za-z0-9._~-]*/)?[A-Za-z0-9~][A-Za-z0-9._~-]*$`)
	npmTag   = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._-]*$`)
	npmRange = regexp.MustCompile(`^\s*` + npmPart + `(?:(?:\s*\|\|\s*|\s+-\s+|\s+)` + npmPart + `)*\s*$`)
	npmExact = regexp.MustCompile(`^\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?$`)
	shortGit = regexp.MustCompile(`^(?:github|gitlab|bitbucket|gist):|^git@|^git:`)
)

// npmPart is one comparison of a range.
const npmPart = `(?:>=|<=|>|<|=|~>|~|\^)?\s*v?(?:\*|[xX]|\d+)(?:\.(?:\*|[xX]|\d+)){0,2}(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?`

// npmNameLength is the registry's own bound on a name, its scope included.
const npmNameLength = 214

// npmSpec reads a package with its version as npm writes them (B1 13.8). A
// problem is the reason that it is refused for.
func npmSpec(text string) (s Spec, problem string) {
	if shortGit.MatchString(text) {
		return Spec{}, isGit
	}
	name, version, versioned := text, "", false
	if at := strings.LastIndex(text, "@"); at > 0 {
		// An "@" of the version itself, as in a Git address, is not a version's.
		at = strings.Index(text[1:], "@") + 1
		name, version, versioned = text[:at], text[at+1:], true
	}
	if problem := npmElsewhere(name); problem != "" {
		return Spec{}, problem
	}
	if len(name) > npmNameLength || !npmName.MatchString(name) {
		if strings.Contains(name, "==") || strings.ContainsAny(name, "<>=") {
			return Spec{}, wantsAt
		}
		return Spec{}, notAnNpmName
	}
	if !versioned {
		return Spec{Name: name}, ""
	}
	version, problem = npmVersion(version)
	return Spec{Name: name, Version: version}, problem
}

// npmVersion judges what stands behind a name: a version, a range or a tag.
func npmVersion(text string) (version, problem string) {
	text = strings.TrimSpace(text)
	switch {
	case strings.HasPrefix(text, "npm:"):
		return "", isAlias
	case strings.HasPrefix(text, "workspace:"), strings.HasPrefix(text, "catalog:"), strings.HasPrefix(text, "link:"), strings.HasPrefix(text, "portal:"):
		return "", isPath
	case npmElsewhere(text) != "":
		return "", npmElsewhere(text)
	case strings.Contains(text, "/"):
		return "", isGit
	case !npmTag.MatchString(text) && !npmRange.MatchString(text):
		return "", notAnNpmVersion
	}
	return text, ""
}

// npmElsewhere is the reason for which a word is refused that names a place.
func npmElsewhere(text string) string {
	if problem := elsewhere(text); problem != "" && !strings.HasPrefix(text, "~") {
		// "user/repository" is one of a well-known host.
		if problem == isPath && strings.Count(text, "/") == 1 && npmName.MatchString(strings.Replace(text, "/", "", 1)) {
			return isGit
		}
		return problem
	}
	switch {
	case shortGit.MatchString(text):
		return isGit
	case strings.HasPrefix(text, "npm:"):
		return isAlias
	case strings.HasPrefix(text, "~/"):
		return isPath
	}
	return ""
}

// npm reads what is asked of npm, pnpm or yarn.
func (r *reader) npm(a ask, p place) {
	for _, w := range a.early {
		if name, _, _, o, _ := find(r.known[Npm], w); w.isOption() && !o.skip {
			r.refuse(optionRefused(a, name, o.why))
			return
		}
	}
	switch a.verb {
	case "exec", "x", "dlx":
		if a.verb == "exec" && a.name != "npm" {
			return // pnpm exec and yarn exec run what is installed
		}
		r.runner(a, p, execRefused(a))
		return
	case "init", "create", "innit":
		if slices.ContainsFunc(a.args, func(w word) bool { return !w.isOption() }) {
			a.args = nil // what is run is another name than what is asked for
			r.runner(a, p, execRefused(a))
		}
		return
	case "update", "up", "upgrade":
		r.refuse(updateRefused(a))
		return
	case "install-test", "it":
		r.refuse(verbRefused(a))
		return
	case "global":
		r.refuse(globalRefused(a))
		return
	}
	specs, dev, good := r.npmArgs(a)
	locked := a.verb == "ci" || a.verb == "clean-install" || a.verb == "ic"
	switch {
	case !good:
	case len(specs) > 0 && locked:
		r.refuse(ciRefused(a))
	case len(specs) > 0:
		r.request(a, p, Request{Kind: Npm, Specs: specs})
	case a.verb == "add" && a.name != "npm":
		r.refuse(nothingAsked(a))
	default:
		r.packageJSON(a, p, dev, locked)
	}
}

// npmArgs reads the words behind npm install. Dev says that the packages of
// development are wanted, too.
func (r *reader) npmArgs(a ask) (specs []Spec, dev, good bool) {
	dev = true
	for i := 0; i < len(a.args); i++ {
		w := a.args[i]
		if w.isOption() {
			next := i+1 < len(a.args) && a.args[i+1].is("dev", "prod", "production")
			if production(w.text) || next && w.is("--omit", "--only") {
				dev = false
				if next && w.is("--omit", "--only") {
					i++
				}
				continue
			}
			if w.is("--") {
				continue
			}
			name, _, attached, o, _ := find(r.known[Npm], w)
			switch {
			case !o.skip:
				r.refuse(optionRefused(a, name, o.why))
				return nil, false, false
			case w.expands && !attached:
				r.refuse(expansionRefused(a, w))
				return nil, false, false
			}
			if o.value && !attached {
				i++
			}
			continue
		}
		if w.expands {
			r.refuse(expansionRefused(a, w))
			return nil, false, false
		}
		s, problem := npmSpec(w.text + w.glued)
		if problem != "" {
			r.refuse(specRefused(a, w, problem))
			return nil, false, false
		}
		specs = append(specs, s)
	}
	return specs, dev, true
}

// packageJSON asks for what a package.json lists.
func (r *reader) packageJSON(a ask, p place, dev, locked bool) {
	var file struct {
		Dependencies map[string]string `json:"dependencies"`
		Dev          map[string]string `json:"devDependencies"`
		Optional     map[string]string `json:"optionalDependencies"`
		Workspaces   jsontext.Value    `json:"workspaces"`
	}
	at, problem := r.readJSON(p, "package.json", &file)
	switch {
	case problem == "" && len(file.Workspaces) > 0:
		problem = isWorkspaces
	case problem == isMissing:
		problem = isNoPackage
	}
	if problem != "" {
		r.refuse(fileRefused(a, at, problem))
		return
	}
	wanted := map[string]string{}
	lists := []map[string]string{file.Optional, file.Dependencies}
	if dev {
		lists = []map[string]string{file.Dev, file.Optional, file.Dependencies}
	}
	for _, list := range lists {
		for name, version := range list {
			wanted[name] = version
		}
	}
	if locked && !r.lock(a, p, wanted) {
		return
	}
	var specs []Spec
	for _, name := range sorted(wanted) {
		s, problem := npmSpec(name)
		if problem == "" && strings.TrimSpace(wanted[name]) != "" {
			s.Version, problem = npmVersion(wanted[name])
		}
		if problem != "" {
			r.refuse(entryRefused(a, at, name, wanted[name], problem))
			return
		}
		specs = append(specs, s)
	}
	r.request(a, p, Request{Kind: Npm, Specs: specs, Manifest: true})
}

// lock puts the exact versions of a package-lock.json in place of the ranges.
// Those of what the packages themselves need are the registry's to choose.
func (r *reader) lock(a ask, p place, wanted map[string]string) bool {
	var file struct {
		Packages map[string]struct {
			Version string `json:"version"`
		} `json:"packages"`
	}
	at, problem := r.readJSON(p, "package-lock.json", &file)
	if problem == isMissing {
		problem = isNoLock
	}
	if problem != "" {
		r.refuse(fileRefused(a, at, problem))
		return false
	}
	for _, name := range sorted(wanted) {
		version := file.Packages["node_modules/"+name].Version
		if !npmExact.MatchString(version) {
			r.refuse(entryRefused(a, at, name, version, isNotLocked))
			return false
		}
		wanted[name] = version
	}
	return true
}

// readJSON reads a file of npm's, as forgivingly as npm does: unknown members and
// members that stand twice are no fault.
func (r *reader) readJSON(p place, name string, into any) (at, problem string) {
	text, at, problem := r.manifest(p, name)
	if problem != "" {
		return at, problem
	}
	text = []byte(strings.TrimPrefix(string(text), "\ufeff"))
	if err := json.Unmarshal(text, into, jsontext.AllowDuplicateNames(true)); err != nil {
		return at, notJSON
	}
	return at, ""
}

func sorted(m map[string]string) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
