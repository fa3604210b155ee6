package code

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/llm"
)

// TestSettle: files are put into the workspace at once and not held any longer; one that
// cannot be is an error, and told to the model as well.
func TestSettle(t *testing.T) {
	b := newBench(t, nil)
	c := b.Open("", nil)
	defer func() { _ = c.Close(t.Context()) }()
	if c.Attached() != nil {
		t.Error("files were taken in before any came")
	}
	c.Attach([]llm.Attachment{sent("a.txt", "", "one"), sent("a.txt", "", "two")})
	if err := c.Settle(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if diff := cmp.Diff([]string{"a-2.txt", "a.txt"}, b.there(t)); diff != "" {
			t.Error(diff)
		}
		if err := c.Settle(); err != nil {
			t.Error(err)
		}
	}
	broken := sent("broken.txt", "", "")
	broken.Data = func() ([]byte, error) { return nil, errors.New("its base64 is broken") }
	c.Attach([]llm.Attachment{broken})
	if err := c.Settle(); err == nil || !strings.Contains(err.Error(), "broken.txt") {
		t.Errorf("a broken file: %v", err)
	}
	if diff := cmp.Diff([]string{"a.txt", "a-2.txt", "broken.txt"}, c.Attached()); diff != "" {
		t.Error(diff)
	}
	if slices.ContainsFunc(c.files.files, func(f attached) bool { return f.Data != nil }) {
		t.Error("what was put into the workspace is held in memory, too")
	}
	if r := invoke(t, c.Tools(nil), "write_file", `{"path":"b.txt","content":"x"}`); !strings.Contains(r.Text, "broken.txt is not in the working directory") {
		t.Errorf("the model is told %q", r.Text)
	}
}

// TestID: a workspace keeps its name until the conversation begins anew.
func TestID(t *testing.T) {
	b := newBench(t, nil)
	c, other := b.Open("", nil), b.Open("", nil)
	first := c.ID()
	if first == "" || first != c.ID() || first == other.ID() {
		t.Errorf("names %q, %q, %q", first, c.ID(), other.ID())
	}
	if err := c.Reset(t.Context()); err != nil || c.ID() == first {
		t.Errorf("after a new beginning: %q, %v", c.ID(), err)
	}
}
