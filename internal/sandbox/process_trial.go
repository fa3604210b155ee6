package sandbox

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// trialOutput is what is kept of what a trial says, which goes into an error.
const trialOutput = 2 << 10

// Trial runs the shortest program of this host through a backend, in a new directory
// below parent, or among the temporary ones if that is empty. It is how a backend is
// found to work where launches are going to work; ctx bounds it. The error is an
// [*Unavailable].
func Trial(ctx context.Context, b Backend, parent string) error {
	failed := func(step string, err error) error { return &Unavailable{Backend: b.Name(), Step: step, Err: err} }
	argv, err := trueProgram()
	if err != nil {
		return failed("find a program to try", err)
	}
	dir, err := os.MkdirTemp(parent, "metier-trial-")
	if err != nil {
		return failed("make a directory to try it in", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // it is in the temporary directory, and empty
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return failed("make a directory to try it in", err)
	}
	l := Launch{Purpose: Canary, Argv: argv, Dir: dir, Write: []string{dir}, Output: trialOutput}
	if end, set := ctx.Deadline(); set {
		l.Deadline = max(time.Until(end), 1)
	}
	r, err := Run(ctx, b, l)
	if err != nil {
		return err
	}
	if !r.OK() {
		said := strings.Join(strings.Fields(r.Stderr.Text()), " ")
		return failed("run "+argv[0], fmt.Errorf("%s, status %d: %q", r.Ended, r.Exit, said))
	}
	return nil
}
