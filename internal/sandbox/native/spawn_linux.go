package native

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// spawner is the host's end of the process that clones.
type spawner struct {
	mu   sync.Mutex // one request at a time
	conn *os.File
	cmd  *exec.Cmd
}

// newSpawner starts it. It ends when the host closes its socket or dies.
func newSpawner(exe string) (*spawner, error) {
	binary, err := startable(exe)
	if err != nil {
		return nil, step(err, "open %s", exe)
	}
	defer binary.Close()
	ours, theirs, err := pair()
	if err != nil {
		return nil, step(err, "make a socket")
	}
	child := os.NewFile(uintptr(theirs), "control")
	defer child.Close()
	s := &spawner{conn: os.NewFile(uintptr(ours), "spawner")}
	s.cmd = &exec.Cmd{
		Path: fmt.Sprintf("/proc/self/fd/%d", binary.Fd()), Args: []string{spawnerName}, Env: []string{}, Dir: "/",
		ExtraFiles: []*os.File{child}, SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if err := s.cmd.Start(); err != nil {
		_ = s.conn.Close()
		return nil, step(err, "start the spawner")
	}
	return s, nil
}

// startable opens a binary so that any user can start it. One that only its owner
// may is copied into memory: an init is another user than the host when the host
// is root.
func startable(exe string) (*os.File, error) {
	f, err := os.Open(exe)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&0o001 != 0 {
		return f, errors.Join(err)
	}
	defer f.Close()
	fd, err := unix.MemfdCreate("metier", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) { // a kernel before 6.3 knows no MFD_EXEC
		fd, err = unix.MemfdCreate("metier", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return nil, err
	}
	return sealedCopy(os.NewFile(uintptr(fd), exe), f)
}

func sealedCopy(to, from *os.File) (*os.File, error) {
	_, err := to.ReadFrom(from)
	if err == nil {
		_, err = unix.FcntlInt(to.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_WRITE|unix.F_SEAL_GROW|unix.F_SEAL_SHRINK|unix.F_SEAL_SEAL)
	}
	if err != nil {
		_ = to.Close()
		return nil, err
	}
	return to, nil
}

// errSpawner says that the spawner did not answer, whatever was asked.
var errSpawner = errors.New("the spawner does not answer")

// ask sends a request and waits for its answer, at most for a time.
func (s *spawner) ask(r spawnRequest, wait time.Duration) (spawnReply, []int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var reply spawnReply
	fd := int(s.conn.Fd())
	err := send(fd, r)
	if err == nil {
		err = readable(fd, wait)
	}
	var fds []int
	if err == nil {
		fds, err = receive(fd, &reply)
	}
	if err != nil {
		return reply, nil, step(fmt.Errorf("%w: %w", errSpawner, err), "ask the spawner")
	}
	if reply.Fault != nil {
		return reply, nil, &stepError{step: reply.Fault.Step, err: reply.Fault.err()}
	}
	return reply, fds, nil
}

// readable waits until a descriptor can be read.
func readable(fd int, wait time.Duration) error {
	end := time.Now().Add(wait)
	for {
		left := time.Until(end)
		if left <= 0 {
			return os.ErrDeadlineExceeded
		}
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(poll, int(left.Milliseconds())+1)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return err
		case n > 0:
			return nil
		}
	}
}

// kill ends a spawner that may hang.
func (s *spawner) kill() {
	_ = s.cmd.Process.Kill() // it may be gone
	_ = s.close()            // its status says nothing now
}

// close ends the spawner. What it cloned goes on.
func (s *spawner) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.conn.Close()
	if waitErr := s.cmd.Wait(); err == nil && waitErr != nil {
		err = waitErr
	}
	return err
}

// cell is an init that was cloned: namespaces without a program yet.
type cell struct {
	pid   int
	pidfd *os.File
	conn  *net.UnixConn
	slot  int
	// noProc says that /proc is not to be had in it.
	noProc bool
	group  *group
	kept   *kept // of a supervisor; nil with namespaces
	// mounts is the mount namespace of init, held until nobody waits.
	mounts *os.File
}

// ready takes what init sends when it is ready.
func (c *cell) ready(r report, fds []int) error {
	err := r.expect(isReady)
	if err == nil && len(fds) != 1 {
		err = errors.New("the mount namespace did not come along")
	}
	if err != nil {
		for _, fd := range fds {
			_ = unix.Close(fd)
		}
		return err
	}
	c.noProc, c.mounts = r.NoProc, os.NewFile(uintptr(fds[0]), "mounts")
	return nil
}

// settle gives back what takes time to give back. The processes are gone.
func (c *cell) settle() {
	if c.mounts != nil {
		_ = c.mounts.Close()
	}
	c.group.remove()
}

// newCell takes the descriptors of a reply.
func newCell(reply spawnReply, fds []int, slot int) (*cell, error) {
	if len(fds) != 2 {
		for _, fd := range fds {
			_ = unix.Close(fd)
		}
		return nil, errors.New("the spawner's answer lacks its descriptors")
	}
	_ = unix.SetNonblock(fds[0], true) // so that Go waits for its end without a thread
	socket := os.NewFile(uintptr(fds[1]), "init")
	defer socket.Close()
	c := &cell{pid: reply.PID, pidfd: os.NewFile(uintptr(fds[0]), "init"), slot: slot}
	conn, err := net.FileConn(socket)
	if err != nil {
		_ = c.pidfd.Close()
		return nil, err
	}
	c.conn = conn.(*net.UnixConn)
	return c, nil
}

// hear waits for the next report of init, with the descriptors that came along.
func (c *cell) hear(ctx context.Context) (report, []int, error) {
	stop := context.AfterFunc(ctx, func() { _ = c.conn.SetReadDeadline(time.Unix(1, 0)) })
	defer func() {
		if !stop() {
			_ = c.conn.SetReadDeadline(time.Time{}) // a report may have come all the same
		}
	}()
	data, oob := make([]byte, largest), make([]byte, unix.CmsgSpace(4*mostFDs))
	n, oobn, _, _, err := c.conn.ReadMsgUnix(data, oob)
	if err != nil {
		return report{}, nil, errors.Join(context.Cause(ctx), err)
	}
	return parseReport(data[:n], oob[:oobn])
}

// tell sends an order: its text in a memory file, and descriptors.
func (c *cell) tell(o order, fds []int) error {
	text, err := memory(o)
	if err != nil {
		return err
	}
	defer text.Close()
	head := []byte("{}")
	_, _, err = c.conn.WriteMsgUnix(head, unix.UnixRights(append([]int{int(text.Fd())}, fds...)...), nil)
	return err
}

// kill ends init and so everything in its namespaces. After end it does nothing:
// the number of a closed descriptor may be another process's by then.
func (c *cell) kill() {
	if c.kept != nil {
		c.kept.kill(c)
		return
	}
	c.signal()
}

// signal kills the process itself.
func (c *cell) signal() {
	raw, err := c.pidfd.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = unix.PidfdSendSignal(int(fd), unix.SIGKILL, nil, 0) // it may be gone
	})
}

// gone waits until init and everything in its namespaces is gone. The kernel makes
// the descriptor of process 1 readable only then.
func (c *cell) gone() {
	if c.kept != nil {
		defer c.kept.gone()
	}
	raw, err := c.pidfd.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Read(func(fd uintptr) bool {
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(poll, 0)
		return n > 0 || err != nil && !errors.Is(err, unix.EINTR)
	})
}

// end kills what is left and gives the descriptors back.
func (c *cell) end() {
	c.kill()
	c.gone()
	if c.kept != nil {
		c.kept.end()
	}
	_ = c.conn.Close()
	_ = c.pidfd.Close()
}
