package egress

import (
	"net"
	"net/netip"
	"testing"
)

func TestPublic(t *testing.T) {
	open := []string{
		"1.1.1.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.1",
		"169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "192.0.1.0", "192.167.255.255", "192.169.0.0",
		"198.17.255.255", "198.20.0.0", "223.255.255.255", "168.63.129.17",
		"2606:4700::1111", "2a00:1450:4001::1", "2001:4860:4860::8888", "64:ff9b::1.1.1.1",
	}
	shut := []string{
		"0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.127.255.255", "100.100.100.200", "127.0.0.1", "127.255.255.254",
		"168.63.129.16", "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.192", "192.0.2.1", "192.88.99.1", "192.168.0.1",
		"198.18.0.1", "198.19.255.255", "198.51.100.7", "203.0.113.7", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
		"::", "::1", "::ffff:1.1.1.1", "::ffff:127.0.0.1", "::127.0.0.1", "::1.1.1.1", "fe80::1", "fe80::1%eth0", "2606:4700::1%eth0", "fec0::1", "fc00::1", "fd00:ec2::254",
		"ff02::1", "100::1", "2001::1", "2001:0:a00:1::f5ff:fffe", "2001:2::1", "2001:10::1", "2001:20::1", "2001:db8::1", "3fff::1",
		"2002:7f00:1::1", "2002:a00:1::1", "2002:101:101::1",
		"64:ff9b::127.0.0.1", "64:ff9b::10.0.0.1", "64:ff9b::169.254.169.254", "64:ff9b:1::1.1.1.1", "5f00::1", "4000::1",
	}
	for _, a := range open {
		if !public(netip.MustParseAddr(a)) {
			t.Errorf("%s is refused", a)
		}
	}
	for _, a := range shut {
		if public(netip.MustParseAddr(a)) {
			t.Errorf("%s passes for public", a)
		}
	}
	if public(netip.Addr{}) {
		t.Error("the zero address passes for public")
	}
}

// FuzzPublic holds the tables against what the standard library knows.
func FuzzPublic(f *testing.F) {
	f.Add([]byte{127, 0, 0, 1})
	f.Add(netip.MustParseAddr("64:ff9b::10.0.0.1").AsSlice())
	f.Fuzz(func(t *testing.T, b []byte) {
		a, ok := netip.AddrFromSlice(b)
		if !ok || !public(a) {
			return
		}
		if a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsMulticast() || a.IsUnspecified() || !a.IsGlobalUnicast() {
			t.Errorf("%s passes for public", a)
		}
	})
}

type ends struct {
	net.Conn
	local, remote net.Addr
}

func (e ends) LocalAddr() net.Addr  { return e.local }
func (e ends) RemoteAddr() net.Addr { return e.remote }

func tcp(ip string, port int) *net.TCPAddr { return &net.TCPAddr{IP: net.ParseIP(ip), Port: port} }

func TestEndsHere(t *testing.T) {
	for _, tt := range []struct {
		conn ends
		want bool
	}{
		{ends{local: tcp("1.2.3.4", 40000), remote: tcp("1.2.3.4", 443)}, true},
		{ends{local: tcp("::ffff:1.2.3.4", 40000), remote: tcp("1.2.3.4", 443)}, true},
		{ends{local: tcp("1.2.3.4", 40000), remote: tcp("1.2.3.5", 443)}, false},
		{ends{local: &net.UnixAddr{}, remote: tcp("1.2.3.5", 443)}, false},
	} {
		if got := endsHere(tt.conn); got != tt.want {
			t.Errorf("endsHere(%v to %v) = %v", tt.conn.local, tt.conn.remote, got)
		}
	}
}
