package validate

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/metier-run/metier/internal/guard"
)

// RefusedError is a skill that is not packed because its target would refuse it.
type RefusedError struct{ Report Report }

// Error names the folder, the target and each reason.
func (e *RefusedError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "pack %s: %s would refuse it:", e.Report.Path, boundsOf(e.Report.Target).who)
	for _, f := range e.Report.Of(Error) {
		fmt.Fprintf(&b, "\n  - %s", f)
	}
	return b.String()
}

// Packed describes an archive.
type Packed struct {
	// Name is the skill's, and the folder in the archive where there is one.
	Name string `json:"name"`
	// Files is the number of files, Unpacked their bytes in all.
	Files    int   `json:"files"`
	Unpacked int64 `json:"unpacked"`
	// Bytes and SHA256 (hexadecimal) are those of the archive.
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Pack writes the skill in dir to w as a zip that t takes: inside a folder of the
// skill's name, or for [WellKnown] with SKILL.md at the top. One binary makes the
// same bytes of the same files wherever and whenever it runs: entries are sorted,
// times fixed, modes 0644 or 0755. Links to files become files; folders called
// .git and node_modules stay out.
//
// It fails with a [*RefusedError] when t would refuse the skill or a file cannot
// go into an archive, and when a file changes while it is read; what was written
// to w until then is no archive. [Spec] is no place and is refused.
func Pack(ctx context.Context, w io.Writer, dir string, t Target) (Packed, error) {
	if t == Spec {
		return Packed{}, fmt.Errorf("pack %s: the target %s takes no archives: name another one", dir, t)
	}
	r := Check(ctx, dir, t)
	if !r.Valid() {
		return Packed{}, &RefusedError{Report: r}
	}
	root, err := guard.OpenRoot(dir)
	if err != nil {
		return Packed{}, fmt.Errorf("pack %s: %w", dir, err)
	}
	defer root.Close()
	items, lost, err := list(ctx, root)
	if err != nil {
		return Packed{}, fmt.Errorf("pack %s: %w", dir, err)
	}
	if len(lost) > 0 { // the loader only warns of them
		r.Findings = append(lost, r.Findings...)
		return Packed{}, &RefusedError{Report: r}
	}
	folder := r.Name + "/"
	if t == WellKnown {
		folder = ""
	}
	sum := sha256.New()
	var size counter
	if err := writeZip(ctx, io.MultiWriter(w, sum, &size), root, folder, items); err != nil {
		return Packed{}, fmt.Errorf("pack %s: %w", dir, err)
	}
	return Packed{
		Name: r.Name, Files: len(items), Unpacked: total(items),
		Bytes: int64(size), SHA256: hex.EncodeToString(sum.Sum(nil)),
	}, nil
}

// The modes of files in an archive.
const (
	plainMode = 0o644
	execMode  = 0o755
)

func writeZip(ctx context.Context, w io.Writer, root *guard.Root, folder string, items []item) error {
	z := zip.NewWriter(w)
	for _, f := range items {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := addFile(z, root, folder, f); err != nil {
			return err
		}
	}
	return z.Close()
}

func addFile(z *zip.Writer, root *guard.Root, folder string, f item) error {
	in, err := root.Open(f.path)
	if err != nil {
		return err
	}
	defer in.Close()
	// The earliest time that the format has.
	h := &zip.FileHeader{Name: folder + f.path, Method: zip.Deflate, Modified: time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)}
	h.SetMode(plainMode)
	if f.exec {
		h.SetMode(execMode)
	}
	out, err := z.CreateHeader(h)
	if err != nil {
		return err
	}
	// One byte more tells of a file that grew.
	n, err := io.Copy(out, io.LimitReader(in, f.size+1))
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", f.path, err)
	case n != f.size:
		return fmt.Errorf("%s changed while it was read: try again", f.path)
	}
	return nil
}
