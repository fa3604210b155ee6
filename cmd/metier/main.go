// Command metier gives any language model Agent Skills behind the APIs that
// clients already speak. All it does is run the command line of internal/cli;
// start there.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/metier-run/metier/internal/cli"
)

// version is stamped by the build (see Makefile).
var version = "dev"

func main() {
	// Interrupts are each command's own: in a chat one ends an answer.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	code := cli.Main(ctx, cli.IO{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}, version, os.Args[1:])
	stop()
	os.Exit(code)
}
