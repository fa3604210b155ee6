package registry

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Reason says why something was not handed to an installer.
type Reason string

// The reasons.
const (
	NotAllowed  Reason = "not allowed" // the host is not on the operator's list, or not public
	Missing     Reason = "missing"     // the server has no such thing
	Denied      Reason = "denied"      // the server refused the host's credential, or wants one
	Failing     Reason = "failing"     // the server answered with an error of its own
	Unreachable Reason = "unreachable" // there was no answer
	Untrusted   Reason = "untrusted"   // the server's certificate is not believed
	Late        Reason = "late"        // the launch ended before the answer did
	Broken      Reason = "broken"      // the answer is none that a registry gives
	TooLarge    Reason = "too large"   // the answer is larger than a limit
	Mismatch    Reason = "wrong hash"  // the file is not the one that the page described
	Cut         Reason = "cut"         // the file ended early
)

// Trouble is one thing that was not handed over.
type Trouble struct {
	Reason Reason
	// Host is the server, with a port if it is not the usual one. It is never more than
	// that: the rest of an address can hold secrets.
	Host string
	// What is the project or file that was asked for; plain letters, digits and marks.
	What string
	// Page is set where a page was asked for, and not a file.
	Page bool
}

// Project is what the registries had of one project.
type Project struct {
	// Found says that at least one of them has it.
	Found bool
	// Wheels and Sources count the files of a Python project that were passed on, and
	// those that were not because they would have to be built.
	Wheels, Sources int
}

// Report is what happened in a session.
type Report struct {
	Troubles []Trouble
	// Projects are those that were asked for, by name; Python's are folded as [Fold]
	// does.
	Projects map[string]Project
	// Bytes counts what was fetched of files.
	Bytes int64
}

// First is the first trouble of some reasons, in the order of the reasons.
func (r Report) First(reasons ...Reason) (Trouble, bool) {
	for _, reason := range reasons {
		if i := slices.IndexFunc(r.Troubles, func(t Trouble) bool { return t.Reason == reason }); i >= 0 {
			return r.Troubles[i], true
		}
	}
	return Trouble{}, false
}

// maxTroubles is how many troubles a report has: a report is read by people.
const maxTroubles = 64

// Report is what has happened so far.
func (s *Session) Report() Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	projects := make(map[string]Project, len(s.report.Projects))
	for name, p := range s.report.Projects {
		projects[name] = p
	}
	return Report{Troubles: slices.Clone(s.report.Troubles), Projects: projects, Bytes: s.report.Bytes}
}

func (s *Session) note(t Trouble) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.report.Troubles) < maxTroubles && !slices.Contains(s.report.Troubles, t) {
		s.report.Troubles = append(s.report.Troubles, t)
		s.log.Warn("registry", "kind", string(s.kind), "reason", string(t.Reason), "host", t.Host, "what", t.What)
	}
}

// found adds what one registry has of a project.
func (s *Session) found(name string, more Project) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.report.Projects) >= maxProjects {
		return
	}
	p := s.report.Projects[name]
	s.report.Projects[name] = Project{Found: p.Found || more.Found, Wheels: p.Wheels + more.Wheels, Sources: p.Sources + more.Sources}
}

// maxProjects is how many projects a report has. No install needs as many.
const maxProjects = 4096

// trouble names the host of a URL and nothing else of it.
func trouble(reason Reason, u *url.URL) *Trouble {
	host := strings.ToLower(u.Hostname())
	if port := u.Port(); port != "" && port != "443" && port != "80" {
		host += ":" + port
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		host = "an address that is no web address"
	}
	return &Trouble{Reason: reason, Host: plain(host)}
}

// plain keeps what a server wrote from being more than a name in a sentence.
func plain(text string) string {
	return strings.NewReplacer("<", "", ">", "", "`", "").Replace(printable(text))
}

// quotable is how much of what a server wrote is passed on in a name or an attribute.
const quotable = 128

// printable keeps the printable letters of ASCII.
func printable(text string) string {
	text = strings.Map(func(r rune) rune {
		if r >= ' ' && r < 0x7f {
			return r
		}
		return -1
	}, text)
	return text[:min(len(text), quotable)]
}

// reasonOf is what a status means.
func reasonOf(status int) Reason {
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden || status == http.StatusProxyAuthRequired:
		return Denied
	case status == http.StatusNotFound || status == http.StatusGone:
		return Missing
	case status >= http.StatusInternalServerError || status == http.StatusTooManyRequests:
		return Failing
	}
	return Broken
}

// statusOf is what an installer is answered.
func statusOf(reason Reason) int {
	switch reason {
	case NotAllowed, Denied, Untrusted, TooLarge:
		return http.StatusForbidden
	case Missing:
		return http.StatusNotFound
	case Failing, Unreachable, Late:
		return http.StatusServiceUnavailable
	}
	return http.StatusBadGateway
}

// Fold is a Python project's name as indexes compare it: in lower case, with one hyphen
// for each run of hyphens, dots and underscores.
func Fold(name string) string {
	var b strings.Builder
	gap := false
	for _, r := range strings.ToLower(name) {
		if r == '-' || r == '_' || r == '.' {
			gap = true
			continue
		}
		if gap && b.Len() > 0 {
			b.WriteByte('-')
		}
		gap = false
		b.WriteRune(r)
	}
	return b.String()
}
