package native

import (
	"errors"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// kept is what a host holds of a launch that no process namespace ends.
type kept struct {
	uid   int      // of its own, or 0
	swept *os.File // says when nothing of the launch is left
	given []handover

	ask, wait sync.Once
	late      *time.Timer
}

// newKeptCell takes the descriptors of a reply.
func newKeptCell(reply spawnReply, fds []int, slot, uid int) (*cell, error) {
	if len(fds) != 3 {
		for _, fd := range fds {
			_ = unix.Close(fd)
		}
		return nil, errors.New("the spawner's answer lacks its descriptors")
	}
	_ = unix.SetNonblock(fds[2], true) // so that Go waits for it without a thread
	swept := os.NewFile(uintptr(fds[2]), "swept")
	c, err := newCell(reply, fds[:2], slot)
	if err != nil {
		_ = swept.Close()
		return nil, err
	}
	c.kept = &kept{uid: uid, swept: swept}
	return c, nil
}

// killWait is how long a supervisor may take to end its launch before it is killed
// itself, upon which the spawner ends the launch.
const killWait = 2 * time.Second

// kill has the supervisor end the launch.
func (k *kept) kill(c *cell) {
	k.ask.Do(func() {
		_ = c.conn.CloseWrite() // gone is fine
		k.late = time.AfterFunc(killWait, c.signal)
	})
}

// gone waits until the spawner has seen that nothing of the launch is left. With no
// spawner the supervisor alone has done it; should that one have been killed as
// well, what is left is found by its user, if it has one of its own.
func (k *kept) gone() {
	k.wait.Do(func() {
		var b [1]byte
		if n, _ := k.swept.Read(b[:]); n == 0 && k.uid != 0 {
			endUser(k.uid)
		}
	})
}

// end gives back what the launch had. It comes after kill and gone.
func (k *kept) end() {
	k.late.Stop()
	_ = k.swept.Close()
	for _, h := range k.given {
		h.takeBack(k.uid)
	}
}

// userRounds bounds the rounds of endUser: it is behind two other walls, and nobody
// waits for ever for a process that the kernel cannot end.
const userRounds = 1000

// endUser kills all processes of a user until there are none.
func endUser(uid int) {
	for range userRounds {
		left := false
		entries, err := os.ReadDir("/proc")
		if err != nil {
			return
		}
		for _, e := range entries {
			pid, err := strconv.Atoi(e.Name())
			if err != nil {
				continue
			}
			if info, err := e.Info(); err == nil && isOwner(info, uid) {
				left = endOne(pid, uid) || left
			}
		}
		if !left {
			return
		}
		time.Sleep(time.Millisecond) // there is no event to wait for
	}
}

// endOne kills a process if it is still the user's, and says whether it was.
func endOne(pid, uid int) bool {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	info, err := os.Stat("/proc/" + strconv.Itoa(pid))
	if err != nil || !isOwner(info, uid) {
		return false
	}
	return unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) == nil
}

func isOwner(info os.FileInfo, uid int) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == uid
}
