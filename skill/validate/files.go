package validate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/metier-run/metier/internal/guard"
	"github.com/metier-run/metier/skill"
)

const mib = 1 << 20

// bounds are what a vendor documents for an upload; 0 is no bound. MB is read as
// 1024 times 1024 bytes: OpenAI's bound on a zip in base64 agrees with it.
type bounds struct {
	who string
	// files counts files, file bytes of one, total bytes of all, archive bytes of
	// the zip.
	files                int
	file, total, archive int64
}

func boundsOf(t Target) bounds {
	switch t {
	case OpenAI:
		return bounds{who: "OpenAI", files: 500, file: 25 * mib, archive: 50 * mib}
	case Anthropic:
		return bounds{who: "Anthropic", total: 30 * mib}
	case WellKnown:
		return bounds{who: "the skills installer", files: 1000, total: 50 * mib}
	}
	return bounds{who: "Metier"}
}

// item is a file that goes into an archive.
type item struct {
	path string
	size int64
	exec bool
}

// passedOver folders are never part of a skill, as for the loader.
func passedOver(name string) bool { return name == ".git" || name == "node_modules" }

// list lists the files of a folder by path, and what cannot be part of an
// archive. Links to files count as files.
func list(ctx context.Context, root *guard.Root) (items []item, lost []Finding, err error) {
	for e, err := range root.Walk(ctx, passedOver) {
		switch {
		case ctx.Err() != nil:
			return nil, nil, ctx.Err()
		case err != nil && e.Path == ".":
			return nil, nil, err
		case err != nil:
			lost = append(lost, leftOut(e.Path, err))
		case e.Link != "" && e.Info.IsDir():
			lost = append(lost, leftOut(e.Path, errors.New("it is a link to a folder, which no archive holds: put a copy of the folder in its place")))
		case e.Info.Mode().IsRegular():
			items = append(items, item{path: e.Path, size: e.Info.Size(), exec: e.Info.Mode()&0o100 != 0})
		}
	}
	slices.SortFunc(items, func(a, b item) int { return cmp.Compare(a.path, b.path) })
	return items, lost, nil
}

func leftOut(name string, err error) Finding {
	return Finding{
		Severity: Error, Field: FieldFiles, Code: CodeFileLeftOut, File: name,
		Message: fmt.Sprintf("%s cannot go into an archive: %v", name, reason(err)),
	}
}

// files holds the folder against what a vendor takes.
func (c *checker) files(ctx context.Context) {
	items, lost, err := list(ctx, c.root)
	if err != nil {
		c.fail(FieldFolder, CodeUnreadable, "the folder cannot be read: %v", err)
		return
	}
	for _, f := range lost {
		c.add(f)
	}
	b := boundsOf(c.target)
	c.sizes(b, items)
	if c.target == OpenAI {
		c.oneManifest(items)
	}
	if b.archive > 0 && longest(items) > b.archive {
		c.archive(ctx, b, items)
	}
}

func total(items []item) int64 {
	var n int64
	for _, f := range items {
		n += f.size
	}
	return n
}

// longest is more than a zip of these files can have: what Deflate cannot make
// shorter it makes longer by less than a thousandth, and each file has a name
// twice and two headers.
func longest(items []item) int64 {
	const headers = 256
	n := total(items) + total(items)/1000
	for _, f := range items {
		n += 2*int64(len(f.path)) + headers
	}
	return n
}

func (c *checker) sizes(b bounds, items []item) {
	if b.files > 0 && len(items) > b.files {
		c.fail(FieldFiles, CodeFileCount, "%s takes %d files, and there are %d: remove some", b.who, b.files, len(items))
	}
	for _, f := range items {
		if b.file > 0 && f.size > b.file {
			c.add(Finding{
				Severity: Error, Field: FieldFiles, Code: CodeFileSize, File: f.path,
				Message: fmt.Sprintf("%s takes files of up to %d bytes, and %s has %d: make it smaller", b.who, b.file, f.path, f.size),
			})
		}
	}
	if n := total(items); b.total > 0 && n > b.total {
		c.fail(FieldFiles, CodeTotalSize, "%s takes %d bytes in all files, and these have %d: remove some", b.who, b.total, n)
	}
}

// oneManifest refuses a second SKILL.md anywhere, in any case.
func (c *checker) oneManifest(items []item) {
	var found []string
	for _, f := range items {
		if strings.EqualFold(path.Base(f.path), skill.ManifestFile) {
			found = append(found, f.path)
		}
	}
	if len(found) > 1 {
		c.fail(FieldFiles, CodeManifestCount, "OpenAI takes exactly one SKILL.md, and there are %d (%s): rename the others", len(found), strings.Join(found, ", "))
	}
}

func (c *checker) archive(ctx context.Context, b bounds, items []item) {
	var n counter
	if err := writeZip(ctx, &n, c.root, "skill/", items); err != nil {
		c.fail(FieldFiles, CodeUnreadable, "the files cannot be packed: %v", err)
		return
	}
	if int64(n) > b.archive {
		c.fail(FieldFiles, CodeArchiveSize, "%s takes a zip of up to %d bytes, and this one has %d: remove files", b.who, b.archive, int64(n))
	}
}

// counter counts what is written to it.
type counter int64

// Write never fails.
func (n *counter) Write(p []byte) (int, error) {
	*n += counter(len(p))
	return len(p), nil
}

var _ io.Writer = (*counter)(nil)
