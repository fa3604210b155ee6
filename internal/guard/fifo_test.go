//go:build unix

package guard

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"
)

func TestFIFO(t *testing.T) {
	dir := tree(t)
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o644); err != nil {
		t.Skipf("this host makes no FIFO: %v", err)
	}
	r := open(t, dir)
	// Without the look before and the flag this would wait for ever.
	if _, err := r.Open("pipe"); !errors.Is(err, ErrIrregular) {
		t.Errorf("Open of a FIFO: %v", err)
	}
	for e, err := range r.Walk(t.Context(), nil) {
		if e.Path == "pipe" && !errors.Is(err, ErrIrregular) {
			t.Errorf("Walk over a FIFO: %v", err)
		}
	}
}
