package sandbox

import (
	"context"
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

// Grown looks at the directories every now and then until they hold more than
// limit bytes, or ctx ends.
func Grown(ctx context.Context, dirs []string, limit int64) bool {
	timer := time.NewTimer(sampleEvery)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-timer.C:
		}
		began := time.Now()
		if full(ctx, dirs, limit) {
			return true
		}
		timer.Reset(max(sampleEvery, diskShare*time.Since(began)))
	}
}

// full reports whether the directories hold more than limit bytes or too many
// files. What cannot be read is not counted: it may be gone again.
func full(ctx context.Context, dirs []string, limit int64) bool {
	m := &meter{limit: limit, seen: map[fileID]bool{}}
	for i, dir := range dirs {
		if covered(dirs, i) {
			continue
		}
		if m.measure(ctx, dir); m.bytes > limit || m.entries > diskEntries {
			return true
		}
	}
	return false
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
}

// measure adds a directory, without following links out of it.
func (m *meter) measure(ctx context.Context, dir string) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return
	}
	defer func() { _ = root.Close() }()
	_ = fs.WalkDir(root.FS(), ".", func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // gone, or not for us to read
		}
		m.entries++
		if info, err := d.Info(); err == nil {
			m.add(info)
		}
		if ctx.Err() != nil || m.bytes > m.limit || m.entries > diskEntries {
			return fs.SkipAll
		}
		return nil
	})
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
