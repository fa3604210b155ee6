package skill

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The size of a large registry: as many skills as the default ceiling lets in,
// 40 files each.
const (
	benchSkills = 512
	benchFiles  = 40
)

// benchTree writes the skills: text and binary files of 1 to 8 KiB in the usual
// folders.
func benchTree(b *testing.B) string {
	b.Helper()
	dir := b.TempDir()
	text, binary := strings.Repeat("Some words about forms.\n", 350), strings.Repeat("\x89PNG\x00\xff", 1400)
	for i := range benchSkills {
		name := fmt.Sprintf("skill-%03d", i)
		for j := range benchFiles {
			at, content := "SKILL.md", manifest(name)+text[:4096]
			switch {
			case j == 0:
			case j%4 == 0:
				at, content = fmt.Sprintf("assets/%02d.png", j), binary[:j%8*1024+1024]
			case j%4 == 1:
				at, content = fmt.Sprintf("scripts/lib/%02d.py", j), text[:j%8*1024+1024]
			default:
				at, content = fmt.Sprintf("references/%02d.md", j), text[:j%8*1024+1024]
			}
			at = filepath.Join(dir, name, at)
			if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
				b.Fatal(err)
			}
			if err := os.WriteFile(at, []byte(content), 0o644); err != nil {
				b.Fatal(err)
			}
			if err := os.Chtimes(at, time.Time{}, time.Now().Add(-time.Hour)); err != nil {
				b.Fatal(err)
			}
		}
	}
	return dir
}

// bareWalk is the least that any reader of skills does: it lists every folder
// and reads the first 4 KiB of every file.
func bareWalk(b *testing.B, dir string) {
	b.Helper()
	buf := make([]byte, headSize)
	files := 0
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if _, err := d.Info(); err != nil {
			return err
		}
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		if _, err := f.Read(buf); err != nil && err != io.EOF {
			return err
		}
		files++
		return f.Close()
	})
	if err != nil || files != benchSkills*benchFiles {
		b.Fatal(files, err)
	}
}

// BenchmarkLoad measures a start, a rescan and a digest of a large registry,
// each against a bare walk of the same files in the same run ("x-bare"). Load
// must stay within three bare walks.
func BenchmarkLoad(b *testing.B) {
	dir := benchTree(b)
	o := Options{Roots: []Root{{Dir: dir}}}
	bare := func(b *testing.B, do func()) {
		b.Helper()
		var walks, ours time.Duration
		for b.Loop() {
			began := time.Now()
			bareWalk(b, dir)
			walked := time.Now()
			do()
			walks += walked.Sub(began)
			ours += time.Since(walked)
		}
		b.ReportMetric(float64(ours.Microseconds())/float64(b.N)/1000, "ms")
		b.ReportMetric(float64(ours)/float64(walks), "x-bare")
	}
	b.Run("BareWalk", func(b *testing.B) {
		for b.Loop() {
			bareWalk(b, dir)
		}
	})
	b.Run("Load", func(b *testing.B) {
		bare(b, func() { benchLoad(b, o) })
	})
	b.Run("Open", func(b *testing.B) {
		bare(b, func() {
			if _, err := Open(b.Context(), o); err != nil {
				b.Fatal(err)
			}
		})
	})
	b.Run("LoadAndDigest", func(b *testing.B) {
		bare(b, func() { benchLoad(b, o).Digest() })
	})
	b.Run("Rescan", func(b *testing.B) {
		r, err := Open(b.Context(), o)
		if err != nil {
			b.Fatal(err)
		}
		bare(b, func() {
			if _, err := r.Rescan(b.Context()); err != nil {
				b.Fatal(err)
			}
		})
	})
}

func benchLoad(b *testing.B, o Options) *Snapshot {
	s := load(b, o)
	if len(s.skills) != benchSkills || len(s.errs) > 0 {
		b.Fatal(len(s.skills), s.errs)
	}
	return s
}
