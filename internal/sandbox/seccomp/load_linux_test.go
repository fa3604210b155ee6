//go:build linux && (amd64 || arm64)

package seccomp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"
)

// The child reads what it shall be from these variables.
const (
	childProfile = "METIER_SECCOMP_PROFILE" // a name of profiles, or "none"
	childProgram = "METIER_SECCOMP_PROGRAM" // a program to become; else the probes
)

// foreign, before the name of a profile, is the profile of the other architecture.
const foreign = "foreign "

// TestMain makes the test binary the child of its own tests when it is told so.
func TestMain(m *testing.M) {
	if name := os.Getenv(childProfile); name != "" {
		os.Exit(child(name, os.Getenv(childProgram)))
	}
	os.Exit(m.Run())
}

// child confines all its threads and then probes, or becomes a program.
func child(profile, program string) int {
	runtime.LockOSThread()
	if profile != "none" {
		name, other := strings.CutPrefix(profile, foreign)
		p := profiles(runtime.GOARCH)[name]
		if other {
			p.Arch = map[string]string{"amd64": "arm64", "arm64": "amd64"}[p.Arch]
		}
		if len(p.Guarded) > 0 {
			p.Guarded = []int{os.Getppid()} // the process that must be left alone
		}
		prog, err := Program(p)
		if err == nil {
			err = install(prog)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 3
		}
	}
	if program != "" {
		err := syscall.Exec(program, os.Args, os.Environ())
		fmt.Fprintln(os.Stderr, program, err)
		return 4
	}
	for _, p := range probes() {
		fmt.Printf("%s %d\n", p.what, p.try())
	}
	return descendant()
}

// install gives the filter to all threads.
func install(prog []Instruction) error {
	const (
		prSetNoNewPrivs = 38
		setModeFilter   = 1
		flagTsync       = 1
	)
	m := struct {
		n    uint16
		prog *Instruction
	}{uint16(len(prog)), &prog[0]}
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, prSetNoNewPrivs, 1, 0, 0, 0, 0); errno != 0 {
		return fmt.Errorf("prctl: %w", errno)
	}
	tid, _, errno := syscall.RawSyscall(seccompNumber(), setModeFilter, flagTsync, uintptr(unsafe.Pointer(&m)))
	if errno != 0 || tid != 0 {
		return fmt.Errorf("seccomp: thread %d: %w", tid, errno)
	}
	return nil
}

func seccompNumber() uintptr {
	if runtime.GOARCH == "arm64" {
		return 277
	}
	return 317
}

// descendant starts a process, signals it and waits for it, as Go programs do.
func descendant() int {
	cmd := exec.Command("/bin/sh", "-c", "read line")
	stdin, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "start:", err)
		return 5
	}
	defer stdin.Close()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		fmt.Fprintln(os.Stderr, "signal:", err)
		return 6
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGTERM {
		fmt.Fprintln(os.Stderr, "wait:", err)
		return 7
	}
	return 0
}

// TestKernelKillsForeign: the kernel takes the program for the other architecture
// as well, and then every call here is one in the wrong manner.
func TestKernelKillsForeign(t *testing.T) {
	for _, profile := range profileNames() {
		_, err := reexec(t, foreign+profile, "")
		var ended *exec.ExitError
		if !errors.As(err, &ended) || ended.Sys().(syscall.WaitStatus).Signal() != syscall.SIGSYS {
			t.Errorf("%s: got %v, want the signal SIGSYS", profile, err)
		}
	}
}

// probe is a call that does no harm if it is allowed, and then answers otherwise
// than with want.
type probe struct {
	what string
	call string
	args [6]uintptr
	want syscall.Errno
}

func (p probe) try() int {
	m, _ := machineOf(runtime.GOARCH)
	n, named := numbersOf(m)[p.call]
	if !named {
		n = newest + 1
	}
	_, _, errno := syscall.RawSyscall6(uintptr(n), p.args[0], p.args[1], p.args[2], p.args[3], p.args[4], p.args[5])
	return int(errno)
}

func probes() []probe {
	const high = 0xdeadbeef << 32
	parent := uintptr(os.Getppid())
	none := ^uintptr(0) // no descriptor
	return []probe{
		{"mount", "mount", [6]uintptr{}, syscall.EPERM},
		{"unshare-nothing", "unshare", [6]uintptr{}, syscall.EPERM},
		{"setns", "setns", [6]uintptr{none}, syscall.EPERM},
		{"ptrace-nobody", "ptrace", [6]uintptr{2, none >> 1, 0, 0}, syscall.EPERM},
		{"bpf", "bpf", [6]uintptr{none}, syscall.EPERM},
		{"keyctl", "keyctl", [6]uintptr{none}, syscall.EPERM},
		{"perf", "perf_event_open", [6]uintptr{}, syscall.EPERM},
		{"clone3", "clone3", [6]uintptr{}, syscall.ENOSYS},
		{"openat2", "openat2", [6]uintptr{}, syscall.ENOSYS},
		{"io_uring", "io_uring_setup", [6]uintptr{}, syscall.ENOSYS},
		{"clone-newuser", "clone", [6]uintptr{0x10000200}, syscall.EPERM}, // with CLONE_FS: invalid
		{"clone-newuser-high", "clone", [6]uintptr{high | 0x10000200}, syscall.EPERM},
		{"fchmod-setuid", "fchmod", [6]uintptr{none, 0o4755}, syscall.EPERM},
		{"fchmod-setuid-high", "fchmod", [6]uintptr{none, high | 0o4755}, syscall.EPERM},
		{"mknod-device", "mknodat", [6]uintptr{none, 0, 0o020666, 0x103}, syscall.EPERM},
		{"vsock", "socket", [6]uintptr{40, 1, 0}, syscall.EPERM},
		{"vsock-high", "socket", [6]uintptr{high | 40, high | 1, high}, syscall.EPERM},
		{"raw", "socket", [6]uintptr{2, 3, 0}, syscall.EPERM},
		{"mptcp", "socket", [6]uintptr{2, 1, 262}, syscall.EPERM},
		{"pair-inet", "socketpair", [6]uintptr{2, 1, 0, 0}, syscall.EPERM},
		{"tiocsti", "ioctl", [6]uintptr{none, 0x5412}, syscall.EPERM},
		{"tiocsti-high", "ioctl", [6]uintptr{none, high | 0x5412}, syscall.EPERM},
		{"kill", "kill", [6]uintptr{parent, 0}, syscall.EPERM},
		{"kill-high", "kill", [6]uintptr{high | parent, 0}, syscall.EPERM},
		{"tgkill", "tgkill", [6]uintptr{parent, parent, 0}, syscall.EPERM},
		{"pidfd_open", "pidfd_open", [6]uintptr{high | parent, 0}, syscall.EPERM},
		{"setown", "fcntl", [6]uintptr{none, fSETOWN, parent}, syscall.EPERM},
		{"prlimit", "prlimit64", [6]uintptr{parent, 7, 0, 0}, syscall.EPERM},
		{"personality", "personality", [6]uintptr{high | 8}, syscall.EPERM},
		{"newer", "", [6]uintptr{}, syscall.ENOSYS},
	}
}

// reexec starts the test binary as a child.
func reexec(t *testing.T, profile, program string, args ...string) (string, error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Args = append([]string{filepath.Base(program)}, args...)
	cmd.Env = append(os.Environ(), childProfile+"="+profile, childProgram+"="+program)
	cmd.Dir = t.TempDir()
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestKernelRefuses: this kernel takes the programs and answers as the examples say.
// The run without a filter shows that each probe would have seen the difference.
func TestKernelRefuses(t *testing.T) {
	free, outer := probed(t, "none"), confined(t)
	for _, profile := range []string{"native", "musl", "weak"} {
		got := probed(t, profile)
		for _, p := range probes() {
			if got[p.what] != int(p.want) {
				t.Errorf("%s: %s answers %v, want %v", profile, p.what, syscall.Errno(got[p.what]), p.want)
			}
			if !outer && p.distinct() && free[p.what] == int(p.want) {
				t.Errorf("%s answers %v without a filter too: the probe proves nothing", p.what, p.want)
			}
		}
	}
}

// distinct says that the kernel itself answers the probe in another way: a call
// that is too new is unknown to it as well, and some are refused to users.
func (p probe) distinct() bool {
	return p.call != "" && (os.Geteuid() == 0 || p.call != "bpf" && p.call != "perf_event_open")
}

// confined says that the tests themselves run under a filter, such as that of a
// container.
func confined(t *testing.T) bool {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	return !strings.Contains(string(status), "\nSeccomp:\t0\n")
}

func probed(t *testing.T, profile string) map[string]int {
	t.Helper()
	out, err := reexec(t, profile, "")
	if err != nil {
		t.Fatalf("%s: %v\n%s", profile, err, out)
	}
	found := map[string]int{}
	for text := range strings.Lines(out) {
		name, n, _ := strings.Cut(strings.TrimSpace(text), " ")
		if found[name], err = strconv.Atoi(n); err != nil {
			t.Fatalf("%s: %q: %v", profile, text, err)
		}
	}
	if len(found) != len(probes()) {
		t.Fatalf("%s: %d answers", profile, len(found))
	}
	return found
}

// TestProgramsRun: everyday programs do not notice.
func TestProgramsRun(t *testing.T) {
	const python = `
import json, os, signal, socket, subprocess, tempfile, threading
a, b = socket.socketpair()
a.send(b'x'); assert b.recv(1) == b'x'
with tempfile.TemporaryDirectory() as d:
    p = os.path.join(d, 'f')
    open(p, 'w').write('x')
    os.rename(p, p + '2')
t = threading.Thread(target=lambda: None); t.start(); t.join()
assert subprocess.run(['/bin/sh', '-c', 'exit 3']).returncode == 3
p = subprocess.Popen(['/bin/sh', '-c', 'read x'], stdin=subprocess.PIPE); p.terminate(); assert p.wait() == -15
signal.signal(signal.SIGUSR1, lambda *a: None); signal.raise_signal(signal.SIGUSR1); os.kill(os.getpid(), signal.SIGUSR1)
print('fine')
`
	const networked = `
import socket
s = socket.create_server(('127.0.0.1', 0)); c = socket.create_connection(s.getsockname()); s.accept()[0].send(b'y'); assert c.recv(1) == b'y'
socket.socket(socket.AF_INET, socket.SOCK_DGRAM); socket.socket(socket.AF_UNIX); socket.if_nameindex()
print('fine')
`
	const node = `
const { execFileSync } = require('child_process'), fs = require('fs'), os = require('os');
if (execFileSync('/bin/sh', ['-c', 'echo 1']).toString() !== '1\n') throw 1;
fs.writeFileSync('f', 'x'); fs.readFileSync('f'); os.cpus();
setImmediate(() => console.log('fine'));
`
	const shell = `set -e; echo a | tr a b >f; mkdir d; mv f d/; (exit 0); kill -0 $$; ulimit -n >/dev/null; rm -r d; echo fine`
	for _, test := range []struct{ name, program, flag, text string }{
		{"python", "python3", "-c", python},
		{"network", "python3", "-c", networked},
		{"node", "node", "-e", node},
		{"bash", "bash", "-c", shell},
		{"sh", "sh", "-c", shell},
	} {
		for _, profile := range []string{"native", "weak"} {
			if test.name == "network" && profile == "weak" {
				continue
			}
			t.Run(test.name+"/"+profile, func(t *testing.T) {
				path, err := exec.LookPath(test.program)
				if err != nil {
					t.Skipf("this machine has no %s", test.program)
				}
				out, err := reexec(t, profile, path, test.flag, test.text)
				if err != nil || out != "fine\n" {
					t.Errorf("got %q, %v", out, err)
				}
			})
		}
	}
}

// TestKernelKills: a call by another convention ends the process. The programs are
// the smallest that make one and then exit.
func TestKernelKills(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the conventions are those of amd64")
	}
	const exit = "\x31\xff\xb8\x3c\x00\x00\x00\x0f\x05" // exit(0)
	for name, code := range map[string]string{
		"x32":  "\xb8\x27\x00\x00\x40\x0f\x05", // getpid | x32 bit
		"i386": "\xb8\x14\x00\x00\x00\xcd\x80", // getpid by int 0x80
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), name)
			if err := os.WriteFile(file, executable(code+exit), 0o755); err != nil {
				t.Fatal(err)
			}
			if _, err := reexec(t, "none", file); err != nil {
				t.Skipf("this kernel was built without the convention: %v", err)
			}
			_, err := reexec(t, "native", file)
			var ended *exec.ExitError
			if !errors.As(err, &ended) || ended.Sys().(syscall.WaitStatus).Signal() != syscall.SIGSYS {
				t.Errorf("got %v, want the signal SIGSYS", err)
			}
		})
	}
}

// executable is a static ELF file for amd64 with code as its only segment.
func executable(code string) []byte {
	const base, headers = 0x400000, 64 + 56
	var b bytes.Buffer
	b.WriteString("\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00")
	size := uint64(headers + len(code))
	for _, field := range []any{
		uint16(2), uint16(62), uint32(1), uint64(base + headers), uint64(64), uint64(0), uint32(0),
		uint16(64), uint16(56), uint16(1), uint16(0), uint16(0), uint16(0),
		uint32(1), uint32(5), uint64(0), uint64(base), uint64(base), size, size, uint64(4096),
	} {
		_ = binary.Write(&b, binary.LittleEndian, field) // to memory, cannot fail
	}
	b.WriteString(code)
	return b.Bytes()
}
