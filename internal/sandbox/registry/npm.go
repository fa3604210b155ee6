package registry

import (
	"encoding/base64"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/metier-run/metier/internal/config"
)

// readNpm finds npm's settings as npm does: its variables outdo the user's file, and
// that the system's. A file of a project is not read: a workspace or a clone could
// bring one.
func (r *reader) readNpm() {
	set := map[string]string{}
	env := r.npmVariables()
	for _, path := range r.npmPaths(env) {
		if text, ok := r.file(r.expand(path)); ok {
			maps.Copy(set, r.parseNpmrc(text))
		}
	}
	maps.Copy(set, env)
	r.npm = source{url: r.npmRegistry(set["registry"])}
	r.scopes = map[string]source{}
	for _, key := range slices.Sorted(maps.Keys(set)) {
		if scope, found := strings.CutSuffix(key, ":registry"); found && strings.HasPrefix(scope, "@") {
			r.scopes[strings.ToLower(scope)] = source{url: r.npmRegistry(set[key])}
		}
	}
	r.npmCredentials(set)
	r.npmTrust.files = firstFile(set["cafile"])
	if set["ca"] != "" {
		r.npmTrust.texts = []string{strings.ReplaceAll(set["ca"], `\n`, "\n")}
	}
	if len(r.npmTrust.files)+len(r.npmTrust.texts) == 0 {
		r.npmTrust.files = firstFile(r.env["SSL_CERT_FILE"])
	}
	if extra := r.env["NODE_EXTRA_CA_CERTS"]; extra != "" {
		r.npmTrust.more = []string{extra}
	}
	if set["strict-ssl"] == "false" {
		r.npmTrust.lax = []string{"*"}
	}
	r.own["npm"], r.own["npm-https"], r.own["npm-none"] = set["proxy"], set["https-proxy"], set["noproxy"]
}

// npmRegistry is the address of a registry; one that is wrong is npm's own default.
func (r *reader) npmRegistry(text string) *url.URL {
	if text == "" {
		text = publicRegistry()
	}
	u, err := r.address(text)
	if err != nil {
		r.warn("settings: a registry of npm is left out: %v", err)
		u, _ = url.Parse(publicRegistry())
	}
	return u
}

// npmVariables are the settings in variables, in any case.
func (r *reader) npmVariables() map[string]string {
	const prefix = "npm_config_"
	set := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(r.env)) {
		value := r.env[name]
		if len(name) <= len(prefix) || !strings.EqualFold(name[:len(prefix)], prefix) || value == "" {
			continue
		}
		key := name[len(prefix):]
		if !strings.HasPrefix(key, "//") {
			key = strings.ToLower(key[:1] + strings.ReplaceAll(key[1:], "_", "-"))
		}
		set[key] = value
	}
	return set
}

// npmPaths are npm's files, the least important first.
func (r *reader) npmPaths(env map[string]string) []string {
	var paths []string
	switch prefix := env["prefix"]; {
	case env["globalconfig"] != "":
		paths = append(paths, env["globalconfig"])
	case prefix != "":
		paths = append(paths, joined(prefix, "etc", "npmrc"))
	case r.at.System == "windows":
		paths = append(paths, joined(r.env["APPDATA"], "npm", "etc", "npmrc"))
	default:
		paths = append(paths, "/etc/npmrc", "/usr/etc/npmrc", "/usr/local/etc/npmrc", "/opt/homebrew/etc/npmrc")
	}
	if user := env["userconfig"]; user != "" {
		return append(paths, user)
	}
	return append(paths, r.home(".npmrc"))
}

// variable is a variable in a file of npm; with "?" an unknown one is nothing.
var variable = regexp.MustCompile(`\$\{([^}?]+)(\?)?\}`)

func (r *reader) npmExpand(text string) string {
	return variable.ReplaceAllStringFunc(text, func(whole string) string {
		parts := variable.FindStringSubmatch(whole)
		value, known := r.env[parts[1]]
		if !known && parts[2] == "" {
			return whole
		}
		return value
	})
}

// parseNpmrc reads "key = value" lines. Sections do not occur in such files; what stands
// below one is not npm's.
func (r *reader) parseNpmrc(text string) map[string]string {
	set := map[string]string{}
	for line := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			break
		}
		key, value, found := strings.Cut(line, "=")
		if !found || strings.HasPrefix(line, "#") || strings.HasPrefix(line, ";") {
			continue
		}
		key, value = r.npmExpand(unquoted(strings.TrimSpace(key))), r.npmExpand(unquoted(strings.TrimSpace(value)))
		if !strings.HasPrefix(key, "//") {
			key = strings.ToLower(key)
		}
		if value != "" {
			set[key] = value
		}
	}
	return set
}

// unquoted takes quotes off; without them a comment may follow the value.
func unquoted(text string) string {
	var plain string
	switch {
	case strings.HasPrefix(text, `"`) && json.Unmarshal([]byte(text), &plain) == nil:
		return plain
	case len(text) > 1 && text[0] == '\'' && text[len(text)-1] == '\'':
		return text[1 : len(text)-1]
	}
	for _, mark := range []string{" ;", " #"} {
		text, _, _ = strings.Cut(text, mark)
	}
	return strings.TrimSpace(text)
}

// npmCredentials reads the settings that belong to a server: "//host/path/:_authToken"
// and its kin. Older ones that name no server are not used, as in npm itself.
func (r *reader) npmCredentials(set map[string]string) {
	for _, place := range npmPlaces(set) {
		u, err := url.Parse("https:" + place)
		if err != nil || u.Hostname() == "" {
			r.warn("settings: a credential of npm names no server and is left out")
			continue
		}
		c := credential{origins: []string{origin(u)}, path: folder(u)}
		for _, server := range r.servers() {
			// Without a port the key is for the usual port of either scheme.
			if strings.EqualFold(server.Host, u.Host) {
				c.origins = append(c.origins, origin(server))
			}
		}
		c.bearer = config.NewSecret(set[place+":_authToken"])
		user, word := set[place+":username"], set[place+":_password"]
		if both, err := base64.StdEncoding.DecodeString(set[place+":_auth"]); err == nil && len(both) > 0 {
			user, word, _ = strings.Cut(string(both), ":")
		} else if plain, err := base64.StdEncoding.DecodeString(word); err == nil {
			word = string(plain)
		}
		c.user, c.word = config.NewSecret(user), config.NewSecret(word)
		r.credentials = append(r.credentials, c)
	}
}

// npmPlaces are the servers that have a credential.
func npmPlaces(set map[string]string) []string {
	places := map[string]bool{}
	for key := range set {
		place, what, found := cutLast(key, ":")
		if !found || !strings.HasPrefix(place, "//") {
			continue
		}
		switch what {
		case "_authToken", "_auth", "username":
			places[place] = true
		}
	}
	return slices.Sorted(maps.Keys(places))
}

func cutLast(text, sep string) (before, after string, found bool) {
	i := strings.LastIndex(text, sep)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+len(sep):], true
}
