package registry

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/metier-run/metier/internal/config"
)

// Surroundings are where the operator's settings are looked for. The package reads no
// environment itself.
type Surroundings struct {
	// Environ is the environment of this process, each "NAME=value".
	Environ []string
	// Home is the operator's home directory; empty when there is none.
	Home string
	// System is the operating system as [runtime.GOOS] names it; empty means this one.
	System string
	// ReadFile reads a file; nil stands for [os.ReadFile].
	ReadFile func(path string) ([]byte, error)
	// Index is the flag --code-exec-install-index: a URL, or nothing. It stands in place
	// of pip's index.
	Index string
}

// Settings are where the operator's own pip and npm fetch from, and with what. They
// hold secrets, which never print. Make them with [ReadSettings].
type Settings struct {
	pip    []source // the index, then the others
	links  []source
	npm    source
	scopes map[string]source

	credentials        []credential
	proxies            map[Kind]proxies
	pipTrust, npmTrust trust
	index              *url.URL // of the flag
	warnings           []string
}

// Warnings are settings that were found and not understood, one sentence each, without
// any value that could be a secret.
func (s Settings) Warnings() []string { return s.warnings }

func (s *Settings) warn(format string, args ...any) {
	s.warnings = append(s.warnings, fmt.Sprintf(format, args...))
}

// credential is what the host says to one server. It goes to that origin only.
type credential struct {
	// origins are what it is for, each "scheme://host:port"; path is the part of such a
	// server that it is for, ending in a slash.
	origins []string
	path    string
	user    config.Secret
	word    config.Secret
	bearer  config.Secret
}

// ReadSettings reads what the operator has configured pip and npm with: their variables,
// their files, and netrc. What cannot be read or understood becomes a warning, but a
// flag that is wrong is an error.
func ReadSettings(at Surroundings) (Settings, error) {
	if at.System == "" {
		at.System = runtime.GOOS
	}
	if at.ReadFile == nil {
		at.ReadFile = os.ReadFile
	}
	r := &reader{at: at, env: environment(at.Environ), own: map[string]string{}}
	r.readPip()
	r.readNpm()
	r.readProxies()
	if at.Index != "" {
		u, err := r.address(at.Index)
		if err != nil {
			return Settings{}, fmt.Errorf("--code-exec-install-index: %w", err)
		}
		r.index = u
		r.pip = append([]source{{url: u}}, r.pip[min(1, len(r.pip)):]...)
	}
	r.readNetrc()
	return r.Settings, nil
}

// reader is one [ReadSettings].
type reader struct {
	Settings
	at  Surroundings
	env map[string]string
	// own are the proxies that pip's and npm's own settings name: "pip", "npm",
	// "npm-https" and "npm-none".
	own map[string]string
}

func environment(environ []string) map[string]string {
	env := map[string]string{}
	for _, e := range environ {
		if name, value, found := strings.Cut(e, "="); found {
			env[name] = value
		}
	}
	return env
}

// file reads a file of the operator; one that is not there is no warning.
func (r *reader) file(path string) (string, bool) {
	if path == "" {
		return "", false
	}
	data, err := r.at.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return "", false
	}
	if err != nil {
		r.warn("settings: the file %s cannot be read and is left out", path)
		return "", false
	}
	return string(data), true
}

// home is a path below the operator's home; empty without one.
func (r *reader) home(elem ...string) string {
	if r.at.Home == "" {
		return ""
	}
	return filepath.Join(append([]string{r.at.Home}, elem...)...)
}

// expand puts the home for a leading "~/".
func (r *reader) expand(path string) string {
	if rest, found := strings.CutPrefix(path, "~/"); found {
		return r.home(rest)
	}
	return path
}

// address reads the URL of a server and keeps its credentials apart. An error does not
// quote it.
func (r *reader) address(text string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(text))
	switch {
	case err != nil:
		return nil, errors.New("it is no URL: write one such as https://index.example.com/simple")
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return nil, errors.New("it is no web address: write one such as https://index.example.com/simple")
	}
	if u.User != nil {
		word, _ := u.User.Password()
		r.credentials = append(r.credentials, credential{
			origins: []string{origin(u)}, path: folder(u), user: config.NewSecret(u.User.Username()), word: config.NewSecret(word),
		})
	}
	return &url.URL{Scheme: u.Scheme, Host: u.Host, Path: folder(u)}, nil
}

// folder is the path of a URL with a slash at its end.
func folder(u *url.URL) string { return strings.TrimSuffix(u.Path, "/") + "/" }

// origin is "scheme://host:port" of a URL, in lower case.
func origin(u *url.URL) string {
	return strings.ToLower(u.Scheme) + "://" + strings.ToLower(u.Hostname()) + ":" + portOf(u)
}

func portOf(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case strings.EqualFold(u.Scheme, "http"):
		return "80"
	}
	return "443"
}

// readNetrc adds what netrc has for the servers that are configured already: it names
// hosts only, and is no reason to speak to one.
func (r *reader) readNetrc() {
	path := r.env["NETRC"]
	if path == "" {
		path = r.home(".netrc")
	}
	text, ok := r.file(r.expand(path))
	if !ok {
		return
	}
	for _, e := range parseNetrc(text) {
		origins := []string{"https://" + strings.ToLower(e.machine) + ":443"}
		for _, src := range r.servers() {
			if strings.EqualFold(src.Hostname(), e.machine) {
				origins = append(origins, origin(src))
			}
		}
		r.credentials = append(r.credentials, credential{origins: origins, path: "/", user: config.NewSecret(e.login), word: config.NewSecret(e.password)})
	}
}

// servers are the addresses of all configured places that are no directories.
func (s Settings) servers() []*url.URL {
	var all []*url.URL
	add := func(src source) {
		if src.url != nil {
			all = append(all, src.url)
		}
	}
	for _, src := range s.pip {
		add(src)
	}
	for _, src := range s.links {
		add(src)
	}
	add(s.npm)
	for _, src := range s.scopes {
		add(src)
	}
	return all
}

// netrcEntry is one machine of netrc.
type netrcEntry struct{ machine, login, password string }

// parseNetrc reads the machines of a netrc file. Entries without a machine ("default")
// are left out: a credential goes to a server that it names.
func parseNetrc(text string) []netrcEntry {
	var found []netrcEntry
	var words []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "#") {
			continue
		}
		words = append(words, strings.Fields(line)...)
	}
	at := -1
	for i := 0; i+1 < len(words); i++ {
		value := strings.Trim(words[i+1], `"`)
		switch words[i] {
		case "machine":
			found = append(found, netrcEntry{machine: value})
			at = len(found) - 1
		case "default", "macdef":
			at = -1
			continue
		case "login", "user":
			if at >= 0 {
				found[at].login = value
			}
		case "password":
			if at >= 0 {
				found[at].password = value
			}
		case "account":
		default:
			continue
		}
		i++
	}
	return found
}
