package skill

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/metier-run/metier/internal/guard"
)

// reader reads one skill's folder.
type reader struct {
	root  *guard.Root
	max   limits
	skill Skill
}

// limits are the ceilings in force.
type limits struct {
	manifest, bytes      int64
	files, skills, depth int
}

// skipped folders are never part of a skill, nor searched for skills.
func skipped(name string) bool { return name == ".git" || name == "node_modules" }

// readSkill reads the skill in the folder real, which is shown as dir and is
// called name.
func readSkill(ctx context.Context, dir, real, name string, origin Origin, max limits) (Skill, error) {
	root, err := guard.OpenRoot(real)
	if err != nil {
		return Skill{}, err
	}
	defer root.Close()
	r := reader{root: root, max: max, skill: Skill{Origin: origin, dir: dir, real: real, limit: max.manifest}}
	if err := r.manifest(name); err != nil {
		return Skill{}, err
	}
	if err := r.walk(ctx); err != nil {
		return Skill{}, err
	}
	if err := r.content(ctx); err != nil {
		return Skill{}, err
	}
	return r.skill, nil
}

func (r *reader) manifest(name string) error {
	f, err := r.root.Open(ManifestFile)
	if err != nil {
		return err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, r.max.manifest+1))
	if err != nil {
		return fmt.Errorf("read SKILL.md: %w", err)
	}
	if int64(len(data)) > r.max.manifest {
		return &LimitError{Limit: LimitManifest, Max: r.max.manifest, What: "bytes in SKILL.md"}
	}
	m, warnings, err := Parse(data, name)
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

// walk lists the skill's files and links and holds them against the ceilings,
// before any content is read.
func (r *reader) walk(ctx context.Context) error {
	s := &r.skill
	links := map[string]string{}
	for e, err := range r.root.Walk(ctx, skipped) {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && e.Path == ".":
			return err
		case err != nil:
			r.leaveOut(e.Path, err)
		case e.Link != "":
			links[e.Path] = e.Link
		case e.Info.Mode().IsRegular():
			s.Files = append(s.Files, File{Path: e.Path, Bytes: e.Info.Size()})
			s.Bytes += e.Info.Size()
			if e.Info.ModTime().After(s.Modified) {
				s.Modified = e.Info.ModTime()
			}
		}
		if err := r.ceilings(len(links)); err != nil {
			return err
		}
	}
	slices.SortFunc(s.Files, byPath)
	r.link(links)
	return nil
}

func (r *reader) ceilings(links int) error {
	switch {
	case len(r.skill.Files)+links > r.max.files:
		return &LimitError{Limit: LimitFiles, Max: int64(r.max.files), What: "files"}
	case r.skill.Bytes > r.max.bytes:
		return &LimitError{Limit: LimitBytes, Max: r.max.bytes, What: "bytes in all files"}
	}
	return nil
}

// link keeps the links that lead to a listed file, which are listed as files,
// and those that lead to a folder that holds one.
func (r *reader) link(links map[string]string) {
	s := &r.skill
	s.links = links
	var more []File
	var lost []string
	for from := range links {
		target := resolve(links, from)
		if f, ok := lookup(s.Files, target); ok {
			f.Path = from
			more = append(more, f)
		} else if len(s.below(target)) == 0 {
			lost = append(lost, from)
		}
	}
	slices.Sort(lost)
	for _, from := range lost {
		delete(links, from)
		r.leaveOut(from, errors.New("it is a link to what is not part of the skill"))
	}
	s.Files = append(s.Files, more...)
	slices.SortFunc(s.Files, byPath)
}

func (r *reader) leaveOut(name string, err error) {
	if e, ok := errors.AsType[*guard.PathError](err); ok {
		err = e.Err
	}
	r.skill.Warnings = append(r.skill.Warnings, Warning{
		Code: WarnFile, Message: fmt.Sprintf("file %q is left out: %v", name, err),
	})
}

// content reads every file once, for its digest and to tell text from binary.
func (r *reader) content(ctx context.Context) error {
	s := &r.skill
	sum := sha256.New()
	put(sum, s.Name)
	kept := s.Files[:0]
	for _, f := range s.Files {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := r.sniff(&f); err != nil {
			r.leaveOut(f.Path, err)
			s.Bytes -= f.Bytes
			continue
		}
		put(sum, f.Path)
		put(sum, f.Digest)
		kept = append(kept, f)
	}
	s.Files = kept
	if _, ok := lookup(s.Files, ManifestFile); !ok {
		return errors.New("read SKILL.md: it is gone or may not be read: put it back")
	}
	s.digest = hex.EncodeToString(sum.Sum(nil))
	return nil
}

func (r *reader) sniff(f *File) error {
	in, err := r.root.Open(resolve(r.skill.links, f.Path))
	if err != nil {
		return err
	}
	defer in.Close()
	sum, text := sha256.New(), &textSniffer{}
	n, err := io.Copy(io.MultiWriter(sum, text), io.LimitReader(in, f.Bytes))
	if err != nil {
		return hidePath(err)
	}
	f.Bytes, f.Text = n, text.ok()
	f.Kind = kind(*f)
	f.Digest = hex.EncodeToString(sum.Sum(nil))
	return nil
}

// put writes a text with its length before it, so that no two lists of texts
// give the same bytes.
func put(h hash.Hash, s string) {
	h.Write(binary.AppendUvarint(nil, uint64(len(s))))
	io.WriteString(h, s)
}

// textSniffer tells whether what is written to it is UTF-8 without NUL bytes.
type textSniffer struct {
	bad  bool
	tail []byte // the start of a character that the next write may end
}

// Write never fails.
func (t *textSniffer) Write(p []byte) (int, error) {
	n := len(p)
	if t.bad {
		return n, nil
	}
	if len(t.tail) > 0 {
		p = append(t.tail, p...)
		t.tail = nil
	}
	whole := len(p)
	for i := 1; i < utf8.UTFMax && i <= len(p); i++ {
		if utf8.RuneStart(p[len(p)-i]) {
			if !utf8.FullRune(p[len(p)-i:]) {
				whole = len(p) - i
			}
			break
		}
	}
	t.tail = append(t.tail, p[whole:]...)
	t.bad = !utf8.Valid(p[:whole]) || slices.Contains(p[:whole], 0)
	return n, nil
}

func (t *textSniffer) ok() bool { return !t.bad && len(t.tail) == 0 }

// kind follows the order of the constants.
func kind(f File) Kind {
	top, _, nested := strings.Cut(f.Path, "/")
	if !nested {
		top = ""
	}
	ext := strings.ToLower(path.Ext(f.Path))
	switch {
	case f.Path == ManifestFile:
		return KindManifest
	case top == "scripts" || executable(ext):
		return KindScript
	case top == "references" || top == "reference":
		return KindReference
	case top == "assets":
		return KindAsset
	case ext == ".md" || ext == ".markdown":
		return KindReference
	case !f.Text:
		return KindAsset
	}
	return KindOther
}

func executable(ext string) bool {
	switch ext {
	case ".py", ".js", ".mjs", ".cjs", ".ts", ".sh", ".bash", ".zsh", ".rb", ".pl", ".php", ".lua", ".ps1", ".bat", ".cmd":
		return true
	}
	return false
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
