package packages

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// treeError says what in a tree is not allowed.
type treeError struct {
	path, why string
	full      bool // it is only too much
}

func (e *treeError) Error() string { return strconv.Quote(e.path) + " " + e.why }

// seen is what a look at a tree found. The digest is over names, kinds, the right to be
// run, link targets and bytes; times and owners are not in it.
type seen struct {
	digest         string
	entries, bytes int64
	cost           int64
}

// block is the unit in which file systems give out space. Each entry counts with one for
// its own record, so that the number of entries is bounded as well.
const block = 4096

// maxDepth is how deep a tree may be.
const maxDepth = 64

// look reads a tree whole. Regular files, folders, and links that stay inside are
// allowed; anything else is a [*treeError], and so is more than most bytes. The installer
// has ended, so nothing moves; still nothing is followed out of the tree.
func look(ctx context.Context, dir string, most int64) (seen, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return seen{}, err
	}
	defer root.Close()
	l := &looker{root: root, sum: sha256.New(), most: most, full: true}
	if err := l.folder(ctx, ".", 0); err != nil {
		return seen{}, err
	}
	l.digest = hex.EncodeToString(l.sum.Sum(nil)[:20])
	return l.seen, nil
}

// glance counts a tree without reading its files. It sees what was removed, added, cut
// or lengthened.
func glance(ctx context.Context, dir string) (seen, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return seen{}, err
	}
	defer root.Close()
	l := &looker{root: root, most: 1 << 62}
	err = l.folder(ctx, ".", 0)
	return l.seen, err
}

type looker struct {
	seen
	root *os.Root
	sum  hash.Hash
	most int64
	full bool
}

// write adds a field to the digest, with its length, so that no two lists of fields are
// the same bytes.
func (l *looker) write(fields ...string) {
	if !l.full {
		return
	}
	for _, f := range fields {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(f)))
		_, _ = l.sum.Write(n[:]) // a hash takes everything
		_, _ = io.WriteString(l.sum, f)
	}
}

func (l *looker) folder(ctx context.Context, dir string, depth int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if depth > maxDepth {
		return &treeError{path: dir, why: "lies too deep"}
	}
	f, err := l.root.Open(filepath.FromSlash(dir))
	if err != nil {
		return err
	}
	entries, err := f.ReadDir(-1)
	_ = f.Close() // it was only read
	if err != nil {
		return err
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	for _, e := range entries {
		if err := l.entry(ctx, path.Join(dir, e.Name()), depth); err != nil {
			return err
		}
	}
	return nil
}

func (l *looker) entry(ctx context.Context, name string, depth int) error {
	info, err := l.root.Lstat(filepath.FromSlash(name))
	if err != nil {
		return err
	}
	l.entries++
	l.cost += block + (info.Size()+block-1)/block*block
	if l.cost > l.most {
		return &treeError{path: name, why: fmt.Sprintf("is beyond the %d bytes that one set of packages may have", l.most), full: true}
	}
	switch mode := info.Mode(); {
	case mode&(fs.ModeSetuid|fs.ModeSetgid) != 0 && !mode.IsDir():
		return &treeError{path: name, why: "would run with the rights of its owner"}
	case mode.IsDir():
		l.write("d", name)
		return l.folder(ctx, name, depth+1)
	case mode&fs.ModeSymlink != 0:
		return l.link(name)
	case !mode.IsRegular():
		return &treeError{path: name, why: "is neither a file nor a folder"}
	case names(info) > 1:
		return &treeError{path: name, why: "has a second name, which may lie outside"}
	default:
		return l.file(name, info)
	}
}

// link takes a link whose target is there and inside of the tree, by its spelling and in
// fact.
func (l *looker) link(name string) error {
	target, err := l.root.Readlink(filepath.FromSlash(name))
	if err != nil {
		return err
	}
	to := filepath.ToSlash(target)
	if filepath.IsAbs(target) || path.IsAbs(to) || !filepath.IsLocal(filepath.FromSlash(path.Join(path.Dir(name), to))) {
		return &treeError{path: name, why: "is a link that leads out"}
	}
	if _, err := l.root.Stat(filepath.FromSlash(name)); err != nil {
		return &treeError{path: name, why: "is a link that leads out or nowhere"}
	}
	l.bytes += int64(len(to))
	l.write("l", name, to)
	return nil
}

func (l *looker) file(name string, info fs.FileInfo) error {
	l.bytes += info.Size()
	if !l.full {
		return nil
	}
	run := "-"
	if info.Mode().Perm()&0o100 != 0 {
		run = "x"
	}
	l.write("f", name, run, strconv.FormatInt(info.Size(), 10))
	f, err := l.root.Open(filepath.FromSlash(name))
	if err != nil {
		return err
	}
	defer f.Close()
	n, err := io.CopyN(l.sum, f, info.Size())
	if err != nil || n != info.Size() {
		return fmt.Errorf("read %q: it is shorter than it was", name)
	}
	return nil
}

// harden makes everything in a tree readable by all and writable by nobody.
func harden(dir string) error {
	return filepath.WalkDir(dir, func(at string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.Type()&fs.ModeSymlink != 0:
			return nil
		case d.IsDir():
			// A folder is closed when all in it is done, which does not matter to its owner
			// here: nothing is made or renamed in it.
			return os.Chmod(at, 0o555)
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o100 != 0 {
			return os.Chmod(at, 0o555)
		}
		return os.Chmod(at, 0o444)
	})
}
