// Package registry lets one confined installer reach the operator's package
// registries and nothing else: it is the host's side of a proxied network, a small
// server that speaks to pip as an index and to npm as a registry, and fetches what
// they ask for.
//
// The installer sees plain HTTP on its own loopback. The host holds the credentials,
// the certificates and the names of servers; none of them passes to the installer, to
// a log or to an error. A file is fetched only if a page of a registry named it, from
// a host that the operator's list allows, and reaches the installer whole only if it
// has the hash that the page gave. Source distributions are taken out of Python pages,
// so that nothing is ever built.
//
// It installs nothing, keeps nothing, and never follows a redirect to a host that is
// not allowed. What registries send and what the installer asks is hostile; all of it
// is bounded by the rows registry-page, registry-file, egress-head, egress-wait and
// egress-connections of the table of limits.
//
// Start at [ReadSettings], then [New], [Front.Session] and [Session.Serve].
package registry

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/metier-run/metier/internal/config"
)

// Kind is a family of registries, named after its installer.
type Kind string

// The kinds.
const (
	Pip Kind = "pip"
	Npm Kind = "npm"
)

// Resolver turns a name into addresses; a [net.Resolver] is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Options are what a [Front] is made of.
type Options struct {
	// Settings are where the operator's installers fetch from.
	Settings Settings
	// Domains are the hosts that may be reached (B1 13.14): "example.com" or
	// "*.example.com", a port after a colon where only that one is meant; one string
	// may hold several, separated by commas, semicolons or spaces. Nil stands for the
	// hosts that Settings name and, for a public index, its host of files. A list
	// without an entry, such as []string{""}, allows every public host.
	Domains []string
	// Flag is the setting that Domains come from, as refusals name it; empty stands
	// for --code-exec-install-domains.
	Flag string
	// Limits are the limits in force.
	Limits config.Values
	// Resolver is the host's; nil stands for [net.DefaultResolver].
	Resolver Resolver
	// Dial connects to an address and port; nil stands for a [net.Dialer].
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Logger hears of refusals and failures; nil logs nothing.
	Logger *slog.Logger
}

// Front fetches from the operator's registries. It is safe for concurrent use.
type Front struct {
	settings Settings
	hosts    hosts
	flag     string
	log      *slog.Logger
	resolver Resolver
	dial     func(ctx context.Context, network, addr string) (net.Conn, error)
	clients  map[Kind]*client

	page, file int64
	head       int
	wait       time.Duration
	atOnce     int
}

// domainsFlag is the flag that the list of hosts comes from.
const domainsFlag = "--code-exec-install-domains"

// New makes a front. It fails on an entry of Domains that is no host, naming it, and on
// certificates that cannot be read.
func New(o Options) (*Front, error) {
	f := &Front{
		settings: o.Settings, flag: cmp.Or(o.Flag, domainsFlag), log: o.Logger, resolver: o.Resolver, dial: o.Dial,
		page: o.Limits.Get(config.RegistryPage), file: o.Limits.Get(config.RegistryFile),
		head: o.Limits.Int(config.EgressHead), wait: o.Limits.Duration(config.EgressWait),
		atOnce: o.Limits.Int(config.EgressAtOnce), clients: map[Kind]*client{},
	}
	if f.log == nil {
		f.log = slog.New(slog.DiscardHandler)
	}
	if f.resolver == nil {
		f.resolver = net.DefaultResolver
	}
	if f.dial == nil {
		f.dial = (&net.Dialer{}).DialContext
	}
	var err error
	if f.hosts, err = o.hosts(); err != nil {
		return nil, fmt.Errorf("%s: %w", f.flag, err)
	}
	for kind, t := range map[Kind]trust{Pip: o.Settings.pipTrust, Npm: o.Settings.npmTrust} {
		if f.clients[kind], err = f.newClient(t, o.Settings.proxies[kind]); err != nil {
			f.Close()
			return nil, fmt.Errorf("read the certificates that %s is configured with: %w", kind, err)
		}
	}
	return f, nil
}

// Close gives idle connections back. Sessions end by themselves.
func (f *Front) Close() {
	for _, c := range f.clients {
		c.close()
	}
}

// Origin names where a kind of package comes from, without saying it: what is kept of
// an install is good for the same origin only.
func (f *Front) Origin(kind Kind) string {
	h := sha256.New()
	for _, src := range f.settings.sources(kind) {
		fmt.Fprintf(h, "%s\n", src)
	}
	fmt.Fprintf(h, "%s\n", f.hosts)
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// Session makes the front for one launch.
func (f *Front) Session(kind Kind) *Session {
	return &Session{Front: f, kind: kind, token: strings.ToLower(rand.Text()), links: map[string]link{}, report: Report{Projects: map[string]Project{}}}
}

// sources are the places of a kind, in the order in which they are asked.
func (s Settings) sources(kind Kind) []string {
	var all []string
	if kind == Npm {
		all = append(all, "registry "+s.npm.String())
		for scope, src := range s.scopes {
			all = append(all, scope+" "+src.String())
		}
		slices.Sort(all[1:])
		return all
	}
	for _, src := range s.pip {
		all = append(all, "index "+src.String())
	}
	for _, src := range s.links {
		all = append(all, "links "+src.String())
	}
	return all
}

// source is one place that packages come from: a server, or a directory of this host.
// Its URL has no credentials.
type source struct {
	url *url.URL
	dir string
}

// String is the place as the operator wrote it, without credentials.
func (s source) String() string {
	if s.url == nil {
		return s.dir
	}
	return s.url.String()
}

// drain reads what is left of a small answer, so that its connection can be used again.
func drain(resp *http.Response, most int64) {
	_, _ = io.CopyN(io.Discard, resp.Body, most)
	_ = resp.Body.Close()
}
