package skill

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/metier-run/metier/internal/guard"
)

// Reasons for which [Skill.Read] refuses what a caller named. They are wrapped
// in a [*ReadError]. Every other error of Read is a failure of this host.
var (
	// ErrPath: the spelling of the path is refused, because it could lead out of
	// the skill.
	ErrPath = errors.New("path refused")
	// ErrNoFile: the skill holds no such file.
	ErrNoFile = errors.New("no such file")
	// ErrFolder: the path names a folder of the skill.
	ErrFolder = errors.New("is a folder")
	// ErrOffset: the offset is negative or past the end.
	ErrOffset = errors.New("offset out of range")
)

// ReadError is a file that could not be read because of what was asked for.
type ReadError struct {
	Skill, Path string
	// Err is one of ErrPath, ErrNoFile, ErrFolder and ErrOffset.
	Err error
	// Message says what is wrong and what to write instead.
	Message string
}

// Error names the skill and what to do.
func (e *ReadError) Error() string { return fmt.Sprintf("read skill %q: %s", e.Skill, e.Message) }

// Unwrap is the reason.
func (e *ReadError) Unwrap() error { return e.Err }

// Page is a part of a file.
type Page struct {
	// Path is the file's own path, links resolved.
	Path string
	// Text is the content from Offset to Next; empty for a binary file. Bytes
	// that are not UTF-8 show as U+FFFD.
	Text   string
	Binary bool
	// Offset and Next count bytes of the file. Offset is the one asked for, but
	// moved to the end of the character that it would split.
	Offset, Next, Total int64
}

// More reports whether the file goes on at Next.
func (p Page) More() bool { return !p.Binary && p.Next < p.Total }

// Read reads limit bytes of a file from a byte offset; limit 0 reads to the
// end. A page never splits a character: it ends a few bytes early, or holds one
// character when limit is too small for it. The path is judged before the disk
// is touched, and only files that were there when the skill was loaded are
// read. It fails with a [*ReadError] when the caller named something wrong.
func (s Skill) Read(ctx context.Context, name string, offset, limit int64) (Page, error) {
	if err := ctx.Err(); err != nil {
		return Page{}, err
	}
	file, err := s.Lookup(name)
	if err != nil {
		return Page{}, err
	}
	f, total, err := s.open(file.Path)
	if err != nil {
		return Page{}, err
	}
	defer f.Close()
	if offset < 0 || offset > total {
		return Page{}, s.refuse(name, ErrOffset, fmt.Sprintf("offset %d is outside %s, which has %d bytes: use an offset from 0", offset, file.Path, total))
	}
	page := Page{Path: file.Path, Binary: !file.Text, Offset: offset, Next: offset, Total: total}
	if page.Binary {
		return page, nil
	}
	if limit <= 0 || limit > total-offset {
		limit = total - offset
	}
	if err := page.fill(f, limit); err != nil {
		return Page{}, fmt.Errorf("read skill %q: %s: %w", s.Name, file.Path, hidePath(err))
	}
	return page, nil
}

// fill reads the page's text. It reads a few bytes more than limit, so that it
// sees where the characters at both edges end.
func (p *Page) fill(f io.ReaderAt, limit int64) error {
	buf := make([]byte, min(limit+utf8.UTFMax, p.Total-p.Offset))
	n, err := f.ReadAt(buf, p.Offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	buf = buf[:n]
	if bytes.IndexByte(buf, 0) >= 0 { // the file has changed since it was loaded
		p.Binary = true
		return nil
	}
	start := 0
	if p.Offset > 0 {
		for start < len(buf) && start < utf8.UTFMax-1 && !utf8.RuneStart(buf[start]) {
			start++
		}
	}
	end := cut(buf, start, min(int(limit), len(buf)))
	p.Text = strings.ToValidUTF8(string(buf[start:end]), "\ufffd")
	p.Next = p.Offset + int64(end)
	p.Offset += int64(start)
	return nil
}

// cut moves end back to where a character starts, or forward past the first
// one if nothing would be left.
func cut(b []byte, start, end int) int {
	at := end
	for at > start && at < len(b) && end-at < utf8.UTFMax && !utf8.RuneStart(b[at]) {
		at--
	}
	if at > start || start >= len(b) {
		return max(at, start)
	}
	_, n := utf8.DecodeRune(b[start:])
	return start + n
}

// Body is the instructions: what follows the front matter, without the blank
// lines around it.
func (s Skill) Body(ctx context.Context) (string, error) {
	data, head, err := s.manifest(ctx)
	if err != nil {
		return "", err
	}
	return strings.ToValidUTF8(string(trimBlank(data[head.body:])), "\ufffd"), nil
}

// manifest reads SKILL.md as it is now.
func (s Skill) manifest(ctx context.Context) ([]byte, section, error) {
	if err := ctx.Err(); err != nil {
		return nil, section{}, err
	}
	f, total, err := s.open(resolve(s.links, ManifestFile))
	if err != nil {
		return nil, section{}, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, s.limit))
	switch {
	case err != nil:
		return nil, section{}, fmt.Errorf("read skill %q: %w", s.Name, hidePath(err))
	case int64(len(data)) < total:
		return nil, section{}, fmt.Errorf("read skill %q: SKILL.md has grown to %d bytes since it was loaded, more than the %d it may have: shorten it", s.Name, total, s.limit)
	}
	head, err := split(data)
	if err != nil {
		return nil, section{}, fmt.Errorf("read skill %q: %w", s.Name, err)
	}
	return data, head, nil
}

// trimBlank drops blank lines at the start and white space at the end.
func trimBlank(b []byte) []byte {
	b = bytes.TrimRight(b, " \t\r\n")
	for {
		line, next := lineAt(b, 0)
		if next == 0 || len(bytes.TrimSpace(line)) > 0 {
			return b
		}
		b = b[next:]
	}
}

// Lookup finds the listed file that a path names, by the rules of Read and
// without touching the disk: links lead to their targets, and where the file
// system finds names in any case, so does Lookup. It fails with a [*ReadError].
func (s Skill) Lookup(name string) (File, error) {
	clean, err := guard.Clean(name)
	if err != nil {
		return File{}, s.refuse(name, ErrPath, err.Error())
	}
	clean = resolve(s.links, clean)
	if f, ok := lookup(s.Files, clean); ok {
		return f, nil
	}
	if i := slices.IndexFunc(s.Files, func(f File) bool { return strings.EqualFold(f.Path, clean) }); s.folds && i >= 0 {
		return s.Files[i], nil
	}
	if s.holds(clean) {
		return File{}, s.refuse(name, ErrFolder, fmt.Sprintf("%q is a folder: name a file in it", name))
	}
	return File{}, s.refuse(name, ErrNoFile, fmt.Sprintf("there is no file %q in this skill", name))
}

// Folder lists the files below a folder of the skill, the way Read spells and
// judges paths. It is empty when there is no such folder.
func (s Skill) Folder(name string) []File {
	clean, err := guard.Clean(name)
	if err != nil {
		return nil
	}
	return s.below(resolve(s.links, clean))
}

// holds says whether a folder has files.
func (s Skill) holds(folder string) bool {
	if folder == "." {
		return true
	}
	i, _ := slices.BinarySearchFunc(s.Files, folder+"/", func(f File, name string) int { return strings.Compare(f.Path, name) })
	return i < len(s.Files) && strings.HasPrefix(s.Files[i].Path, folder+"/")
}

func (s Skill) below(clean string) []File {
	var files []File
	for _, f := range s.Files {
		if clean == "." || strings.HasPrefix(f.Path, clean+"/") {
			files = append(files, f)
		}
	}
	return files
}

func (s Skill) refuse(name string, reason error, message string) error {
	return &ReadError{Skill: s.Name, Path: name, Err: reason, Message: message}
}

// open opens a listed file and tells its size now. The skill's directory is
// opened for each read, so that a snapshot that nobody closes holds no handles.
func (s Skill) open(name string) (*os.File, int64, error) {
	if s.real == "" {
		return nil, 0, fmt.Errorf("read skill %q: it was not made by Load and has no files", s.Name)
	}
	root, err := guard.OpenRoot(s.real)
	if err != nil {
		return nil, 0, s.failed(name, err)
	}
	defer root.Close()
	f, err := root.Open(name)
	if err != nil {
		return nil, 0, s.failed(name, err)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(fmt.Errorf("read skill %q: %s: %w", s.Name, name, hidePath(err)), f.Close())
	}
	return f, info.Size(), nil
}

// failed sorts failures to open a listed file into those that a caller can act
// on and those of the host.
func (s Skill) failed(name string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return s.refuse(name, ErrNoFile, fmt.Sprintf("the file %q was there when the skill was loaded and is gone: go on without it", name))
	}
	if refused, ok := errors.AsType[*guard.PathError](err); ok {
		return s.refuse(name, ErrPath, refused.Error())
	}
	return fmt.Errorf("read skill %q: %w", s.Name, hidePath(err))
}

// hidePath drops the host's own path from an error of the disk: errors of Read
// may reach a model.
func hidePath(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// resolve puts the targets of a skill's links for the links on a path. A path
// through links that go in circles comes back as it stands after one try each.
func resolve(links map[string]string, clean string) string {
	for range len(links) {
		next := substitute(links, clean)
		if next == clean {
			break
		}
		clean = next
	}
	return clean
}

// substitute replaces the first link on a path.
func substitute(links map[string]string, clean string) string {
	for i := range len(clean) + 1 {
		if i < len(clean) && clean[i] != '/' {
			continue
		}
		if target, ok := links[clean[:i]]; ok {
			return path.Join(target, clean[i:])
		}
	}
	return clean
}
