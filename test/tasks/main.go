// Command tasks proves code work: thirty tasks, a scripted model that makes the
// mistakes of small models in them, and a host that is to recover from these.
//
//	go run ./test/tasks                     all classes of mistakes alone and in pairs
//	go run ./test/tasks -update             the same, and writes docs/recovery.md
//	go run ./test/tasks -fault fenced-patch one class
//	go run ./test/tasks -run 09-crlf-settings+fenced-patch@1 -off   one run, told whole
//	go run ./test/tasks -model NAME -upstream URL   the tasks with a real model
//
// Each run is one request of a client to a metier in this process, with a workspace of
// its own that a checker looks at in the end. It is played with the host's recovery on
// and off. The command fails when a task is not done, or when recovery saves nothing in
// a class that it is there for.
//
// It needs python3, node, go and bash, and a sandbox that works here. It reaches nothing
// but this machine, and the upstream that it is given.
//
// Start at [run]; package model says which mistakes are made, package task what a task
// is.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/metier-run/metier/internal/app"
	"github.com/metier-run/metier/test/tasks/direct"
	"github.com/metier-run/metier/test/tasks/index"
	"github.com/metier-run/metier/test/tasks/model"
	"github.com/metier-run/metier/test/tasks/task"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o, err := parse(os.Args[1:], os.Stderr)
	if err != nil {
		os.Exit(2) // what is wrong has been said
	}
	if err := run(ctx, o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "tasks: "+err.Error())
		stop()
		os.Exit(1)
	}
}

// options are what the command line says.
type options struct {
	// data is the folder testdata, doc the page that update writes.
	data, doc string
	// fault, task and run narrow what is played; all is played when they are empty.
	fault, task, run string
	off, update      bool
	seed             uint64
	pairs, workers   int
	// model and upstream are a real one; keyEnv is the variable that holds its key.
	model, upstream, keyEnv string
	log                     bool
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("tasks", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.data, "data", filepath.Join("test", "tasks", "testdata"), "folder of the tasks")
	f.StringVar(&o.doc, "doc", filepath.Join("docs", "recovery.md"), "page that -update writes")
	f.BoolVar(&o.update, "update", false, "write the page")
	f.StringVar(&o.fault, "fault", "", "play this class of mistakes alone, without pairs")
	f.StringVar(&o.task, "task", "", "play these tasks alone: a name, or a pattern such as 1*")
	f.StringVar(&o.run, "run", "", "play one run, as results name it, and tell all of it")
	f.BoolVar(&o.off, "off", false, "with -run or -model: recovery off")
	f.Uint64Var(&o.seed, "seed", 1, "seed of all that falls by chance")
	f.IntVar(&o.pairs, "pairs", 60, "number of pairs of mistakes")
	f.IntVar(&o.workers, "workers", runtime.NumCPU(), "runs at once")
	f.StringVar(&o.model, "model", "", "a real model's name, with -upstream")
	f.StringVar(&o.upstream, "upstream", "", "URL of the real model")
	f.StringVar(&o.keyEnv, "upstream-key-env", "", "environment variable that holds the upstream's key")
	f.BoolVar(&o.log, "log", false, "show the log of the hosts")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	wrong := ""
	switch {
	case f.NArg() > 0:
		wrong = fmt.Sprintf("it takes no arguments but its flags, and got %q", f.Arg(0))
	case (o.model == "") != (o.upstream == ""):
		wrong = "-model and -upstream go together"
	case o.update && o.fault+o.task+o.run+o.model != "":
		wrong = "-update needs all runs: leave -fault, -task, -run and -model out"
	case o.workers < 1:
		wrong = "-workers must be at least 1"
	}
	if wrong != "" {
		fmt.Fprintln(stderr, "tasks: "+wrong)
		return o, flag.ErrHelp
	}
	return o, nil
}

// run does what the command line asks for.
func run(ctx context.Context, o options, out io.Writer) error {
	if name := direct.Missing(); name != "" {
		return fmt.Errorf("%s is not on this host: install it", name)
	}
	if err := narrowPath(ctx); err != nil {
		return err
	}
	p, stop, err := openPlace(ctx, o)
	if err != nil {
		return err
	}
	defer stop()
	if err := p.keep(o.task); err != nil {
		return err
	}
	if err := p.warm(ctx); err != nil {
		return err
	}
	if o.model != "" {
		return p.real(ctx, o, out)
	}
	book, err := model.NewBook(p.tasks, filepath.Join(o.data, "detours"))
	if err != nil {
		return err
	}
	m := model.New(book, model.Options{})
	url, end, err := serve(ctx, m)
	if err != nil {
		return err
	}
	defer end()
	p.upstream = app.Upstream{URL: url + "/v1", Type: "openai"}
	if o.run != "" {
		return p.one(ctx, o, m, out)
	}
	return p.sweep(ctx, o, m, book.Faults(), out)
}

// openPlace makes what all hosts share. stop takes it away.
func openPlace(ctx context.Context, o options) (p *place, stop func(), err error) {
	p = &place{data: o.data, exec: task.Bare, log: io.Discard}
	if o.log {
		p.log = os.Stderr
	}
	if p.temp, err = os.MkdirTemp("", "tasks-"); err != nil {
		return nil, nil, fmt.Errorf("open the tasks: %w", err)
	}
	gone := func() { _ = os.RemoveAll(p.temp) } // what stays is in the folder for such things
	defer func() {
		if err != nil {
			gone()
		}
	}()
	if p.tasks, err = task.Load(filepath.Join(o.data, "tasks")); err != nil {
		return nil, nil, err
	}
	packages, err := index.New(os.DirFS(filepath.Join(o.data, "index")))
	if err != nil {
		return nil, nil, err
	}
	url, end, err := serve(ctx, packages)
	if err != nil {
		return nil, nil, err
	}
	p.index = url
	return p, func() { end(); gone() }, nil
}

// one plays one run and tells all of it.
func (p *place) one(ctx context.Context, o options, m *model.Handler, out io.Writer) error {
	r, err := model.ParseRun(o.run)
	if err != nil {
		return err
	}
	if err := p.keep(r.Task); err != nil {
		return err
	}
	results, err := p.playAll(ctx, m, []job{{run: r, recovery: !o.off}}, 1, func(int, result) {})
	if err != nil {
		return err
	}
	fmt.Fprint(out, results[0].tell())
	return results[0].err
}

var errUnproven = errors.New("code work is not proven: see above")
