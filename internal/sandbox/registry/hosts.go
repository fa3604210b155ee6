package registry

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// public are the places that pip and npm fetch from when nobody has told them
// otherwise, and where an index keeps its files. It is the only table of such hosts,
// and is spelled in labels because no line of this project names a registry
// (internal/rules).
func public() (index, files, testIndex, testFiles, registry string) {
	dotted := func(labels ...string) string { return strings.Join(labels, ".") }
	return dotted("pypi", "org"), dotted("files", "pythonhosted", "org"),
		dotted("test", "pypi", "org"), dotted("test-files", "pythonhosted", "org"),
		dotted("registry", "npmjs", "org")
}

func publicIndex() string {
	index, _, _, _, _ := public()
	return "https://" + index + "/simple"
}

func publicRegistry() string {
	_, _, _, _, registry := public()
	return "https://" + registry + "/"
}

// companion is the host on which a public index keeps its files; empty for any other.
func companion(host string) string {
	index, files, testIndex, testFiles, _ := public()
	switch strings.ToLower(host) {
	case index:
		return files
	case testIndex:
		return testFiles
	}
	return ""
}

// hosts is what may be reached.
type hosts struct {
	// every allows all hosts, as far as their addresses are public.
	every   bool
	entries []entry
}

// entry is one pattern.
type entry struct {
	name  string // in lower case; with below set the hosts below it are meant, and it is not
	below bool
	port  string // empty means any
}

// String is the entry as an operator writes it.
func (e entry) String() string {
	text := e.name
	if e.below {
		text = "*." + text
	}
	if e.port != "" {
		text += ":" + e.port
	}
	return text
}

// String lists the hosts as an operator writes them.
func (h hosts) String() string {
	if h.every {
		return "every public host"
	}
	texts := make([]string, len(h.entries))
	for i, e := range h.entries {
		texts[i] = e.String()
	}
	return strings.Join(texts, ", ")
}

// hosts are those that the options name, or that the settings do.
func (o Options) hosts() (hosts, error) {
	var h hosts
	if o.Domains == nil {
		for _, u := range o.Settings.servers() {
			h.add(u)
			if files := companion(u.Hostname()); files != "" {
				h.entries = append(h.entries, entry{name: files})
			}
		}
		h.settle()
		return h, nil
	}
	for _, text := range o.Domains {
		for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune(",; \t\n", r) }) {
			e, err := parseEntry(word)
			if err != nil {
				return hosts{}, fmt.Errorf("the entry %q %w", word, err)
			}
			h.entries = append(h.entries, e)
		}
	}
	h.every = len(h.entries) == 0
	if o.Settings.index != nil && !h.every {
		h.add(o.Settings.index)
	}
	h.settle()
	return h, nil
}

func (h *hosts) add(u *url.URL) {
	h.entries = append(h.entries, entry{name: strings.ToLower(u.Hostname()), port: portOf(u)})
}

// settle puts the entries in order, each once, so that the same list is the same text.
func (h *hosts) settle() {
	slices.SortFunc(h.entries, func(a, b entry) int { return strings.Compare(a.String(), b.String()) })
	h.entries = slices.Compact(h.entries)
}

func parseEntry(word string) (entry, error) {
	word = strings.ToLower(word)
	if strings.ContainsAny(word, "/@%?#") {
		return entry{}, fmt.Errorf("holds more than a host: write the host alone, such as example.com")
	}
	name, below := strings.CutPrefix(word, "*.")
	var e entry
	e.below = below
	e.name, e.port, _ = strings.Cut(name, ":")
	if address, err := netip.ParseAddr(strings.Trim(name, "[]")); err == nil {
		e.name, e.port = address.String(), ""
		return e, nil
	}
	if port, err := strconv.Atoi(e.port); e.port != "" && (err != nil || port < 1 || port > 65535) {
		return entry{}, fmt.Errorf("has no valid port: write a number from 1 to 65535 after the colon")
	}
	if e.name == "" || below && !strings.Contains(e.name, ".") {
		return entry{}, fmt.Errorf("would open more than a domain: write a host such as example.com or *.example.com")
	}
	for label := range strings.SplitSeq(e.name, ".") {
		if strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" || label == "" {
			return entry{}, fmt.Errorf("is no host name: use letters, digits and hyphens, with dots between")
		}
	}
	return e, nil
}

// allow reports whether a URL may be fetched, and whether its host is known by its own
// name: then it may be anywhere, a private network included. A pattern is believed only
// as far as the public internet.
func (h hosts) allow(u *url.URL) (ok, named bool) {
	if u.Scheme != "http" && u.Scheme != "https" || u.Opaque != "" {
		return false, false
	}
	return h.covers(u.Hostname(), portOf(u))
}

// covers is allow for a host and a port.
func (h hosts) covers(host, port string) (ok, named bool) {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if host == "" {
		return false, false
	}
	ok = h.every
	for _, e := range h.entries {
		if e.port != "" && e.port != port {
			continue
		}
		switch {
		case !e.below && e.name == host:
			return true, true
		case e.below && strings.HasSuffix(host, "."+e.name):
			ok = true
		}
	}
	return ok, false
}

// closed are networks that are neither private by the standard library's words nor the
// public internet (RFC 6890), and those that carry an IPv4 address inside.
func closed() []netip.Prefix {
	return []netip.Prefix{
		netip.MustParsePrefix("0.0.0.0/8"),
		netip.MustParsePrefix("100.64.0.0/10"),
		netip.MustParsePrefix("168.63.129.16/32"),
		netip.MustParsePrefix("192.0.0.0/24"),
		netip.MustParsePrefix("192.88.99.0/24"),
		netip.MustParsePrefix("198.18.0.0/15"),
		netip.MustParsePrefix("240.0.0.0/4"),
		netip.MustParsePrefix("::/96"),
		netip.MustParsePrefix("64:ff9b::/32"),
		netip.MustParsePrefix("2001::/23"),
		netip.MustParsePrefix("2002::/16"),
		netip.MustParsePrefix("fec0::/10"),
	}
}

// isPublic reports whether an address is one of the public internet.
func isPublic(a netip.Addr) bool {
	a = a.Unmap()
	if !a.IsValid() || a.Zone() != "" || !a.IsGlobalUnicast() || a.IsPrivate() || a.IsLoopback() {
		return false
	}
	return !slices.ContainsFunc(closed(), func(p netip.Prefix) bool { return p.Contains(a) })
}
