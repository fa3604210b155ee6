// Command upstream serves the scripted upstream of internal/llm/scripted on a
// port, for tests that start processes and for benches. It is a tool of the
// project's own tests: it holds no model and keeps no requests.
//
// It prints one line, "listening on http://HOST:PORT", to standard output when
// it is ready, and runs until it is interrupted or terminated.
//
// Start at [run].
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"github.com/metier-run/metier/internal/llm/scripted"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	switch err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); {
	case errors.Is(err, errUsage):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// errUsage is a command line that was called wrongly; what is wrong has been said already.
var errUsage = errors.New("upstream: called wrongly")

// run serves until ctx ends.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("upstream", flag.ContinueOnError)
	flags.SetOutput(stderr)
	addr := flags.String("addr", "127.0.0.1:0", "address to listen on; port 0 picks a free one")
	dir := flags.String("dir", "", "folder of scenario files; empty serves the built-in ones")
	kind := flags.String("kind", "", fmt.Sprintf("server whose probes to imitate: %v", scripted.Kinds()))
	key := flags.String("key", "", "bearer token that requests must carry; empty asks for none")
	fast := flags.Int("fast", 0, "chunks of the models bench and bench-buffered, which answer as fast as they can; 0 leaves them out")
	if err := flags.Parse(args); err != nil {
		return errUsage
	}
	if flags.NArg() > 0 || *fast < 0 {
		fmt.Fprintln(stderr, "upstream: it takes no arguments but its flags, and -fast is a number from 0")
		return errUsage
	}
	options := scripted.Options{Kind: scripted.Kind(*kind), Key: *key, Forget: true}
	if *dir != "" {
		options.FS = os.DirFS(*dir)
	}
	scenarios, err := scripted.New(options)
	if err != nil {
		return fmt.Errorf("upstream: %w", err)
	}
	var handler http.Handler = scenarios
	if *fast > 0 {
		handler = newBench(*fast, scenarios)
	}
	return serve(ctx, *addr, handler, stdout)
}

// serve listens, says where, and serves until ctx ends. What is still open then
// is cut: a scenario may hang for ever.
func serve(ctx context.Context, addr string, h http.Handler, stdout io.Writer) error {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("upstream: listen: %w", err)
	}
	server := &http.Server{Handler: h, BaseContext: func(net.Listener) context.Context { return ctx }}
	done := make(chan error, 1)
	go func() { done <- server.Serve(ln) }()
	if _, err := fmt.Fprintf(stdout, "listening on http://%s\n", ln.Addr()); err != nil {
		_ = server.Close() // nobody knows the port, so nobody is served
		<-done
		return fmt.Errorf("upstream: say the address: %w", err)
	}
	select {
	case err = <-done:
	case <-ctx.Done():
		err = server.Close()
		<-done
	}
	if err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("upstream: serve: %w", err)
	}
	return nil
}
