//go:build unix

package guard

import (
	"errors"
	"net"
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

func TestDevices(t *testing.T) {
	dir := tree(t)
	listener, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Skipf("this host makes no socket here: %v", err)
	}
	defer listener.Close()
	names := []string{"s"}
	if syscall.Mknod(filepath.Join(dir, "zero"), syscall.S_IFCHR|0o644, 1<<8|5) == nil {
		names = append(names, "zero") // only a privileged user makes a device
	}
	r := open(t, dir)
	for _, name := range names {
		if _, err := r.Open(name); !errors.Is(err, ErrIrregular) {
			t.Errorf("Open(%q): %v", name, err)
		}
		if err := r.WriteFile(name, nil, 0o644); !errors.Is(err, ErrIrregular) {
			t.Errorf("WriteFile(%q): %v", name, err)
		}
	}
}
