// Command quickstart shows Metier at work, for somebody who has just cloned it:
// it starts the built server with the example skills, asks one question as any
// OpenAI client would, prints the answer as it comes and what the model did for
// it, and says what to type next.
//
// It installs nothing, keeps nothing, and asks no model outside this machine.
// When none runs here the server's stand-in answers, and it says so.
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
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/term"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o, err := parse(os.Args[1:], os.Stderr)
	if err != nil {
		os.Exit(2) // what is wrong has been said
	}
	p := newPrinter(os.Stdout, term.IsTerminal(int(os.Stdout.Fd())) && os.Getenv("NO_COLOR") == "")
	if err := run(ctx, o, p); err != nil {
		fmt.Fprintln(os.Stderr, "quickstart: "+err.Error())
		stop()
		os.Exit(1)
	}
}

// options are where things are, relative to the project's folder.
type options struct {
	binary, skills, upstream, question string
}

// question is one that an example skill answers with a rule that no model knows
// by itself.
const question = "30 % of our requests failed for 20 minutes. Which severity is that incident?"

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.binary, "metier", filepath.Join("bin", "metier"), "the built program")
	f.StringVar(&o.skills, "skills-dir", filepath.Join("examples", "skills"), "folder of skills")
	f.StringVar(&o.upstream, "upstream", "", "URL of a model endpoint, or demo; empty looks on this machine and else takes demo")
	f.StringVar(&o.question, "question", question, "what to ask")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		fmt.Fprintf(stderr, "quickstart: it takes no arguments but its flags, and got %q\n", f.Arg(0))
		return o, flag.ErrHelp
	}
	return o, nil
}

// run tells the whole story. The server is stopped on every way out.
func run(ctx context.Context, o options, p printer) (err error) {
	if err := o.check(); err != nil {
		return err
	}
	s, err := open(ctx, &o, p)
	if err != nil {
		return err
	}
	defer func() {
		if stopErr := s.stop(); err == nil {
			err = stopErr
		}
	}()
	p.say("%s", s.address)
	for _, line := range s.welcome(ctx) {
		p.say("%s", line)
	}
	model, err := converse(ctx, o, s, p)
	if err != nil {
		return err
	}
	next(o, model, p)
	return nil
}

// check looks before anything is started.
func (o options) check() error {
	if info, err := os.Stat(o.binary); err != nil || info.IsDir() {
		return fmt.Errorf("there is no program at %s: type make run in the project's folder, which builds it first", o.binary)
	}
	if info, err := os.Stat(o.skills); err != nil || !info.IsDir() {
		return fmt.Errorf("there is no folder %s: run this in the project's folder", o.skills)
	}
	return nil
}

// open starts the server: with what it was told to use, else with a model that
// it finds on this machine, else with the stand-in. It sets the upstream that a
// reader has to type to get the same.
func open(ctx context.Context, o *options, p printer) (*server, error) {
	args := []string{"serve", "--port", "0", "--skills-dir", o.skills}
	if o.upstream != "" {
		args = append(args, "--upstream", o.upstream)
	}
	p.command(o.binary, args)
	s, err := start(ctx, o.binary, args, p.aside)
	if err == nil || o.upstream != "" || ctx.Err() != nil {
		return s, err
	}
	var early *earlyExit
	if !errors.As(err, &early) {
		return nil, err
	}
	for line := range strings.Lines(early.words) {
		if strings.HasPrefix(line, "Found ") { // a server that cannot answer yet
			p.say("%s", strings.TrimSpace(line))
		}
	}
	p.say("No model answers on this machine, so the built-in stand-in does. It is no language model.")
	o.upstream = "demo"
	args = append(args, "--upstream", o.upstream)
	p.command(o.binary, args)
	return start(ctx, o.binary, args, p.aside)
}

// converse asks the question, prints what comes back, and returns the model that
// it asked.
func converse(ctx context.Context, o options, s *server, p printer) (string, error) {
	c := client{base: s.url + "/v1"}
	model, err := c.model(ctx)
	if err != nil {
		return "", fmt.Errorf("list models: %w\n%s", err, s.lastWords())
	}
	p.heading("POST /v1/chat/completions  model %s, stream", model)
	p.text("> " + o.question + "\n\n")
	if err := c.ask(ctx, model, o.question, p.text); err != nil {
		return "", fmt.Errorf("ask %s: %w\n%s\nTo see it work without a model: go run ./test/quickstart -upstream demo", model, err, s.lastWords())
	}
	p.text("\n")
	p.text("\n")
	p.aside(s.turn(ctx))
	return model, nil
}

// next says what to type now.
func next(o options, model string, p printer) {
	with := " --skills-dir " + o.skills
	if o.upstream != "" {
		with += " --upstream " + o.upstream
	}
	p.heading("Next")
	p.text("Keep a server running:     " + o.binary + " serve" + with + "\n")
	p.text("Talk with it here:         " + o.binary + " chat" + with + "\n")
	p.text("With a model of your own:  start Ollama, llama.cpp, LM Studio or vLLM and leave --upstream out; or give\n" +
		"                           --upstream http://HOST:PORT/v1; or set OPENAI_API_KEY for --upstream https://api.openai.com/v1\n")
	p.text(fmt.Sprintf(`From any OpenAI client, against the server that keeps running:
  curl http://127.0.0.1:8484/v1/chat/completions -H 'Content-Type: application/json' \
    -d '{"model":%[1]q,"skills":["release-notes"],"messages":[{"role":"user","content":"Which headings do notes have?"}]}'

  from openai import OpenAI  # pip install openai
  client = OpenAI(base_url="http://127.0.0.1:8484/v1", api_key="none")
  messages = [{"role": "user", "content": "How do halves round on a unit price label?"}]
  print(client.chat.completions.create(model=%[1]q, messages=messages).choices[0].message.content)
`, model))
}

// printer writes for a person: what is told about the answer is dim, the answer
// itself is not. That the terminal is gone is no reason to leave the server
// running, so its errors are passed over. It is safe for concurrent use.
type printer struct {
	w   io.Writer
	dim bool
	at  *place
}

// place is where the next character goes.
type place struct {
	mu     sync.Mutex
	inLine bool // not at the start of a line
}

func newPrinter(w io.Writer, dim bool) printer { return printer{w: w, dim: dim, at: &place{}} }

func (p printer) text(s string) {
	p.at.mu.Lock()
	defer p.at.mu.Unlock()
	p.write(s)
}

func (p printer) write(s string) {
	if s != "" {
		_, _ = io.WriteString(p.w, s)
		p.at.inLine = !strings.HasSuffix(s, "\n")
	}
}

func (p printer) say(format string, args ...any) {
	p.style("2", "  "+fmt.Sprintf(format, args...))
}

// aside tells what happens meanwhile, on a line of its own.
func (p printer) aside(line string) { p.style("2", line) }

func (p printer) command(binary string, args []string) {
	p.style("2", "$ "+strings.Join(append([]string{binary}, args...), " "))
}

func (p printer) heading(format string, args ...any) {
	p.text("\n")
	p.style("1", fmt.Sprintf(format, args...))
}

func (p printer) style(code, line string) {
	if p.dim {
		line = "\x1b[" + code + "m" + line + "\x1b[0m"
	}
	p.at.mu.Lock()
	defer p.at.mu.Unlock()
	if p.at.inLine {
		p.write("\n")
	}
	p.write(line + "\n")
}
