package egress

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// tlsPort is the port of an entry that names none.
const tlsPort = 443

// The lengths that a name and each of its labels may have (RFC 1035, 2.3.4).
const (
	maxName  = 253
	maxLabel = 63
)

// List is what may be reached. It is immutable; the zero List allows nothing.
type List struct{ entries []entry }

// entry is one pattern.
type entry struct {
	// name is in lower case. With below set, the hosts below it are meant and it is
	// not.
	name  string
	below bool
	port  int
}

// String is the entry as an operator writes it.
func (e entry) String() string {
	text := e.name
	if e.below {
		text = "*." + text
	}
	if e.port != tlsPort {
		text += ":" + strconv.Itoa(e.port)
	}
	return text
}

// ParseList reads an operator's entries:
//
//	example.com       that host, port 443
//	*.example.com     every host below it, at any depth, and not example.com
//	example.com:8443  another port; *.example.com:8443 likewise
//
// Upper case is read as lower case, and space around an entry is dropped. An error names
// the entry and says what to write instead.
func ParseList(entries []string) (List, error) {
	var l List
	for _, text := range entries {
		e, err := parseEntry(strings.TrimSpace(text))
		if err != nil {
			return List{}, fmt.Errorf("network domains: the entry %q %w", text, err)
		}
		if !slices.Contains(l.entries, e) {
			l.entries = append(l.entries, e)
		}
	}
	return l, nil
}

func parseEntry(text string) (entry, error) {
	switch {
	case text == "":
		return entry{}, errors.New("is empty: write a host such as example.com")
	case text == "*":
		return entry{}, errors.New("would open every host: to do that use the flag that allows the whole network, or name the hosts, such as *.example.com")
	case strings.Contains(text, "/"):
		return entry{}, fmt.Errorf("is an address of a page: write the host alone, such as %s", bareHost(text))
	case strings.ContainsAny(text, "@%"):
		return entry{}, errors.New("holds more than a host: write the host alone, such as example.com")
	}
	name, port, err := splitEntry(text)
	if err != nil {
		return entry{}, err
	}
	name, below := strings.CutPrefix(lower(name), "*.")
	if why := nameFault(name); why != "" {
		return entry{}, errors.New(why)
	}
	if below && !strings.Contains(name, ".") {
		return entry{}, fmt.Errorf("would open a whole top-level domain: write *.example.%s with a name of your choice", name)
	}
	if !below && !strings.Contains(name, ".") {
		return entry{}, fmt.Errorf("has no dot: write the whole name, such as %s.example.com", name)
	}
	return entry{name: name, below: below, port: port}, nil
}

// splitEntry takes the port off.
func splitEntry(text string) (string, int, error) {
	if _, err := netip.ParseAddr(strings.Trim(text, "[]")); err == nil || strings.ContainsAny(text, "[]") {
		return "", 0, errors.New("is an address: write the name of a host, such as example.com, since addresses are never passed")
	}
	name, digits, found := strings.Cut(text, ":")
	if !found {
		return name, tlsPort, nil
	}
	port, ok := parsePort(digits)
	if !ok {
		return "", 0, fmt.Errorf("has no valid port: write a number from 1 to 65535 after the colon, such as %s:8443", name)
	}
	return name, port, nil
}

// bareHost is a guess at the host in a URL, for a hint.
func bareHost(text string) string {
	if _, after, found := strings.Cut(text, "://"); found {
		text = after
	}
	text, _, _ = strings.Cut(text, "/")
	if nameFault(lower(text)) != "" {
		return "example.com"
	}
	return lower(text)
}

// parsePort reads a port as people write one: no sign, no zeros in front.
func parsePort(digits string) (int, bool) {
	if digits == "" || digits[0] == '0' || len(digits) > len("65535") {
		return 0, false
	}
	port := 0
	for _, c := range []byte(digits) {
		if c < '0' || c > '9' {
			return 0, false
		}
		port = port*10 + int(c-'0')
	}
	return port, port <= 65535
}

// nameFault says what keeps a name in lower case from being a plain host name:
// labels of letters, digits and hyphens. It is empty when nothing does.
func nameFault(name string) string {
	switch {
	case name == "":
		return "has no host: write one, such as example.com"
	case strings.ContainsFunc(name, func(r rune) bool { return r >= 0x80 }):
		return "has letters beyond ASCII: write the name in its ASCII form, whose labels begin with xn--"
	case strings.HasSuffix(name, "."):
		return "ends in a dot: write it without"
	case len(name) > maxName:
		return "is longer than a host name can be (253 bytes)"
	case endsInNumber(name):
		return "is an address: write the name of a host, such as example.com, since addresses are never passed"
	}
	for label := range strings.SplitSeq(name, ".") {
		if !plainLabel(label) {
			return fmt.Sprintf("has the part %q, which is no part of a host name: use letters, digits, and hyphens between them", label)
		}
	}
	return ""
}

func plainLabel(label string) bool {
	if label == "" || len(label) > maxLabel || label[0] == '-' || label[len(label)-1] == '-' {
		return false
	}
	return !strings.ContainsFunc(label, func(r rune) bool {
		return r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z')
	})
}

// endsInNumber tells names from the spellings of an IPv4 address that C libraries and
// browsers read: decimal, octal and hexadecimal, in one to four parts. All of them, and
// no name on the public internet, end in a number (WHATWG URL, "ends in a number").
func endsInNumber(name string) bool {
	last := name[strings.LastIndexByte(name, '.')+1:]
	if hex, found := strings.CutPrefix(last, "0x"); found {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return last != "" && strings.Trim(last, "0123456789") == ""
}

// Allows reports whether a host may be reached at a port. The host is compared without
// regard to the case of ASCII letters; anything but a plain name is on no list.
func (l List) Allows(host string, port int) bool {
	host = lower(host)
	if nameFault(host) != "" {
		return false
	}
	return slices.ContainsFunc(l.entries, func(e entry) bool { return e.port == port && e.covers(host) })
}

// names reports whether a host is listed with any port.
func (l List) names(host string) bool {
	return slices.ContainsFunc(l.entries, func(e entry) bool { return e.covers(host) })
}

// covers compares a host that is a plain name in lower case.
func (e entry) covers(host string) bool {
	if e.below {
		return strings.HasSuffix(host, "."+e.name)
	}
	return host == e.name
}

// String lists the entries as an operator writes them.
func (l List) String() string {
	texts := make([]string, len(l.entries))
	for i, e := range l.entries {
		texts[i] = e.String()
	}
	return strings.Join(texts, ", ")
}

// lower maps ASCII letters alone: Unicode has letters, such as the Kelvin sign, whose
// lower case is an ASCII one.
func lower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}
