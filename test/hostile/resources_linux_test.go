package hostile

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"

	"golang.org/x/sys/unix"

	"github.com/metier-run/metier/internal/sandbox"
)

func resourceRows() []row {
	return []row{
		{id: "rs01", what: "600 processes where 128 are allowed", verb: "forks", setUp: func(*trial) []string { return []string{"600"} }, mayDie: "forks"},
		{id: "rs02", what: "1 GiB of memory in one process where 512 MiB are allowed", costly: true, verb: "memory", setUp: func(*trial) []string { return []string{"1024", "300"} }, mayDie: "memory"},
		{id: "rs03", what: "the same in four processes", costly: true, verb: "memories", setUp: func(*trial) []string { return []string{"4", "256", "400"} }, mayDie: "memories"},
		{id: "rs04", what: "fill `/tmp` with 640 MiB", costly: true, try: fillTemporary, mayDie: "fill"},
		{
			id: "rs05", what: "a file of 2 GiB, by writing, cutting, allocating", verb: "big", setUp: func(x *trial) []string { return []string{filepath.Join(x.work, "big")} },
			check: func(x *trial, _ sandbox.Result, o *outcome) {
				info, err := os.Stat(filepath.Join(x.work, "big"))
				o.sees("on-disk", err == nil && info.Size() > 1<<30)
			}, mayDie: "big",
		},
		{
			id: "rs06", what: "many files: 256 MiB where 64 MiB are allowed", costly: true, verb: "fill", setUp: func(x *trial) []string { return []string{x.work, "64", "4", "30"} },
			check: func(x *trial, _ sandbox.Result, o *outcome) { o.sees("on-disk", usage(x.work) > 200<<20) }, mayDie: "fill",
		},
		{id: "rs07", what: "output without end", kind: manners, costly: true, try: endlessOutput},
		{id: "rs08", what: "a detached child that stays when its parent has ended", try: func(x *trial) *outcome { return x.stay("daemon", false) }},
		{id: "rs09", what: "detached children at the deadline: setsid, CLONE_PARENT, an own reaper, stopped", costly: true, try: func(x *trial) *outcome {
			o := &outcome{}
			for _, how := range []string{"daemon", "clone", "ignore", "stopped"} {
				o.merge(how, x.stay(how, true))
			}
			return o
		}},
		{id: "rs10", what: "a job in the background that holds the output", kind: manners, try: holdOutput},
		{id: "rs11", what: "outlive the host that is killed", try: outliveHost},
		{id: "rs12", what: "a loop that ignores every signal", kind: manners, costly: true, try: busyLoop},
		{
			id: "rs16", what: "100,000 empty files in the working directory", costly: true, verb: "inodes", setUp: func(x *trial) []string { return []string{x.work, "100000"} },
			check: func(x *trial, _ sandbox.Result, o *outcome) { o.sees("on-disk", count(x.work) >= 100000) }, mayDie: "inodes",
		},
		{
			id: "rs17", what: "a million empty files in `/tmp`, if they are in memory", kind: manners, confinedOnly: true, costly: true, verb: "inodes",
			setUp: func(*trial) []string { return []string{"/tmp", "1000000"} }, mayDie: "inodes",
		},
		{id: "rs18", what: "1 GiB of memory that no process owns: memfd", costly: true, verb: "shared", setUp: func(*trial) []string { return []string{"memfd", "1024", "400"} }, mayDie: "memfd"},
		{id: "rs19", what: "the same by shared anonymous memory", costly: true, verb: "shared", setUp: func(*trial) []string { return []string{"anonymous", "1024", "400"} }, mayDie: "anonymous"},
		{id: "rs20", what: "the same by System V memory", costly: true, verb: "shared", setUp: func(*trial) []string { return []string{"sysv", "1024", "400"} }, mayDie: "sysv"},
		{id: "rs21", what: "the same by files in memory that nothing maps", costly: true, verb: "memfd-hidden", setUp: func(*trial) []string { return []string{"1024", "400"} }, mayDie: "memfd"},
		{id: "rs22", what: "600 threads where 128 are allowed", verb: "threads", setUp: func(*trial) []string { return []string{"600"} }, mayDie: "threads"},
		{id: "rs23", what: "10,000 descriptors", verb: "handles", setUp: func(*trial) []string { return []string{"10000"} }},
		{id: "rs24", what: "20,000 timers", verb: "timers", setUp: func(*trial) []string { return []string{"20000"} }},
		{id: "rs28", what: "take all file watches (inotify) of the host's user", try: takeWatches},
	}
}

// takeWatches looks whether the host can still watch files while a launch has taken
// all that it can.
func takeWatches(x *trial) *outcome {
	job, wait := x.start(x.l, "watches", x.work)
	if job == nil {
		return wait()
	}
	if !appears(filepath.Join(x.work, "ready")) {
		job.Stop()
		return wait()
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err == nil {
		_ = unix.Close(fd)
	}
	write(x.T, filepath.Join(x.work, "done"), "")
	o := wait()
	o.sees("host-refused", err != nil)
	return o
}

func fillTemporary(x *trial) *outcome {
	l := x.l
	dir := "/tmp"
	if x.control {
		dir = filepath.Join(x.near, x.name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			x.Fatal(err)
		}
		x.Cleanup(func() { remove(x.T, dir) })
	}
	r, o := x.send(l, "fill", dir, "20", "32", "0")
	o.died(r, "fill")
	return o
}

// usage is the sum of the files' blocks below dir.
func usage(dir string) int64 {
	var sum int64
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // what is gone takes no room
		}
		if info, err := d.Info(); err == nil {
			if s, ok := info.Sys().(*syscall.Stat_t); ok {
				sum += s.Blocks * 512
			}
		}
		return nil
	})
	return sum
}

func count(dir string) int {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0
	}
	return len(entries)
}

func endlessOutput(x *trial) *outcome {
	l := x.l
	l.Argv, l.Deadline = []string{"/usr/bin/yes", x.name}, 1500*time.Millisecond
	r, err := sandbox.Run(x.Context(), x.b, l)
	if err != nil {
		return &outcome{broken: []string{err.Error()}}
	}
	o := &outcome{}
	kept := int64(len(r.Stdout.Head) + len(r.Stdout.Tail))
	if r.Stdout.Total < 1<<20 {
		o.broken = append(o.broken, fmt.Sprintf("only %d bytes came", r.Stdout.Total))
	}
	o.sees("kept", kept > l.Output)
	o.sees("ended", r.Ended != sandbox.TimedOut)
	o.sees("late", r.Wall > 6*time.Second)
	return o
}

// stay has a child beat into a file after its parent ended or was ended, and looks
// whether the beat goes on.
func (x *trial) stay(how string, endless bool) *outcome {
	x.Helper()
	mark := "hostile-" + random()
	x.clear(mark)
	l := x.launch(x.scratch())
	beat := filepath.Join(l.Dir, "beat")
	args := []string{beat, how, mark}
	if endless {
		l.Deadline = 800 * time.Millisecond
		args = append(args, "endless")
	}
	r, o := x.send(l, "stay", args...)
	o.held = nil // only the host can tell
	if endless && r.Ended == sandbox.TimedOut {
		o.broken = nil
	}
	if !exists(beat) {
		o.broken = append(o.broken, "no-child")
	}
	o.sees("beats", grows(beat))
	o.sees("process", len(marked(mark)) > 0)
	return o
}

func holdOutput(x *trial) *outcome {
	mark := "60." + strconv.Itoa(int(number()))
	x.clear(mark)
	l := x.l
	l.Line = "sleep " + mark + " & echo started"
	r, err := sandbox.Run(x.Context(), x.b, l)
	if err != nil || !seen(r, "started") {
		return &outcome{broken: []string{fmt.Sprint(err, r.Stderr.Text())}}
	}
	o := &outcome{}
	o.sees("held-up", r.Wall > 5*time.Second || r.Ended != sandbox.Exited)
	o.sees("process", len(marked(mark)) > 0)
	return o
}

func busyLoop(x *trial) *outcome {
	l := x.l
	l.Deadline = time.Second
	r, o := x.send(l, "spin")
	o.broken = nil // it says nothing
	o.sees("not-ended", r.Ended != sandbox.TimedOut)
	o.sees("late", r.Wall > 5*time.Second)
	return o
}

// outliveHost starts another process of this binary as the host of a launch, and
// kills it.
func outliveHost(x *trial) *outcome {
	mark := "hostile-" + random()
	x.clear(mark)
	beat := filepath.Join(x.work, "beat")
	l := x.l
	l.Argv = []string{x.attack(), "1", "stay", beat, "daemon", mark, "endless"}
	text, err := json.Marshal(doomed(l))
	if err != nil {
		x.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), envHost+"="+x.b.Name())
	cmd.Stdin = strings.NewReader(string(text))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		x.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		x.Fatal(err)
	}
	alive := appears(beat)
	_ = cmd.Process.Kill() // it is what this row is about
	said := drain(out)
	_ = cmd.Wait() // killed
	if !alive {
		return &outcome{broken: []string{"the launch did not start: " + said}}
	}
	o := &outcome{}
	o.sees("beats", !quiet(beat))
	o.sees("process", len(marked(mark)) > 0)
	return o
}

// doomed is what a host that is going to be killed is told of a launch.
func doomed(l sandbox.Launch) order {
	return order{Argv: l.Argv, Dir: l.Dir, Env: l.Env, Write: l.Write, Read: l.Read}
}

// order is a launch as it travels to another process of this binary.
type order struct {
	Argv, Env, Write, Read []string
	Dir                    string
}

// launch is the launch again.
func (o order) launch() sandbox.Launch {
	return sandbox.Launch{
		Purpose: sandbox.Script, Argv: o.Argv, Dir: o.Dir, Env: o.Env, Write: o.Write, Read: o.Read,
		Deadline: time.Minute, Output: 4 << 10, Processes: 128,
	}
}

// quiet waits for a file to grow no more, for a time that a host that was
// killed cannot promise but that is enough.
func quiet(name string) bool {
	for range 10 {
		if !grows(name) {
			return true
		}
	}
	return false
}

// appears waits for a file.
func appears(name string) bool {
	for range 500 {
		if exists(name) {
			return true
		}
		<-time.After(20 * time.Millisecond)
	}
	return false
}
