package bwrap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/sandbox/program"
	"github.com/metier-run/metier/internal/sandbox/seccomp"
)

// Backend runs launches under one bubblewrap. Make it with [Find].
type Backend struct {
	path    string
	version string
	setUp   time.Duration
	shell   []string
	system  program.System
	filter  []byte
	users   *program.Users // nil unless the host is root
	owners  owners
}

// Name is [sandbox.Backend.Name].
func (b *Backend) Name() string { return Name }

// Close is [sandbox.Backend.Close].
func (b *Backend) Close() error { return b.owners.close() }

// insideID is the user that a launch believes to be when the host is root.
const insideID = 1000

// launch is one launch on its way.
type launch struct {
	b       *Backend
	recipe  recipe
	held    []program.Held
	user    uint32
	files   []*os.File // given to bubblewrap
	filter  *os.File   // what is written here is the filter, which lets the program run
	info    *os.File   // where bubblewrap says which process is the first
	first   *program.Process
	reached bool // all is set up
	err     error
}

// Start is [sandbox.Backend.Start].
func (b *Backend) Start(ctx context.Context, l sandbox.Launch) (sandbox.Job, error) {
	if err := l.Check(); err != nil {
		return nil, err
	}
	if l.Network.Mode == sandbox.NetworkProxied {
		return nil, unavailable("limit the network to domains", errors.New("bubblewrap hands out no listener from inside"), "use the native backend for that, or deny the network")
	}
	x := &launch{b: b}
	if err := x.prepare(l); err != nil {
		x.release()
		return nil, unavailable("prepare a launch", err, program.Fix(err.Error()))
	}
	job, err := sandbox.StartProcess(ctx, l, x.command(ctx))
	if err != nil {
		x.release()
		return nil, err
	}
	if x.reached {
		return job, nil
	}
	// Bubblewrap ended before the program began, and what it said is why; or it has
	// to end.
	job.Stop()
	said := string(job.Wait().Stderr.Head)
	cause := program.LastLine(said, "it ended without a word")
	if x.err != nil {
		cause = x.err.Error()
	}
	if err := ctx.Err(); err != nil {
		return nil, unavailable("set up a sandbox", err, "")
	}
	return nil, unavailable("set up a sandbox", errors.New(cause), program.Fix(cause))
}

func (x *launch) prepare(l sandbox.Launch) error {
	places, err := program.Places(l)
	if err != nil {
		return err
	}
	vector, err := l.Vector(x.b.shell)
	if err != nil {
		return err
	}
	if x.held, err = program.Hold(places); err != nil {
		return err
	}
	x.recipe = recipe{system: x.b.system, places: places, launch: l, vector: vector, uid: os.Getuid(), gid: os.Getgid()}
	if x.b.users != nil {
		if x.user, err = x.b.users.Take(); err != nil {
			return err
		}
		x.recipe.as, x.recipe.late, x.recipe.uid, x.recipe.gid = true, true, insideID, insideID
	}
	x.recipe.etc = program.Etc(x.recipe.uid, x.recipe.gid, l.Network.Mode)
	return x.open()
}

// open makes the descriptors that bubblewrap gets, in the order of the recipe.
func (x *launch) open() error {
	fd := order()
	args, texts, binds := x.recipe.arguments(fd)
	var data []byte
	for _, a := range args {
		data = append(append(data, a...), 0)
	}
	x.files = make([]*os.File, 3, 3+len(texts)+len(binds))
	var err error
	if x.info, x.files[1], err = os.Pipe(); err != nil {
		return err
	}
	if x.files[2], x.filter, err = os.Pipe(); err != nil {
		return err
	}
	if _, err = x.filter.Write(x.b.filter[:torn]); err != nil {
		return err
	}
	if x.files[0], err = memory("arguments", data); err != nil {
		return err
	}
	for _, text := range texts {
		f, err := memory("file", []byte(text))
		if err != nil {
			return err
		}
		x.files = append(x.files, f)
	}
	return x.pass(binds)
}

// torn is how much of the filter bubblewrap gets at first. It reads the rest when all
// else is done, and waits for it; should the host die meanwhile, it finds half an
// instruction and gives up.
const torn = 4

// pass adds handles of places, which stay open for what mounts them.
func (x *launch) pass(binds []program.Place) error {
	for _, p := range binds {
		for _, h := range x.held {
			if h.Path != p.Path {
				continue
			}
			fd, err := unix.FcntlInt(h.File.Fd(), unix.F_DUPFD_CLOEXEC, 0)
			if err != nil {
				return err
			}
			x.files = append(x.files, os.NewFile(uintptr(fd), p.Path))
		}
	}
	return nil
}

// memory is a file in memory that is read from its start.
func memory(name string, data []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make a file in memory: %w", err)
	}
	f := os.NewFile(uintptr(fd), name)
	if _, err := f.WriteAt(data, 0); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("write a file in memory: %w", err)
	}
	return f, nil
}

func (x *launch) command(ctx context.Context) sandbox.Command {
	cmd := sandbox.Command{
		Backend:    Name,
		Path:       x.b.path,
		Args:       x.recipe.command(x.b.path, order()),
		Dir:        "/",
		User:       x.runsAs(),
		ExtraFiles: x.files,
		Contained:  true,
		Started:    func(*os.Process) error { return x.started(ctx) },
		Kill:       x.kill,
		Finish:     x.finish,
	}
	if limit := x.recipe.launch.Memory; limit > 0 {
		cmd.Watch = func(ctx context.Context) sandbox.Ended {
			if x.first == nil {
				return ""
			}
			return program.Memory(ctx, x.first.PID, limit)
		}
	}
	return cmd
}

// runsAs is the user of bubblewrap; nil is the host's own.
func (x *launch) runsAs() *sandbox.User {
	if x.b.users == nil {
		return nil
	}
	return &sandbox.User{UID: x.user, GID: x.user}
}

// started finishes what bubblewrap cannot do and lets the program run. When
// bubblewrap ends before that, there is no error: what it said comes with its result.
func (x *launch) started(ctx context.Context) error {
	x.closeFiles() // so that the end of bubblewrap is seen
	end := time.Now().Add(x.b.setUp)
	if d, ok := ctx.Deadline(); ok && d.Before(end) {
		end = d
	}
	if err := x.await(end); err != nil {
		if !errors.Is(err, errEnded) {
			x.err = err
			x.kill()
		}
		return nil
	}
	x.reached = true
	return nil
}

// errEnded says that bubblewrap has ended or is about to.
var errEnded = errors.New("bubblewrap has ended")

func (x *launch) await(end time.Time) error {
	if err := x.info.SetReadDeadline(end); err != nil {
		return err
	}
	text, err := io.ReadAll(x.info)
	if err != nil {
		return fmt.Errorf("wait for the first process: %w", err)
	}
	pid, err := childPID(text)
	if err != nil {
		return errEnded
	}
	if x.first, err = program.HoldProcess(pid); err != nil {
		return errEnded
	}
	if err := x.blocked(end); err != nil {
		return err
	}
	if err := program.Apply(program.Limits(x.recipe.launch), pid, x.runsAs()); err != nil {
		return err
	}
	if x.recipe.late {
		if err := x.mountLate(pid); err != nil {
			return err
		}
	}
	if _, err := x.filter.Write(x.b.filter[torn:]); err != nil {
		return errEnded
	}
	return x.filter.Close()
}

// blocked waits until the first process waits for its filter, which it does when
// all namespaces and mounts are made. It is seen in the call that it is in; there
// is nothing that would tell of it.
func (x *launch) blocked(end time.Time) error {
	const first, longest = 250 * time.Microsecond, 5 * time.Millisecond
	want := fmt.Sprintf("%d 0x%x ", unix.SYS_READ, order().filter)
	for pause := first; ; pause = min(2*pause, longest) {
		text, err := os.ReadFile("/proc/" + strconv.Itoa(x.first.PID) + "/syscall")
		switch {
		case err == nil && len(text) > len(want) && string(text[:len(want)]) == want:
			return nil
		case x.first.Gone(0):
			return errEnded
		case errors.Is(err, os.ErrPermission), errors.Is(err, os.ErrNotExist):
			return fmt.Errorf("look at the first process: %w", err)
		case time.Now().After(end):
			return fmt.Errorf("set up a sandbox: not done after %s: raise sandbox-set-up", x.b.setUp)
		}
		time.Sleep(pause)
	}
}

func (x *launch) kill() {
	if x.first != nil {
		x.first.Kill()
	}
}

// goneWait is how long the end of a killed tree may take.
const goneWait = 5 * time.Second

func (x *launch) finish(r *sandbox.Result) {
	if x.first != nil {
		x.first.Gone(goneWait)
	}
	program.Signalled(r)
	x.release()
}

// release gives back what the launch held; nothing of it runs any more.
func (x *launch) release() {
	x.closeFiles()
	for _, f := range []*os.File{x.filter, x.info} {
		if f != nil {
			_ = f.Close()
		}
	}
	program.Release(x.held)
	if x.first != nil {
		x.first.Close()
	}
	if x.user != 0 {
		x.b.users.Return(x.user)
	}
}

// closeFiles closes what bubblewrap has its own of.
func (x *launch) closeFiles() {
	for i, f := range x.files {
		if f != nil {
			_ = f.Close()
		}
		x.files[i] = nil
	}
}

// filterFor is the filter of system calls; 1 is bubblewrap's own process inside.
func filterFor() ([]byte, error) {
	prog, err := seccomp.Program(seccomp.Profile{Arch: runtime.GOARCH, Guarded: []int{1}, Sockets: true, Metadata: true, Namespaced: true, Tkill: true})
	if err != nil {
		return nil, err
	}
	return seccomp.Bytes(prog), nil
}
