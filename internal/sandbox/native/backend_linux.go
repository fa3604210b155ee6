package native

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"golang.org/x/sys/unix"

	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/sandbox/seccomp"
)

// Backend is the native backend.
type Backend struct {
	o      Options
	filter []byte
	users  users
	groups *groups
	caps   sandbox.Capabilities

	mu         sync.Mutex
	spawner    *spawner
	warm       *cell
	warming    bool           // one is being made
	background sync.WaitGroup // makes the next cell, removes control groups
	slots      []bool
	owners     map[owner]*os.File
	closed     bool
}

var _ sandbox.Backend = (*Backend)(nil)

// newBackend is a backend that was not tried yet, and does not know what it can do;
// [Find] makes one that was.
func newBackend(o Options) (*Backend, error) {
	b := &Backend{o: o, owners: map[owner]*os.File{}}
	if b.o.Exe == "" {
		// Not its path: an upgrade may have put another version there.
		b.o.Exe = "/proc/self/exe"
	}
	program, err := seccomp.Program(seccomp.Profile{
		Arch: runtime.GOARCH, Guarded: []int{1}, Sockets: true, Metadata: true, Namespaced: true,
	})
	if err != nil {
		return nil, unavailable("make a system call filter", err, "Metier's sandbox knows amd64 and arm64 only")
	}
	b.filter = seccomp.Bytes(program)
	if b.users, err = findUsers(); err != nil {
		return nil, unavailable("find a user for launches", err, "run Metier as an ordinary user")
	}
	b.groups = findGroups()
	return b, nil
}

// Name is "native".
func (*Backend) Name() string { return Name }

// Capabilities are what was found.
func (b *Backend) Capabilities() sandbox.Capabilities { return b.caps }

// Start starts a launch.
func (b *Backend) Start(ctx context.Context, l sandbox.Launch) (sandbox.Job, error) {
	if err := l.Check(); err != nil {
		return nil, err
	}
	began := time.Now()
	j, err := b.startIn(ctx, l, began)
	if isGone(err) && ctx.Err() == nil {
		// Something ended the init while it waited; the next one is new.
		j, err = b.startIn(ctx, l, began)
	}
	if err != nil {
		b.rewarm()
		return nil, explain(err)
	}
	return j, nil
}

func (b *Backend) startIn(ctx context.Context, l sandbox.Launch, began time.Time) (*job, error) {
	c, err := b.take(ctx, l.Network.Mode == sandbox.NetworkOpen)
	if err != nil {
		return nil, err
	}
	j, err := b.launch(ctx, c, l, began)
	if err != nil {
		b.release(c)
		return nil, err
	}
	return j, nil
}

// isGone reports whether init ended without a word before the program ran.
func isGone(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET) || errors.Is(err, errGone)
}

// launch gives a cell its order and waits until the program runs.
func (b *Backend) launch(ctx context.Context, c *cell, l sandbox.Launch, began time.Time) (*job, error) {
	o, err := b.order(l)
	if err != nil {
		return nil, err
	}
	seen, err := b.mounts(c, l, &o)
	defer seen.close()
	if err != nil {
		return nil, err
	}
	if err := c.group.limit(l); err != nil {
		return nil, step(err, "limit a control group")
	}
	o.Sample = l.Memory > 0 && !c.group.counts()
	j, err := newJob(b, c, l, began)
	if err != nil {
		return nil, err
	}
	return j, j.begin(ctx, o, seen.fds(), b.o.SetUp)
}

// slack is how much longer than its deadline a process may compute: the deadline
// ends it, this limit is behind it.
const slack = 10 * time.Second

// The shares of the bounded memory that the private temporary directories get.
const (
	tmpShare    = 2
	sharedShare = 4
	smallTmp    = 64 << 20
)

func (b *Backend) order(l sandbox.Launch) (order, error) {
	argv, err := l.Vector(sandbox.FindShell())
	if err != nil {
		return order{}, err
	}
	o := order{
		Argv: argv, Env: l.Env, Dir: l.Dir, Hide: l.Hide, Filter: b.filter,
		Proxied: l.Network.Mode == sandbox.NetworkProxied, OpenNet: l.Network.Mode == sandbox.NetworkOpen,
		Memory: l.Memory, Processes: l.Processes, Disk: l.Disk,
		Tmp: smallTmp, Shared: smallTmp,
	}
	if l.Deadline > 0 {
		o.CPU = int64((l.Deadline + slack) / time.Second)
	}
	if l.Memory > 0 {
		o.Tmp, o.Shared = l.Memory/tmpShare, l.Memory/sharedShare
	}
	if l.Disk > 0 {
		o.Tmp = min(o.Tmp, l.Disk)
	}
	return o, nil
}

// take is a cell: the one that waits, or a new one.
func (b *Backend) take(ctx context.Context, shareNetwork bool) (*cell, error) {
	b.mu.Lock()
	closed, warm := b.closed, b.warm
	if !shareNetwork {
		b.warm = nil
	}
	b.mu.Unlock()
	switch {
	case closed:
		return nil, step(os.ErrClosed, "start a launch")
	case warm != nil && !shareNetwork:
		return warm, nil
	}
	return b.spawn(ctx, shareNetwork)
}

// spawn clones a cell and waits until it is ready.
func (b *Backend) spawn(ctx context.Context, shareNetwork bool) (*cell, error) {
	slot, err := b.slot()
	if err != nil {
		return nil, err
	}
	u, g := b.users.outer(slot)
	reply, fds, err := b.ask(spawnRequest{OuterU: u, OuterG: g, ShareNetwork: shareNetwork})
	var c *cell
	if err == nil {
		c, err = newCell(reply, fds, slot)
	}
	if err != nil {
		b.freeSlot(slot)
		return nil, err
	}
	ready, stop := context.WithTimeoutCause(ctx, b.o.SetUp, errSlow)
	defer stop()
	r, fds, err := c.hear(ready)
	if err == nil {
		err = c.ready(r, fds)
	}
	if err == nil {
		c.group, err = b.groups.make(c.pid)
	}
	if err != nil {
		b.release(c)
		return nil, err
	}
	return c, nil
}

// running is the spawner. It is started if there is none.
func (b *Backend) running() (*spawner, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, step(os.ErrClosed, "start a launch")
	}
	if b.spawner == nil {
		s, err := newSpawner(b.o.Exe)
		if err != nil {
			return nil, err
		}
		b.spawner = s
	}
	return b.spawner, nil
}

// slot takes the first user that no launch has.
func (b *Backend) slot() (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	slot := slices.Index(b.slots, false)
	if slot < 0 {
		slot = len(b.slots)
		b.slots = append(b.slots, false)
	}
	if slot >= b.users.count {
		return 0, step(fmt.Errorf("%d launches run at once", slot), "find a free user")
	}
	b.slots[slot] = true
	return slot, nil
}

// ask has the spawner carry a request out. One that does not answer is given up
// and another one asked, so that its death costs nobody a launch.
func (b *Backend) ask(r spawnRequest) (spawnReply, []int, error) {
	reply, fds, err := b.askOnce(r)
	if errors.Is(err, errSpawner) {
		return b.askOnce(r)
	}
	return reply, fds, err
}

func (b *Backend) askOnce(r spawnRequest) (spawnReply, []int, error) {
	s, err := b.running()
	if err != nil {
		return spawnReply{}, nil, err
	}
	reply, fds, err := s.ask(r, b.o.SetUp)
	if !errors.Is(err, errSpawner) {
		return reply, fds, err
	}
	b.mu.Lock()
	mine := b.spawner == s
	if mine {
		b.spawner = nil
	}
	b.mu.Unlock()
	if mine {
		s.kill()
	}
	return reply, nil, err
}

func (b *Backend) freeSlot(slot int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.slots[slot] = false
}

// release ends a cell and frees its user. What takes the kernel longer follows in
// the background, and Close waits for it.
func (b *Backend) release(c *cell) {
	c.end()
	b.freeSlot(c.slot)
	b.later(c.settle)
}

// releaseLater is release in the background.
func (b *Backend) releaseLater(c *cell) { b.later(func() { b.release(c) }) }

// later does something in the background, or now when the backend was closed.
func (b *Backend) later(do func()) {
	b.mu.Lock()
	closed := b.closed
	if !closed {
		b.background.Go(do)
	}
	b.mu.Unlock()
	if closed {
		do()
	}
}

// rewarm has the next cell made when a launch has ended, so that it takes no time
// from that one's program. One is made at a time.
func (b *Backend) rewarm() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.o.Cold || b.closed || b.warm != nil || b.warming {
		return
	}
	b.warming = true
	b.background.Go(func() {
		c, err := b.spawn(context.Background(), false)
		b.mu.Lock()
		b.warming = false
		keep := err == nil && !b.closed
		if keep {
			b.warm = c
		}
		b.mu.Unlock()
		if err == nil && !keep { // with an error the next launch meets and reports it
			b.release(c)
		}
	})
}

// Close ends what waits. Launches that run are ended by their own contexts.
func (b *Backend) Close() error {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.background.Wait()
	b.mu.Lock()
	s, warm, owners := b.spawner, b.warm, b.owners
	b.spawner, b.warm, b.owners = nil, nil, map[owner]*os.File{}
	b.mu.Unlock()
	if warm != nil {
		b.release(warm)
	}
	for _, f := range owners {
		_ = f.Close()
	}
	if s == nil {
		return nil
	}
	return s.close()
}

// expect is the error in a report that is not of a kind.
func (r report) expect(kind string) error {
	switch {
	case r.Fault != nil:
		return &stepError{step: r.Fault.Step, err: r.Fault.err()}
	case r.Kind != kind:
		return fmt.Errorf("init reported %q where %q was due", r.Kind, kind)
	}
	return nil
}

func parseReport(data, oob []byte) (report, []int, error) {
	fds, err := descriptors(oob)
	if err == nil && len(data) == 0 {
		err = errGone
	}
	var r report
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err != nil {
		for _, fd := range fds {
			_ = unix.Close(fd)
		}
		return r, nil, err
	}
	return r, fds, nil
}

// listener makes a listener of a descriptor that init sent.
func listener(fds []int) (net.Listener, error) {
	if len(fds) != 1 {
		return nil, errors.New("the listener did not come along")
	}
	f := os.NewFile(uintptr(fds[0]), "proxy")
	defer f.Close()
	return net.FileListener(f)
}
