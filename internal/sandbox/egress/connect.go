package egress

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"time"
)

// serve answers one request and carries its tunnel.
func (s *session) serve(ctx context.Context, client net.Conn) {
	_ = client.SetDeadline(time.Now().Add(s.wait))
	in := bufio.NewReader(client)
	to, err := s.request(in)
	if err != nil {
		// Any other error is a client that left.
		if r, ok := errors.AsType[*refusal](err); ok {
			s.turnAway(ctx, client, r, "")
		}
		return
	}
	server, r := s.connect(ctx, to)
	if r != nil {
		s.turnAway(ctx, client, r, to.String())
		return
	}
	defer server.Close()
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	t := &tunnel{
		to: to, head: s.head, wait: s.wait, idle: s.idle, began: time.Now(),
		client: client, server: server, in: in, out: bufio.NewReader(server),
	}
	err = t.run()
	if r, ok := errors.AsType[*refusal](err); ok {
		s.tally.refuse(ctx, r, to.String())
		t.part(r.alert())
		return
	}
	s.tally.tunnel(ctx, to, t.up.Load(), t.down.Load(), err)
}

// request reads one request. There is no second one on a connection: whatever
// follows is the tunnel's, or is dropped.
func (s *session) request(in *bufio.Reader) (target, error) {
	head, err := readHead(in, s.head)
	if err != nil {
		return target{}, err
	}
	to, r := parseHead(head)
	if r != nil {
		return target{}, r
	}
	return to, nil
}

// String is HOST:PORT.
func (t target) String() string { return t.host + ":" + strconv.Itoa(t.port) }

// turnAway answers with a refusal and closes.
func (s *session) turnAway(ctx context.Context, client net.Conn, r *refusal, to string) {
	if ctx.Err() != nil {
		return // the launch is over: nobody reads it, and it may be its cause
	}
	s.tally.refuse(ctx, r, to)
	part(client, r.answer(), s.wait, s.head)
}

// part sends the last bytes and takes what still comes, at most limit bytes and for at
// most wait: closing with bytes unread would reset the connection, and the answer could
// be lost.
func part(c net.Conn, last []byte, wait time.Duration, limit int) {
	_ = c.SetDeadline(time.Now().Add(wait))
	if _, err := c.Write(last); err != nil {
		return
	}
	if closeWrite(c) == nil {
		_, _ = io.CopyN(io.Discard, c, int64(limit))
	}
}

// closeWrite ends one direction of a connection, or all of one that has no directions.
func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}

// connect reaches a target, or says why not.
func (s *session) connect(ctx context.Context, to target) (net.Conn, *refusal) {
	// First of all, so that no name that is not listed ever reaches a resolver: the
	// question itself would carry data out.
	if !s.list.Allows(to.host, to.port) {
		return nil, s.notListed(to)
	}
	ctx, cancel := context.WithTimeout(ctx, s.wait)
	defer cancel()
	addrs, r := s.resolve(ctx, to)
	if r != nil {
		return nil, r
	}
	return s.dialFirst(ctx, to, addrs)
}

// resolve asks once, and refuses the host if any of its addresses is not allowed: a
// name that leads to both kinds is no name of a public service.
func (s *session) resolve(ctx context.Context, to target) ([]netip.Addr, *refusal) {
	found, err := s.resolver.LookupNetIP(ctx, "ip", to.host+".")
	if err != nil || len(found) == 0 {
		return nil, unresolved(to, err)
	}
	addrs := make([]netip.Addr, len(found))
	for i, a := range found {
		// The standard resolver gives IPv4 addresses in either form.
		addrs[i] = a.Unmap()
		if !s.allow(addrs[i]) {
			return nil, private(to, fmt.Errorf("resolves to %s", a))
		}
	}
	return addrs, nil
}

// dialFirst tries the addresses in their order, each for its share of the time that is
// left, so that one that drops packets does not hide the next.
func (s *session) dialFirst(ctx context.Context, to target, addrs []netip.Addr) (net.Conn, *refusal) {
	var last error
	for i, a := range addrs {
		conn, err := s.dialOne(ctx, netip.AddrPortFrom(a, uint16(to.port)), len(addrs)-i)
		if err != nil {
			last = err
			continue
		}
		if s.foreign && endsHere(conn) {
			_ = conn.Close()
			return nil, private(to, fmt.Errorf("%s is an address of this machine", a))
		}
		return conn, nil
	}
	if timeout, ok := errors.AsType[net.Error](last); ok && timeout.Timeout() || errors.Is(last, os.ErrDeadlineExceeded) {
		return nil, lateDial(to, s.wait, last)
	}
	return nil, undialled(to, last)
}

func (s *session) dialOne(ctx context.Context, at netip.AddrPort, left int) (net.Conn, error) {
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/time.Duration(left))
		defer cancel()
	}
	return s.dial(ctx, "tcp", at.String())
}
