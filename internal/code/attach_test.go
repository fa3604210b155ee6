package code

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/guard"
	"github.com/metier-run/metier/internal/llm"
)

func sent(name, media, text string) llm.Attachment {
	return llm.Attachment{Name: name, MediaType: media, Size: int64(len(text)), Data: func() ([]byte, error) { return []byte(text), nil }}
}

// TestAttachmentNames: whatever a client calls a file, it lies in the working
// directory itself, under a name that nothing else has.
func TestAttachmentNames(t *testing.T) {
	tests := []struct{ name, media, want string }{
		{"report.csv", "", "report.csv"},
		{"My report (final).csv", "", "My report (final).csv"},
		{"../../etc/passwd", "", "passwd"},
		{`C:\Users\me\a.txt`, "", "a.txt"},
		{"/abs/b.txt", "", "b.txt"},
		{"..", "image/png", "image.png"},
		{".bashrc", "", "bashrc"},
		{"-rf", "", "rf"},
		{"~root", "", "root"},
		{"a\x00b\n.txt", "", "a_b_.txt"},
		{"CON", "text/plain", "text.txt"},
		{"a.", "", "a"},
		{"", "image/jpeg", "image.jpg"},
		{"", "image/svg+xml", "image.svg"},
		{"", "application/x-evil/../../x", "file"},
		{"", "", "file"},
		{"é\u202e.txt", "", "é_.txt"},
		{strings.Repeat("x", 300) + ".json", "", strings.Repeat("x", longestName-5) + ".json"},
		{strings.Repeat("é", 300), "", strings.Repeat("é", longestName/2)},
	}
	for _, tt := range tests {
		if got := nameOf(sent(tt.name, tt.media, "")); got != tt.want {
			t.Errorf("%q, %q: %q, want %q", tt.name, tt.media, got, tt.want)
		}
	}
}

// TestAttachments: files of many messages, with their bounds told.
func TestAttachments(t *testing.T) {
	limits, err := config.Values{}.Set(config.AttachCount, 5)
	if err != nil {
		t.Fatal(err)
	}
	if limits, err = limits.Set(config.AttachBytes, 2048); err != nil {
		t.Fatal(err)
	}
	a := newAttachments(limits)
	broken := sent("broken.bin", "", "x")
	broken.Data = func() ([]byte, error) { return nil, errors.New("its base64 is broken") }
	var notes []string
	for _, message := range [][]llm.Attachment{
		{sent("a.csv", "", "one"), sent("A.csv", "", "two")},
		nil,
		{sent("", "image/png", "three"), sent("large.bin", "", strings.Repeat("x", 4096)), broken},
		{sent("a.csv", "", "four"), sent("more.txt", "", "five")},
		{{Name: "gone.pdf", Problem: "only its id was sent, and not the file"}},
	} {
		notes = append(notes, a.Add(message))
	}
	want := []string{
		"[Files of this message, in the working directory of the tools: a.csv (3 bytes), A-2.csv (3 bytes).]",
		"",
		"[Files of this message, in the working directory of the tools: image.png (5 bytes), broken.bin (1 byte). Not there: large.bin (4.0 KiB, and one file may have 2.0 KiB).]",
		"[Files of this message, in the working directory of the tools: a-3.csv (4 bytes). Not there: more.txt (there may be 5 files).]",
		"[Files of this message that are not in the working directory of the tools: gone.pdf (only its id was sent, and not the file).]",
	}
	if diff := cmp.Diff(want, notes); diff != "" {
		t.Error(diff)
	}
	dir := t.TempDir()
	root, err := guard.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	problems := a.stage(root, 0)
	if want := []string{"Note: the attached file broken.bin is not in the working directory: its base64 is broken."}; !cmp.Equal(want, problems) {
		t.Errorf("problems: %q", problems)
	}
	var have []string
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		text, _ := os.ReadFile(filepath.Join(dir, e.Name()))
		have = append(have, fmt.Sprint(e.Name(), "=", string(text)))
	}
	if diff := cmp.Diff([]string{"A-2.csv=two", "a-3.csv=four", "a.csv=one", "image.png=three"}, have); diff != "" {
		t.Error(diff)
	}
}

// FuzzAttachmentName: every name is one that the guard takes, without a folder.
func FuzzAttachmentName(f *testing.F) {
	f.Add("a/../b", "image/png")
	f.Fuzz(func(t *testing.T, name, media string) {
		got := nameOf(sent(name, media, ""))
		if clean, err := guard.Clean(got); err != nil || clean != got || strings.Contains(got, "/") {
			t.Errorf("%q becomes %q: %v", name, got, err)
		}
	})
}
