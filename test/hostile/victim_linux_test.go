package hostile

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// victim is a process of the host, of the same user, that holds a secret in its
// environment and its memory.
type victim struct {
	pid  int
	addr string // of the secret in its memory
	dead chan struct{}
}

// victim starts one; extra arguments are only there to be seen.
func (x *trial) victim(args ...string) *victim {
	x.Helper()
	cmd := exec.Command(x.attack(), append([]string{"1", "victim"}, args...)...)
	cmd.Env = []string{"SECRET=" + x.secret}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		x.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		x.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		x.Fatal(err)
	}
	v := &victim{pid: cmd.Process.Pid, dead: make(chan struct{})}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		x.Fatalf("the victim does not live: %v", err)
	}
	v.addr = strings.TrimPrefix(strings.Fields(line)[1], "0x")
	go func() {
		defer close(v.dead)
		_ = cmd.Wait() // killed or let go
	}()
	x.Cleanup(func() {
		_ = in.Close()
		<-v.dead
	})
	return v
}

// soon is how long the host waits for what would follow from an escape at once.
const soon = 50 * time.Millisecond

// died says whether it has ended.
func (v *victim) died() bool {
	select {
	case <-v.dead:
		return true
	case <-time.After(soon):
		return false
	}
}

// targets are processes that must not be touched: the victim, and what watches
// over the launch. Without confinement that is the first process of the machine,
// which is left alone.
func (x *trial) targets(v *victim) []string {
	all := []string{pair("victim", v.pid), pair("host", os.Getpid())}
	if x.control {
		return all
	}
	return append(all, "init=1", "parent=parent")
}

// tap counts what comes in at a socket of the host.
type tap struct {
	addr  string
	first chan struct{}
	once  sync.Once
	// datagrams are sent into nothing without an error, also where there is no way
	// to the host.
	datagrams bool
}

func (t *tap) got() {
	t.once.Do(func() { close(t.first) })
}

// reached says whether anything came, now or within a time.
func (t *tap) reached(within time.Duration) bool {
	select {
	case <-t.first:
		return true
	case <-time.After(within):
		return false
	}
}

// listen opens a socket of the host.
func (x *trial) listen(network, addr string) *tap {
	x.Helper()
	l, err := net.Listen(network, addr)
	if err != nil {
		x.Fatal(err)
	}
	t := &tap{addr: l.Addr().String(), first: make(chan struct{})}
	var work sync.WaitGroup
	work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.got()
			_ = c.Close()
		}
	})
	x.Cleanup(func() {
		_ = l.Close()
		work.Wait()
	})
	return t
}

// listenPacket opens a socket for datagrams.
func (x *trial) listenPacket(network, addr string) *tap {
	x.Helper()
	c, err := net.ListenPacket(network, addr)
	if err != nil {
		x.Fatal(err)
	}
	t := &tap{addr: c.LocalAddr().String(), first: make(chan struct{}), datagrams: true}
	var work sync.WaitGroup
	work.Go(func() {
		buf := make([]byte, 2048)
		for {
			if _, _, err := c.ReadFrom(buf); err != nil {
				return
			}
			t.got()
		}
	})
	x.Cleanup(func() {
		_ = c.Close()
		work.Wait()
	})
	return t
}

// where is a tap's address as the attacking program reads it.
func (t *tap) where() string {
	host, port, err := net.SplitHostPort(t.addr)
	if err != nil {
		return t.addr
	}
	return host + "/" + port
}

// sawAt compares what the program says with what came in at a socket of the host.
// A success that the host does not see is none.
func (x *trial) sawAt(o *outcome, probe string, t *tap) {
	x.Helper()
	said := slices.Contains(o.escaped, probe)
	wait := soon
	if said && x.control {
		wait = 5 * time.Second
	}
	came := t.reached(wait)
	switch {
	case came:
		o.add(probe)
	case said && (x.control || !t.datagrams):
		o.broken = append(o.broken, probe+":nothing-came")
	case said:
		o.deny(probe, "nothing-came")
	}
}

// marked are processes of the host in whose command line a word occurs.
func marked(word string) []int {
	names, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return nil
	}
	var pids []int
	for _, name := range names {
		text, err := os.ReadFile(name)
		pid, _ := strconv.Atoi(strings.Split(name, "/")[2])
		if err == nil && pid != os.Getpid() && strings.Contains(string(text), word) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// clear kills processes that an attempt left, at the latest when the test ends.
func (x *trial) clear(word string) {
	x.Cleanup(func() {
		for range 100 {
			pids := marked(word)
			if len(pids) == 0 {
				return
			}
			for _, pid := range pids {
				_ = syscall.Kill(pid, syscall.SIGKILL) // it may be gone
			}
			<-time.After(10 * time.Millisecond)
		}
		x.Errorf("processes named %s cannot be killed: %v", word, marked(word))
	})
}

// grows says whether a file still grows: somebody is alive who writes into it.
func grows(name string) bool {
	before, err := os.Stat(name)
	if err != nil {
		return false
	}
	<-time.After(5 * soon)
	after, err := os.Stat(name)
	return err == nil && after.Size() != before.Size()
}

// drain reads a stream to its end, for the sake of the writer.
func drain(r io.Reader) string {
	text, err := io.ReadAll(r)
	if err != nil {
		return fmt.Sprintf("%s (%v)", text, err)
	}
	return string(text)
}
