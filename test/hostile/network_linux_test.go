package hostile

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/metier-run/metier/internal/sandbox"
)

func networkRows() []row {
	return []row{
		{id: "nt01", what: "reach an abstract unix socket of the host", try: func(x *trial) *outcome {
			return x.reach("abstract", map[string]*tap{"socket": x.listen("unix", "@"+x.name)}, func(*tap) string { return x.name })
		}},
		{id: "nt02", what: "reach a unix socket by its path, mode 666", try: func(x *trial) *outcome {
			path := filepath.Join(x.far, x.name)
			t := x.listen("unix", path)
			if err := os.Chmod(path, 0o666); err != nil {
				x.Fatal(err)
			}
			return x.reach("unix", map[string]*tap{"socket": t}, func(*tap) string { return path })
		}},
		{id: "nt03", what: "reach TCP on the host's loopback and own addresses", try: func(x *trial) *outcome { return x.reach("tcp", x.taps("tcp"), (*tap).where) }},
		{id: "nt04", what: "the same by MPTCP", try: func(x *trial) *outcome { return x.reach("mptcp", x.taps("tcp"), (*tap).where) }},
		{id: "nt05", what: "the same by UDP", try: func(x *trial) *outcome { return x.reach("udp", x.taps("udp"), (*tap).where) }},
		{id: "nt06", what: "send anything to the outside", verb: "udp", setUp: func(*trial) []string {
			return []string{"v4=198.51.100.1/9", "v6=2001:db8::1/9"} // addresses that documentation uses, and nobody else
		}},
		{
			id: "nt07", what: "open sockets of other families: raw, ping, packet, vsock, alg, netlink of audit and devices, xdp, sctp and others", verb: "families",
			setUp: func(*trial) []string { return families() },
		},
		{id: "nt08", what: "a name must fail to resolve at once", kind: manners, try: lookUp},
		{id: "nt10", what: "carry a secret out in a DNS question", try: func(x *trial) *outcome { return x.ask(x.l) }},
		{id: "nt11", what: "the same while a proxy is allowed, and pass it by", kind: manners, confinedOnly: true, try: passProxyBy},
		{id: "nt12", what: "use the proxy of another launch", kind: manners, confinedOnly: true, try: useOthersProxy},
		{id: "nt14", what: "with the open network: reach an abstract unix socket of the host", kind: manners, confinedOnly: true, try: func(x *trial) *outcome {
			x.l.Network.Mode = sandbox.NetworkOpen
			return x.reach("abstract", map[string]*tap{"socket": x.listen("unix", "@"+x.name)}, func(*tap) string { return x.name })
		}},
		{id: "nt13", what: "see the host's network interfaces", verb: "interfaces"},
	}
}

// reach has the attack send a word to each tap, and asks the taps.
func (x *trial) reach(verb string, taps map[string]*tap, address func(*tap) string) *outcome {
	x.Helper()
	var args []string
	for name, t := range taps {
		args = append(args, pair(name, address(t)))
	}
	_, o := x.send(x.l, verb, args...)
	for name, t := range taps {
		x.sawAt(o, name, t)
	}
	return o
}

// taps are sockets at loopback, by both protocols, and at an own address of this
// machine if it has one.
func (x *trial) taps(network string) map[string]*tap {
	x.Helper()
	open := x.listen
	if network == "udp" {
		open = x.listenPacket
	}
	taps := map[string]*tap{"v4": open(network, "127.0.0.1:0")}
	if l, err := net.Listen("tcp", "[::1]:0"); err == nil {
		_ = l.Close()
		taps["v6"] = open(network, "[::1]:0")
	}
	if own := ownAddress(); own != "" {
		taps["own"] = open(network, net.JoinHostPort(own, "0"))
	}
	return taps
}

// ownAddress is an address of this machine beside loopback.
func ownAddress() string {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return ""
	}
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && !n.IP.IsLoopback() {
			return n.IP.String()
		}
	}
	return ""
}

// families are sockets as FAMILY:TYPE:PROTOCOL.
func families() []string {
	return []string{
		"raw=2:3:255", "ping=2:2:1", "ping6=10:2:58", "packet=17:3:0", "packet-dgram=17:2:0", "vsock=40:1:0", "alg=38:5:0", "audit=16:3:9",
		"uevent=16:3:15", "netfilter=16:3:12", "xfrm=16:3:6", "generic=16:3:16", "connector=16:3:11", "sock-diag=16:3:4", "xdp=44:3:0", "sctp=2:5:132", "udplite=2:2:136",
		"key=15:3:2", "bluetooth=31:3:1", "can=29:3:1", "tipc=30:1:0", "rds=21:5:0", "kcm=41:2:0", "smc=43:1:0", "ppp=24:2:0", "llc=26:1:0", "nfc=39:5:0",
	}
}

// lookUp times a look-up: without a network it must not hang.
func lookUp(x *trial) *outcome {
	python := x.program("python3")
	l := x.l
	l.Argv = []string{python, "-c", "import socket\ntry:\n print(socket.getaddrinfo('metier.example',443))\nexcept OSError as e:\n print('NO',e)"}
	began := time.Now()
	r, err := sandbox.Run(x.Context(), x.b, l)
	if err != nil || !r.OK() {
		return &outcome{broken: []string{fmt.Sprint(err, r.Ended, r.Stderr.Text())}}
	}
	o := &outcome{}
	o.sees("resolved", !seen(r, "NO"))
	o.sees("hung", time.Since(began) > 5*time.Second)
	return o
}

// ask sends questions to servers of the host.
func (x *trial) ask(l sandbox.Launch) *outcome {
	x.Helper()
	taps := map[string]*tap{"loopback": x.listenPacket("udp", "127.0.0.1:0")}
	if own := ownAddress(); own != "" {
		taps["own"] = x.listenPacket("udp", net.JoinHostPort(own, "0"))
	}
	args := []string{random()}
	for name, t := range taps {
		args = append(args, pair(name, t.where()))
	}
	_, o := x.send(l, "dns", args...)
	for name, t := range taps {
		x.sawAt(o, name, t)
	}
	return o
}

// proxy answers every request with a word and counts.
type proxy struct {
	word string
	mu   sync.Mutex
	seen []string
}

func (p *proxy) serve(ctx context.Context, l net.Listener) {
	var work sync.WaitGroup
	defer work.Wait()
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		work.Go(func() {
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(5 * time.Second)) // it only bounds
			line, _ := bufio.NewReader(c).ReadString('\n')
			p.mu.Lock()
			p.seen = append(p.seen, strings.TrimSpace(line))
			p.mu.Unlock()
			fmt.Fprintf(c, "HTTP/1.1 403 %s\r\n\r\n", p.word)
		})
	}
}

func (p *proxy) requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.seen...)
}

func (p *proxy) network() sandbox.Network {
	return sandbox.Network{Mode: sandbox.NetworkProxied, Serve: p.serve}
}

// proxyWhere is the proxy as the attacking program reads addresses.
func proxyWhere() string { return strings.ReplaceAll(sandbox.ProxyAddress, ":", "/") }

// passProxyBy: the proxy answers, and everything else is as if there was no
// network.
func passProxyBy(x *trial) *outcome {
	p := &proxy{word: "no " + random()}
	l := x.l
	l.Network = p.network()
	r, used := x.send(l, "proxy", proxyWhere(), "somewhere.example:443")
	if len(used.escaped) == 0 || !seen(r, p.word) || len(p.requests()) != 1 {
		return &outcome{broken: []string{fmt.Sprintf("the proxy does not answer: %s, it saw %q", used, p.requests())}}
	}
	x.l = l
	o := x.ask(l)
	for _, network := range []string{"tcp", "udp"} {
		o.merge(network, x.reach(network, x.taps(network), (*tap).where))
	}
	_, out := x.send(l, "udp", "v4=198.51.100.1/9")
	o.merge("outside", out)
	_, shown := x.send(l, "interfaces")
	o.merge("list", shown)
	return o
}

// useOthersProxy: one launch has a proxy; another without one, and one with its own,
// try to use it.
func useOthersProxy(x *trial) *outcome {
	hers, mine := &proxy{word: "hers" + random()}, &proxy{word: "mine" + random()}
	l := x.launch(x.scratch())
	l.Network = hers.network()
	l.Line = "touch ready; for i in $(seq 500); do [ -e done ] && exit; sleep 0.05; done"
	job, err := x.b.Start(x.Context(), l)
	if err != nil {
		return &outcome{broken: []string{err.Error()}}
	}
	defer func() {
		job.Stop()
		job.Wait()
	}()
	if !appears(filepath.Join(l.Dir, "ready")) {
		return &outcome{broken: []string{"the first launch does not start"}}
	}
	o := &outcome{}
	_, without := x.send(x.l, "proxy", proxyWhere(), "a.example:443")
	o.merge("without", without)
	own := x.l
	own.Network = mine.network()
	r, with := x.send(own, "proxy", proxyWhere(), "b.example:443")
	if !seen(r, mine.word) {
		o.broken = append(o.broken, "the own proxy does not answer: "+with.String())
	}
	o.sees("with", seen(r, hers.word))
	o.sees("hers", len(hers.requests()) > 0)
	return o
}

// freePort is a port of loopback that was free just now.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}
