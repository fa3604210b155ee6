package hostile

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/metier-run/metier/internal/sandbox"
)

func fileRows() []row {
	return []row{
		{id: "fs01", what: "read a key in the home directory", verb: "read", setUp: func(x *trial) []string {
			return []string{pair("key", x.outside(x.home+"/.ssh", "id_ed25519"))}
		}},
		{id: "fs02", what: "read `/etc/shadow`", verb: "read", setUp: func(*trial) []string { return []string{"shadow=/etc/shadow"} }},
		{id: "fs03", what: "read another skill", verb: "read", setUp: func(x *trial) []string {
			return []string{pair("skill", x.outside(x.skills+"/other", "SKILL.md")), pair("dots", x.own()+"/../other/SKILL.md")}
		}},
		{id: "fs05", what: "write into the own skill", verb: "create", setUp: func(x *trial) []string {
			return []string{pair("new", filepath.Join(x.own(), x.name))}
		}, check: func(x *trial, _ sandbox.Result, o *outcome) {
			made := filepath.Join(x.own(), x.name)
			o.sees("new", exists(made))
			_ = os.Remove(made) // the control made it
		}},
		{id: "fs06", what: "write into home, `/usr`, `/etc`, `/var`, `/`", verb: "create", setUp: writeEverywhere, check: wroteEverywhere},
		{id: "fs07", what: "read and write a file of the host's `/tmp`", try: func(x *trial) *outcome { return x.sharedDir("/tmp") }},
		{id: "fs08", what: "read and write a file of the host's `/dev/shm`", try: func(x *trial) *outcome { return x.sharedDir("/dev/shm") }},
		{id: "fs09", what: "read and write through a link in the working directory", try: throughLink},
		{id: "fs10", what: "make a second name for an outside file", verb: "link", setUp: func(x *trial) []string {
			return []string{x.outside(x.near, x.name), filepath.Join(x.work, "hard"), filepath.Join(x.work, "hard-at")}
		}, check: func(x *trial, _ sandbox.Result, o *outcome) {
			o.sees("link", exists(filepath.Join(x.work, "hard")))
			o.sees("linkat", exists(filepath.Join(x.work, "hard-at")))
		}},
		{id: "fs11", what: "rename the working directory, and move a file out of it", verb: "rename", setUp: func(x *trial) []string {
			write(x.T, filepath.Join(x.work, "mine"), "mine")
			return []string{x.work, x.work + ".moved", filepath.Join(x.work, "mine"), filepath.Join(x.near, x.name)}
		}, check: func(x *trial, _ sandbox.Result, o *outcome) {
			o.sees("directory", exists(x.work+".moved"))
			o.sees("file", exists(filepath.Join(x.near, x.name)))
			remove(x.T, x.work+".moved")
			remove(x.T, filepath.Join(x.near, x.name))
		}},
		{id: "fs12", what: "the working directory becomes a link while the launch starts", costly: true, try: swapWhileStarting},
		{id: "fs13", what: "change mode, times, attributes, owner of an outside file; cut and remove it", verb: "meta", setUp: func(x *trial) []string {
			return []string{x.outside(x.far, x.name), x.outside(x.far, x.name+"-gone")}
		}, check: changedMeta},
		{id: "fs14", what: "look at outside files: stat, enter, watch, access", verb: "look", setUp: func(x *trial) []string { return []string{x.home} }},
		{
			id: "fs15", what: "make a set-user-id or set-group-id file", verb: "suid-make", setUp: func(x *trial) []string { return []string{x.work} },
			check: func(x *trial, _ sandbox.Result, o *outcome) {
				for _, name := range special(x.work, fs.ModeSetuid|fs.ModeSetgid) {
					o.add("on-disk-" + name)
				}
			},
		},
		{id: "fs16", what: "make a device", verb: "mknod", setUp: func(x *trial) []string {
			return []string{filepath.Join(x.work, "char"), filepath.Join(x.work, "block")}
		}, check: func(x *trial, _ sandbox.Result, o *outcome) {
			for _, name := range special(x.work, fs.ModeDevice) {
				o.add(name)
			}
		}},
		{id: "fs17", what: "gain from a set-user-id program", verb: "suid-run", setUp: func(x *trial) []string {
			if !exists(x.suid()) {
				x.Skip("the suite was not started by root, so there is no such program")
			}
			return []string{x.suid()}
		}},
		{id: "fs19", what: "open devices of the host", verb: "open-read", setUp: func(x *trial) []string { return devices() }},
		{id: "fs20", what: "leave deceiving names, a FIFO, a sparse file and links for the host that keeps the files", kind: manners, confinedOnly: true, try: leaveForHost},
		{id: "fs21", what: "leave a git hook and `.envrc` for whoever works there next (not prevented)", kind: told, try: leaveTraps},
		{id: "fs22", what: "list outside folders", verb: "list", setUp: func(x *trial) []string {
			x.outside(x.home, x.secret) // its name is what shows
			return []string{pair("home", x.home), "root=/root"}
		}},
	}
}

func writeEverywhere(x *trial) []string {
	args := []string{pair(probeOf(x.home), filepath.Join(x.home, x.name)), pair(probeOf(x.near), filepath.Join(x.near, x.name))}
	if x.control { // it would succeed
		return args
	}
	for _, dir := range []string{"/usr", "/usr/bin", "/usr/lib", "/etc", "/var", "/dev", "/proc", "/opt", "/run", "/home", "/"} {
		args = append(args, pair(probeOf(dir), filepath.Join(dir, x.name)))
	}
	return args
}

func probeOf(dir string) string { return "dir" + strings.ReplaceAll(dir, "/", "-") }

func wroteEverywhere(x *trial, _ sandbox.Result, o *outcome) {
	for _, probe := range slices.Clone(o.escaped) {
		o.deny(probe, "private") // it may be a place of the launch's own: the host says
	}
	for _, dir := range []string{x.home, x.near, "/usr", "/usr/bin", "/usr/lib", "/etc", "/var", "/dev", "/opt", "/run", "/home", "/"} {
		made := filepath.Join(dir, x.name)
		if exists(made) {
			o.add(probeOf(dir))
			_ = os.Remove(made) // as root it can be
		}
	}
}

// sharedDir tries a directory that everybody may write. Within the sandbox it is a
// private one, so that only the host can tell.
func (x *trial) sharedDir(dir string) *outcome {
	x.outside(dir, x.name)
	made := filepath.Join(dir, x.name+"-new")
	_, read := x.send(x.l, "read", pair("file", filepath.Join(dir, x.name)))
	_, wrote := x.send(x.l, "create", pair("new", made))
	o := &outcome{}
	o.merge("read", read)
	o.broken = append(o.broken, wrote.broken...)
	o.sees("create", exists(made))
	_ = os.Remove(made) // the control made it
	return o
}

func throughLink(x *trial) *outcome {
	target := x.outside(x.home, x.name)
	for _, name := range []string{"a", "b"} {
		if err := os.Symlink(target, filepath.Join(x.work, name)); err != nil {
			x.Fatal(err)
		}
	}
	if err := os.Symlink(x.home, filepath.Join(x.work, "dir")); err != nil {
		x.Fatal(err)
	}
	o := &outcome{}
	_, read := x.send(x.l, "read", "file="+x.work+"/a", "folder="+x.work+"/dir/"+x.name)
	_, wrote := x.send(x.l, "append", "file="+x.work+"/b")
	o.merge("read", read)
	o.merge("write", wrote)
	after, err := os.ReadFile(target)
	o.sees("changed", err != nil || string(after) != x.secret+"\n")
	return o
}

// swapWhileStarting has the working directory change places, all the time, with a
// link to a folder that holds the secret.
func swapWhileStarting(x *trial) *outcome {
	other := filepath.Join(x.far, x.name)
	if err := os.Mkdir(other, 0o755); err != nil {
		x.Fatal(err)
	}
	x.Cleanup(func() { remove(x.T, other) })
	x.outside(other, "treasure")
	link := x.work + ".link"
	if err := os.Symlink(other, link); err != nil {
		x.Fatal(err)
	}
	done := make(chan struct{})
	var swaps sync.WaitGroup
	swaps.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				_ = unix.Renameat2(unix.AT_FDCWD, x.work, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE)
			}
		}
	})
	o := &outcome{}
	leaked, wrote, ran := 0, 0, 0
	for range 40 {
		r, got := x.send(x.l, "read", "relative=treasure", "absolute="+x.work+"/treasure")
		if len(got.broken) == 0 {
			ran++
		}
		if seen(r, x.secret) {
			leaked++
		}
		_, _ = x.send(x.l, "create", "relative=planted")
		if exists(filepath.Join(other, "planted")) {
			wrote++
			_ = os.Remove(filepath.Join(other, "planted"))
		}
	}
	close(done)
	swaps.Wait()
	_ = os.Remove(link) // one of the two is the link
	_ = os.Remove(x.work)
	x.Logf("of 40 starts %d ran, %d read the secret, %d wrote beside it", ran, leaked, wrote)
	o.sees("read", leaked > 0)
	o.sees("write", wrote > 0)
	return o
}

func changedMeta(x *trial, _ sandbox.Result, o *outcome) {
	path := filepath.Join(x.far, x.name)
	info, err := os.Lstat(path)
	if err != nil {
		o.broken = append(o.broken, err.Error())
		return
	}
	n, _ := unix.Lgetxattr(path, "user.hostile", make([]byte, 8)) // absent is -1
	o.sees("chmod", info.Mode().Perm() != 0o644)
	o.sees("utime", info.ModTime().Year() < 2000)
	o.sees("setxattr", n > 0)
	o.sees("truncate", info.Size() < 2)
	o.sees("unlink", !exists(path+"-gone"))
}

// special are files below dir with one of the mode's bits.
func special(dir string, mode fs.FileMode) []string {
	var names []string
	_ = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // what is gone is no file
		}
		if info, err := d.Info(); err == nil && info.Mode()&mode != 0 && !info.IsDir() {
			names = append(names, filepath.Base(name))
		}
		return nil
	})
	return names
}

// devices are those of the list that this machine has.
func devices() []string {
	var args []string
	for _, name := range []string{
		"kmsg", "mem", "port", "vsock", "fuse", "net/tun", "console", "tty0", "kvm", "loop0", "loop-control", "vda", "sda", "nvme0n1", "hwrng", "cpu_dma_latency", "snapshot", "autofs",
	} {
		if name == "kmsg" && user() != "root" {
			continue // some kernels let everybody read it and some do not (kernel.dmesg_restrict)
		}
		if exists("/dev/" + name) {
			args = append(args, pair(name, "/dev/"+name))
		}
	}
	return args
}

// leaveTraps leaves what runs when somebody works in the folder afterwards.
func leaveTraps(x *trial) *outcome {
	l := x.l
	l.Line = `mkdir -p .git/hooks && printf '#!/bin/sh\n' > .git/hooks/pre-commit && chmod +x .git/hooks/pre-commit && echo export A=1 > .envrc`
	r, err := sandbox.Run(x.Context(), x.b, l)
	if err != nil || !r.OK() {
		return &outcome{broken: []string{fmt.Sprint(err, r.Stderr.Text())}}
	}
	o := &outcome{}
	o.sees("hook", exists(filepath.Join(x.work, ".git/hooks/pre-commit")))
	o.sees("envrc", exists(filepath.Join(x.work, ".envrc")))
	return o
}
