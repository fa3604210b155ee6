package native

import (
	"errors"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"
	"golang.org/x/sys/unix"

	"github.com/metier-run/metier/internal/sandbox"
)

// initMain is process 1 of a launch: it prepares, waits for its order, and
// carries it out. It ends when the program does or when the host is gone, and
// with it ends everything that the program started.
func initMain() int {
	i, err := getReady()
	if err != nil {
		return complain(err)
	}
	if send(control, report{Kind: isReady, NoProc: i.noProc}, i.mounts) != nil {
		return 1
	}
	_ = unix.Close(i.mounts)
	o, fds, err := takeOrder()
	if err != nil {
		return complain(err)
	}
	if len(fds) < 2 {
		return complain(errors.New("the order came without outputs"))
	}
	if err := i.carryOut(o, fds); err != nil {
		return complain(err)
	}
	return 0
}

// complain tells the host what failed. Nobody may be there any more.
func complain(err error) int {
	_ = send(control, report{Kind: isFault, Fault: newFault("set up", err)})
	return 1
}

// ready is an init that waits for its order.
type ready struct {
	root   newRoot
	noProc bool
	self   int // this binary
	// mounts is the mount namespace. The host holds it until the launch is over: to
	// take it down makes the kernel wait for all processors, and nobody need wait for
	// that.
	mounts int
}

// getReady is what no order can change, done while nobody waits for it.
func getReady() (ready, error) {
	// What the host's own parent left open must not reach a program.
	if err := unix.CloseRange(control, control, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return ready{}, step(err, "mark the control socket")
	}
	if err := unix.CloseRange(control+1, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return ready{}, step(err, "mark inherited descriptors")
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return ready{}, step(err, "hide process 1")
	}
	spare()
	bound()
	if err := loopback(); err != nil {
		return ready{}, step(err, "bring up the loopback interface")
	}
	_ = unix.Sethostname([]byte("sandbox")) // cosmetic
	self, err := unix.Open("/proc/self/exe", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return ready{}, step(err, "open this binary")
	}
	mounts, err := unix.Open("/proc/self/ns/mnt", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return ready{}, step(err, "open the mount namespace")
	}
	root, proc, err := prepare()
	if err != nil {
		return ready{}, err
	}
	if err := practise(); err != nil {
		return ready{}, step(err, "practise reading orders")
	}
	return ready{root: root, noProc: !proc, self: self, mounts: mounts}, beginLock()
}

// practise reads an order once, so that the decoder has seen its types before
// somebody waits for it.
func practise() error {
	var o order
	text, err := json.Marshal(order{Argv: []string{""}, Env: []string{""}, Hide: []string{""}, Filter: []byte{0}, Mounts: []mount{{}}})
	if err != nil {
		return err
	}
	return json.Unmarshal(text, &o)
}

// bound sets the kernel's own bounds of the new namespaces: no namespaces in them, as a
// second lock behind the filter, and a share of what the kernel counts for the user
// who made them and could be used up for the host: watches of files, and shared memory
// that no process has. Where /proc is not there, or a kernel lacks one, it is left.
func bound() {
	for name, value := range map[string]string{
		"user/max_user_namespaces": "0", "user/max_inotify_instances": "4", "user/max_inotify_watches": "8192",
		"kernel/shmall": "16384", "kernel/shmmni": "256", "kernel/msgmni": "64",
	} {
		_ = os.WriteFile("/proc/sys/"+name, []byte(value), 0)
	}
}

// loopback brings the interface up that a new network has, and that is down. On
// a shared network it is up already, and not ours to touch.
func loopback() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	ifr, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(s, unix.SIOCGIFFLAGS, ifr); err != nil {
		return err
	}
	if ifr.Uint16()&unix.IFF_UP != 0 {
		return nil
	}
	ifr.SetUint16(ifr.Uint16() | unix.IFF_UP)
	return unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, ifr)
}

// takeOrder waits for the order. The descriptors are the outputs and then the mounts.
func takeOrder() (order, []int, error) {
	var head report
	fds, err := receive(control, &head)
	if err != nil {
		os.Exit(0) // the host has no use for this init any more
	}
	if len(fds) == 0 {
		return order{}, nil, errors.New("the order came without its text")
	}
	f := os.NewFile(uintptr(fds[0]), "order")
	defer f.Close()
	var o order
	if err := json.UnmarshalRead(f, &o); err != nil {
		return order{}, nil, step(err, "read the order")
	}
	return o, fds[1:], nil
}

// carryOut finishes the root, locks this process down and runs the program.
func (i ready) carryOut(o order, fds []int) error {
	out := [2]int{fds[0], fds[1]}
	l, err := newLock(o, i.self)
	if err != nil {
		return err
	}
	if err := i.root.finish(o, fds[2:]); err != nil {
		return err
	}
	for _, fd := range append(fds[2:], i.root.fd) {
		_ = unix.Close(fd)
	}
	if o.Proxied {
		if err := listen(); err != nil {
			return step(err, "listen for the proxy")
		}
	}
	if err := setLimits(o); err != nil {
		return err
	}
	if err := l.rules(o); err != nil {
		return err
	}
	return l.apply(func() error { return runProgram(o, out) }, o, out)
}

// listen makes the proxy's listener in this network and gives it to the host,
// which serves it: a socket stays in the network that it was made in.
func listen() error {
	l, err := net.Listen("tcp4", sandbox.ProxyAddress)
	if err != nil {
		return err
	}
	defer l.Close()
	f, err := l.(*net.TCPListener).File()
	if err != nil {
		return err
	}
	defer f.Close()
	return send(control, report{Kind: isListening}, int(f.Fd()))
}

// runProgram starts the program, minds it until it ends, and reports.
func runProgram(o order, out [2]int) error {
	null, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return step(err, "open /dev/null")
	}
	deaf()
	program := -1
	pid, err := syscall.ForkExec(o.Argv[0], o.Argv, &syscall.ProcAttr{
		Dir: o.Dir, Env: o.Env, Files: []uintptr{uintptr(null), uintptr(out[0]), uintptr(out[1])},
		Sys: &syscall.SysProcAttr{Setsid: true, PidFD: &program},
	})
	if err != nil {
		return step(err, "start %s in %s", o.Argv[0], o.Dir)
	}
	for _, fd := range []int{null, out[0], out[1]} {
		_ = unix.Close(fd)
	}
	if err := send(control, report{Kind: isStarted}); err != nil {
		return err
	}
	return mind(o, pid, program)
}

// How often orphans are reaped, and memory is looked at where no control group
// counts it.
const (
	reapEvery   = 100 * time.Millisecond
	sampleEvery = 50 * time.Millisecond
)

// mind waits for the end of the program or of the host. It does all on one thread:
// a program that has used up its processes leaves none for another one, and the
// runtime would end this process for it.
func mind(o order, pid, program int) error {
	var looks procs
	every := reapEvery
	if o.Sample {
		every = sampleEvery
	}
	watched := []unix.PollFd{{Fd: int32(program), Events: unix.POLLIN}, {Fd: control, Events: unix.POLLIN}}
	for {
		_, err := unix.Poll(watched, int(every.Milliseconds()))
		if err != nil && !errors.Is(err, unix.EINTR) {
			return step(err, "wait for the program")
		}
		if watched[1].Revents != 0 {
			return nil // the host says nothing any more: its end is closed
		}
		if status, ended, alone := reap(pid); ended {
			return send(control, report{Kind: isExited, Status: int(status), Alone: alone})
		}
		if looks.exceeds(o) {
			return send(control, report{Kind: isOutOfMem})
		}
	}
}

// reap reaps all that has ended, also what was orphaned. It says whether the
// program is among it, and whether nothing is left.
func reap(program int) (status unix.WaitStatus, ended, alone bool) {
	for {
		var one unix.WaitStatus
		pid, err := unix.Wait4(-1, &one, unix.WNOHANG, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case pid == program && (one.Exited() || one.Signaled()):
			status, ended = one, true
		case pid <= 0:
			return status, ended, errors.Is(err, unix.ECHILD)
		}
	}
}
