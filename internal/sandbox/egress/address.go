package egress

import (
	"net"
	"net/netip"
	"slices"
)

// closed are the IPv4 networks that are not the public internet, or not only that
// (RFC 6890 and its registry).
func closed() []netip.Prefix {
	return []netip.Prefix{
		netip.MustParsePrefix("0.0.0.0/8"),        // this network; Linux takes 0.0.0.0 for loopback
		netip.MustParsePrefix("10.0.0.0/8"),       // private
		netip.MustParsePrefix("100.64.0.0/10"),    // shared by carriers, and metadata of one cloud
		netip.MustParsePrefix("127.0.0.0/8"),      // loopback
		netip.MustParsePrefix("168.63.129.16/32"), // the host of a virtual machine in one cloud
		netip.MustParsePrefix("169.254.0.0/16"),   // link-local, and metadata of most clouds
		netip.MustParsePrefix("172.16.0.0/12"),    // private
		netip.MustParsePrefix("192.0.0.0/24"),     // protocol assignments
		netip.MustParsePrefix("192.0.2.0/24"),     // documentation
		netip.MustParsePrefix("192.88.99.0/24"),   // relays of 6to4
		netip.MustParsePrefix("192.168.0.0/16"),   // private
		netip.MustParsePrefix("198.18.0.0/15"),    // benchmarks
		netip.MustParsePrefix("198.51.100.0/24"),  // documentation
		netip.MustParsePrefix("203.0.113.0/24"),   // documentation
		netip.MustParsePrefix("224.0.0.0/4"),      // multicast
		netip.MustParsePrefix("240.0.0.0/4"),      // reserved, and broadcast
	}
}

// closed6 are the parts of the IPv6 internet (2000::/3) that lead elsewhere. Those
// that carry an IPv4 address and that nobody needs today are closed whatever they
// carry.
func closed6() []netip.Prefix {
	return []netip.Prefix{
		netip.MustParsePrefix("2001::/23"),     // protocol assignments: Teredo, benchmarks, ORCHID
		netip.MustParsePrefix("2001:db8::/32"), // documentation
		netip.MustParsePrefix("2002::/16"),     // 6to4
		netip.MustParsePrefix("3fff::/20"),     // documentation
	}
}

// public reports whether an address is one of the public internet. An IPv4 address
// mapped into IPv6 is not: it is unmapped before it is judged and dialled.
func public(a netip.Addr) bool {
	switch {
	case !a.IsValid() || a.Zone() != "" || a.Is4In6():
		return false
	case a.Is4():
		return !within(closed(), a)
	}
	// A network without IPv4 reaches it through this prefix, and the names of all IPv4
	// hosts resolve to it there (RFC 6052).
	if netip.MustParsePrefix("64:ff9b::/96").Contains(a) {
		b := a.As16()
		return public(netip.AddrFrom4([4]byte(b[12:])))
	}
	return netip.MustParsePrefix("2000::/3").Contains(a) && !within(closed6(), a)
}

func within(prefixes []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(a) })
}

// endsHere reports whether a connection leads to this machine: the system then gives it
// the same address on both ends. A public address of the host is found so, without a
// list of its addresses that may be stale.
func endsHere(c net.Conn) bool {
	local, ok := c.LocalAddr().(*net.TCPAddr)
	if !ok {
		return false
	}
	remote, ok := c.RemoteAddr().(*net.TCPAddr)
	return ok && local.IP.Equal(remote.IP)
}
