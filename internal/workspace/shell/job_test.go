//go:build unix

package shell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/sandbox"
)

// log waits until the log of a job holds a text and is the whole log.
func (r *rig) log(j Job, want string) string {
	r.t.Helper()
	var text []byte
	eventually(r.t, want, func() bool {
		var err error
		text, err = os.ReadFile(j.Log)
		check(r.t, err)
		return strings.Contains(string(text), want)
	})
	return string(text)
}

// TestBackground: B1 9.10.
func TestBackground(t *testing.T) {
	each(t, common(), func(t *testing.T, r *rig) {
		r.want("mkdir -p a/b; cd a; export X=1", "")
		call, gone := context.WithCancel(t.Context())
		var mu sync.Mutex
		watched := ""
		job, err := r.Background(call, Command{
			Line:  "echo begun $X; pwd; cd b; export X=2; while ! [ -e ../go ]; do sleep 0.01; done; echo over; printf end; exit 4",
			Watch: func(_ sandbox.Stream, p []byte) { mu.Lock(); watched += string(p); mu.Unlock() },
		})
		check(t, err)
		gone() // the call is over, the command is not
		if job.ID != "job-1" || job.Log != filepath.Join(r.w.Jobs(), "job-1.log") || job.Shown != "../../state/.jobs/job-1.log" {
			t.Errorf("%+v", job)
		}
		r.log(job, "begun 1\n"+r.path("a")+"\n")
		r.want("tail -n 1 "+job.Shown+"; echo $X; touch go", r.path("a")+"\n1\n")
		text := r.log(job, "[job-1 ended: exit 4")
		mu.Lock()
		defer mu.Unlock()
		if head := "begun 1\n" + r.path("a") + "\nover\nend\n[job-1"; !strings.HasPrefix(text, head) || !strings.HasPrefix(head, watched) || !strings.HasSuffix(watched, "over\nend") {
			t.Errorf("%q, watched %q", text, watched)
		}
		r.want("pwd; echo $X", r.path("a")+"\n1\n")
		second, err := r.Background(t.Context(), Command{Line: "pwd", Workdir: "a/b"})
		check(t, err)
		if second.ID != "job-2" || !strings.HasPrefix(r.log(second, "[job-2"), r.path("a/b")+"\n") {
			t.Errorf("%+v", second)
		}
	})
}

// TestJobsAtOnce: only so many run, and the end of the session ends them all.
func TestJobsAtOnce(t *testing.T) {
	l := unconfined(t)
	for name, p := range common() {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, p, l, limits(t, map[config.Name]int64{config.JobsAtOnce: 2}))
			first, err := r.Background(t.Context(), Command{Line: "echo up; while :; do sleep 1; done"})
			check(t, err)
			second, err := r.Background(t.Context(), Command{Line: "while ! [ -e go ]; do sleep 0.01; done"})
			check(t, err)
			if _, err := r.Background(t.Context(), Command{Line: "true"}); !errors.Is(err, ErrJobs) || r.failed != 0 {
				t.Errorf("a third one: %v", err)
			}
			r.want("touch go", "")
			r.log(second, "[job-2 ended: exit 0")
			eventually(t, "a place", func() bool {
				job, err := r.Background(t.Context(), Command{Line: "true"})
				return err == nil && job.ID == "job-3"
			})
			r.log(first, "up\n")
			r.Close()
			if text := r.log(first, "[job-1 was ended with its conversation"); !strings.HasPrefix(text, "up\n") {
				t.Errorf("%q", text)
			}
			if _, err := r.Run(t.Context(), Command{Line: "true"}); !errors.Is(err, errClosed) {
				t.Errorf("after the end: %v", err)
			}
			if _, err := r.Background(t.Context(), Command{Line: "true"}); !errors.Is(err, errClosed) {
				t.Errorf("after the end: %v", err)
			}
		})
	}
}

// TestJobLog: a log does not grow for ever, and says so.
func TestJobLog(t *testing.T) {
	starter := &played{result: sandbox.Result{Ended: sandbox.Exited, Wall: 1234 * time.Millisecond}}
	starter.do = func(_ context.Context, l sandbox.Launch) {
		for range 200 {
			l.Watch(sandbox.Stdout, []byte("0123456789"))
		}
	}
	r := newRig(t, Program{Dialect: Sh, Argv: []string{"/bin/sh"}}, starter, limits(t, map[config.Name]int64{config.JobLog: 1024}))
	job, err := r.Background(t.Context(), Command{Line: "true"})
	check(t, err)
	r.ended.Wait()
	text, err := os.ReadFile(job.Log)
	check(t, err)
	if want := strings.Repeat("0123456789", 102) + "0123" + jobLogFull + "[job-1 ended: exit 0 after 1.2s]\n"; string(text) != want {
		t.Errorf("%q", text)
	}
	if starter.last.Deadline != 0 {
		t.Errorf("a background command has a deadline: %v", starter.last.Deadline)
	}
}

// TestNotStarted: launches that never start are counted, those of a busy host and of
// a caller that left are not (B1 9.14).
func TestNotStarted(t *testing.T) {
	starter := &played{err: errScripted}
	r := newRig(t, Program{Dialect: Sh, Argv: []string{"/bin/sh"}}, starter, config.Values{})
	fails := func(want int) {
		t.Helper()
		_, err := r.Run(t.Context(), Command{Line: "true"})
		var not *NotStartedError
		if !errors.As(err, &not) || not.InARow != want || !errors.Is(err, errScripted) {
			t.Errorf("%d: %v", want, err)
		}
	}
	fails(1)
	fails(2)
	_, err := r.Background(t.Context(), Command{Line: "true"})
	var not *NotStartedError
	if !errors.As(err, &not) || not.InARow != 3 {
		t.Errorf("%v", err)
	}
	if entries, err := os.ReadDir(r.w.Jobs()); err != nil || len(entries) > 0 {
		t.Errorf("the log of a command that never ran is left: %v %v", entries, err)
	}
	starter.err = fmt.Errorf("wait: %w", sandbox.ErrBusy)
	if _, err := r.Run(t.Context(), Command{Line: "true"}); !errors.Is(err, sandbox.ErrBusy) || errors.As(err, &not) {
		t.Errorf("busy: %v", err)
	}
	starter.err = errScripted
	left, leave := context.WithCancel(t.Context())
	leave()
	if _, err := r.Run(left, Command{Line: "true"}); errors.As(err, &not) {
		t.Errorf("left: %v", err)
	}
	fails(4)
	starter.err = nil
	r.run(Command{Line: "true"})
	starter.err = errScripted
	fails(1)
	starter.err = nil
	if job, err := r.Background(t.Context(), Command{Line: "true"}); err != nil || job.ID != "job-1" {
		t.Errorf("%+v %v", job, err)
	}
	check(t, os.RemoveAll(r.w.State()))
	if _, err := r.Run(t.Context(), Command{Line: "true"}); !errors.As(err, &not) || not.InARow != 1 {
		t.Errorf("without a place for scripts: %v", err)
	}
	_, err = r.w.Restore()
	check(t, err)
}

// TestBackgroundStart: a caller that leaves while the command waits for a place takes
// it along.
func TestBackgroundStart(t *testing.T) {
	starter := &played{}
	r := newRig(t, Program{Dialect: Sh, Argv: []string{"/bin/sh"}}, starter, config.Values{})
	call, leave := context.WithCancel(t.Context())
	starter.do = func(ctx context.Context, _ sandbox.Launch) {
		leave()
		<-ctx.Done()
	}
	_, err := r.Background(call, Command{Line: "true"})
	if !errors.Is(err, context.Canceled) || len(r.running) != 0 || r.failed != 0 {
		t.Errorf("%v", err)
	}
}
