package native

import (
	"bytes"
	"encoding/binary"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// procs reads /proc with buffers of its own. The children of this binary never
// collect garbage, and a look at all processes every 50 ms would fill their memory.
type procs struct {
	entries [16 << 10]byte
	text    [4 << 10]byte
	path    [64]byte
}

// The kernel's struct linux_dirent64: its length and its name.
const (
	direntLength = 16
	direntName   = 19
)

// each calls f with the id of each process that can be seen.
func (s *procs) each(f func(pid int)) {
	dir, err := unix.Open("/proc", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(dir)
	for {
		n, err := unix.Getdents(dir, s.entries[:])
		if err != nil || n <= 0 {
			return
		}
		for rest := s.entries[:n]; len(rest) > direntName; {
			length := int(binary.NativeEndian.Uint16(rest[direntLength:]))
			if length <= direntName || length > len(rest) {
				return
			}
			if pid := number(rest[direntName:length]); pid > 0 {
				f(pid)
			}
			rest = rest[length:]
		}
	}
}

// number reads the digits at the start of a text; 0 if it does not begin with one.
func number(text []byte) int {
	n := 0
	for _, c := range text {
		if c < '0' || c > '9' || n > 1<<52 {
			return n
		}
		n = 10*n + int(c-'0')
	}
	return n
}

// read is the beginning of a file of a process, until the next call; nothing if it
// ended meanwhile.
func (s *procs) read(pid int, name string) []byte {
	path := append(s.path[:0], "/proc/"...)
	path = append(strconv.AppendInt(path, int64(pid), 10), '/')
	path = append(append(path, name...), 0)
	root := -1 // the path is absolute, so that it is not looked at
	fd, _, no := unix.Syscall6(unix.SYS_OPENAT, uintptr(root), uintptr(unsafe.Pointer(&path[0])), unix.O_RDONLY|unix.O_CLOEXEC, 0, 0, 0)
	if no != 0 {
		return nil
	}
	defer unix.Close(int(fd))
	n, err := unix.Read(int(fd), s.text[:])
	if err != nil || n < 0 {
		return nil
	}
	return s.text[:n]
}

// field is the n-th of the fields of a text that single spaces part, from 0 on.
func field(text []byte, n int) []byte {
	for range n {
		_, rest, found := bytes.Cut(text, []byte{' '})
		if !found {
			return nil
		}
		text = rest
	}
	return text
}

// quick is the memory of a process, with what it shares with others; exact has its
// part of that only, and takes the kernel longer (proc_pid_status(5),
// proc_pid_smaps(5)).
func (s *procs) quick(pid int) int64 {
	return kilobytes(s.read(pid, "status"), "\nRssAnon:", "\nRssShmem:", "\nVmSwap:")
}

func (s *procs) exact(pid int) int64 {
	if text := s.read(pid, "smaps_rollup"); len(text) > 0 {
		return kilobytes(text, "\nPss_Anon:", "\nPss_Shmem:", "\nSwapPss:")
	}
	return s.quick(pid)
}

// kilobytes adds up lines of a text, in bytes.
func kilobytes(text []byte, lines ...string) int64 {
	var sum int64
	for _, line := range lines {
		if at := bytes.Index(text, []byte(line)); at >= 0 {
			sum += int64(number(bytes.TrimLeft(text[at+len(line):], " \t"))) << 10
		}
	}
	return sum
}

// threads is how many threads a process has.
func (s *procs) threads(pid int) int64 {
	const threads = 20 - 2 // proc_pid_stat(5), behind the bracket of the name
	text := s.read(pid, "stat")
	return int64(number(field(text[bytes.LastIndexByte(text, ')')+1:], threads)))
}
