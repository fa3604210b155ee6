package registry

import (
	"net/netip"
	"net/url"
	"strings"
)

// proxies are the operator's own, by the scheme of what is fetched. They may hold
// credentials, so they are never printed.
type proxies struct {
	http, https *url.URL
	// none are the hosts that are reached without one.
	none []string
}

// readProxies finds the operator's proxies: in the variables that all programs share, in
// either case, and in pip's and npm's own settings.
func (r *reader) readProxies() {
	either := func(name string) string {
		if value := r.env[strings.ToLower(name)]; value != "" {
			return value
		}
		return r.env[name]
	}
	all := either("ALL_PROXY")
	parse := func(texts ...string) *url.URL {
		for _, text := range texts {
			if text == "" {
				continue
			}
			if !strings.Contains(text, "://") {
				text = "http://" + text
			}
			u, err := url.Parse(text)
			if err == nil && u.Hostname() != "" && (u.Scheme == "http" || u.Scheme == "https" || u.Scheme == "socks5" || u.Scheme == "socks5h") {
				return u
			}
			r.warn("settings: a proxy is left out: it is no address such as http://proxy.example.com:3128")
		}
		return nil
	}
	none := func(text string) []string {
		return strings.FieldsFunc(strings.ToLower(text), func(c rune) bool { return c == ',' || c == ' ' })
	}
	usual := none(either("NO_PROXY"))
	npmNone := usual
	if text := r.own["npm-none"]; text != "" {
		npmNone = none(text)
	}
	r.proxies = map[Kind]proxies{
		Pip: {http: parse(r.own["pip"], either("HTTP_PROXY"), all), https: parse(r.own["pip"], either("HTTPS_PROXY"), all), none: usual},
		Npm: {http: parse(r.own["npm"], either("HTTP_PROXY"), all), https: parse(r.own["npm-https"], r.own["npm"], either("HTTPS_PROXY"), all), none: npmNone},
	}
}

// of is the proxy through which a URL is fetched; nil for none.
func (p proxies) of(u *url.URL) *url.URL {
	through := p.https
	if u.Scheme == "http" {
		through = p.http
	}
	if through == nil || p.exempt(strings.ToLower(u.Hostname()), portOf(u)) {
		return nil
	}
	return through
}

// exempt reports whether a host is reached without a proxy, as curl and Python read
// such lists: a name stands for itself and all below it.
func (p proxies) exempt(host, port string) bool {
	address, _ := netip.ParseAddr(host)
	if host == "localhost" || address.IsLoopback() {
		return true
	}
	for _, word := range p.none {
		if word == "*" {
			return true
		}
		if network, err := netip.ParsePrefix(word); err == nil {
			if address.IsValid() && network.Contains(address) {
				return true
			}
			continue
		}
		name, only, found := cutLast(word, ":")
		if found && !strings.Contains(name, ":") && only != port {
			continue
		}
		if !found || strings.Contains(name, ":") {
			name = word
		}
		name = strings.TrimPrefix(strings.TrimPrefix(name, "*"), ".")
		if name != "" && (host == name || strings.HasSuffix(host, "."+name)) {
			return true
		}
	}
	return false
}

// isProxy reports whether an address to dial is one of the proxies themselves.
func (p proxies) isProxy(addr string) bool {
	for _, u := range []*url.URL{p.http, p.https} {
		if u == nil {
			continue
		}
		port := u.Port()
		if port == "" {
			port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
		}
		if port == "" {
			port = "1080"
		}
		if strings.EqualFold(strings.Trim(u.Hostname(), "[]")+":"+port, strings.NewReplacer("[", "", "]", "").Replace(addr)) {
			return true
		}
	}
	return false
}
