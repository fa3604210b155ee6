package validate

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func pack(t *testing.T, dir string, target Target) ([]byte, Packed) {
	t.Helper()
	var b bytes.Buffer
	p, err := Pack(t.Context(), &b, dir, target)
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), p
}

func TestPack(t *testing.T) {
	files := map[string]string{
		"SKILL.md": fine, "scripts/run.sh": "#!/bin/sh\n", "scripts.md": "x", "assets/a.bin": "\x00\x01",
		".git/config": "secret", "node_modules/x/y.js": "x",
	}
	dir := folder(t, "pdf", files)
	check(t, os.Chmod(filepath.Join(dir, "scripts", "run.sh"), 0o700))
	check(t, os.Symlink("scripts.md", filepath.Join(dir, "alias.md")))
	want := []string{"SKILL.md -rw-r--r--", "alias.md -rw-r--r--", "assets/a.bin -rw-r--r--", "scripts.md -rw-r--r--", "scripts/run.sh -rwxr-xr-x"}
	files["alias.md"] = "x"
	for _, target := range []Target{Metier, OpenAI, Anthropic, WellKnown} {
		data, p := pack(t, dir, target)
		z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
		check(t, err)
		prefix := "pdf/"
		if target == WellKnown {
			prefix = ""
		}
		var got []string
		for _, f := range z.File {
			name, ok := strings.CutPrefix(f.Name, prefix)
			if !ok {
				t.Errorf("%s: %s is not in the folder", target, f.Name)
			}
			got = append(got, name+" "+f.Mode().String())
			if f.Modified.UTC().Format("2006-01-02T15:04:05") != "1980-01-01T00:00:00" {
				t.Errorf("%s: %s has the time %s", target, f.Name, f.Modified)
			}
			in, err := f.Open()
			check(t, err)
			text, err := io.ReadAll(in)
			check(t, err)
			if string(text) != files[name] {
				t.Errorf("%s: %s holds %q", target, name, text)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", target, diff)
		}
		sum := sha256.Sum256(data)
		if p.Name != "pdf" || p.Files != 5 || p.Bytes != int64(len(data)) || p.SHA256 != hex.EncodeToString(sum[:]) {
			t.Errorf("%s: %+v", target, p)
		}
	}
}

// TestPackIsReproducible: neither the place nor the times of the files show.
func TestPackIsReproducible(t *testing.T) {
	files := map[string]string{"SKILL.md": fine, "references/a.md": strings.Repeat("text ", 5000)}
	one, two := folder(t, "pdf", files), folder(t, "pdf", files)
	info, err := os.Stat(filepath.Join(one, "SKILL.md"))
	check(t, err)
	old := info.ModTime().AddDate(-3, 0, 0)
	check(t, os.Chtimes(filepath.Join(two, "SKILL.md"), old, old))
	check(t, os.Chmod(filepath.Join(two, "SKILL.md"), 0o600))
	a, pa := pack(t, one, OpenAI)
	b, pb := pack(t, two, OpenAI)
	if !bytes.Equal(a, b) || pa != pb {
		t.Errorf("two archives of the same skill differ: %+v, %+v", pa, pb)
	}
}

func TestPackRefuses(t *testing.T) {
	extra := folder(t, "pdf", map[string]string{"SKILL.md": manifestOf("name: pdf", "description: d", "model: x")})
	for _, target := range []Target{OpenAI, Anthropic} {
		var b bytes.Buffer
		_, err := Pack(t.Context(), &b, extra, target)
		e, ok := errors.AsType[*RefusedError](err)
		if !ok || b.Len() > 0 || e.Report.Valid() || !strings.Contains(err.Error(), "model") {
			t.Errorf("%s: %v, %d bytes", target, err, b.Len())
		}
	}
	pack(t, extra, Metier)
	pack(t, extra, WellKnown)
	if _, err := Pack(t.Context(), io.Discard, extra, Spec); err == nil {
		t.Error("packed for the specification, which is no place")
	}
	// The loader warns of what cannot be read; an archive must not be without it.
	out := folder(t, "pdf", map[string]string{"SKILL.md": fine})
	if err := os.Symlink(t.TempDir(), filepath.Join(out, "out")); err != nil {
		t.Skipf("this host makes no symbolic links: %v", err)
	}
	_, err := Pack(t.Context(), io.Discard, out, Metier)
	if _, ok := errors.AsType[*RefusedError](err); !ok {
		t.Errorf("packed without a file: %v", err)
	}
}

type growing struct {
	path string
	once bool
}

// Write makes the file longer while it is packed.
func (g *growing) Write(p []byte) (int, error) {
	if !g.once {
		g.once = true
		f, err := os.OpenFile(g.path, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			return 0, err
		}
		if _, err := f.WriteString("more"); err != nil {
			return 0, err
		}
		return len(p), f.Close()
	}
	return len(p), nil
}

func TestPackSeesAChange(t *testing.T) {
	noise := make([]byte, 1<<20) // too long for the buffer before w
	for i, x := 0, uint32(1); i < len(noise); i++ {
		x = x*1664525 + 1013904223
		noise[i] = byte(x >> 24)
	}
	dir := folder(t, "pdf", map[string]string{"SKILL.md": fine, "a.bin": string(noise), "b.md": "x"})
	_, err := Pack(t.Context(), &growing{path: filepath.Join(dir, "b.md")}, dir, OpenAI)
	if err == nil || !strings.Contains(err.Error(), "b.md changed") {
		t.Errorf("got %v", err)
	}
}
