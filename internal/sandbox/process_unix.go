//go:build linux || darwin

package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// FindShell is the argument vector of the shell of this host that a line is
// appended to; nil if there is none.
func FindShell() []string {
	for _, path := range []string{"/bin/bash", "/usr/bin/bash", "/bin/sh"} {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return []string{path, "-c"}
		}
	}
	return nil
}

// status is the exit status and the signal's name of a process. One that could not
// be waited for was killed.
func status(state *os.ProcessState) (int, string) {
	if state == nil {
		return 128 + int(unix.SIGKILL), signalName(unix.SIGKILL)
	}
	if w, ok := state.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return 128 + int(w.Signal()), signalName(w.Signal())
	}
	return state.ExitCode(), ""
}

// signalName is "kill" for SIGKILL; a real-time signal has only a number.
func signalName(s syscall.Signal) string {
	if name := unix.SignalName(s); name != "" {
		return strings.ToLower(strings.TrimPrefix(name, "SIG"))
	}
	return strconv.Itoa(int(s))
}

// fileID tells files apart.
type fileID struct{ dev, ino uint64 }

// blockSize is the unit of Stat_t.Blocks, whatever the file system's own is.
const blockSize = 512

// diskUse is what a file takes on the disk, and which file it is if it has more
// than one name.
func diskUse(info fs.FileInfo) (size int64, id fileID, shared bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return info.Size(), id, false
	}
	id = fileID{dev: uint64(st.Dev), ino: st.Ino}
	return st.Blocks * blockSize, id, st.Nlink > 1 && !info.IsDir()
}

// sweepUntilGone kills what is alive, again and again, until nothing is left or
// [sweepWait] is over. It reports whether there was anything.
func sweepUntilGone(alive func() []member, kill func(member)) bool {
	const first, longest = time.Millisecond, 50 * time.Millisecond
	found := false
	end := time.Now().Add(sweepWait)
	for pause := first; ; pause = min(2*pause, longest) {
		left := alive()
		if len(left) == 0 {
			return found
		}
		found = true
		for _, m := range left {
			kill(m)
		}
		if time.Now().After(end) {
			return found
		}
		time.Sleep(pause)
	}
}

// member is one process, told from a later one of the same number by its start.
type member struct {
	pid   int
	start uint64
}

// row is what is known of one process of the host.
type row struct {
	member
	parent, group, session int
	dead                   bool // only its parent has not noticed yet
}

// family finds the rows that belong to a launch: those that known accepts, and all
// their descendants.
func family(rows []row, known func(row) bool) []member {
	in := map[int]bool{}
	for _, r := range rows {
		in[r.pid] = known(r)
	}
	for changed := true; changed; {
		changed = false
		for _, r := range rows {
			if !in[r.pid] && in[r.parent] {
				in[r.pid], changed = true, true
			}
		}
	}
	var found []member
	for _, r := range rows {
		if in[r.pid] && !r.dead {
			found = append(found, r.member)
		}
	}
	return found
}

// closeOnExec marks the descriptors that the host itself was left by its own
// parent: Go marks those that it opens.
func closeOnExec() {
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		return
	}
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
}

// trueProgram is the program that does nothing.
func trueProgram() ([]string, error) {
	for _, path := range []string{"/usr/bin/true", "/bin/true"} {
		if _, err := os.Stat(path); err == nil {
			return []string{path}, nil
		}
	}
	return nil, errors.New("there is no /usr/bin/true")
}
