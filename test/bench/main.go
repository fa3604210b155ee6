// Command bench measures what Metier costs beside a bare reverse proxy in front
// of the same upstream: processor time for plain requests and streams, memory
// for open streams and for an idle server.
//
// Everything runs on loopback in processes of their own: the upstream of
// test/upstream, a [net/http/httputil.ReverseProxy] (this program again), and
// two servers, one without and one with skills. Only the process in the middle
// is measured, from /proc, so the load and the upstream are not in the numbers.
// Repetitions of all targets alternate in one run; what counts is the ratio of
// neighbours. It fails when an answer is wrong and never because a number is
// high: times are no gate. What a machine cannot disturb is counted by the tests
// of this folder.
//
// Stores are measured in this process: appends, folds and followers, beside the bare
// statements that they cannot do without.
//
// Launches are measured beside: one program bare, behind bubblewrap where there is
// one, and confined by the native backend, with this program as the host.
//
// Start at [run].
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := dispatch(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

// dispatch is the bench, or the reverse proxy that the bench starts.
func dispatch(ctx context.Context, args []string) int {
	var err error
	if len(args) == 2 && args[0] == proxyCommand {
		err = proxy(ctx, args[1], os.Stdout)
	} else {
		err = run(ctx, args, os.Stdout, os.Stderr)
	}
	switch {
	case errors.Is(err, errUsage):
		return 2
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// errUsage is a command line that was called wrongly; what is wrong has been said already.
var errUsage = errors.New("bench: called wrongly")

// sizes are how much is measured.
type sizes struct {
	rounds int
	// requests of a repetition of each kind of load.
	short, streams, long int
	// slow is how many streams are open at once, for hold.
	slow       int
	slowRounds int
	hold       time.Duration
	launches   launchSizes
	stores     storeSizes
}

// launchSizes are how much is measured of launches.
type launchSizes struct {
	// rounds of one launch each way: of the smallest program, and of an interpreter.
	rounds, pythons int
	// batches of launches without a pause, so many each, and twice as many where so many
	// run at a time.
	batches, batch, together int
	// heap is what the host grows by, turns how often, with so many rounds each.
	heap                  int
	heapTurns, heapRounds int
	// kills are how often each kind of tree is killed.
	kills int
}

func fullSizes() sizes {
	return sizes{rounds: 7, short: 2400, streams: 600, long: 64, slow: 1000, slowRounds: 5, hold: 3 * time.Second, launches: launchSizes{
		rounds: 50, pythons: 20, batches: 3, batch: 16, together: 16, heap: 1 << 30, heapTurns: 3, heapRounds: 7, kills: 3,
	}, stores: storeSizes{rounds: 5, appends: 2000, batches: 100, sessions: 16, events: 10_000, heard: 300, followers: 1000}}
}

func quickSizes() sizes {
	return sizes{rounds: 3, short: 200, streams: 60, long: 8, slow: 200, slowRounds: 1, hold: time.Second, launches: launchSizes{
		rounds: 5, pythons: 3, batches: 1, batch: 16, together: 16, heap: 1 << 28, heapTurns: 1, heapRounds: 3, kills: 1,
	}, stores: storeSizes{rounds: 1, appends: 200, batches: 10, sessions: 16, events: 2000, heard: 50, followers: 200}}
}

// run measures and prints.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	quick := flags.Bool("quick", false, "a smoke run: fewer rounds and streams, numbers of little worth")
	file := flags.String("json", "", "`file` to write all numbers to")
	metier := flags.String("metier", "", "`binary` to measure; empty builds ./cmd/metier")
	only := flags.String("only", "", "measure only workloads whose name contains `text`")
	if err := flags.Parse(args); err != nil {
		return errUsage
	}
	if flags.NArg() > 0 {
		fmt.Fprintln(stderr, "bench: it takes no arguments but its flags")
		return errUsage
	}
	size := fullSizes()
	if *quick {
		size = quickSizes()
	}
	rep, err := measure(ctx, size, *metier, *only, stderr)
	if err != nil {
		return err
	}
	rep.Quick = *quick
	if *file != "" {
		if err := rep.writeFile(*file); err != nil {
			return err
		}
	}
	return rep.print(stdout)
}

// measure starts what is measured, loads it, and ends all of it again.
func measure(ctx context.Context, size sizes, metier, only string, progress io.Writer) (*report, error) {
	// Children die with the thread that started them (see ownGroup).
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began := time.Now()
	if only == storeName {
		rep := newReport(began)
		err := runStores(ctx, rep, size.stores)
		rep.Took = time.Since(began).Round(time.Second).String()
		return rep, err
	}
	h, err := newHouse(ctx, metier, progress)
	if err != nil {
		return nil, err
	}
	defer h.close()
	rep := newReport(began)
	for _, s := range cpuStages(size) {
		if s = s.only(only); len(s.loads) == 0 {
			continue
		}
		if err := s.run(ctx, h, rep, size.rounds); err != nil {
			return nil, fmt.Errorf("bench: %s: %w", s.loads[0].name, err)
		}
	}
	if strings.Contains(slowName, only) {
		if err := runSlow(ctx, h, rep, size); err != nil {
			return nil, fmt.Errorf("bench: %s: %w", slowName, err)
		}
	}
	if slices.ContainsFunc(launchNames(), func(name string) bool { return strings.Contains(name, only) }) {
		if err := runLaunches(ctx, h, rep, size.launches, only); err != nil {
			return nil, fmt.Errorf("bench: launches: %w", err)
		}
	}
	if strings.Contains(storeName, only) {
		if err := runStores(ctx, rep, size.stores); err != nil {
			return nil, fmt.Errorf("bench: stores: %w", err)
		}
	}
	rep.Took = time.Since(began).Round(time.Second).String()
	return rep, nil
}
