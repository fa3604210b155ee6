package sandbox

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"
)

// diskEntries is how many files and directories are counted in one look at the
// disk. A tree of more is as good as full: looking at it would take the host longer
// than filling it took the launch.
const diskEntries = 1 << 20

// diskShare bounds the part of the time that is spent looking at the disk: a look
// is followed by at least as many times its own duration of rest.
const diskShare = 4

// Grown looks at directories every now and then until they hold more than limit
// bytes, or ctx ends. It holds the directories that were there when it began, so that
// none can be swapped for another one. What was deleted while it is still open is not
// seen.
func Grown(ctx context.Context, dirs []string, limit int64) bool {
	roots := openRoots(dirs)
	defer func() {
		for _, r := range roots {
			_ = r.Close()
		}
	}()
	timer := time.NewTimer(sampleEvery)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-timer.C:
		}
		began := time.Now()
		if full(ctx, roots, limit) {
			return true
		}
		timer.Reset(max(sampleEvery, diskShare*time.Since(began)))
	}
}

// openRoots opens directories, but those that are links and those below others.
func openRoots(dirs []string) []*os.Root {
	var roots []*os.Root
	for i, dir := range dirs {
		if covered(dirs, i) {
			continue
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			continue // it is gone: then nothing can be written there either
		}
		named, err := os.Lstat(dir)
		opened, openedErr := root.Stat(".")
		if err != nil || openedErr != nil || !os.SameFile(named, opened) {
			_ = root.Close()
			continue
		}
		roots = append(roots, root)
	}
	return roots
}

// full reports whether directories hold more than limit bytes, too many files, or
// what cannot be counted.
func full(ctx context.Context, roots []*os.Root, limit int64) bool {
	m := &meter{limit: limit, seen: map[fileID]bool{}}
	for _, root := range roots {
		m.measure(ctx, root, 0)
	}
	return m.over()
}

// covered reports whether another directory already counts the one at i.
func covered(dirs []string, i int) bool {
	for j, other := range dirs {
		if i != j && Within(other, dirs[i]) && (other != dirs[i] || j < i) {
			return true
		}
	}
	return false
}

// entryCost is what the smallest file counts: a file system has only so many of them,
// however empty.
const entryCost = 4 << 10

// meter adds up what files take on the disk; files with several names once.
type meter struct {
	limit, bytes, entries int64
	seen                  map[fileID]bool
	hidden                bool // something cannot be counted
}

// diskDepth is how deep directories are counted, and diskNames how many names of one
// are read at a time. Each level is open while those below it are counted.
const (
	diskDepth = 128
	diskNames = 1 << 10
)

func (m *meter) over() bool {
	return m.hidden || m.bytes > m.limit || m.entries > diskEntries
}

// measure adds a directory, by single names and without following links. One that the
// host cannot list, or that lies too deep, could hold anything and counts as full.
func (m *meter) measure(ctx context.Context, root *os.Root, depth int) {
	dir, err := root.Open(".")
	if err != nil {
		m.hide(err)
		return
	}
	defer func() { _ = dir.Close() }()
	for ctx.Err() == nil && !m.over() {
		names, err := dir.Readdirnames(diskNames)
		for _, name := range names {
			m.measureOne(ctx, root, name, depth)
		}
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			m.hide(err)
			return
		}
	}
}

func (m *meter) measureOne(ctx context.Context, root *os.Root, name string, depth int) {
	info, err := root.Lstat(name)
	if err != nil || ctx.Err() != nil || m.over() {
		return // gone, or enough is known
	}
	m.entries++
	m.add(info)
	switch {
	case !info.IsDir():
	case depth == diskDepth:
		m.hidden = true
	default:
		below, err := root.OpenRoot(name)
		if err != nil {
			m.hide(err)
			return
		}
		defer func() { _ = below.Close() }()
		m.measure(ctx, below, depth+1)
	}
}

// hide notes that something cannot be counted, unless it is gone.
func (m *meter) hide(err error) {
	m.hidden = m.hidden || errors.Is(err, fs.ErrPermission)
}

func (m *meter) add(info fs.FileInfo) {
	size, id, shared := diskUse(info)
	if shared {
		if m.seen[id] {
			return
		}
		m.seen[id] = true
	}
	m.bytes += max(size, entryCost)
}
