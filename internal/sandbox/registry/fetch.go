package registry

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
)

// trust is whose certificates are believed.
type trust struct {
	// files and texts hold certificates in PEM and stand in place of the system's; more
	// are added to whichever counts.
	files, texts, more []string
	// lax are hosts, with a port or without, whose certificates the operator does not
	// want checked; "*" is all.
	lax []string
}

// pool is nil where the system's certificates count.
func (t trust) pool() (*x509.CertPool, error) {
	if len(t.files)+len(t.texts)+len(t.more) == 0 {
		return nil, nil
	}
	pool := x509.NewCertPool()
	if len(t.files)+len(t.texts) == 0 {
		if system, err := x509.SystemCertPool(); err == nil {
			pool = system
		}
	}
	texts := slices.Clone(t.texts)
	for _, file := range slices.Concat(t.files, t.more) {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("%w: name a file that can be read, or leave the setting out", err)
		}
		texts = append(texts, string(data))
	}
	for _, text := range texts {
		if !pool.AppendCertsFromPEM([]byte(text)) {
			return nil, errors.New("there is no certificate in PEM form in it: name a bundle such as ca-certificates.crt")
		}
	}
	return pool, nil
}

// accepts reports whether a host's certificate is not to be checked.
func (t trust) accepts(u *url.URL) bool {
	host := strings.ToLower(u.Hostname())
	return slices.ContainsFunc(t.lax, func(x string) bool { return x == "*" || x == host || x == host+":"+portOf(u) })
}

// client fetches for one kind of installer.
type client struct {
	trust        trust
	checked, lax *http.Transport
}

func (f *Front) newClient(t trust, p proxies) (*client, error) {
	pool, err := t.pool()
	if err != nil {
		return nil, err
	}
	transport := func(c *tls.Config) *http.Transport {
		return &http.Transport{
			Proxy:                  func(r *http.Request) (*url.URL, error) { return p.of(r.URL), nil },
			DialContext:            f.dialer(p),
			TLSClientConfig:        c,
			TLSHandshakeTimeout:    f.wait,
			IdleConnTimeout:        f.wait,
			MaxConnsPerHost:        f.atOnce,
			MaxResponseHeaderBytes: int64(f.head),
		}
	}
	return &client{
		trust:   t,
		checked: transport(&tls.Config{RootCAs: pool}),
		// The operator's own words, trusted-host and strict-ssl, ask for this.
		lax: transport(&tls.Config{InsecureSkipVerify: true}),
	}, nil
}

func (c *client) close() {
	if c != nil {
		c.checked.CloseIdleConnections()
		c.lax.CloseIdleConnections()
	}
}

var errPrivate = errors.New("the host has an address that is not public")

// dialer connects to a host that is allowed already. One that only a pattern covers
// must be at public addresses, and the one that was looked at is the one that is dialled.
func (f *Front) dialer(p proxies) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, f.wait)
		defer cancel()
		host, port, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, err
		}
		if _, named := f.hosts.covers(host, port); named || p.isProxy(addr) {
			return f.dial(ctx, network, addr)
		}
		found, err := f.addresses(ctx, host)
		if err != nil {
			return nil, err
		}
		for _, a := range found {
			if !isPublic(a) {
				return nil, errPrivate
			}
		}
		var last error
		for _, a := range found {
			conn, err := f.dial(ctx, network, net.JoinHostPort(a.Unmap().String(), port))
			if err == nil {
				return conn, nil
			}
			last = err
		}
		return nil, last
	}
}

func (f *Front) addresses(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, nil
	}
	found, err := f.resolver.LookupNetIP(ctx, "ip", host)
	if err == nil && len(found) == 0 {
		err = errors.New("the host has no address")
	}
	return found, err
}

// maxRedirects is how often one answer may lead to another.
const maxRedirects = 5

// fetch gets a URL, following redirects to hosts that are allowed. via is the place
// whose page named it. The caller closes the body of the answer, which has status 200.
func (s *Session) fetch(ctx context.Context, via source, u *url.URL, header http.Header) (*http.Response, *Trouble) {
	for range maxRedirects + 1 {
		resp, t := s.once(ctx, via, u, header)
		if t != nil {
			return nil, t
		}
		switch resp.StatusCode {
		case http.StatusOK:
			return resp, nil
		case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
			next, err := u.Parse(resp.Header.Get("Location"))
			drain(resp, int64(s.head))
			if err != nil || resp.Header.Get("Location") == "" {
				return nil, trouble(Broken, u)
			}
			if u.Scheme == "https" && next.Scheme == "http" {
				// What the operator asked for encrypted is not fetched in the clear.
				return nil, trouble(NotAllowed, next)
			}
			u = next
		default:
			drain(resp, int64(s.head))
			return nil, trouble(reasonOf(resp.StatusCode), u)
		}
	}
	return nil, trouble(Broken, u)
}

// once sends one request.
func (s *Session) once(ctx context.Context, via source, u *url.URL, header http.Header) (*http.Response, *Trouble) {
	if ok, _ := s.hosts.allow(u); !ok {
		return nil, trouble(NotAllowed, u)
	}
	plain := *u
	plain.User, plain.Fragment, plain.RawFragment = nil, "", ""
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, plain.String(), nil)
	if err != nil {
		return nil, trouble(Broken, u)
	}
	req.Header = header.Clone()
	req.Header.Set("User-Agent", "metier")
	s.settings.authorize(req, via)
	c := s.clients[s.kind]
	through := c.checked
	if c.trust.accepts(u) {
		through = c.lax
	}
	resp, err := through.RoundTrip(req)
	switch {
	case err == nil:
		return resp, nil
	case ctx.Err() != nil:
		return nil, trouble(Late, u)
	case errors.Is(err, errPrivate):
		return nil, trouble(NotAllowed, u)
	}
	// The text of err can hold the address of the operator's proxy with what opens it, so
	// only its kind is told.
	if _, bad := errors.AsType[*tls.CertificateVerificationError](err); bad {
		return nil, trouble(Untrusted, u)
	}
	return nil, trouble(Unreachable, u)
}

// authorize adds the credential for a request, if there is one for exactly its origin:
// the one for the longest path, or else the one of the place whose page named the URL.
func (s Settings) authorize(req *http.Request, via source) {
	at := origin(req.URL)
	best, length := -1, 0
	for i, c := range s.credentials {
		if slices.Contains(c.origins, at) && strings.HasPrefix(folder(req.URL), c.path) && len(c.path) > length {
			best, length = i, len(c.path)
		}
	}
	if best < 0 && via.url != nil && origin(via.url) == at {
		for i, c := range s.credentials {
			if slices.Contains(c.origins, at) && strings.HasPrefix(folder(via.url), c.path) && len(c.path) > length {
				best, length = i, len(c.path)
			}
		}
	}
	if best < 0 {
		return
	}
	if c := s.credentials[best]; !c.bearer.IsZero() {
		req.Header.Set("Authorization", "Bearer "+c.bearer.Reveal())
	} else {
		req.SetBasicAuth(c.user.Reveal(), c.word.Reveal())
	}
}
