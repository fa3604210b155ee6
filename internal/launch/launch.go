// Package launch is the one place that starts anything for a model: it finds the
// backends that this host has, tries them, takes the one that the operator's policy
// accepts, and gives every launch its limits and its network.
//
// It never picks less confinement than the policy asks for, and never in silence:
// without a backend each launch is refused with the reason (seed 1, "Running
// scripts"; DESIGN 5.4).
//
// Start at [Open].
package launch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/sandbox/egress"
)

// Network is what the launches of one purpose may reach. The purposes have
// networks of their own, and none opens another's (DESIGN 5.4). The zero Network
// reaches nothing.
type Network struct {
	// Open shares the host's network.
	Open bool
	// Domains are reached through the proxy, and nothing else. They are not looked
	// at when Open is set.
	Domains []string
	// Flag is the flag that Domains came from, as errors name it.
	Flag string
}

// Options say how launches are confined.
type Options struct {
	Policy sandbox.Policy
	// Networks are what launches may reach, by purpose.
	Networks map[sandbox.Purpose]Network
	// Scratch is a directory in which backends are tried. It is made when it is
	// missing.
	Scratch string
	// Search is the PATH in which programs that confine are looked for.
	Search string
	Limits config.Values
	Logger *slog.Logger
	// Finders are the backends to look for, best first; nil means [Finders].
	Finders []Finder
}

// Launcher starts launches. It is safe for concurrent use.
type Launcher struct {
	o       Options
	backend sandbox.Backend
	problem error
	proxies map[sandbox.Purpose]*egress.Proxy
	places  chan struct{}
	queue   chan struct{}

	mu     sync.Mutex
	closed bool
	jobs   sync.WaitGroup
}

// Open finds a backend that the policy accepts, trying one after the other. That
// there is none is no error: launches are then refused, and [Launcher.Problem] says
// why. An error is a mistake in the options.
func Open(ctx context.Context, o Options) (*Launcher, error) {
	l := &Launcher{o: o, proxies: map[sandbox.Purpose]*egress.Proxy{}}
	for purpose, n := range o.Networks {
		proxy, err := newProxy(n, o)
		if err != nil {
			return nil, err
		}
		if proxy != nil {
			l.proxies[purpose] = proxy
		}
	}
	at := o.Limits.Int(config.SandboxLaunches)
	l.places = make(chan struct{}, at)
	l.queue = make(chan struct{}, at+o.Limits.Int(config.SandboxQueue))
	l.backend, l.problem = o.choose(ctx)
	return l, ctx.Err()
}

func newProxy(n Network, o Options) (*egress.Proxy, error) {
	if n.Open || len(n.Domains) == 0 {
		return nil, nil
	}
	list, err := egress.ParseList(n.Domains)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", n.Flag, err)
	}
	return egress.New(egress.Options{List: list, Flag: n.Flag, Limits: o.Limits, Logger: o.Logger}), nil
}

// Problem says why nothing can be launched; nil when something can.
func (l *Launcher) Problem() error { return l.problem }

// Capabilities are those of the backend in use; none when there is none.
func (l *Launcher) Capabilities() sandbox.Capabilities {
	if l.backend == nil {
		return sandbox.Capabilities{}
	}
	return l.backend.Capabilities()
}

// Network is the mode in which launches of a purpose run.
func (l *Launcher) Network(p sandbox.Purpose) sandbox.NetworkMode {
	switch {
	case l.o.Networks[p].Open:
		return sandbox.NetworkOpen
	case l.proxies[p] != nil:
		return sandbox.NetworkProxied
	}
	return sandbox.NetworkDenied
}

// Run carries a launch out, within the limits of this host. It fills in what the
// caller left open: memory, processes, disk, and the network of its purpose, unless
// the launch brings a proxy of its own.
//
// An error means that nothing ran; [sandbox.ErrBusy] that it may run later.
func (l *Launcher) Run(ctx context.Context, launch sandbox.Launch) (sandbox.Result, error) {
	job, err := l.Start(ctx, launch)
	if err != nil {
		return sandbox.Result{}, err
	}
	return job.Wait(), nil
}

// Start is Run without the wait for the end. Until its end the launch counts as one
// of those that run at once.
func (l *Launcher) Start(ctx context.Context, launch sandbox.Launch) (sandbox.Job, error) {
	if l.problem != nil {
		return nil, l.problem
	}
	leave, err := l.enter(ctx)
	if err != nil {
		return nil, fmt.Errorf("launch %s: %w", launch.Purpose, err)
	}
	job, err := l.backend.Start(ctx, l.filled(launch))
	if err != nil {
		leave()
		return nil, err
	}
	ended := &ended{Job: job, done: make(chan struct{})}
	go func() {
		defer close(ended.done)
		defer leave()
		ended.result = job.Wait()
		l.log(ctx, launch, ended.result)
	}()
	return ended, nil
}

// ended is a job whose place is free again when it is over.
type ended struct {
	sandbox.Job
	done   chan struct{}
	result sandbox.Result
}

// Wait returns when the whole tree is gone.
func (e *ended) Wait() sandbox.Result {
	<-e.done
	return e.result
}

// enter waits for a place.
func (l *Launcher) enter(ctx context.Context) (leave func(), err error) {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil, errors.New("the server is stopping")
	}
	l.jobs.Add(1)
	l.mu.Unlock()
	select {
	case l.queue <- struct{}{}:
	default:
		l.jobs.Done()
		return nil, sandbox.ErrBusy
	}
	select {
	case l.places <- struct{}{}:
		return func() { <-l.places; <-l.queue; l.jobs.Done() }, nil
	case <-ctx.Done():
		<-l.queue
		l.jobs.Done()
		return nil, context.Cause(ctx)
	}
}

func (l *Launcher) filled(launch sandbox.Launch) sandbox.Launch {
	for _, x := range []struct {
		to   *int64
		name config.Name
	}{{&launch.Memory, config.SandboxMemory}, {&launch.Processes, config.SandboxProcs}, {&launch.Disk, config.SandboxDisk}} {
		if *x.to == 0 {
			*x.to = l.o.Limits.Get(x.name)
		}
	}
	own := launch.Network.Mode == sandbox.NetworkProxied && launch.Network.Serve != nil
	if own || launch.Purpose == sandbox.Install && launch.Network.Mode == sandbox.NetworkOpen {
		return launch // a front of the caller's own, which reaches less than any network
	}
	launch.Network = sandbox.Network{Mode: l.Network(launch.Purpose)}
	if proxy := l.proxies[launch.Purpose]; proxy != nil {
		launch.Network.Serve = proxy.Serve
		launch.Env = append(append([]string(nil), launch.Env...), egress.Environment()...)
	}
	return launch
}

func (l *Launcher) log(ctx context.Context, launch sandbox.Launch, r sandbox.Result) {
	if l.o.Logger == nil {
		return
	}
	l.o.Logger.LogAttrs(ctx, slog.LevelInfo, "launch", slog.String("purpose", string(launch.Purpose)),
		slog.String("sandbox", l.backend.Name()), slog.String("ended", string(r.Ended)), slog.Int("exit", r.Exit),
		slog.Duration("wall", r.Wall), slog.Int64("stdout", r.Stdout.Total), slog.Int64("stderr", r.Stderr.Total))
}

// Close refuses what comes, waits for what runs, and gives the backend back. End
// the contexts of launches to end them first.
func (l *Launcher) Close() error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.jobs.Wait()
	if l.backend == nil {
		return nil
	}
	return l.backend.Close()
}
