package detect

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
)

// address is where an upstream may be.
type address struct{ scheme, host, path string }

// route is what people copy along with a base.
const route = "/chat/completions"

// errNoHost and its like end errors that begin with the address.
var (
	errScheme = errors.New("it is neither http nor https: write it like http://127.0.0.1:8080/v1")
	errHost   = errors.New("it names no host: write it like http://127.0.0.1:8080/v1")
	errSecret = errors.New("it holds a user or a password: leave them out and give the key by its environment variable")
	errQuery  = errors.New("it has a query or a fragment: give the base only, such as http://127.0.0.1:8080/v1")
)

func parseAddress(text string) (address, error) {
	text = strings.TrimSpace(text)
	if !strings.Contains(text, "://") && onThisMachine(text) {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil {
		// The parser's own error repeats the address, with a password if it has one.
		return address{}, errors.New("upstream address: it cannot be read: write it like http://127.0.0.1:8080/v1")
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		err = errScheme
	case u.Hostname() == "":
		err = errHost
	case u.User != nil:
		err = errSecret
	case u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
		err = errQuery
	}
	if err != nil {
		return address{}, fmt.Errorf("upstream address %s: %w", u.Redacted(), err)
	}
	path := strings.TrimRight(u.EscapedPath(), "/")
	path = strings.TrimRight(strings.TrimSuffix(path, route), "/")
	return address{scheme: u.Scheme, host: u.Host, path: path}, nil
}

// onThisMachine reports whether an address without a scheme names this machine,
// so that no key can go over a network in the clear by an omission.
func onThisMachine(text string) bool {
	host, _, _ := strings.Cut(text, "/")
	if at, ok := strings.CutPrefix(host, "["); ok {
		host, _, _ = strings.Cut(at, "]")
	} else {
		host, _, _ = strings.Cut(host, ":")
	}
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// shown is the address as errors name it.
func (a address) shown() string { return a.scheme + "://" + a.host + a.path }

// vendor reports whether the address is the vendor's own.
func (a address) vendor() bool { return a.scheme == "https" && a.host == "api.openai.com" }

// versioned is a path that ends in the version of an interface.
var versioned = regexp.MustCompile(`/v\d+[a-z0-9]*$`)

// bases are the URLs that may be the base for chat completions, the likeliest
// first.
func (a address) bases() []string {
	as := a.shown()
	switch {
	case versioned.MatchString(a.path):
		return []string{as}
	case a.path == "":
		return []string{as + "/v1", as}
	}
	return []string{as, as + "/v1"}
}

// root is where a server's own routes begin.
func (a address) root() string {
	return a.scheme + "://" + a.host + versioned.ReplaceAllString(a.path, "")
}
