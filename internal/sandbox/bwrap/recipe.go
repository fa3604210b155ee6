package bwrap

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/sandbox/program"
)

// recipe is all that the arguments of bubblewrap depend on.
type recipe struct {
	system program.System
	etc    []program.File
	places []program.Place
	launch sandbox.Launch
	vector []string
	// uid and gid are the launch's, as it sees them; as leaves them as they are
	// outside.
	uid, gid int
	as       bool
	// late leaves what the launch names to be mounted from outside; see
	// late_linux.go.
	late bool
}

// fds are the numbers of descriptors that bubblewrap gets.
type fds struct {
	args, info, filter int
	// next is the first one for files and places, which follow in the order in
	// which the arguments name them.
	next int
}

// order are the descriptors in the order in which they are passed.
func order() fds { return fds{args: 3, info: 4, filter: 5, next: 6} }

// command is what stands on the command line; all else is read from a descriptor.
func (r recipe) command(path string, fd fds) []string {
	return append([]string{path, "--args", strconv.Itoa(fd.args), "--"}, r.vector...)
}

// arguments are what bubblewrap reads from a descriptor. texts are the files, and
// binds the places, whose descriptors follow fd.next in this order: first all texts,
// then all binds.
func (r recipe) arguments(fd fds) (args []string, texts []string, binds []program.Place) {
	b := &builder{fd: fd}
	b.add("--unshare-user", "--disable-userns", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup")
	if r.launch.Network.Mode != sandbox.NetworkOpen {
		b.add("--unshare-net")
	}
	if r.as {
		b.add("--uid", strconv.Itoa(r.uid), "--gid", strconv.Itoa(r.gid))
	}
	b.add("--die-with-parent", "--new-session", "--cap-drop", "ALL", "--hostname", program.Hostname)
	b.environment(r.launch.Env)
	b.shownSystem(r.system)
	for _, f := range r.etc {
		b.file(f)
	}
	for _, d := range program.Dirs() {
		b.add("--dir", d)
	}
	for _, l := range program.Links(r.places) {
		b.add("--symlink", l.Target, l.Path)
	}
	b.devices(r.system, r.launch.Disk)
	empty := b.shownPlaces(r.places, r.late)
	for _, p := range append(empty, "/dev", "/") {
		b.add("--remount-ro", p)
	}
	b.add("--chdir", r.launch.Dir, "--seccomp", strconv.Itoa(fd.filter), "--info-fd", strconv.Itoa(fd.info))
	return b.args, b.texts, b.binds
}

type builder struct {
	fd    fds
	args  []string
	texts []string
	binds []program.Place
}

func (b *builder) add(args ...string) { b.args = append(b.args, args...) }

// nextFD is the number of the next descriptor. Texts come before binds.
func (b *builder) nextFD() string { return strconv.Itoa(b.fd.next + len(b.texts) + len(b.binds)) }

func (b *builder) environment(env []string) {
	b.add("--clearenv")
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		b.add("--setenv", name, value)
	}
}

func (b *builder) shownSystem(s program.System) {
	for _, p := range s.Shown {
		b.add("--ro-bind", p.Path, p.Path)
	}
	for _, l := range s.Links {
		b.add("--symlink", l.Target, l.Path)
	}
}

func (b *builder) file(f program.File) {
	b.add("--perms", "0444", "--file", b.nextFD(), f.Path)
	b.texts = append(b.texts, f.Text)
}

// devices are what bubblewrap makes itself, with what tells of the kernel
// covered. Sizes are bounded, as the memory behind them is the host's.
func (b *builder) devices(s program.System, disk int64) {
	b.add("--proc", "/proc")
	for _, p := range s.Masked {
		b.add("--ro-bind", "/dev/null", p)
	}
	for _, p := range s.Frozen {
		b.add("--ro-bind", p, p)
	}
	b.add("--dev", "/dev")
	b.tmpfs("/dev/shm", "1777", program.Shared(disk))
	b.tmpfs("/tmp", "1777", disk)
}

func (b *builder) tmpfs(path, perms string, size int64) {
	b.add("--perms", perms)
	if size > 0 {
		b.add("--size", strconv.FormatInt(size, 10))
	}
	b.add("--tmpfs", path)
}

// hiddenSize bounds what lies in a directory that is shown empty: the mount points
// for what is shown below it.
const hiddenSize = 1 << 20

// shownPlaces mounts what the launch names, and returns the empty directories,
// which can be made read-only only after all is mounted.
func (b *builder) shownPlaces(places []program.Place, late bool) []string {
	var empty []string
	for _, p := range places {
		switch {
		case p.Kind == program.Hidden && !(late && p.Under != program.Hidden):
			b.tmpfs(p.Path, "0755", hiddenSize)
			empty = append(empty, p.Path)
		case p.Kind == program.Hidden || late && p.Under != program.Hidden:
			// What lies around it comes late, and so does it.
		case late:
			b.mountPoint(p)
		default:
			b.bind(p)
		}
	}
	slices.Reverse(empty)
	return empty
}

// mountPoint makes what a mount from outside will cover.
func (b *builder) mountPoint(p program.Place) {
	if p.Dir {
		b.add("--dir", p.Path)
		return
	}
	b.add("--dir", filepath.Dir(p.Path), "--perms", "0444", "--file", b.nextFD(), p.Path)
	b.texts = append(b.texts, "")
}

func (b *builder) bind(p program.Place) {
	how := "--ro-bind-fd"
	if p.Kind == program.Writable {
		how = "--bind-fd"
	}
	b.add(how, b.nextFD(), p.Path)
	b.binds = append(b.binds, p)
}
