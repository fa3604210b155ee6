package native

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/sandbox/seccomp"
)

// Landlock is the backend that needs no namespaces.
type Landlock struct {
	o      Options
	users  users
	groups *groups
	caps   sandbox.Capabilities
	// own says that each launch gets a user of its own; why says why not, of a host
	// that is root.
	own bool
	why string
	// filterFD says that metadata may not be changed by descriptor either: as root's
	// own user a launch owns the files of the system.
	filterFD bool

	// base has the spawner, and does what may be done later.
	base *Backend

	mu    sync.Mutex
	slots map[int]bool
}

var _ sandbox.Backend = (*Landlock)(nil)

// landlockUsers is how far the users of this backend lie from those of the native
// one, so that both can be used at once.
const landlockUsers = 0x40000

func newLandlock(o Options) (*Landlock, error) {
	if err := landlockHere(); err != nil {
		return nil, err
	}
	if o.Exe == "" {
		// Not its path: an upgrade may have put another version there.
		o.Exe = "/proc/self/exe"
	}
	b := &Landlock{o: o, base: &Backend{o: o}, slots: map[int]bool{}}
	if _, err := b.filter(nil, false); err != nil {
		return nil, landlockUnavailable("make a system call filter", err, "Metier's sandbox knows amd64 and arm64 only")
	}
	if os.Geteuid() == 0 {
		b.findOwn()
	}
	b.groups = findGroups()
	b.caps = b.found()
	return b, nil
}

// findOwn finds out whether launches of a host that is root can have users of
// their own.
func (b *Landlock) findOwn() {
	var err error
	if b.users, err = findUsers(); err == nil && b.users.base == preferredBase {
		b.users.base += landlockUsers
	}
	dir, lacks := passable(b.o.Scratch), lacking()
	switch {
	case err != nil:
		b.why = err.Error()
	case lacks != "":
		b.why = "Metier lacks " + lacks
	case dir != "":
		b.why = "no other one can pass " + dir
	}
	b.own = b.why == ""
	b.filterFD = !b.own
}

// lacking names a capability that is needed to give a launch a user of its own, and
// that this process has not.
func lacking() string {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var have [2]unix.CapUserData
	if unix.Capget(&header, &have[0]) != nil {
		return "its capabilities"
	}
	for _, c := range []struct {
		number uint
		name   string
	}{
		// The last two so that the host can look at and take away what is another user's.
		{unix.CAP_SETUID, "CAP_SETUID"},
		{unix.CAP_SETGID, "CAP_SETGID"},
		{unix.CAP_CHOWN, "CAP_CHOWN"},
		{unix.CAP_DAC_OVERRIDE, "CAP_DAC_OVERRIDE"},
		{unix.CAP_FOWNER, "CAP_FOWNER"},
	} {
		if have[0].Effective&(1<<c.number) == 0 {
			return c.name
		}
	}
	return ""
}

// filter is the system call filter for a launch whose supervisor has these threads,
// and that has an open network or none.
func (b *Landlock) filter(guarded []int, open bool) ([]byte, error) {
	program, err := seccomp.Program(seccomp.Profile{Arch: runtime.GOARCH, Guarded: guarded, Sockets: open, Metadata: b.own})
	if err != nil {
		return nil, err
	}
	return seccomp.Bytes(program), nil
}

// Name is "landlock".
func (*Landlock) Name() string { return LandlockName }

// Capabilities are what was found.
func (b *Landlock) Capabilities() sandbox.Capabilities { return b.caps }

// Start starts a launch. The files in Write directories that are the host's own are
// the launch's until it ends, where launches have users of their own.
func (b *Landlock) Start(ctx context.Context, l sandbox.Launch) (sandbox.Job, error) {
	if err := l.Check(); err != nil {
		return nil, err
	}
	if l.Network.Mode == sandbox.NetworkProxied {
		return nil, landlockUnavailable("limit the network to named domains", errors.New("Landlock knows ports and no names"),
			"use a sandbox of tier full for domains, or deny or open the network")
	}
	began := time.Now()
	c, err := b.spawn(ctx)
	if err != nil {
		return nil, explainLandlock(err)
	}
	j, err := b.launch(ctx, c, l, began)
	if err != nil {
		b.release(c)
		return nil, explainLandlock(err)
	}
	return j, nil
}

// launch gives a supervisor its order and waits until the program runs.
func (b *Landlock) launch(ctx context.Context, c *cell, l sandbox.Launch, began time.Time) (*job, error) {
	o, err := b.order(c, l)
	if err != nil {
		return nil, err
	}
	parts, err := holdParts(l, &o)
	defer parts.close()
	if err != nil {
		return nil, err
	}
	if b.own {
		if c.kept.given, err = parts.give(o, b.idle, c.kept.uid); err != nil {
			return nil, err
		}
	}
	if err := c.group.limit(l); err != nil {
		return nil, step(err, "limit a control group")
	}
	j, err := newJob(b, c, l, began)
	if err != nil {
		return nil, err
	}
	return j, j.begin(ctx, o, parts.fds(), b.o.SetUp)
}

func (b *Landlock) order(c *cell, l sandbox.Launch) (order, error) {
	guarded, err := threads(c.pid)
	if err != nil {
		return order{}, step(err, "list the threads of the supervisor")
	}
	filter, err := b.filter(guarded, l.Network.Mode == sandbox.NetworkOpen)
	if err != nil {
		return order{}, step(err, "make a system call filter")
	}
	argv, err := l.Vector(sandbox.FindShell())
	if err != nil {
		return order{}, step(err, "find a shell")
	}
	o := order{
		Argv: argv, Env: l.Env, Dir: l.Dir, Hide: l.Hide, Filter: filter, OpenNet: l.Network.Mode == sandbox.NetworkOpen,
		Memory: l.Memory, Processes: l.Processes, Disk: l.Disk,
		Sample: l.Memory > 0 && !c.group.counts(), Count: !b.own && l.Processes > 0 && b.groups.pids == "",
		OwnUser: b.own, FilterFD: b.filterFD,
	}
	if l.Deadline > 0 {
		o.CPU = int64((l.Deadline + slack) / time.Second)
	}
	return o, nil
}

// threads are the ids of a process and of its threads.
func threads(pid int) ([]int, error) {
	entries, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(pid), "task"))
	if err != nil {
		return nil, err
	}
	ids := []int{pid}
	for _, e := range entries {
		if id, err := strconv.Atoi(e.Name()); err == nil && id != pid {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// stepKeep is the step in which a supervisor is started.
const stepKeep = "start a supervisor"

// spawn starts a supervisor and waits until it is ready.
func (b *Landlock) spawn(ctx context.Context) (*cell, error) {
	slot, err := b.slot()
	if err != nil {
		return nil, err
	}
	r := spawnRequest{Keep: true}
	if b.own {
		r.OuterU, r.OuterG = b.users.outer(slot)
	}
	reply, fds, err := b.base.ask(r)
	var c *cell
	if err == nil {
		c, err = newKeptCell(reply, fds, slot, r.OuterU)
	}
	if err != nil {
		b.freeSlot(slot)
		return nil, err
	}
	ready, stop := context.WithTimeoutCause(ctx, b.o.SetUp, errSlow)
	defer stop()
	said, _, err := c.hear(ready)
	if err == nil {
		err = said.expect(isReady)
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

// slot takes a free slot. Another host on this machine has slots of the same users;
// they begin elsewhere.
func (b *Landlock) slot() (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	first := os.Getpid() * hostStride % mostUsers
	for i := range mostUsers {
		slot := (first + i) % mostUsers
		if !b.slots[slot] {
			b.slots[slot] = true
			return slot, nil
		}
	}
	return 0, step(fmt.Errorf("%d launches run at once", mostUsers), "find a free user")
}

// idle reports whether a user is one that launches have and that none has now.
func (b *Landlock) idle(uid int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	slot := uid - b.users.base
	return slot >= 0 && slot < mostUsers && !b.slots[slot]
}

// hostStride is how many users lie between the first ones of hosts that were
// started one after the other.
const hostStride = 67

func (b *Landlock) freeSlot(slot int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.slots, slot)
}

// release ends a launch, takes its files back and frees its user.
func (b *Landlock) release(c *cell) {
	c.end()
	b.freeSlot(c.slot)
	b.base.later(c.settle)
}

// releaseLater is release: the launch is over when its files are the host's again.
func (b *Landlock) releaseLater(c *cell) { b.release(c) }

func (*Landlock) rewarm() {} // none waits

// Close ends the spawner. Launches that run are ended by their own contexts.
func (b *Landlock) Close() error { return b.base.Close() }
