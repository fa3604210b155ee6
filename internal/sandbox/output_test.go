package sandbox

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

// TestCollect compares with the plain way to keep a beginning and an end.
func TestCollect(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		said := rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "said")
		limit := rapid.Int64Range(-1, 320).Draw(t, "limit")
		pieces := rapid.SliceOfN(rapid.IntRange(1, 40), 1, 5).Draw(t, "pieces")
		got := Collect(&choppy{said, pieces}, limit)
		keep := int(max(limit, 0))
		head, tail := said, []byte(nil)
		if len(said) > keep {
			head, tail = said[:keep-keep/2], said[len(said)-keep/2:]
		}
		if got.Total != int64(len(said)) || !bytes.Equal(got.Head, head) || !bytes.Equal(got.Tail, tail) {
			t.Fatalf("got %q %q of %d, want %q %q", got.Head, got.Tail, got.Total, head, tail)
		}
		if dropped := int64(len(said) - len(head) - len(tail)); got.Dropped() != dropped {
			t.Fatalf("%d dropped, want %d", got.Dropped(), dropped)
		}
	})
}

// choppy reads in pieces of given sizes, in turn.
type choppy struct {
	left   []byte
	pieces []int
}

func (c *choppy) Read(p []byte) (int, error) {
	if len(c.left) == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.left[:min(len(c.left), c.pieces[0])])
	c.left, c.pieces = c.left[n:], append(c.pieces[1:], c.pieces[0])
	return n, nil
}

func TestOutputText(t *testing.T) {
	if got := Collect(strings.NewReader("0123456789"), 4).Text(); got != "01\n[6 bytes dropped]\n89" {
		t.Errorf("%q", got)
	}
	if got := Collect(strings.NewReader("0123"), 4).Text(); got != "0123" {
		t.Errorf("%q", got)
	}
	broken := Collect(io.MultiReader(strings.NewReader("said"), iotest.ErrReader(fmt.Errorf("broken"))), 10)
	if broken.Text() != "said" {
		t.Errorf("what came before an error: %q", broken.Text())
	}
}

// TestGather: a watcher is told of every byte, also of those that are not kept.
func TestGather(t *testing.T) {
	var seen strings.Builder
	l := Launch{Output: 4, Watch: func(s Stream, p []byte) {
		if s != Stderr {
			t.Errorf("stream %d", s)
		}
		seen.Write(p)
	}}
	if got := l.Gather(Stderr, strings.NewReader("0123456789")).Text(); got != "01\n[6 bytes dropped]\n89" {
		t.Errorf("kept %q", got)
	}
	if seen.String() != "0123456789" {
		t.Errorf("told of %q", seen.String())
	}
}
