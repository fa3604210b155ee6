package sandbox

import (
	"context"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"
)

// How long the end of a launch may take. They bound a wait for the kernel and
// nothing that a caller may want to tune.
const (
	// killWait is how long the first process may take to die once it was killed,
	// and sweepWait what was left of its tree. Only a process that the kernel
	// cannot end, or that another user's program became, takes this long; it is
	// given up then.
	killWait, sweepWait = 5 * time.Second, 2 * time.Second
	// drainWait is how long output is read after the tree is gone. A process that
	// was not found may hold a pipe open for ever.
	drainWait = time.Second
	// sampleEvery is how often a running launch is looked at: at its disk, and at
	// its descendants where they cannot be told in the end.
	sampleEvery = 250 * time.Millisecond
)

// Command is how a backend that starts a program has it carry out a launch.
type Command struct {
	// Backend is the backend's name, for errors.
	Backend string
	// Path is the program, by absolute path; Args its arguments with the first one
	// being its own name.
	Path string
	Args []string
	// Env is the whole environment of the program; nothing is inherited.
	Env []string
	// Dir is the working directory of the program; empty means the launch's.
	Dir string
	// ExtraFiles are descriptors 3 and up of the program. They stay the caller's to
	// close, any time after [StartProcess]. Windows has none.
	ExtraFiles []*os.File
	// User is whom the program runs as; nil is the host's own user. Windows has
	// none.
	User *User
	// Limit sets the limits of a process that the platform has, before the program's
	// first instruction: no core dump, Launch.Disk for a file, Launch.Memory for the
	// data of each process. Only Linux has them.
	Limit bool
	// Job is what the job object of the launch is set to beside ending with it. Only
	// Windows has them, and there every launch has one; nil sets nothing more.
	Job *JobLimits
	// Contained says that the tree dies with the program, by a process namespace or
	// the like, so that no descendants are looked for.
	Contained bool
	// Listener is where the launch's Network.Serve answers. StartProcess closes it
	// when the launch has ended, and when it cannot start.
	Listener net.Listener

	// Started is called once the program is there and its limits are set, before its
	// first instruction on Windows and, unless Contained without Limit, on Linux. An
	// error of it ends the launch. It may be nil, as all of these.
	Started func(*os.Process) error
	// Watch runs beside the program. When it returns a reason the tree is killed for
	// it; empty is no reason. It returns when its context ends.
	Watch func(context.Context) Ended
	// Kill ends the tree in the backend's own way, beside the killing of the
	// program's process group. It is called once, also when the program has ended by
	// itself.
	Kill func()
	// Finish is called once, when the tree is gone and before [Job.Wait] returns. It
	// releases what the backend holds for the launch and may correct the result. It
	// is not called when StartProcess fails.
	Finish func(*Result)
}

// JobLimits are values of a job object, by winnt.h.
type JobLimits struct {
	// Flags say which limits hold: JOB_OBJECT_LIMIT_*.
	Flags uint32
	// Memory, in bytes, and Processes bound the whole job.
	Memory    uint64
	Processes uint32
	// Desktop is what the job is kept from: JOB_OBJECT_UILIMIT_*. Windows refuses
	// that to a job inside of another one, such as a terminal's; then it is not set.
	Desktop uint32
}

// User is a numeric user of a program, without any supplementary groups.
type User struct{ UID, GID uint32 }

// StartProcess starts the program of a command and minds it for the launch: its
// input is empty, its output is collected, its deadline, ctx and [Job.Stop] kill
// the whole tree, and so does its own end. What is left of the tree is killed
// before Wait returns.
//
// The program leads a session and a process group of its own. On Linux it is
// killed when the host dies, and on Windows its whole tree is.
//
// An error is an [*Unavailable] and leaves nothing behind.
func StartProcess(ctx context.Context, l Launch, cmd Command) (Job, error) {
	p := &process{launch: l, cmd: cmd, exited: make(chan struct{}), stopped: make(chan struct{}), done: make(chan struct{})}
	if err := p.start(ctx); err != nil {
		if cmd.Listener != nil {
			_ = cmd.Listener.Close() // err is what matters
		}
		return nil, &Unavailable{Backend: cmd.Backend, Step: "start " + cmd.Path, Err: err}
	}
	go p.supervise(ctx)
	return p, nil
}

// process is a launch as a program of the host.
type process struct {
	launch Launch
	cmd    Command
	child  *os.Process
	tree   *tree
	began  time.Time

	pipes   [2]*os.File // read ends of stdout and stderr
	output  [2]Output
	readers sync.WaitGroup

	exited  chan struct{} // the first process has ended; it is not reaped yet
	once    sync.Once
	stopped chan struct{} // Stop was called
	done    chan struct{} // result is set
	result  Result
}

// Wait is [Job.Wait].
func (p *process) Wait() Result {
	<-p.done
	return p.result
}

// Stop is [Job.Stop].
func (p *process) Stop() { p.once.Do(func() { close(p.stopped) }) }

func (p *process) start(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var files [3]*os.File
	defer func() {
		for _, f := range files {
			if f != nil {
				_ = f.Close() // the program has its own
			}
		}
	}()
	var err error
	if files[0], err = os.Open(os.DevNull); err != nil {
		return err
	}
	for i := range p.pipes {
		if p.pipes[i], files[i+1], err = os.Pipe(); err != nil {
			p.closePipes()
			return err
		}
	}
	if p.tree, err = newTree(p.launch, p.cmd); err == nil {
		err = p.launchChild(files)
	}
	if err != nil {
		p.closePipes()
		return err
	}
	for i, pipe := range p.pipes {
		p.readers.Go(func() { p.output[i] = p.launch.Gather(Stream(i+1), pipe) })
	}
	return nil
}

// launchChild starts the program from a thread that lives as long as the program:
// the kernel takes the end of the thread for the death of the parent.
func (p *process) launchChild(files [3]*os.File) error {
	dir := p.cmd.Dir
	if dir == "" {
		dir = p.launch.Dir
	}
	attr := &os.ProcAttr{
		Dir:   dir,
		Env:   append([]string{}, p.cmd.Env...), // nil would be the host's own
		Files: append(files[:], p.cmd.ExtraFiles...),
		Sys:   p.tree.attr(),
	}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		p.began = time.Now()
		child, err := p.tree.spawn(p.cmd.Path, p.cmd.Args, attr)
		if err == nil {
			p.child = child
			err = p.adopt()
		}
		started <- err
		if err == nil {
			p.tree.await(child)
			close(p.exited)
		}
	}()
	err := <-started
	if err != nil {
		p.tree.close()
	}
	return err
}

// adopt puts the started program under the host's control, or ends it.
func (p *process) adopt() error {
	err := p.tree.adopt(p.child)
	if err == nil && p.cmd.Started != nil {
		err = p.cmd.Started(p.child)
	}
	if err == nil {
		err = p.tree.release(p.child)
	}
	if err != nil {
		_ = p.child.Kill() // it may be gone already
		p.killTree()
		_, _ = p.child.Wait()
	}
	return err
}

func (p *process) killTree() {
	p.tree.kill()
	if p.cmd.Kill != nil {
		p.cmd.Kill()
	}
}

func (p *process) closePipes() {
	for _, pipe := range p.pipes {
		if pipe != nil {
			_ = pipe.Close() // nothing was written by us
		}
	}
}

// supervise owns everything that runs for the launch.
func (p *process) supervise(ctx context.Context) {
	defer close(p.done)
	beside, cancel := context.WithCancel(ctx)
	var others sync.WaitGroup
	why := p.over(ctx, p.watch(beside, &others))
	decided := time.Now()
	p.killTree()
	ended := p.ended()
	left := !p.cmd.Contained && p.tree.sweep()
	state := p.reap(ended)
	p.drain()
	p.tree.close()
	cancel()
	if p.cmd.Listener != nil {
		_ = p.cmd.Listener.Close() // Serve may have closed it
	}
	others.Wait()

	p.result = Result{Ended: why, Stdout: p.output[0], Stderr: p.output[1], Wall: time.Since(p.began)}
	if p.result.Exit, p.result.Signal = status(state); why == Exited && p.result.Signal != "" {
		p.result.Ended = Signalled
	}
	if why != Exited || left {
		p.result.Killing = time.Since(decided)
	}
	if p.cmd.Finish != nil {
		p.cmd.Finish(&p.result)
	}
}

// watch starts what runs beside the program. A reason to kill comes by the
// channel.
func (p *process) watch(ctx context.Context, others *sync.WaitGroup) <-chan Ended {
	reasons := make(chan Ended, 2) // one for each sender
	if p.cmd.Listener != nil && p.launch.Network.Serve != nil {
		others.Go(func() { p.launch.Network.Serve(ctx, p.cmd.Listener) })
	}
	if p.launch.Disk > 0 {
		others.Go(func() {
			if Grown(ctx, p.launch.Write, p.launch.Disk) {
				reasons <- OutOfRoom
			}
		})
	}
	if p.cmd.Watch != nil {
		others.Go(func() {
			if why := p.cmd.Watch(ctx); why != "" {
				reasons <- why
			}
		})
	}
	if !p.cmd.Contained && p.tree.tracks() {
		others.Go(func() { p.track(ctx) })
	}
	return reasons
}

// track lets the tree learn of its descendants while it can be told whose they
// are.
func (p *process) track(ctx context.Context) {
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			p.tree.observe()
		case <-p.exited:
			return
		case <-ctx.Done():
			return
		}
	}
}

// over waits until the launch is to end and says why.
func (p *process) over(ctx context.Context, reasons <-chan Ended) Ended {
	var deadline <-chan time.Time
	if p.launch.Deadline > 0 {
		timer := time.NewTimer(p.launch.Deadline - time.Since(p.began))
		defer timer.Stop()
		deadline = timer.C
	}
	var why Ended
	select {
	case <-p.exited:
		return Exited
	case <-deadline:
		why = TimedOut
	case <-p.stopped:
		why = Cancelled
	case <-ctx.Done():
		why = Cancelled
	case why = <-reasons:
	}
	select {
	case <-p.exited: // at the same moment: then nothing was cut short
		return Exited
	default:
		return why
	}
}

// ended waits for the end of the first process, which was killed or has ended. It
// is false if the kernel does not end it.
func (p *process) ended() bool {
	timer := time.NewTimer(killWait)
	defer timer.Stop()
	select {
	case <-p.exited:
		return true
	case <-timer.C:
		return false
	}
}

// reap takes the status of the first process; nil if there is none. Until then its
// number, which names its session, is not given to another process: so it comes
// after the sweep.
func (p *process) reap(ended bool) *os.ProcessState {
	if !ended {
		go func() { // nothing waits for it: it ends with a process that cannot be ended
			<-p.exited
			_, _ = p.child.Wait()
		}()
		return nil
	}
	state, err := p.child.Wait()
	if err != nil {
		return nil
	}
	return state
}

// drain waits for the end of the output and closes the pipes.
func (p *process) drain() {
	read := make(chan struct{})
	go func() {
		p.readers.Wait()
		close(read)
	}()
	timer := time.NewTimer(drainWait)
	defer timer.Stop()
	select {
	case <-read:
	case <-timer.C:
	}
	p.closePipes()
	<-read
}

// Vector is the argument vector that carries out a launch: its own, or shell with
// the line as its last argument.
func (l Launch) Vector(shell []string) ([]string, error) {
	if l.Line == "" {
		return l.Argv, nil
	}
	if len(shell) == 0 {
		return nil, fmt.Errorf("launch %s: this host has no shell for the line", l.Purpose)
	}
	return append(slices.Clone(shell), l.Line), nil
}
