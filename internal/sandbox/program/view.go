package program

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/metier-run/metier/internal/sandbox"
)

// System is what every launch sees of the host.
type System struct {
	// Shown are files and directories that can be read, in order. Links are links
	// that are made as the host has them, so that a merged /usr looks as it does
	// outside.
	Shown []Shown
	Links []Link
	// Masked are files of /proc that tell of the kernel; Frozen are directories of
	// it that change the kernel when they are written to. Only those that this host
	// has are listed.
	Masked, Frozen []string
}

// Shown is a file or a directory.
type Shown struct {
	Path string
	Dir  bool
}

// Link is a symbolic link.
type Link struct{ Path, Target string }

// File is a file that is made for a launch.
type File struct{ Path, Text string }

// ReadSystem looks at what this host has.
func ReadSystem() (System, error) {
	var s System
	for _, p := range slices.Concat(systemDirs(), systemFiles()) {
		info, err := os.Lstat(p)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return s, fmt.Errorf("look at %s: %w", p, err)
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			s.Shown = append(s.Shown, Shown{Path: p, Dir: info.IsDir()})
			continue
		}
		target, err := os.Readlink(p)
		if err != nil {
			return s, fmt.Errorf("look at %s: %w", p, err)
		}
		s.Links = append(s.Links, Link{Path: p, Target: target})
	}
	s.Masked, s.Frozen = present(maskedParts()), present(frozenParts())
	return s, nil
}

func present(paths []string) []string {
	return slices.DeleteFunc(paths, func(p string) bool {
		_, err := os.Lstat(p)
		return err != nil
	})
}

// systemDirs can be read by every launch. /opt, /srv and /var may hold what belongs
// to others, and are named by a launch that needs something in them.
func systemDirs() []string {
	return []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store"}
}

// systemFiles are the parts of /etc that programs need and that tell nothing of
// this host's users and services.
func systemFiles() []string {
	return []string{
		"/etc/alternatives", "/etc/ca-certificates", "/etc/fonts", "/etc/gai.conf", "/etc/ld.so.cache", "/etc/ld.so.conf",
		"/etc/ld.so.conf.d", "/etc/localtime", "/etc/magic", "/etc/mime.types", "/etc/papersize", "/etc/pki/ca-trust/extracted",
		"/etc/pki/tls/certs", "/etc/protocols", "/etc/services", "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/terminfo",
		"/etc/timezone",
	}
}

func maskedParts() []string {
	return []string{
		"/proc/cmdline", "/proc/config.gz", "/proc/kallsyms", "/proc/kcore", "/proc/key-users", "/proc/keys", "/proc/kmsg",
		"/proc/kpagecgroup", "/proc/kpagecount", "/proc/kpageflags", "/proc/latency_stats", "/proc/modules", "/proc/sched_debug",
		"/proc/slabinfo", "/proc/timer_list", "/proc/vmallocinfo",
	}
}

func frozenParts() []string {
	return []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
}

// Etc are the files in place of which the host's would tell who its users are, and
// where its services. uid and gid are those of the launch, as it sees them. With
// an open network, names are resolved as the host resolves them.
func Etc(uid, gid int, n sandbox.NetworkMode) []File {
	hosts, resolver := "127.0.0.1 localhost\n::1 localhost\n", ""
	if n == sandbox.NetworkOpen {
		hosts, resolver = hostText("/etc/hosts", hosts), hostText("/etc/resolv.conf", "")
	}
	passwd, group := "root:x:0:0:root:/nonexistent:/usr/sbin/nologin\n", "root:x:0:\n"
	if uid != 0 {
		passwd += fmt.Sprintf("user:x:%d:%d:user:/tmp:/bin/sh\n", uid, gid)
		group += fmt.Sprintf("user:x:%d:\n", gid)
	}
	return []File{
		{"/etc/group", group + "nogroup:x:65534:\n"},
		{"/etc/hostname", Hostname + "\n"},
		{"/etc/hosts", hosts},
		{"/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n"},
		{"/etc/passwd", passwd + "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"},
		{"/etc/resolv.conf", resolver},
	}
}

// Hostname is the name of the machine that a launch sees.
const Hostname = "sandbox"

func hostText(path, other string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return other
	}
	return string(text)
}

// Kind says what becomes of a place.
type Kind int

// The kinds.
const (
	Hidden   Kind = iota // an empty directory
	Readable             // the host's, read-only
	Writable             // the host's
)

// Place is one thing that a launch names.
type Place struct {
	Path string
	Kind Kind
	Dir  bool
	// Under is what lies around it: the kind of the nearest place above, or Hidden if
	// there is none, since a root of its own is empty.
	Under Kind
}

// Places are what a launch names, in the order in which they have to be mounted:
// what lies above first. A path that is named more than once is what the most
// generous of its names says. A path that cannot be shown is an error.
func Places(l sandbox.Launch) ([]Place, error) {
	var all []Place
	for _, named := range []struct {
		kind  Kind
		paths []string
	}{{Writable, l.Write}, {Readable, l.Read}, {Hidden, l.Hide}} {
		for _, p := range named.paths {
			if slices.ContainsFunc(all, func(o Place) bool { return o.Path == p }) {
				continue
			}
			place := Place{Path: p, Kind: named.kind}
			err := place.look()
			if named.kind == Hidden && errors.Is(err, fs.ErrNotExist) {
				continue // what is not there needs no hiding
			}
			if err != nil {
				return nil, fmt.Errorf("show %s: %w", p, err)
			}
			all = append(all, place)
		}
	}
	slices.SortFunc(all, func(a, b Place) int { return cmp.Compare(parts(a.Path), parts(b.Path)) })
	for i := range all {
		all[i].Under = around(all[:i], all[i].Path)
	}
	return all, nil
}

func (p *Place) look() error {
	real, err := filepath.EvalSymlinks(p.Path)
	if err != nil {
		return err
	}
	if real != p.Path {
		return fmt.Errorf("it leads to %s over a symbolic link: name that", real)
	}
	info, err := os.Stat(p.Path)
	if err != nil {
		return err
	}
	p.Dir = info.IsDir()
	if !p.Dir && (p.Kind != Readable || !info.Mode().IsRegular()) {
		return errors.New("it is not a directory")
	}
	return nil
}

// parts is how deep a path lies.
func parts(path string) int { return strings.Count(path, string(filepath.Separator)) }

// around is the kind of the deepest place above a path.
func around(above []Place, path string) Kind {
	kind, deepest := Hidden, 0
	for _, p := range above {
		if n := parts(p.Path); sandbox.Within(p.Path, path) && n >= deepest {
			kind, deepest = p.Kind, n
		}
	}
	return kind
}

// Links are what every launch has beside the system's: /var/tmp leads to its own
// /tmp, unless it names something in there.
func Links(places []Place) []Link {
	const link = "/var/tmp"
	if slices.ContainsFunc(places, func(p Place) bool { return sandbox.Within(link, p.Path) }) {
		return nil
	}
	return []Link{{Path: link, Target: "/tmp"}}
}

// Dirs are directories that every launch has, empty.
func Dirs() []string { return []string{"/home", "/run", "/var"} }

// Shared is how large /dev/shm may become for a launch that may write limit bytes;
// 0 is no limit.
func Shared(limit int64) int64 { return limit / 4 }
