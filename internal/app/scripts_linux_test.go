package app_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// patience is how long something may take that takes no time.
const patience = 20 * time.Second

// running reports whether this host has a process with that argument.
func running(t *testing.T, arg string) bool {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && bytes.HasPrefix(b, []byte("sleep\x00"+arg+"\x00")) {
			return true
		}
	}
	return false
}

// until waits for something to become as it should.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	late := time.After(patience)
	for !is() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatal("not in time: " + what)
		}
	}
}

// begin starts a turn whose script sleeps, and waits until it does.
func (r rig) begin(ctx context.Context, t *testing.T, arg string) <-chan error {
	t.Helper()
	req := r.request(ctx, t, `{"skill":"probe","path":"scripts/wait.sh","args":["`+arg+`"]}`)
	ended := make(chan error, 1)
	go func() {
		res, err := http.DefaultClient.Do(req)
		if err == nil {
			_, err = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
		}
		ended <- err
	}()
	until(t, "the script runs", func() bool { return running(t, arg) })
	return ended
}

// TestClientGone: a client that goes away takes its script with it.
func TestClientGone(t *testing.T) {
	r := confined(t, t.TempDir())
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	ended := r.begin(ctx, t, "50.14159")
	leave()
	<-ended
	until(t, "the script is gone", func() bool { return !running(t, "50.14159") })
}

// TestClose: closing ends what runs, waits for it, and leaves nothing.
func TestClose(t *testing.T) {
	home := t.TempDir()
	r := confined(t, home)
	ended := r.begin(t.Context(), t, "50.27182")
	closed := make(chan struct{})
	go func() { defer close(closed); r.app.Close() }()
	select {
	case <-closed:
	case <-time.After(patience):
		t.Fatal("Close hangs")
	}
	if running(t, "50.27182") {
		t.Error("the script runs on")
	}
	<-ended
	until(t, "the working directory is gone", func() bool {
		left, err := filepath.Glob(filepath.Join(home, "scratch", "*", "*"))
		return err == nil && len(left) == 0
	})
}
