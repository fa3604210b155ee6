// Package seatbelt confines launches on macOS with the system's own sandbox-exec: it
// writes a profile for each launch, by which the kernel denies all that is not
// listed.
//
// Writes are confined to what the launch is granted and to the shared temporary
// directories, where programs such as LibreOffice keep sockets of fixed names.
// Homes, other skills and the network are out of reach. It does not hold the
// process tree: a child that detaches itself may stay. The profile's text is made
// and tested everywhere; it has only been run where the trial of [Find] ran it.
//
// It never runs a launch whose profile the system refuses, and never writes a path
// into a profile's text.
//
// Start at [Find], then [makeProfile].
package seatbelt

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/metier-run/metier/internal/sandbox"
)

// Name is the backend's name.
const Name = "seatbelt"

// program is where the system keeps it. One that is found by PATH may be anyone's.
const program = "/usr/bin/sandbox-exec"

// Options are what a host tells the backend.
type Options struct {
	// Temp are the shared temporary directories, canonical.
	Temp []string
	// Version is the system's version, for listings.
	Version string
	// Shell is the argument vector that a line is appended to; empty takes
	// [sandbox.FindShell].
	Shell []string
	// Program is sandbox-exec; empty takes the system's.
	Program string
}

// Backend is the backend. It holds nothing.
type Backend struct{ options Options }

var _ sandbox.Backend = (*Backend)(nil)

// New makes the backend without trying it; [Find] does.
func New(o Options) *Backend {
	if len(o.Shell) == 0 {
		o.Shell = sandbox.FindShell()
	}
	if o.Program == "" {
		o.Program = program
	}
	return &Backend{options: o}
}

// Name is [Name].
func (b *Backend) Name() string { return Name }

// Close does nothing: nothing is held.
func (b *Backend) Close() error { return nil }

// Capabilities are what a profile confines.
func (b *Backend) Capabilities() sandbox.Capabilities { return capabilities(b.options.Version) }

// Start is [sandbox.Backend.Start]. There is no network of a launch's own here, so
// the proxy listens on a free port of the host's loopback, which is all that the
// launch reaches, and [sandbox.ProxyAddress] in its environment becomes that port.
// Other programs of the host can reach the proxy as well.
func (b *Backend) Start(ctx context.Context, l sandbox.Launch) (sandbox.Job, error) {
	if err := l.Check(); err != nil {
		return nil, err
	}
	var proxy net.Listener
	if l.Network.Mode == sandbox.NetworkProxied {
		var listen net.ListenConfig
		var err error
		if proxy, err = listen.Listen(ctx, "tcp4", "127.0.0.1:0"); err != nil {
			return nil, &sandbox.Unavailable{Backend: Name, Step: "listen for the proxy", Err: err}
		}
	}
	cmd, err := b.command(l, proxy)
	if err != nil {
		if proxy != nil {
			_ = proxy.Close() // nobody has used it
		}
		return nil, &sandbox.Unavailable{Backend: Name, Step: "prepare a profile", Err: err}
	}
	return sandbox.StartProcess(ctx, l, cmd)
}

// command is how sandbox-exec is called for a launch.
func (b *Backend) command(l sandbox.Launch, proxy net.Listener) (sandbox.Command, error) {
	argv, err := l.Vector(b.options.Shell)
	if err != nil {
		return sandbox.Command{}, err
	}
	t := terms{launch: l, temp: b.options.Temp}
	env := l.Env
	if proxy != nil {
		address, ok := proxy.Addr().(*net.TCPAddr)
		if !ok {
			return sandbox.Command{}, fmt.Errorf("the proxy listens on %s, which has no port", proxy.Addr())
		}
		t.port = address.Port
		env = movedProxy(l.Env, net.JoinHostPort("127.0.0.1", strconv.Itoa(t.port)))
	}
	p := makeProfile(t)
	args := []string{b.options.Program, "-p", p.text.String()}
	for _, param := range p.params {
		if strings.IndexByte(param, 0) >= 0 {
			return sandbox.Command{}, errors.New("a path holds a NUL byte")
		}
		args = append(args, "-D", param)
	}
	return sandbox.Command{
		Backend:  Name,
		Path:     b.options.Program,
		Args:     slices.Concat(args, []string{"--"}, argv),
		Env:      env,
		Listener: proxy,
	}, nil
}

// movedProxy replaces the address of the proxy in the values of an environment.
func movedProxy(env []string, address string) []string {
	moved := slices.Clone(env)
	for i, e := range moved {
		name, value, _ := strings.Cut(e, "=")
		moved[i] = name + "=" + replaceAddress(value, address)
	}
	return moved
}

// replaceAddress replaces whole addresses: "127.0.0.1:31280" is another one.
func replaceAddress(value, address string) string {
	var b strings.Builder
	before := byte(0)
	for {
		i := strings.Index(value, sandbox.ProxyAddress)
		if i < 0 {
			b.WriteString(value)
			return b.String()
		}
		if i > 0 {
			before = value[i-1]
		}
		rest := value[i+len(sandbox.ProxyAddress):]
		b.WriteString(value[:i])
		if isAddressByte(before) || rest != "" && rest[0] >= '0' && rest[0] <= '9' {
			b.WriteString(sandbox.ProxyAddress)
		} else {
			b.WriteString(address)
		}
		before, value = sandbox.ProxyAddress[len(sandbox.ProxyAddress)-1], rest
	}
}

// isAddressByte reports whether a byte before an address makes it a longer one.
func isAddressByte(c byte) bool { return c >= '0' && c <= '9' || c == '.' }
