package registry

import (
	"context"
	"errors"
	"html"
	"io"
	"mime"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/guard"
)

// The kinds of pages that an index gives (PEP 503, PEP 691).
const (
	simpleJSON = "application/vnd.pypi.simple.v1+json"
	simpleHTML = "application/vnd.pypi.simple.v1+html"
)

// file is one file of an index page.
type file struct {
	url      *url.URL
	name     string
	hash     string // "sha256=..."; empty when the page gives none
	requires string // the versions of Python that it is for
	metadata string // as in link
	yanked   *string
}

// The names of files that may be passed on, and of those that would have to be built.
var (
	wheelName   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+!~]*(-[A-Za-z0-9_][A-Za-z0-9._+!~]*){4,5}\.whl$`)
	sourceName  = regexp.MustCompile(`\.(tar\.(gz|bz2|xz|Z)|tgz|tbz|zip|egg)$`)
	projectName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)
	hashText    = regexp.MustCompile(`^(md5|sha1|sha224|sha256|sha384|sha512)=([0-9a-fA-F]+)$`)
)

// project answers for the page of one project of one index.
func (s *Session) project(w http.ResponseWriter, r *http.Request, index, name string) {
	via, ok := place(s.settings.pip, index)
	if !ok || !projectName.MatchString(name) {
		http.Error(w, "there is no such index here", http.StatusNotFound)
		return
	}
	name = Fold(name)
	files, t := s.index(r.Context(), via, via.url.JoinPath(name+"/"))
	if t != nil {
		s.refuse(w, t, name, true)
		return
	}
	found := Project{Found: true}
	for _, f := range files {
		if sourceName.MatchString(f.name) {
			found.Sources++
		}
	}
	wheels := wheelsOf(files)
	found.Wheels = len(wheels)
	s.found(name, found)
	s.page503(w, via, name, wheels)
}

// findLinks answers for a place of find-links: a page, or a directory of the host.
func (s *Session) findLinks(w http.ResponseWriter, r *http.Request, n string) {
	via, ok := place(s.settings.links, n)
	switch {
	case !ok:
		http.Error(w, "there is no such place here", http.StatusNotFound)
	case via.url == nil:
		s.directory(w, via, n)
	default:
		files, t := s.index(r.Context(), via, via.url)
		if t != nil {
			s.refuse(w, t, "find-links", true)
			return
		}
		s.page503(w, via, "find-links", wheelsOf(files))
	}
}

func wheelsOf(files []file) []file {
	return slices.DeleteFunc(files, func(f file) bool {
		return !wheelName.MatchString(f.name) || f.url.Scheme != "http" && f.url.Scheme != "https"
	})
}

// index fetches and reads a page of files.
func (s *Session) index(ctx context.Context, via source, u *url.URL) ([]file, *Trouble) {
	resp, t := s.fetch(ctx, via, u, http.Header{"Accept": {simpleJSON + ", " + simpleHTML + ";q=0.2, text/html;q=0.1"}})
	if t != nil {
		return nil, t
	}
	defer resp.Body.Close()
	data, t := s.whole(ctx, resp)
	if t != nil {
		return nil, t
	}
	base := resp.Request.URL
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil {
		return nil, trouble(Broken, base)
	}
	switch kind {
	case simpleHTML, "text/html":
		return parseHTML(data, base), nil
	case simpleJSON:
		files, err := parseJSON(data, base)
		if err != nil {
			return nil, trouble(Broken, base)
		}
		return files, nil
	}
	return nil, trouble(Broken, base)
}

// whole reads a page to its end, whatever it says of its length and however small it was
// packed.
func (s *Session) whole(ctx context.Context, resp *http.Response) ([]byte, *Trouble) {
	data, err := io.ReadAll(io.LimitReader(resp.Body, s.page+1))
	switch {
	case int64(len(data)) > s.page:
		return nil, trouble(TooLarge, resp.Request.URL)
	case err != nil && ctx.Err() != nil:
		return nil, trouble(Late, resp.Request.URL)
	case err != nil:
		return nil, trouble(Cut, resp.Request.URL)
	}
	return data, nil
}

// page503 writes a page whose links lead back here. HTML is what every pip reads.
func (s *Session) page503(w http.ResponseWriter, via source, title string, files []file) {
	var b strings.Builder
	b.WriteString("<!DOCTYPE html>\n<html><head><title>" + html.EscapeString(title) + "</title></head><body>\n")
	for _, f := range files {
		id, err := s.keep(link{url: f.url, via: via, hash: f.hash, metadata: f.metadata})
		if err != nil {
			s.refuse(w, trouble(TooLarge, f.url), title, true)
			return
		}
		anchor(&b, "/"+s.token+"/file/"+id+"/"+url.PathEscape(f.name), f)
	}
	b.WriteString("</body></html>\n")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = io.WriteString(w, b.String())
}

func anchor(b *strings.Builder, at string, f file) {
	if f.hash != "" {
		at += "#" + f.hash
	}
	b.WriteString(`<a href="` + html.EscapeString(at) + `"`)
	attribute := func(name, value string) { b.WriteString(" " + name + `="` + html.EscapeString(value) + `"`) }
	if f.requires != "" {
		attribute("data-requires-python", f.requires)
	}
	if f.metadata != "" {
		attribute("data-dist-info-metadata", f.metadata)
		attribute("data-core-metadata", f.metadata)
	}
	if f.yanked != nil {
		attribute("data-yanked", *f.yanked)
	}
	b.WriteString(">" + html.EscapeString(f.name) + "</a><br>\n")
}

// directory lists the wheels of a directory of the host.
func (s *Session) directory(w http.ResponseWriter, via source, n string) {
	var names []string
	if root, err := guard.OpenRoot(via.dir); err == nil {
		defer root.Close()
		entries, _ := root.ReadDir(".") // one that cannot be read holds nothing
		for _, e := range entries {
			if wheelName.MatchString(e.Name()) {
				names = append(names, e.Name())
			}
		}
	}
	var b strings.Builder
	b.WriteString("<!DOCTYPE html>\n<html><head><title>find-links</title></head><body>\n")
	for _, name := range names {
		anchor(&b, "/"+s.token+"/dir/"+n+"/"+url.PathEscape(name), file{name: name})
	}
	b.WriteString("</body></html>\n")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = io.WriteString(w, b.String())
}

// parseJSON reads a page of PEP 691.
func parseJSON(data []byte, base *url.URL) ([]file, error) {
	var page struct {
		Files []struct {
			URL      string            `json:"url"`
			Filename string            `json:"filename"`
			Hashes   map[string]string `json:"hashes"`
			Requires string            `json:"requires-python"`
			Yanked   jsontext.Value    `json:"yanked"`
			Core     jsontext.Value    `json:"core-metadata"`
			Old      jsontext.Value    `json:"dist-info-metadata"`
			Oldest   jsontext.Value    `json:"data-dist-info-metadata"`
		} `json:"files"`
	}
	err := json.Unmarshal(data, &page, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return nil, err
	}
	if page.Files == nil {
		return nil, errors.New("the page has no files")
	}
	var files []file
	for _, f := range page.Files {
		u, err := base.Parse(f.URL)
		if err != nil || f.URL == "" {
			continue
		}
		one := file{url: unmarked(u), name: f.Filename, hash: bestHash(f.Hashes), requires: printable(f.Requires)}
		for _, m := range []jsontext.Value{f.Core, f.Old, f.Oldest} {
			if one.metadata == "" {
				one.metadata = metadataOf(m)
			}
		}
		var reason string
		if text := string(f.Yanked); text == "true" || json.Unmarshal(f.Yanked, &reason) == nil && text != "" && text != "null" {
			reason = printable(reason)
			one.yanked = &reason
		}
		files = append(files, one)
	}
	return files, nil
}

// metadataOf reads a member that is true, false or hashes.
func metadataOf(value jsontext.Value) string {
	if string(value) == "true" {
		return "true"
	}
	var hashes map[string]string
	if len(value) == 0 || json.Unmarshal(value, &hashes) != nil || hashes == nil {
		return ""
	}
	if best := bestHash(hashes); best != "" {
		return best
	}
	return "true"
}

// bestHash is the strongest of some hashes, as "sha256=...".
func bestHash(hashes map[string]string) string {
	for _, kind := range []string{"sha256", "sha512", "sha384", "sha224", "sha1", "md5"} {
		if text := kind + "=" + hashes[kind]; hashText.MatchString(text) {
			return text
		}
	}
	return ""
}

// unmarked is a URL without what is of no use to a server.
func unmarked(u *url.URL) *url.URL {
	plain := *u
	plain.User, plain.Fragment, plain.RawFragment = nil, "", ""
	return &plain
}

// parseHTML reads the links of a page of PEP 503.
func parseHTML(data []byte, base *url.URL) []file {
	var files []file
	for tag, attributes := range tags(string(data)) {
		href, ok := attributes["href"]
		if !ok {
			continue
		}
		u, err := base.Parse(strings.TrimSpace(href))
		if err != nil {
			continue
		}
		if tag == "base" {
			base = u
			continue
		}
		f := file{url: unmarked(u), name: path.Base(u.Path), requires: printable(attributes["data-requires-python"])}
		for part := range strings.SplitSeq(u.Fragment, "&") {
			if hashText.MatchString(part) {
				f.hash = part
			}
		}
		for _, name := range []string{"data-core-metadata", "data-dist-info-metadata"} {
			if m := attributes[name]; f.metadata == "" && (m == "true" || hashText.MatchString(m)) {
				f.metadata = m
			}
		}
		if reason, ok := attributes["data-yanked"]; ok {
			reason = printable(reason)
			f.yanked = &reason
		}
		files = append(files, f)
	}
	return files
}
