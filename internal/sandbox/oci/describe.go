package oci

import (
	"fmt"
	"strconv"

	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/sandbox/program"
)

// recipe is all that the description of a container depends on.
type recipe struct {
	system program.System
	launch sandbox.Launch
	vector []string
	places []place
	limits []limit
	// who the launch is inside and, with mappings, who that is outside.
	uid, gid         int
	uidMaps, gidMaps []mapping
	// groups says that the runtime makes control groups, named after id.
	groups bool
	id     string
	filter *filter
	strong bool // a kernel of its own makes the namespaces
}

// place is a place with where it is mounted from, and how its owner shows.
type place struct {
	program.Place
	source     string
	uids, gids []mapping
}

// version is the oldest version of the specification that has all that is used.
const version = "1.0.2"

// describe is the description of the container.
func (r recipe) describe() config {
	none := []string{}
	env := r.launch.Env
	if env == nil {
		env = none
	}
	return config{
		Version: version,
		Process: process{
			User: user{r.uid, r.gid}, Args: r.vector, Env: env, Dir: r.launch.Dir,
			Capabilities: capabilities{none, none, none, none, none},
			Limits:       r.limits, NoNewPrivileges: true,
		},
		Root:     root{Path: skeleton, ReadOnly: true},
		Hostname: program.Hostname,
		Mounts:   r.mounts(),
		Linux:    r.linux(),
	}
}

// skeleton is the directory of the root in the bundle.
const skeleton = "rootfs"

func (r recipe) linux() linux {
	l := linux{UIDs: r.uidMaps, GIDs: r.gidMaps, Seccomp: r.filter, Propagation: "private", Masked: r.system.Masked, ReadOnly: r.system.Frozen}
	kinds := []string{"pid", "mount", "ipc", "uts", "cgroup"}
	if r.strong {
		kinds = []string{"pid", "mount", "ipc", "uts"}
	}
	if r.uidMaps != nil {
		kinds = append(kinds, "user")
	}
	if r.launch.Network.Mode != sandbox.NetworkOpen {
		kinds = append(kinds, "network")
	}
	for _, k := range kinds {
		l.Namespaces = append(l.Namespaces, namespace{k})
	}
	if r.groups {
		l.CgroupsPath = "/" + r.id
		l.Resources = r.resources()
	}
	return l
}

// spare is by how much the control group allows more memory than the launch has:
// the look at its memory ends it first and tells why, and the group is for what is
// too quick to be seen.
const spare = 8

func (r recipe) resources() *resources {
	var res resources
	if m := r.launch.Memory; m > 0 {
		m += m / spare
		res.Memory = &memory{Limit: m, Swap: m}
	}
	if p := r.launch.Processes; p > 0 {
		res.Pids = &pids{Limit: p}
	}
	return &res
}

// mounts are all mounts, in order.
func (r recipe) mounts() []mount {
	all := []mount{
		{Destination: "/proc", Type: "proc", Source: "proc", Options: []string{"nosuid", "nodev", "noexec"}},
		{Destination: "/dev", Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "noexec", "mode=755", "size=64k"}},
		{Destination: "/dev/pts", Type: "devpts", Source: "devpts", Options: []string{"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"}},
		tmpfs("/dev/shm", "1777", program.Shared(r.launch.Disk)),
		tmpfs("/tmp", "1777", r.launch.Disk),
	}
	if !r.strong { // a kernel of its own takes no number of files, and its memory is bounded
		for i, m := range all {
			if m.Destination == "/tmp" || m.Destination == "/dev/shm" {
				all[i].Options = append(m.Options, tmpFiles)
			}
		}
	}
	for _, p := range r.system.Shown {
		all = append(all, mount{Destination: p.Path, Type: "bind", Source: p.Path, Options: []string{"rbind", "ro", "nosuid", "nodev"}})
	}
	for _, p := range r.places {
		all = append(all, p.mount())
	}
	return all
}

// tmpFiles bounds the files of a private temporary directory: each takes memory of
// the kernel however small it is.
const tmpFiles = "nr_inodes=100000"

// hiddenSize bounds what lies in a directory that is shown empty: the mount points
// for what is shown below it.
const hiddenSize = 1 << 20

func (p place) mount() mount {
	if p.Kind == program.Hidden {
		m := tmpfs(p.Path, "755", hiddenSize)
		m.Options = append(m.Options, "ro", "noexec")
		return m
	}
	m := mount{Destination: p.Path, Type: "bind", Source: p.source, Options: []string{"rbind", "rw", "nosuid", "nodev"}, UIDs: p.uids, GIDs: p.gids}
	if p.Kind == program.Readable {
		m.Options[1] = "ro"
	}
	return m
}

func tmpfs(path, mode string, size int64) mount {
	m := mount{Destination: path, Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "nodev", "mode=" + mode}}
	if size > 0 {
		m.Options = append(m.Options, fmt.Sprintf("size=%s", strconv.FormatInt(size, 10)))
	}
	return m
}
