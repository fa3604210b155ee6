package shell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/sandbox"
)

// Job is a background command under way (B1 9.10).
type Job struct {
	// ID is "job-1" for the first one of a conversation.
	ID string
	// Log is the file that holds what it writes, and Shown the same from where the next
	// command starts, with "/" between names.
	Log, Shown string
	// Script is what the shell's own messages name.
	Script Script
}

// ErrJobs says that as many background commands run as may.
var ErrJobs = errors.New("run a command: as many run in the background as may at once (code-exec-jobs): wait until one has ended")

// Background starts a command that runs on after the call: until it ends by itself or
// the session does. It has no deadline, begins where the session is with what is
// exported there, and never moves the session nor changes what is exported. ctx bounds
// the start alone. Errors are those of [Session.Run], and [ErrJobs].
func (s *Session) Background(ctx context.Context, c Command) (Job, error) {
	j, lasting, err := s.admit(ctx)
	if err != nil {
		return Job{}, s.notStarted(ctx, err)
	}
	p, err := s.prepare(c, false)
	if err == nil {
		err = s.begin(ctx, lasting, j, p.launch, c.Watch)
	}
	if err != nil {
		s.dismiss(j)
		s.withdraw(j)
		return Job{}, s.notStarted(ctx, err)
	}
	s.started()
	go func() { // dismiss tells Close of its end
		defer s.dismiss(j)
		if err := j.log.finish(j.id(), j.launched.Wait()); err != nil {
			s.o.Logger.Warn("the log of a background command is not whole", "job", j.id(), "error", err)
		}
	}()
	job := Job{ID: j.id(), Log: s.logPath(j), Script: p.script}
	if rel, err := filepath.Rel(s.w.Work(), job.Log); err == nil {
		job.Shown = s.w.Shown(filepath.ToSlash(rel))
	}
	return job, nil
}

// job is what the session holds of a background command.
type job struct {
	number   int
	stop     context.CancelFunc
	log      *jobLog
	launched sandbox.Job
}

func (j *job) id() string { return "job-" + strconv.Itoa(j.number) }

func (s *Session) logPath(j *job) string { return filepath.Join(s.w.Jobs(), j.id()+".log") }

// admit takes a place and a number for a command, and makes the context that it lives
// in: that of the session, which outlives the call.
func (s *Session) admit(ctx context.Context) (*job, context.Context, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, nil, errClosed
	case len(s.running) >= s.w.Limits().Int(config.JobsAtOnce):
		return nil, nil, ErrJobs
	}
	lasting, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.jobs++
	j := &job{number: s.jobs, stop: stop}
	s.running[j.number] = stop
	s.ended.Add(1)
	return j, lasting, nil
}

// dismiss gives the place back.
func (s *Session) dismiss(j *job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j.stop()
	delete(s.running, j.number)
	s.ended.Done()
}

// withdraw gives the number back of a command that never ran. The caller has the lock
// of the workspace, so no other was given out meanwhile.
func (s *Session) withdraw(j *job) {
	if j.log != nil {
		_ = errors.Join(j.log.file.Close(), os.Remove(s.logPath(j))) // nothing was written
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.jobs--
}

// begin starts a command with a log. While it starts, the end of the call ends it.
func (s *Session) begin(ctx, lasting context.Context, j *job, l sandbox.Launch, watch func(sandbox.Stream, []byte)) error {
	file, err := os.OpenFile(s.logPath(j), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return fmt.Errorf("make the log of a background command: %w", err)
	}
	j.log = &jobLog{file: file, room: s.w.Limits().Get(config.JobLog)}
	if err := file.Chmod(0o644); err != nil { // whatever the umask took away
		return fmt.Errorf("make the log of a background command: %w", err)
	}
	l.Watch = func(from sandbox.Stream, p []byte) {
		j.log.add(p)
		if watch != nil {
			watch(from, p)
		}
	}
	unhook := context.AfterFunc(ctx, j.stop)
	j.launched, err = s.o.Starter.Start(lasting, l)
	if err == nil && !unhook() {
		j.launched.Wait()
		err = context.Cause(ctx)
	}
	return err
}

// Close ends the background commands and waits until they are gone. No command can be
// run from then on. It is called before the workspace is closed.
func (s *Session) Close() {
	s.mu.Lock()
	s.closed = true
	for _, stop := range s.running {
		stop()
	}
	s.mu.Unlock()
	s.ended.Wait()
}

// jobLog is the log of a background command: both streams as they come, and no more
// than room bytes of them.
type jobLog struct {
	mu     sync.Mutex
	file   *os.File
	room   int64
	full   bool
	inLine bool // the last byte ended no line
	err    error
}

func (l *jobLog) add(p []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.full || l.err != nil || len(p) == 0 {
		return
	}
	if int64(len(p)) > l.room {
		p, l.full = p[:l.room], true
	}
	l.room -= int64(len(p))
	l.write(string(p))
	if l.full {
		l.write(jobLogFull)
	}
}

func (l *jobLog) write(text string) {
	if l.err != nil || text == "" {
		return
	}
	_, l.err = l.file.WriteString(text)
	l.inLine = text[len(text)-1] != '\n'
}

// finish says how the command ended, and closes the log.
func (l *jobLog) finish(id string, r sandbox.Result) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.inLine {
		l.write("\n")
	}
	l.write(jobEnd(id, r))
	return errors.Join(l.err, l.file.Close())
}

// jobEnd is the last line of a log.
func jobEnd(id string, r sandbox.Result) string {
	wall := r.Wall.Round(100 * time.Millisecond)
	switch r.Ended {
	case sandbox.Exited:
		return fmt.Sprintf(jobExited, id, r.Exit, wall)
	case sandbox.Signalled:
		return fmt.Sprintf(jobSignalled, id, r.Signal, wall)
	case sandbox.Cancelled:
		return fmt.Sprintf(jobStopped, id, wall)
	}
	return fmt.Sprintf(jobBounded, id, wall, r.Ended)
}
