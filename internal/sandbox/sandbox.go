// Package sandbox is the one seam through which a process runs for a model: what
// a launch is, what confines it, and what each host can confine.
//
// It starts no process itself. Backends are its children; the room launch finds
// those that this host has, tries them and enforces the operator's policy. Nothing else
// starts a process for a model (seed 1, "Launch backends").
//
// Start at [Launch], then [Backend].
package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Purpose says which of the callers asked for a launch (seed 1, "Launch
// backends"). It is written to logs and never changes what is confined.
type Purpose string

// The callers.
const (
	Script  Purpose = "script"  // a skill's bundled script
	Shell   Purpose = "shell"   // a line that a model wrote
	Syntax  Purpose = "syntax"  // a check of a file's syntax
	Probe   Purpose = "probe"   // a look at what an installed package offers
	Install Purpose = "install" // an installer that the host performs
	Canary  Purpose = "canary"  // the house's own trial of a backend
)

// Launch is one process tree, and everything that it may do. Its zero limits
// are no limits, so that a caller takes each from the table of limits.
//
// All paths are absolute and canonical: clean, and free of symbolic links in
// every part. A launch sees them under the same names as the host does.
type Launch struct {
	Purpose Purpose
	// Argv is the program, by absolute path, and its arguments. No shell reads
	// them.
	Argv []string
	// Line is a command line for the shell; exactly one of Argv and Line is set.
	Line string
	// Dir is the working directory. It is one of Write or below one.
	Dir string
	// Env is the whole environment, each "NAME=value": nothing is inherited.
	Env []string
	// Write are directories that may be read and written.
	Write []string
	// Read are files and directories that may be read beside the system's own.
	Read []string
	// Hide are directories that are empty for the launch unless Read or Write name
	// something below them: where the other skills are, for example.
	Hide []string
	// Network says what can be reached.
	Network Network

	// Deadline is the wall time after which the whole tree is killed.
	Deadline time.Duration
	// Output is how many bytes are kept of each stream; what is more is read,
	// counted and dropped from the middle.
	Output int64
	// Watch, if set, is told of what the launch writes to each stream as it comes,
	// beyond Output as well. It is called from one goroutine for each stream, must not
	// keep what it is given, and holds the launch up while it does not return.
	Watch func(s Stream, p []byte)
	// Memory, in bytes, bounds the whole tree where the backend can, else each
	// process.
	Memory int64
	// Processes bounds the processes and threads at one time.
	Processes int64
	// Disk, in bytes, bounds what Write directories and the private temporary one
	// grow to, and each file.
	Disk int64
}

// Stream is one of the two streams that a launch writes.
type Stream int

// The streams.
const (
	Stdout Stream = 1
	Stderr Stream = 2
)

// Gather reads a stream of the launch to its end and keeps of it what its Output
// says.
func (l Launch) Gather(s Stream, r io.Reader) Output {
	if l.Watch != nil {
		r = io.TeeReader(r, watch{l, s})
	}
	return Collect(r, l.Output)
}

// watch hands on what is read.
type watch struct {
	launch Launch
	stream Stream
}

func (w watch) Write(p []byte) (int, error) {
	w.launch.Watch(w.stream, p)
	return len(p), nil
}

// NetworkMode says what a launch can reach.
type NetworkMode int

// The modes. Denied is the zero value.
const (
	// NetworkDenied reaches nothing but its own loopback.
	NetworkDenied NetworkMode = iota
	// NetworkProxied reaches the proxy at [ProxyAddress] and nothing else.
	NetworkProxied
	// NetworkOpen shares the network of the host, its loopback included. Only the
	// operator's flag says so (seed 1, "Launch backends").
	NetworkOpen
)

// ProxyAddress is where a proxied launch finds its proxy, inside its own network.
const ProxyAddress = "127.0.0.1:3128"

// Network is what a launch can reach.
type Network struct {
	Mode NetworkMode
	// Serve answers the connections of a proxied launch on a listener that only it
	// reaches. It returns when the listener is closed, which the backend does when
	// the launch has ended.
	Serve func(context.Context, net.Listener)
}

// Ended says why a launch is over.
type Ended string

// The reasons.
const (
	Exited    Ended = "exited"    // by itself; Result.Exit holds its status
	Signalled Ended = "signalled" // by a signal that the host did not send
	TimedOut  Ended = "timed out" // at its deadline
	Cancelled Ended = "cancelled" // its caller is gone
	OutOfRoom Ended = "disk"      // it wrote more than Launch.Disk
	OutOfMem  Ended = "memory"    // its tree used more than Launch.Memory
	TooMany   Ended = "processes" // it had more than Launch.Processes, where only counting bounds them
)

// Result is how a launch went. When it is handed out the whole tree is gone.
type Result struct {
	Ended Ended
	// Exit is the status of the first process; 128 and the signal's number if one
	// ended it.
	Exit   int
	Signal string // its name, such as "kill" or "term"; empty otherwise
	Stdout Output
	Stderr Output
	// Wall is the time from the start to the end of the whole tree; Killing is the
	// part of it between the decision to kill and the end.
	Wall, Killing time.Duration
}

// OK reports an end by itself with status 0.
func (r Result) OK() bool { return r.Ended == Exited && r.Exit == 0 }

// Backend confines launches in one way. It is safe for concurrent use.
type Backend interface {
	// Name is short and stable: "native", "bwrap".
	Name() string
	// Capabilities are what the backend was found to confine on this host. They
	// are the only source of every sentence about confinement.
	Capabilities() Capabilities
	// Start starts a launch. An error means that nothing of it ran: an
	// [*Unavailable] names the step that failed and what would change it.
	//
	// When ctx ends the whole tree is killed.
	Start(ctx context.Context, l Launch) (Job, error)
	// Close ends everything that the backend holds ready. It does not wait for
	// launches.
	Close() error
}

// Job is a launch under way.
type Job interface {
	// Wait returns when the whole tree is gone. It may be called more than once.
	Wait() Result
	// Stop kills the whole tree; Wait then returns.
	Stop()
}

// Run starts a launch and waits for its end.
func Run(ctx context.Context, b Backend, l Launch) (Result, error) {
	job, err := b.Start(ctx, l)
	if err != nil {
		return Result{}, err
	}
	return job.Wait(), nil
}

// Unavailable says why a backend cannot run anything here, or could not run one
// launch.
type Unavailable struct {
	Backend string
	// Step is what was tried, such as "make a user namespace".
	Step string
	// Fix is a sentence that says what would change it, with the command; empty
	// if nothing is known.
	Fix string
	Err error
}

// Error is one line.
func (e *Unavailable) Error() string {
	text := "sandbox " + e.Backend + ": " + e.Step
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	if e.Fix != "" {
		text += "; " + e.Fix
	}
	return text
}

// Unwrap is the cause.
func (e *Unavailable) Unwrap() error { return e.Err }

// ErrBusy says that as many launches run and wait as may.
var ErrBusy = errors.New("too many launches wait already: try again in a moment")

// Check finds what is wrong with a launch, which is a defect of its caller. Each
// backend calls it before anything else.
func (l Launch) Check() error {
	if err := l.check(); err != nil {
		return fmt.Errorf("launch %s: %w", l.Purpose, err)
	}
	return nil
}

func (l Launch) check() error {
	switch {
	case (len(l.Argv) == 0) == (l.Line == ""):
		return errors.New("exactly one of an argument vector and a line is needed")
	case len(l.Argv) > 0 && !filepath.IsAbs(l.Argv[0]):
		return fmt.Errorf("the program %q is not an absolute path", l.Argv[0])
	case l.Dir == "":
		return errors.New("there is no working directory")
	case !slices.ContainsFunc(l.Write, func(w string) bool { return Within(w, l.Dir) }):
		return fmt.Errorf("the working directory %s may not be written", l.Dir)
	case l.Network.Mode == NetworkProxied && l.Network.Serve == nil:
		return errors.New("a proxied network needs a proxy")
	}
	for _, arg := range append(slices.Clone(l.Argv), l.Line) {
		if strings.IndexByte(arg, 0) >= 0 {
			return errors.New("an argument holds a NUL byte")
		}
	}
	for _, e := range l.Env {
		if name, _, found := strings.Cut(e, "="); !found || name == "" || strings.IndexByte(e, 0) >= 0 {
			return fmt.Errorf("the variable %q is not NAME=value", name)
		}
	}
	for _, p := range slices.Concat([]string{l.Dir}, l.Write, l.Read, l.Hide) {
		if !filepath.IsAbs(p) || filepath.Clean(p) != p || p == string(filepath.Separator) {
			return fmt.Errorf("the path %q is not absolute and clean, or is the root", p)
		}
	}
	return nil
}

// Within reports whether a clean path is dir or below it. It looks at no disk.
func Within(dir, path string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, string(filepath.Separator))+string(filepath.Separator))
}
