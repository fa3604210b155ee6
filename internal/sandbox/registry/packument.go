package registry

import (
	"encoding/base64"
	"encoding/hex"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/sandbox"
)

// packageName is a package of npm, with a scope or without.
var packageName = regexp.MustCompile(`^(@[A-Za-z0-9~_-][A-Za-z0-9._~-]*/)?[A-Za-z0-9~_-][A-Za-z0-9._~-]*$`)

// packumentKinds are what npm asks for, the short form first.
const packumentKinds = "application/vnd.npm.install-v1+json; q=1.0, application/json; q=0.8"

// packument answers for what a registry says of one package. The addresses of its files
// lead back here.
func (s *Session) packument(w http.ResponseWriter, r *http.Request, name string) {
	if !packageName.MatchString(name) {
		http.Error(w, "there is no such package here", http.StatusNotFound)
		return
	}
	via := s.settings.npm
	if scope, _, found := strings.Cut(name, "/"); found {
		if own, ok := s.settings.scopes[strings.ToLower(scope)]; ok {
			via = own
		}
	}
	at := *via.url
	at.RawPath = at.EscapedPath() + strings.Replace(name, "/", "%2f", 1)
	at.Path += name
	resp, t := s.fetch(r.Context(), via, &at, http.Header{"Accept": {packumentKinds}})
	if t != nil {
		s.refuse(w, t, name, true)
		return
	}
	defer resp.Body.Close()
	data, t := s.whole(r.Context(), resp)
	if t != nil {
		s.refuse(w, t, name, true)
		return
	}
	page, reason := s.rewritten(name, data, resp.Request.URL, via, s.base(r))
	if reason != "" {
		s.refuse(w, trouble(reason, resp.Request.URL), name, true)
		return
	}
	s.found(name, Project{Found: true})
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(page)
}

// base is this session as the installer that asked sees it. What it calls its host is
// believed only if it is its own loopback.
func (s *Session) base(r *http.Request) string {
	host := sandbox.ProxyAddress
	if own, err := netip.ParseAddrPort(r.Host); err == nil && own.Addr().IsLoopback() {
		host = own.String()
	}
	return "http://" + host + "/" + s.token
}

// rewritten is a packument whose files are ours. A version without a file that could be
// fetched is left out. Nothing but the form is judged: npm runs no script of a package.
func (s *Session) rewritten(name string, data []byte, from *url.URL, via source, base string) ([]byte, Reason) {
	lenient := json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	var page map[string]jsontext.Value
	var versions map[string]map[string]jsontext.Value
	if json.Unmarshal(data, &page, lenient) != nil || json.Unmarshal(page["versions"], &versions, lenient) != nil {
		return nil, Broken
	}
	kept := map[string]map[string]jsontext.Value{}
	for _, version := range slices.Sorted(maps.Keys(versions)) {
		members := versions[version]
		dist, ok := s.dist(name, members["dist"], from, via, base)
		if !ok {
			continue
		}
		if dist == nil {
			return nil, TooLarge
		}
		members["dist"] = dist
		kept[version] = members
	}
	text, err := json.Marshal(kept, lenient, json.Deterministic(true))
	if err != nil {
		return nil, Broken
	}
	page["versions"] = text
	if text, err = json.Marshal(page, lenient, json.Deterministic(true)); err != nil {
		return nil, Broken
	}
	return text, ""
}

// dist is the description of a version's file, with its address replaced. It is nil when
// there is no room for more.
func (s *Session) dist(name string, value jsontext.Value, from *url.URL, via source, base string) (jsontext.Value, bool) {
	lenient := json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	var dist map[string]jsontext.Value
	var tarball, integrity string
	if len(value) == 0 || json.Unmarshal(value, &dist, lenient) != nil || json.Unmarshal(dist["tarball"], &tarball) != nil || tarball == "" {
		return nil, false
	}
	u, err := from.Parse(tarball)
	if err != nil {
		return nil, false
	}
	if len(dist["integrity"]) > 0 {
		_ = json.Unmarshal(dist["integrity"], &integrity) // npm itself refuses one that is none
	}
	id, err := s.keep(link{url: unmarked(u), via: via, hash: integrityHash(integrity), what: name})
	if err != nil {
		return nil, true
	}
	address, err := json.Marshal(base + "/file/" + id + "/package.tgz")
	if err != nil {
		return nil, false
	}
	dist["tarball"] = address
	text, err := json.Marshal(dist, lenient, json.Deterministic(true))
	return text, err == nil
}

// integrityHash reads the strongest hash of a text such as "sha512-base64" (W3C
// Subresource Integrity).
func integrityHash(text string) string {
	for _, kind := range []string{"sha512", "sha384", "sha256"} {
		for word := range strings.FieldsSeq(text) {
			code, found := strings.CutPrefix(word, kind+"-")
			code, _, _ = strings.Cut(code, "?")
			if sum, err := base64.StdEncoding.DecodeString(code); found && err == nil {
				return kind + "=" + hex.EncodeToString(sum)
			}
		}
	}
	return ""
}
