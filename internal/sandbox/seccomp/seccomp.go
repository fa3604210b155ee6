// Package seccomp builds the filter of system calls that every confined process
// runs under: classic BPF for amd64 and arm64, from one table of rules.
//
// It never installs a filter and never asks the host anything, so each program can be
// built and tested on any machine. A filter is no wall by itself: it takes away
// the calls that name spaces, Landlock and lost privileges leave open.
//
// Start at [Program]; the rules are in policy.go.
package seccomp

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// Instruction is one instruction of classic BPF, laid out as the kernel's struct
// sock_filter is.
type Instruction struct {
	Code   uint16
	JT, JF uint8
	K      uint32
}

// MaxInstructions is how long a program may be (the kernel's BPF_MAXINSNS).
const MaxInstructions = 4096

// Profile says which of the rules depend on how a launch is confined otherwise.
// Its zero value, but for Arch, is the strictest.
type Profile struct {
	// Arch is "amd64" or "arm64", as runtime.GOARCH has it.
	Arch string
	// Guarded are ids that must not be signalled, opened or re-prioritised, as the
	// payload sees them: the init's or the supervisor's. The kernel takes the id of a
	// thread for its process in kill and its relatives, so give the ids of threads
	// too where a handled signal would hurt. All are positive.
	Guarded []int
	// Sockets allows socket for the local and the internet families. Without it
	// only socketpair is left.
	Sockets bool
	// Metadata allows chmod, chown, utime and the extended attributes by path. Setuid
	// and setgid bits are refused in any case.
	Metadata bool
	// Namespaced is set where the payload has process and IPC name spaces of its
	// own: kill(-1), System V IPC, message queues and the priorities of other
	// processes are then its own affair.
	Namespaced bool
	// Tkill allows tkill but for Guarded; musl's raise, abort and pthread_kill need
	// it. Without it tkill is refused, because a thread that Guarded does not list
	// could be signalled.
	Tkill bool
}

// Program is the filter for a profile: an allowed call goes on, a refused one
// fails with the errno of its rule, and a call in the manner of another
// architecture kills the process. It is at most [MaxInstructions] long.
//
// An error means that the profile itself is wrong.
func Program(p Profile) ([]Instruction, error) {
	a, err := machineOf(p.Arch)
	if err != nil {
		return nil, fmt.Errorf("seccomp program: %w", err)
	}
	if i := slices.IndexFunc(p.Guarded, func(pid int) bool { return pid <= 0 || pid > maxPid }); i >= 0 {
		return nil, fmt.Errorf("seccomp program: guarded id %d is none of a process: give ids from 1 to %d", p.Guarded[i], maxPid)
	}
	prog, err := compile(a, policy(p))
	if err != nil {
		return nil, fmt.Errorf("seccomp program for %s: %w", p.Arch, err)
	}
	if len(prog) > MaxInstructions {
		return nil, fmt.Errorf("seccomp program for %s: %d instructions and %d guarded ids: give fewer ids, the kernel takes %d instructions", p.Arch, len(prog), len(p.Guarded), MaxInstructions)
	}
	return prog, nil
}

// maxPid is the largest id that a Linux process can have (PID_MAX_LIMIT).
const maxPid = 1 << 22

// Bytes is the program as a file that bwrap --seccomp reads: little-endian, as
// both architectures are.
func Bytes(prog []Instruction) []byte {
	out := make([]byte, 0, 8*len(prog))
	for _, in := range prog {
		out = binary.LittleEndian.AppendUint16(out, in.Code)
		out = append(out, in.JT, in.JF)
		out = binary.LittleEndian.AppendUint32(out, in.K)
	}
	return out
}

// machine is what differs between architectures.
type machine struct {
	name  string
	audit uint32 // AUDIT_ARCH_*
	x32   bool   // numbers with bit 30 belong to another call convention
}

func machineOf(arch string) (machine, error) {
	switch arch {
	case "amd64":
		return machine{arch, 0xc000003e, true}, nil
	case "arm64":
		return machine{arch, 0xc00000b7, false}, nil
	}
	return machine{}, fmt.Errorf("there are no rules for the architecture %q: amd64 and arm64 are known", arch)
}
