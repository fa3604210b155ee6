package hostile

import (
	"context"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/metier-run/metier/internal/sandbox"
)

// bareControl is the name under which launches run that nothing confines.
const bareControl = sandbox.Bare

// control starts what it is told and confines nothing. It is not the house's own
// backend of that name, which closes descriptors and looks for detached children,
// so that no care of the house can hold an attempt by accident.
type control struct{}

func (control) Name() string { return bareControl }

func (control) Capabilities() sandbox.Capabilities {
	return sandbox.Capabilities{Backend: bareControl, Tier: sandbox.TierNone}
}

func (control) Close() error { return nil }

func (control) Start(ctx context.Context, l sandbox.Launch) (sandbox.Job, error) {
	if err := l.Check(); err != nil {
		return nil, err
	}
	argv, err := l.Vector([]string{"/bin/bash", "-c"})
	if err != nil {
		return nil, err
	}
	j := &bareJob{done: make(chan struct{})}
	ctx, j.cancel = context.WithTimeout(ctx, l.Deadline)
	cmd := exec.CommandContext(ctx, argv[0])
	cmd.Args, cmd.Dir, cmd.Env = argv, l.Dir, l.Env
	cmd.WaitDelay = time.Second // what a child holds open is let go
	var outs [2]*os.File
	for i := range j.out {
		ours, theirs, err := os.Pipe()
		if err != nil {
			j.cancel()
			return nil, err
		}
		outs[i] = theirs
		j.readers.Go(func() {
			defer ours.Close()
			j.out[i] = sandbox.Collect(ours, l.Output)
		})
		j.pipes[i] = ours
	}
	cmd.Stdout, cmd.Stderr = outs[0], outs[1]
	err = cmd.Start()
	for _, f := range outs {
		_ = f.Close() // the child has its own
	}
	if err != nil {
		j.cancel()
		j.readers.Wait()
		return nil, err
	}
	go j.mind(ctx, cmd)
	return j, nil
}

// bareJob is a launch of the control.
type bareJob struct {
	cancel  context.CancelFunc
	out     [2]sandbox.Output
	pipes   [2]*os.File
	readers sync.WaitGroup
	done    chan struct{}
	result  sandbox.Result
}

func (j *bareJob) mind(ctx context.Context, cmd *exec.Cmd) {
	defer close(j.done)
	defer j.cancel()
	began := time.Now()
	_ = cmd.Wait() // its state says it
	for _, p := range j.pipes {
		_ = p.SetReadDeadline(time.Now().Add(time.Second)) // a child may hold it for ever
	}
	j.readers.Wait()
	j.result = sandbox.Result{Ended: sandbox.Exited, Exit: cmd.ProcessState.ExitCode(), Stdout: j.out[0], Stderr: j.out[1], Wall: time.Since(began)}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		j.result.Ended, j.result.Signal = sandbox.Signalled, status.Signal().String()
	}
	if ctx.Err() != nil {
		j.result.Ended = sandbox.TimedOut
	}
}

func (j *bareJob) Wait() sandbox.Result {
	<-j.done
	return j.result
}

func (j *bareJob) Stop() { j.cancel() }
