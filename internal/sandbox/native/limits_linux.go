package native

import "golang.org/x/sys/unix"

// Resource limits that no operator sets: what a program needs, and no more.
const (
	openFiles = 4096
	// uncountedFiles is the limit where no control group counts what the kernel keeps
	// for an open file, such as the buffers of a socket.
	uncountedFiles = 512
	// none is a limit of zero; zero itself is no limit.
	none       = -1
	lockedRAM  = 64 << 10
	queueBytes = 800 << 10
	pending    = 4096
	// ownThreads is what init itself counts among the processes of its launch.
	ownThreads = 16
)

// setLimits bounds each process of the launch. All limits are hard, and init
// has them too.
func setLimits(o order) error {
	files := int64(openFiles)
	if o.Sample {
		files = uncountedFiles
	}
	limits := []struct {
		name     string
		resource int
		value    int64
	}{
		// Neither a file nor the host's handler of core dumps, which 0 would start
		// (core(5)).
		{"core dumps", unix.RLIMIT_CORE, 1},
		{"open files", unix.RLIMIT_NOFILE, files},
		{"real-time priority", unix.RLIMIT_RTPRIO, none},
		{"priority", unix.RLIMIT_NICE, none},
		{"locked memory", unix.RLIMIT_MEMLOCK, lockedRAM},
		{"message queues", unix.RLIMIT_MSGQUEUE, queueBytes},
		{"pending signals", unix.RLIMIT_SIGPENDING, pending},
		{"size of a file", unix.RLIMIT_FSIZE, o.Disk},
		// Not the address space: engines of WebAssembly reserve far more of it than
		// they use.
		{"memory", unix.RLIMIT_DATA, o.Memory},
		{"processor time", unix.RLIMIT_CPU, o.CPU},
	}
	if o.Processes > 0 {
		limits = append(limits, struct {
			name     string
			resource int
			value    int64
		}{"processes", unix.RLIMIT_NPROC, o.Processes + ownThreads})
	}
	for _, l := range limits {
		if l.value == 0 {
			continue
		}
		var now unix.Rlimit
		if err := unix.Getrlimit(l.resource, &now); err != nil {
			return step(err, "read the limit of %s", l.name)
		}
		value := min(uint64(max(l.value, 0)), now.Max)
		if err := unix.Setrlimit(l.resource, &unix.Rlimit{Cur: value, Max: value}); err != nil {
			return step(err, "limit %s", l.name)
		}
	}
	return nil
}
