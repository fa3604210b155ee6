package skill

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/metier-run/metier/internal/guard"
)

// reader reads one skill's folder.
type reader struct {
	max     limits
	careful bool
	// dir is the folder for people, real the one to read, links resolved.
	dir, real string
	origin    Origin
	// previous is the skill as it was read before; empty when it was not.
	previous Skill

	root    *guard.Root
	skill   Skill
	links   map[string]string
	first   fs.FileInfo // of the manifest, before it was read
	stamps  []stamp
	folders []string
	left    int // entries that are left out
	reused  bool
	buf     []byte
}

// skipped folders are never part of a skill, nor searched for skills.
func skipped(name string) bool { return name == ".git" || name == "node_modules" }

// errChanging: somebody writes to the folder while it is read.
var errChanging = errors.New("its files change while they are read")

// attempts is how often a folder that changes is read before it is left for
// later: enough for one that was written a moment ago.
const attempts = 3

// read gives the skill. A careful reader fails with errChanging when no attempt
// finds the same files before and after.
func (r *reader) read(ctx context.Context) (Skill, error) {
	root, err := guard.OpenRoot(r.real)
	if err != nil {
		return Skill{}, hidePath(err)
	}
	defer root.Close()
	r.root, r.buf = root, make([]byte, headSize)
	for range attempts {
		k, err := r.once(ctx)
		if !r.careful || r.reused || ctx.Err() != nil {
			return k, err
		}
		if _, limit := errors.AsType[*LimitError](err); limit {
			return k, err // the list of files is not whole
		}
		if again, failed := r.list(ctx); failed == nil && r.held(again) {
			return k, err
		}
	}
	return Skill{}, errChanging
}

// once reads the folder, whatever happens to it meanwhile. A folder that is as
// it was is not read again.
func (r *reader) once(ctx context.Context) (Skill, error) {
	began := time.Now()
	r.skill = Skill{Origin: r.origin, dir: r.dir, real: r.real, limit: r.max.manifest}
	r.links, r.first, r.stamps, r.folders, r.left = map[string]string{}, nil, nil, nil, 0
	if c := r.previous.content; c != nil && r.careful {
		if now, err := r.list(ctx); err == nil && c.trusted() && unchanged(c.stamps, now) {
			r.reused, r.folders = true, c.folders
			return r.previous, nil
		}
	}
	failed := r.manifest()
	if err := r.walk(ctx); failed == nil {
		failed = err
	}
	if failed != nil {
		return Skill{}, failed
	}
	if _, ok := lookup(r.skill.Files, ManifestFile); !ok {
		return Skill{}, errors.New("read SKILL.md: it is gone or may not be read: put it back")
	}
	folds, err := r.root.FoldsCase(ManifestFile)
	if err != nil {
		return Skill{}, err
	}
	r.skill.folds = folds
	r.skill.content = &content{
		name: r.skill.Name, real: r.real, links: r.links, files: r.skill.Files, stamps: r.stamps, folders: r.folders, read: began,
	}
	return r.skill, nil
}

func (r *reader) manifest() error {
	f, err := r.root.Open(ManifestFile)
	if err != nil {
		return err
	}
	defer f.Close()
	data, err := r.all(f, r.max.manifest+1)
	if err != nil {
		return fmt.Errorf("read SKILL.md: %w", hidePath(err))
	}
	if int64(len(data)) > r.max.manifest {
		return &LimitError{Limit: LimitManifest, Max: r.max.manifest, What: "bytes in SKILL.md"}
	}
	m, warnings, err := Parse(data, filepath.Base(r.dir))
	if e, ok := errors.AsType[*ManifestError](err); ok {
		e.File = filepath.Join(r.dir, ManifestFile)
	}
	if err != nil {
		return err
	}
	r.skill.Manifest, r.skill.Warnings = m, warnings
	head, err := split(data)
	if err != nil {
		return err
	}
	r.skill.BodyBytes = int64(len(trimBlank(data[head.body:])))
	return nil
}

// all reads the manifest into a buffer of its size, but no more than limit bytes.
func (r *reader) all(f *os.File, limit int64) ([]byte, error) {
	var err error
	if r.first, err = f.Stat(); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.Grow(int(min(r.first.Size(), limit)) + bytes.MinRead)
	_, err = b.ReadFrom(io.LimitReader(f, limit))
	return b.Bytes(), err
}

// walk lists the skill's files and links, looks at how each file starts, and
// stops at the ceilings.
func (r *reader) walk(ctx context.Context) error {
	s := &r.skill
	for e, err := range r.root.Walk(ctx, skipped) {
		r.stamps = append(r.stamps, stampOf(e, err))
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && e.Path == ".":
			return err
		case err != nil:
			r.leaveOut(e.Path, err)
		case e.Link != "":
			r.links[e.Path] = e.Link
		case e.Info.IsDir():
			r.folders = append(r.folders, filepath.Join(r.real, filepath.FromSlash(e.Path)))
		default:
			r.file(e)
		}
		if err := r.ceilings(); err != nil {
			return err
		}
	}
	slices.SortFunc(s.Files, byPath)
	r.link()
	return nil
}

// list is the folder as it is now, without its content.
func (r *reader) list(ctx context.Context) ([]stamp, error) {
	var list []stamp
	for e, err := range r.root.Walk(ctx, skipped) {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if list = append(list, stampOf(e, err)); len(list) > 2*r.max.files {
			return nil, &LimitError{Limit: LimitFiles, Max: int64(r.max.files), What: "files"}
		}
	}
	return list, nil
}

// file takes a file, or leaves it out if it cannot be read.
func (r *reader) file(e guard.Entry) {
	f := File{Path: e.Path, Bytes: e.Info.Size()}
	text, err := r.sniff(e)
	if err != nil {
		r.leaveOut(e.Path, err)
		return
	}
	f.Text = text
	f.Kind = kind(f)
	s := &r.skill
	s.Files = append(s.Files, f)
	s.Bytes += f.Bytes
	if e.Info.ModTime().After(s.Modified) {
		s.Modified = e.Info.ModTime()
	}
}

func (r *reader) sniff(e guard.Entry) (text bool, err error) {
	in, err := e.Open()
	if err != nil {
		return false, err
	}
	defer in.Close()
	head := r.buf[:min(int64(len(r.buf)), e.Info.Size())]
	n, err := io.ReadFull(in, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return false, hidePath(err)
	}
	return isText(head[:n], int64(n) == e.Info.Size()), nil
}

// ceilings holds what was found so far against them. What is left out counts as
// a file, and folders count like files, though apart, because they cost as much.
func (r *reader) ceilings() error {
	switch files := len(r.skill.Files) + len(r.links) + r.left; {
	case files > r.max.files:
		return &LimitError{Limit: LimitFiles, Max: int64(r.max.files), What: "files"}
	case len(r.folders) > r.max.files:
		return &LimitError{Limit: LimitFiles, Max: int64(r.max.files), What: "folders"}
	case r.skill.Bytes > r.max.bytes:
		return &LimitError{Limit: LimitBytes, Max: r.max.bytes, What: "bytes in all files"}
	}
	return nil
}

// link keeps the links that lead to a listed file, which are listed as files,
// and those that lead to a folder that holds one.
func (r *reader) link() {
	s := &r.skill
	s.links = r.links
	var more []File
	var lost []string
	for from := range r.links {
		target := resolve(r.links, from)
		if f, ok := lookup(s.Files, target); ok {
			f.Path = from
			f.Kind = kind(f)
			more = append(more, f)
		} else if !s.holds(target) {
			lost = append(lost, from)
		}
	}
	slices.Sort(lost)
	for _, from := range lost {
		delete(r.links, from)
		r.leaveOut(from, errors.New("it is a link to what is not part of the skill"))
	}
	s.Files = append(s.Files, more...)
	slices.SortFunc(s.Files, byPath)
}

func (r *reader) leaveOut(name string, err error) {
	if e, ok := errors.AsType[*guard.PathError](err); ok {
		err = e.Err
	}
	r.left++
	r.skill.Warnings = append(r.skill.Warnings, Warning{
		Code: WarnFile, File: name, Message: fmt.Sprintf("file %q is left out: %v", name, err),
	})
}

// stamp is what tells, without reading it, that an entry is as it was.
type stamp struct {
	path, link, fault string
	info              fs.FileInfo
}

func stampOf(e guard.Entry, err error) stamp {
	s := stamp{path: e.Path, link: e.Link, info: e.Info}
	if err != nil {
		s.fault = err.Error()
	}
	return s
}

// held says whether the folder has stood still from before the manifest was read
// until now.
func (r *reader) held(now []stamp) bool {
	manifest := func(s stamp) bool { return s.path == ManifestFile && s.info != nil }
	if i := slices.IndexFunc(r.stamps, manifest); r.first != nil && (i < 0 || !sameInfo(r.first, r.stamps[i].info)) {
		return false
	}
	return unchanged(r.stamps, now)
}

func unchanged(before, after []stamp) bool {
	return slices.EqualFunc(before, after, func(a, b stamp) bool {
		return a.path == b.path && a.link == b.link && a.fault == b.fault && sameInfo(a.info, b.info)
	})
}

func sameInfo(a, b fs.FileInfo) bool {
	switch {
	case a == nil || b == nil:
		return a == nil && b == nil
	case a.IsDir() && b.IsDir(): // what it holds has stamps of its own
		return os.SameFile(a, b)
	}
	return a.Size() == b.Size() && a.Mode() == b.Mode() && a.ModTime().Equal(b.ModTime()) && os.SameFile(a, b)
}

func byPath(a, b File) int { return cmp.Compare(a.Path, b.Path) }

// lookup finds a path in a sorted list.
func lookup(files []File, name string) (File, bool) {
	i, ok := slices.BinarySearchFunc(files, name, func(f File, name string) int { return cmp.Compare(f.Path, name) })
	if !ok {
		return File{}, false
	}
	return files[i], true
}
