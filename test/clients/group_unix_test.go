//go:build unix

package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestAgentsEnd: an agent that does not end by itself is ended, with what it has
// started. The child holds one end of a pipe, so that the other end tells of its own.
func TestAgentsEnd(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	script := "#!/bin/sh\necho \"$HOME $HTTPS_PROXY\"\nsleep 600 > " + pipe + " &\nwait\n"
	if err := os.WriteFile(filepath.Join(dir, "agent"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	child := make(chan *os.File, 1)
	go func() {
		f, err := os.Open(pipe) // returns when the child has opened its end
		if err != nil {
			t.Error(err)
		}
		child <- f
		stop()
	}()
	a := agent{name: "stuck", bin: "agent", point: func(seat) start { return start{files: map[string]string{"a/b": "c"}} }}
	said, err := runAgent(ctx, a, "http://127.0.0.1:1", dir, []string{dir})
	if err == nil || !strings.Contains(said, filepath.Join(dir, "home")+" "+nowhere) {
		t.Errorf("it said %q, error %v", said, err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "home", "a", "b")); err != nil || string(got) != "c" {
		t.Errorf("its file: %q, %v", got, err)
	}
	f := <-child
	defer f.Close()
	if err := f.SetReadDeadline(time.Now().Add(grace)); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("what it has started lives on: %v", err)
	}
}
