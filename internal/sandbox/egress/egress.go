// Package egress lets a launch reach named hosts and nothing else: it is the host's
// side of a proxied network, a proxy that answers CONNECT on a listener made inside
// the network of one launch.
//
// A request passes when its host and port are on the operator's [List], which is looked
// at before any name is resolved; the name is resolved once, by the host; every
// address found is public; and the TLS greeting inside the tunnel names the same host.
// The address that was checked is the one that is dialled.
//
// It never decrypts, never forwards plain HTTP, never passes on a byte of the
// request's head, and holds no credential. What it cannot see remains possible: the
// HTTP Host header inside TLS, a renegotiation, and the inner name of an encrypted
// hello (its outer name must be the listed one) are read by the listed server alone, so
// a front that serves many customers can carry data to any of them; and a listed host
// that takes uploads can be a drop box. A network that maps private IPv4 addresses into
// an IPv6 prefix of its own (NAT64 other than 64:ff9b::/96) is not recognised.
//
// The inside is hostile. All that it may send and hold is bounded by the rows egress-head,
// egress-wait, egress-idle and egress-connections of the table of limits, and so is
// what it can write to the log.
//
// Start at [New], then [Proxy.Serve].
package egress

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"runtime/debug"
	"sync"
	"time"

	"github.com/metier-run/metier/internal/config"
)

// Resolver turns a name into addresses; a [net.Resolver] is one.
type Resolver interface {
	// LookupNetIP is asked with network "ip" and a name that ends in a dot, so that no
	// search domain of the host is tried.
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Options are what a [Proxy] is made of.
type Options struct {
	// List is what may be reached. The zero List lets nothing through.
	List List
	// Flag is the operator's setting that List comes from, as it is typed, such as
	// "--skills-network-domains". Refusals name it.
	Flag string
	// Limits are the limits in force.
	Limits config.Values
	// Resolver is the host's; nil stands for [net.DefaultResolver].
	Resolver Resolver
	// Dial connects to an address and port, never to a name; nil stands for a
	// [net.Dialer].
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// AllowAddress decides about each address that a name resolves to. It is nil but in
	// tests: then only public addresses are allowed, and none of this machine.
	AllowAddress func(netip.Addr) bool
	// Logger hears of refusals (warnings), of each launch's sums (info) and of tunnels
	// (debug); nil logs nothing.
	Logger *slog.Logger
}

// Proxy serves launches. It is safe for concurrent use, and each launch has limits and
// sums of its own.
type Proxy struct {
	list     List
	flag     string
	resolver Resolver
	dial     func(ctx context.Context, network, addr string) (net.Conn, error)
	allow    func(netip.Addr) bool
	// foreign refuses a connection that ends on this machine.
	foreign bool
	log     *slog.Logger

	head   int
	wait   time.Duration
	idle   time.Duration
	atOnce int
}

// New makes a proxy.
func New(o Options) *Proxy {
	p := &Proxy{
		list: o.List, flag: o.Flag, resolver: o.Resolver, dial: o.Dial, allow: o.AllowAddress, log: o.Logger,
		head:   o.Limits.Int(config.EgressHead),
		wait:   o.Limits.Duration(config.EgressWait),
		idle:   o.Limits.Duration(config.EgressIdle),
		atOnce: o.Limits.Int(config.EgressAtOnce),
	}
	if p.resolver == nil {
		p.resolver = net.DefaultResolver
	}
	if p.dial == nil {
		p.dial = (&net.Dialer{}).DialContext
	}
	if p.allow == nil {
		p.allow, p.foreign = public, true
	}
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	return p
}

// Serve answers the connections of one launch. It returns when l is closed, or when ctx
// ends, and then all connections are gone. It closes l.
//
// At most egress-connections are served at once. As many again wait for a place, for
// egress-wait at most; what is more is answered with a refusal.
func (p *Proxy) Serve(ctx context.Context, l net.Listener) {
	ctx, cancel := context.WithCancel(ctx)
	s := &session{
		Proxy: p, tally: newTally(p.log, p.atOnce),
		serving: make(chan struct{}, p.atOnce), inside: make(chan struct{}, 2*p.atOnce),
	}
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	s.accept(ctx, l)
	cancel()
	s.wg.Wait()
	stop()
	_ = l.Close()
	s.tally.end(context.WithoutCancel(ctx))
}

// session is one launch's use of a proxy.
type session struct {
	*Proxy
	tally *tally
	// serving holds a token for each connection that is served, inside for each that is
	// served or waits.
	serving, inside chan struct{}
	wg              sync.WaitGroup
}

// The pauses after a failed accept, as the standard library's server makes them: the
// usual cause is that the host is out of file descriptors.
const (
	firstPause = 5 * time.Millisecond
	lastPause  = time.Second
)

// accept hands out connections until the listener is closed. It never stops accepting
// for want of a place, since only the call of Accept learns of the end of a launch.
func (s *session) accept(ctx context.Context, l net.Listener) {
	pause := firstPause
	for {
		client, err := l.Accept()
		if err == nil {
			pause = firstPause
			s.admit(ctx, client)
			continue
		}
		if errors.Is(err, net.ErrClosed) || ctx.Err() != nil {
			return
		}
		if pause == firstPause {
			s.log.WarnContext(ctx, "egress: accept failed, trying again", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, lastPause)
	}
}

// admit starts a connection, or turns it away.
func (s *session) admit(ctx context.Context, client net.Conn) {
	select {
	case s.inside <- struct{}{}:
	default:
		// A fresh socket has room for these few bytes, so nothing waits here.
		s.tally.refuse(ctx, busy(s.atOnce), "")
		_ = client.SetDeadline(time.Now().Add(s.wait))
		_, _ = client.Write(busy(s.atOnce).answer())
		_ = client.Close()
		return
	}
	s.wg.Go(func() {
		defer func() { <-s.inside }()
		defer client.Close()
		defer s.survive(ctx)
		s.await(ctx, client)
	})
}

// survive keeps a defect here, which hostile bytes could set off, from ending the host
// and all that it does for others.
func (s *session) survive(ctx context.Context) {
	if p := recover(); p != nil {
		s.log.ErrorContext(ctx, "egress: a connection panicked", "panic", p, "stack", string(debug.Stack()))
	}
}

// await serves a connection when there is a place.
func (s *session) await(ctx context.Context, client net.Conn) {
	stop := context.AfterFunc(ctx, func() { _ = client.Close() })
	defer stop()
	timer := time.NewTimer(s.wait)
	defer timer.Stop()
	select {
	case s.serving <- struct{}{}:
		defer func() { <-s.serving }()
		s.serve(ctx, client)
	case <-timer.C:
		s.turnAway(ctx, client, busy(s.atOnce), "")
	case <-ctx.Done():
	}
}
