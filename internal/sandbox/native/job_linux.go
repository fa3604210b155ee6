package native

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/metier-run/metier/internal/sandbox"
)

// job is a launch in a cell.
type job struct {
	b      releaser
	c      *cell
	launch sandbox.Launch
	began  time.Time

	reads, writes [2]*os.File
	outputs       [2]sandbox.Output
	proxy         net.Listener
	others        sync.WaitGroup // readers, the proxy, and what watches

	once    sync.Once
	reason  sandbox.Ended
	decided time.Time

	done   chan struct{}
	result sandbox.Result
}

// releaser is the backend that a cell goes back to.
type releaser interface {
	release(c *cell)
	releaseLater(c *cell)
	rewarm()
}

func newJob(b releaser, c *cell, l sandbox.Launch, began time.Time) (*job, error) {
	j := &job{b: b, c: c, launch: l, began: began, done: make(chan struct{})}
	for i := range j.reads {
		var err error
		if j.reads[i], j.writes[i], err = os.Pipe(); err != nil {
			j.abandon()
			return nil, step(err, "make a pipe")
		}
	}
	return j, nil
}

func (j *job) writeEnds() []int { return []int{int(j.writes[0].Fd()), int(j.writes[1].Fd())} }

func (j *job) closeWriteEnds() {
	for _, f := range j.writes {
		if f != nil {
			_ = f.Close()
		}
	}
}

var errSlow = errors.New("it took longer than sandbox-set-up allows")

// begin gives the cell its order and minds the launch as soon as the program runs. An
// error gives back what the launch held.
func (j *job) begin(ctx context.Context, o order, fds []int, wait time.Duration) error {
	if err := j.c.tell(o, append(j.writeEnds(), fds...)); err != nil {
		j.abandon()
		return step(err, "send the order")
	}
	j.closeWriteEnds()
	setUp, stop := context.WithTimeoutCause(ctx, wait, errSlow)
	defer stop()
	if err := j.await(setUp); err != nil {
		j.abandon()
		return err
	}
	j.start(ctx)
	return nil
}

// abandon gives back what a launch held that never ran.
func (j *job) abandon() {
	j.closeWriteEnds()
	for _, f := range j.reads {
		if f != nil {
			_ = f.Close()
		}
	}
	if j.proxy != nil {
		_ = j.proxy.Close()
	}
}

// await hears init until the program runs.
func (j *job) await(ctx context.Context) error {
	for {
		r, fds, err := j.c.hear(ctx)
		switch {
		case err != nil:
			return step(err, "wait for the program")
		case r.Kind == isStarted:
			return nil
		case r.Kind == isListening && j.launch.Network.Mode == sandbox.NetworkProxied:
			if j.proxy, err = listener(fds); err != nil {
				return step(err, "take the proxy's listener")
			}
		default:
			return r.expect(isStarted)
		}
	}
}

// drainWait is how long output is read after the tree is gone.
const drainWait = time.Second

// start minds the launch from here on.
func (j *job) start(ctx context.Context) {
	for i, f := range j.reads {
		j.others.Go(func() {
			j.outputs[i] = j.launch.Gather(sandbox.Stream(i+1), f)
			_ = f.Close() // all of it was read
		})
	}
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	if j.proxy != nil {
		j.others.Go(func() { j.launch.Network.Serve(watching, j.proxy) })
	}
	if j.launch.Disk > 0 {
		j.others.Go(func() {
			if sandbox.Grown(watching, j.launch.Write, j.launch.Disk) {
				j.kill(sandbox.OutOfRoom)
			}
		})
	}
	unhook := context.AfterFunc(ctx, j.Stop)
	deadline := func() bool { return false }
	if j.launch.Deadline > 0 {
		deadline = time.AfterFunc(j.launch.Deadline, func() { j.kill(sandbox.TimedOut) }).Stop
	}
	go func() {
		status, alone := j.listen()
		j.kill(sandbox.Exited)
		if !alone {
			j.c.gone()
		}
		ended := time.Now()
		stop()
		unhook()
		deadline()
		if j.proxy != nil {
			_ = j.proxy.Close()
		}
		for _, f := range j.reads {
			// Its other end may have been given to a process elsewhere, by a socket.
			_ = f.SetReadDeadline(ended.Add(drainWait))
		}
		j.others.Wait()
		j.finish(status, ended)
		if alone {
			// Only init is left, which is the house's: nobody waits for its end.
			j.b.releaseLater(j.c)
		} else {
			j.b.release(j.c)
		}
		j.b.rewarm()
		close(j.done)
	}()
}

// listen hears init until it reports an end or is gone. It says whether init is
// the only process that is left.
func (j *job) listen() (status unix.WaitStatus, alone bool) {
	for {
		r, _, err := j.c.hear(context.Background())
		switch {
		case err != nil: // it was killed
			return unix.WaitStatus(unix.SIGKILL), false
		case r.Kind == isExited:
			return unix.WaitStatus(r.Status), r.Alone
		case r.Kind == isOutOfMem:
			j.kill(sandbox.OutOfMem)
		case r.Kind == isTooMany:
			j.kill(sandbox.TooMany)
		}
	}
}

// kill ends the tree, for the first reason that is given.
func (j *job) kill(reason sandbox.Ended) {
	j.once.Do(func() { j.reason, j.decided = reason, time.Now() })
	j.c.kill()
}

// Stop kills the whole tree.
func (j *job) Stop() { j.kill(sandbox.Cancelled) }

// Wait returns when the whole tree is gone.
func (j *job) Wait() sandbox.Result {
	<-j.done
	return j.result
}

func (j *job) finish(status unix.WaitStatus, ended time.Time) {
	j.once.Do(func() {}) // what happens later has no say
	r := sandbox.Result{Ended: j.reason, Stdout: j.outputs[0], Stderr: j.outputs[1], Wall: ended.Sub(j.began)}
	if j.reason != sandbox.Exited {
		r.Killing = ended.Sub(j.decided)
	}
	r.Exit = status.ExitStatus()
	if status.Signaled() {
		r.Exit = 128 + int(status.Signal())
		r.Signal = strings.ToLower(strings.TrimPrefix(unix.SignalName(status.Signal()), "SIG"))
		if r.Ended == sandbox.Exited {
			r.Ended = sandbox.Signalled
		}
	}
	if !r.OK() && r.Ended != sandbox.TimedOut && r.Ended != sandbox.Cancelled && j.c.group.outOfMemory() {
		r.Ended = sandbox.OutOfMem
	}
	j.result = r
}

// explain makes an error that an operator can act on of a step that failed.
func explain(err error) error {
	s, ok := errors.AsType[*stepError](err)
	if !ok {
		return unavailable("start a launch", err, "")
	}
	return unavailable(s.step, s.err, remedy(s.step, s.err))
}
