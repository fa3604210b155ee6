package hostile

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/metier-run/metier/internal/sandbox"
)

func processRows() []row {
	return []row{
		{id: "pr01", what: "read secrets in environments under `/proc`", verb: "find", setUp: func(x *trial) []string {
			x.victim()
			return []string{"environ", x.secret[:10], x.secret[10:]}
		}},
		{id: "pr02", what: "read secrets in command lines under `/proc`", verb: "find", setUp: func(x *trial) []string {
			x.victim(x.secret)
			return []string{"cmdline", x.secret[:10], x.secret[10:]}
		}},
		{id: "pr03", what: "inherit the host's environment (`LD_PRELOAD`, `BASH_ENV`, secrets)", kind: manners, verb: "environment", setUp: func(x *trial) []string {
			for _, name := range []string{"HOSTILE_TOKEN", "BASH_ENV", "LD_PRELOAD", "NODE_OPTIONS"} {
				x.Setenv(name, "/nonexistent/"+x.secret)
			}
			return nil
		}},
		{id: "pr04", what: "read, change or run the program of another process through `/proc/PID/exe`", verb: "exe", setUp: func(x *trial) []string {
			return x.targets(x.victim())
		}},
		{id: "pr05", what: "trace another process", verb: "ptrace", setUp: func(x *trial) []string { return x.targets(x.victim()) }},
		{id: "pr06", what: "read and write another process's memory by system call", verb: "vm", setUp: addresses},
		{id: "pr07", what: "read another process's memory through `/proc/PID/mem`", verb: "mem", setUp: addresses},
		{id: "pr08", what: "kill a process by every way to send a signal", try: killVictims},
		{id: "pr09", what: "kill all that may be killed", kind: manners, confinedOnly: true, try: killAll},
		{id: "pr10", what: "kill process 1 or whatever watches, thread by thread, by every signal", kind: manners, confinedOnly: true, verb: "kill-init"},
		{id: "pr11", what: "change limits, processors, priority of another process", verb: "change", setUp: func(x *trial) []string {
			v := x.victim()
			if x.control {
				return []string{pair("victim", v.pid)}
			}
			return []string{pair("victim", v.pid), "init=1", "parent=parent"}
		}},
		{id: "pr12", what: "raise the own limits", verb: "raise"},
		{id: "pr13", what: "find a descriptor that was inherited, of the host or of the control channel", verb: "descriptors", setUp: func(x *trial) []string {
			x.leak(x.outside(x.far, x.name))
			return nil
		}},
		{id: "pr26", what: "leave 200 orphans whose end nobody asks for", kind: manners, verb: "orphans"},
		{id: "pr27", what: "look into process 1 through `/proc/1` (root, cwd, fd, maps, environ, mem)", verb: "inside", setUp: func(x *trial) []string {
			if x.control {
				return []string{pairPid(x.victim())}
			}
			return []string{"1"}
		}},
		{id: "pr28", what: "read paths of the host in the command line of process 1 and in `/proc/self/mountinfo`", try: readPaths, kind: manners},
		{id: "pr29", what: "lower the priority of all processes of the user", kind: manners, confinedOnly: true, try: lowerAll},
		{id: "pr30", what: "take a real-time or higher priority", verb: "urgent"},
		{id: "pr31", what: "forge the words of the control channel in the output", kind: manners, try: forge},
		{id: "pr32", what: "start a copy of the host's program under the name of its own child", kind: manners, try: pose},
		{id: "pr33", what: "gain rights: user 0, groups, capabilities", verb: "rise"},
		{id: "pr34", what: "see, reach or read another launch beside it", try: meetPeer},
	}
}

func pairPid(v *victim) string { _, pid, _ := strings.Cut(pair("", v.pid), "="); return pid }

// addresses are the victim's secret, and a place where a program of the host is
// mapped.
func addresses(x *trial) []string {
	v := x.victim()
	args := []string{pair("victim", pairPid(v)+":"+v.addr)}
	if x.control {
		return args
	}
	return append([]string{"init=1:400000", "parent=parent:400000"}, args...)
}

func killVictims(x *trial) *outcome {
	ways := []string{"kill", "sigqueue", "tgkill", "pidfd", "group"}
	victims, args := []*victim{}, []string{}
	for range ways {
		v := x.victim()
		victims, args = append(victims, v), append(args, pairPid(v))
	}
	_, o := x.send(x.l, "kill", args...)
	for i, v := range victims {
		o.sees(ways[i], v.died())
	}
	return o
}

func killAll(x *trial) *outcome {
	v := x.victim()
	_, o := x.send(x.l, "kill-all")
	o.sees("victim", v.died())
	return o
}

// lowerAll: within the sandbox a user may do it; the host's processes must not be
// touched.
func lowerAll(x *trial) *outcome {
	v := x.victim()
	before, err := unix.Getpriority(unix.PRIO_PROCESS, v.pid)
	_, o := x.send(x.l, "change-user")
	after, err2 := unix.Getpriority(unix.PRIO_PROCESS, v.pid)
	if err != nil || err2 != nil {
		o.broken = append(o.broken, "priority")
	}
	o.sees("victim", before != after)
	return o
}

// readPaths: a name of the host that a launch needs, its own folders, it knows
// anyway; it must learn of no other.
func readPaths(x *trial) *outcome {
	l := x.l
	l.Line = "tr '\\0' ' ' < /proc/1/cmdline; cat /proc/self/mountinfo /proc/self/cgroup /proc/self/environ /proc/self/maps"
	r, err := sandbox.Run(x.Context(), x.b, l)
	if err != nil || r.Stdout.Total == 0 {
		return &outcome{broken: []string{"launch"}}
	}
	o := &outcome{}
	o.sees("home", seen(r, x.home))
	o.sees("other-skill", seen(r, x.skills+"/other"))
	exe, err := os.Executable()
	o.sees("program-of-the-host", err == nil && seen(r, exe))
	return o
}

func forge(x *trial) *outcome {
	r, o := x.send(x.l, "forge", "41")
	o.broken = nil // it ends without a verdict, on purpose
	o.sees("descriptor", seen(r, "SEEN descriptor"))
	o.sees("result", r.Ended != sandbox.Exited || r.Exit != 41)
	return o
}

// pose gives a launch a copy of this very program, which is a host, and has it
// started under the names of the host's children, with a control socket that asks
// for a process of root.
func pose(x *trial) *outcome {
	copyFile(x.T, "/proc/self/exe", filepath.Join(x.work, "host"))
	before := x.victim()
	args := []string{filepath.Join(x.work, "host"), `{"OuterU":0,"OuterG":0}`}
	for _, name := range []string{"spawner", "init", "locked", "holder"} {
		args = append(args, "metier-sandbox-"+name)
	}
	_, o := x.send(x.l, "pose", args...)
	o.sees("victim", before.died())
	return o
}

// meetPeer has two launches at once, of which one has something of everything.
func meetPeer(x *trial) *outcome {
	name, key, port := x.name, pair("", 1+number()>>8)[1:], freePort(x.T)
	x.clear(name)
	peer := x.launch(x.scratch())
	peer.Env = append(peer.Env, "SECRET="+x.secret)
	job, wait := x.start(peer, "peer", peer.Dir, name, port, key)
	o := &outcome{}
	if job == nil {
		return wait()
	}
	if !appears(filepath.Join(peer.Dir, "ready")) {
		job.Stop()
		return wait()
	}
	write(x.T, filepath.Join(peer.Dir, "hers"), x.secret)
	for _, try := range [][]string{
		{"abstract", "socket=" + name},
		{"tcp", "loopback=127.0.0.1/" + port},
		{"ipc", key},
		{"read", "tmp=/tmp/" + name, "shm=/dev/shm/" + name, "var=/var/tmp/" + name, "work=" + peer.Dir + "/hers"},
		{"find", "cmdline", name[:12], name[12:]},
		{"find", "environ", x.secret[:10], x.secret[10:]},
	} {
		_, got := x.send(x.l, try[0], try[1:]...)
		if try[0] == "ipc" { // the peer has only shared memory
			got.held = slices.DeleteFunc(got.held, func(h string) bool { return !strings.HasPrefix(h, "shm") })
		}
		o.merge(try[0], got)
	}
	write(x.T, filepath.Join(peer.Dir, "done"), "")
	if theirs := wait(); len(theirs.broken) > 0 {
		o.merge("peer", theirs)
	}
	return o
}
