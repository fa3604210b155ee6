// Command clients lets the agents that people run in a terminal judge Metier: each
// is installed from npm at a version of its own, started against a built server in
// front of the scripted upstream, and has to finish one task. In that task the model
// reads a skill that the client never sees, then a file of the skill and the client's
// own shell in one round, and answers when it has all three.
//
// It installs into the user's cache folder and nowhere else, gives each agent a home
// of its own that goes afterwards, and lets it reach this machine alone. It needs npm
// and a registry once, and no model.
//
// Start at [run], and at [agents] for how each is pointed at the server.
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
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	switch err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); {
	case errors.Is(err, errUsage):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "clients: "+err.Error())
		stop()
		os.Exit(1)
	}
}

// errUsage is a command line that was called wrongly; what is wrong has been said already.
var errUsage = errors.New("clients: called wrongly")

// options are where things are, relative to the project's folder.
type options struct {
	binary, skills, page, cache string
	only                        []string
	write, keep                 bool
	now                         time.Time
}

func parse(args []string, stderr io.Writer) (options, error) {
	o := options{now: time.Now()}
	f := flag.NewFlagSet("clients", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.binary, "metier", filepath.Join("bin", "metier"), "the built program")
	f.StringVar(&o.skills, "skills-dir", filepath.Join("examples", "skills"), "folder of the example skills")
	f.StringVar(&o.page, "page", filepath.Join("docs", "compat.md"), "page that -write writes the tables of")
	f.StringVar(&o.cache, "cache", "", "folder to install into; empty takes metier-clients in the user's cache folder")
	only := f.String("only", "", "names of agents, with commas; empty takes all")
	f.BoolVar(&o.write, "write", false, "write what came out into the page, with versions and the date")
	f.BoolVar(&o.keep, "keep", false, "keep what was sent and said, also of an agent that passed, and say where")
	if err := f.Parse(args); err != nil {
		return o, errUsage
	}
	if *only != "" {
		o.only = strings.Split(*only, ",")
	}
	for _, name := range o.only {
		if !slices.ContainsFunc(agents(), func(a agent) bool { return a.name == name }) {
			fmt.Fprintf(stderr, "clients: there is no agent %q; there are %s\n", name, strings.Join(names(agents()), ", "))
			return o, errUsage
		}
	}
	if f.NArg() > 0 {
		fmt.Fprintf(stderr, "clients: it takes no arguments but its flags, and got %q\n", f.Arg(0))
		return o, errUsage
	}
	return o, nil
}

func names(all []agent) []string {
	var found []string
	for _, a := range all {
		found = append(found, a.name)
	}
	return found
}

// run judges one agent after the other: they are large, and each should have the
// machine to itself.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	if o.cache == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return fmt.Errorf("find the user's cache folder: %w; give one with -cache", err)
		}
		o.cache = filepath.Join(cache, "metier-clients")
	}
	for _, path := range []*string{&o.binary, &o.skills, &o.cache} {
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
	}
	if _, err := os.Stat(o.binary); err != nil {
		return fmt.Errorf("there is no program at %s: type make clients in the project's folder, which builds it first", o.binary)
	}
	var rows []row
	for _, a := range agents() {
		if len(o.only) > 0 && !slices.Contains(o.only, a.name) {
			continue
		}
		fmt.Fprintf(stderr, "%s %s\n", a.pkg, a.version)
		r := judge(ctx, o, a, stderr)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		for _, line := range r.problems {
			fmt.Fprintf(stderr, "  %s\n", line)
		}
		rows = append(rows, r)
	}
	fmt.Fprint(stdout, table(rows))
	if o.write {
		if err := writePage(o.page, rows, o.now); err != nil {
			return err
		}
		fmt.Fprintf(stderr, "written: %s\n", o.page)
	}
	for _, r := range rows {
		if !r.passed() {
			return errors.New("not every agent finished its task: see above")
		}
	}
	return nil
}
