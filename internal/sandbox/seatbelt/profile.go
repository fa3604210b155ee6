package seatbelt

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/metier-run/metier/internal/sandbox"
)

// profile is the text for the kernel and the paths that it names by parameters.
// No path is ever written into the text: a file name may hold any byte, and
// quotes and brackets mean something there.
type profile struct {
	text   strings.Builder
	params []string // each "NAME=value", for -D
	names  map[string]string
}

// terms are what a profile is made from.
type terms struct {
	launch sandbox.Launch
	// temp are the shared temporary directories of the host.
	temp []string
	// port is where a proxied launch finds its proxy on the host's loopback.
	port int
}

// makeProfile writes the profile of a launch. The last rule that matches decides,
// so the order of its parts matters.
func makeProfile(t terms) *profile {
	p := &profile{names: map[string]string{}}
	p.line("(version 1)")
	p.line("(deny default (with message %q))", denial)
	p.text.WriteString(processRules)
	p.text.WriteString(systemRules)
	p.files(t)
	p.network(t)
	return p
}

// denial is found in the system's log beside each thing that was refused.
const denial = "metier-sandbox"

func (p *profile) line(format string, args ...any) {
	fmt.Fprintf(&p.text, format+"\n", args...)
}

// path is the expression for a path: its parameter.
func (p *profile) path(value string) string {
	name, known := p.names[value]
	if !known {
		name = fmt.Sprintf("P%d", len(p.params))
		p.names[value] = name
		p.params = append(p.params, name+"="+value)
	}
	return fmt.Sprintf("(param %q)", name)
}

func (p *profile) below(value string) string { return "(subpath " + p.path(value) + ")" }

func (p *profile) itself(value string) string { return "(literal " + p.path(value) + ")" }

// access is what is granted below a path.
type access int

// The kinds, in the order in which they follow for one and the same path.
const (
	shared access = iota // as writable, but what the launch says of the path wins
	hidden
	readable
	writable
)

// writes reports whether the launch may write there.
func (a access) writes() bool { return a == shared || a == writable }

// grant is one path of a launch.
type grant struct {
	path   string
	access access
}

// grants lists the paths of a launch so that what is said of a path comes after
// what is said of the directories above it, and wins.
func grants(t terms) []grant {
	var all []grant
	add := func(a access, paths []string) {
		for _, p := range paths {
			all = append(all, grant{p, a})
		}
	}
	add(hidden, t.launch.Hide)
	add(readable, t.launch.Read)
	add(writable, t.launch.Write)
	add(shared, t.temp)
	slices.SortFunc(all, func(a, b grant) int {
		return cmp.Or(depth(a.path)-depth(b.path), strings.Compare(a.path, b.path), int(a.access)-int(b.access))
	})
	return slices.Compact(all)
}

func depth(p string) int { return strings.Count(p, "/") }

// files writes the rules for the paths of the launch.
func (p *profile) files(t terms) {
	all := grants(t)
	p.line("")
	p.line("; Paths of the launch, from the root downwards.")
	for _, g := range all {
		at := p.below(g.path)
		switch g.access {
		case hidden:
			p.line("(deny file-read* file-write* file-map-executable %s)", at)
		case readable:
			p.line("(allow file-read* file-map-executable %s)", at)
			p.line("(deny file-write* %s)", at)
		case shared, writable:
			p.line("(allow file-read* file-write* file-map-executable %s)", at)
		}
	}
	p.line("")
	p.line("; The way to each path can be looked up.")
	for _, way := range ways(all, func(g grant) bool { return g.access != hidden }) {
		p.line("(allow file-read-metadata %s)", p.itself(way))
	}
	p.line("")
	p.line("; None of them, nor a directory on the way, can be moved away or removed.")
	for _, way := range ways(all, func(grant) bool { return true }) {
		p.line("(deny file-write-unlink %s)", p.itself(way))
	}
	p.text.WriteString(finalRules)
}

// ways are the paths of some grants and all directories above them, but not the
// root.
func ways(all []grant, some func(grant) bool) []string {
	var found []string
	for _, g := range all {
		for p := g.path; some(g) && p != path.Dir(p); p = path.Dir(p) {
			found = append(found, p)
		}
	}
	slices.SortFunc(found, func(a, b string) int { return cmp.Or(depth(a)-depth(b), strings.Compare(a, b)) })
	return slices.Compact(found)
}

// network writes the rules for the network and for sockets in directories.
func (p *profile) network(t terms) {
	p.line("")
	p.line("; Sockets in directories that the launch writes to.")
	p.line("(allow system-socket (socket-domain AF_UNIX))")
	for _, g := range grants(t) {
		verb := "deny"
		if g.access.writes() {
			verb = "allow"
		}
		p.line("(%s network-bind network-inbound (local unix-socket %s))", verb, p.below(g.path))
		p.line("(%s network-outbound (remote unix-socket %s))", verb, p.below(g.path))
	}
	p.text.WriteString(socketRules)
	switch t.launch.Network.Mode {
	case sandbox.NetworkProxied:
		p.line("")
		p.line("; The proxy of this launch.")
		p.line("(allow network-outbound (remote ip \"localhost:%d\"))", t.port)
		p.text.WriteString(trustRules)
	case sandbox.NetworkOpen:
		p.text.WriteString(openRules)
		p.text.WriteString(trustRules)
	case sandbox.NetworkDenied:
	}
}
