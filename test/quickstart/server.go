package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
)

// server is a running metier.
type server struct {
	cmd     *exec.Cmd
	url     string
	address string // the line that says so

	reading sync.WaitGroup
	greeted chan struct{} // closed when it has said what it works with
	turns   chan turnLine
	follow  func(string) // hears of each call as it ends

	mu    sync.Mutex
	words []string // what it wrote for people, last lines last
}

// earlyExit is a server that ended before it listened.
type earlyExit struct {
	err   error
	words string
}

// Error is what the server said itself.
func (e *earlyExit) Error() string {
	if e.words == "" {
		return fmt.Sprintf("the server did not start: %v", e.err)
	}
	return "the server did not start. It said:\n" + e.words
}

// Unwrap is how the process ended.
func (e *earlyExit) Unwrap() error { return e.err }

// start starts the program and returns when it listens. The log comes as JSON,
// so that calls and turn can be told in a sentence each.
func start(ctx context.Context, binary string, args []string, follow func(string)) (*server, error) {
	s := &server{greeted: make(chan struct{}), turns: make(chan turnLine, 1), follow: follow}
	// Open streams get a second when it stops: nobody else uses this server. It is
	// not bound to ctx, since it stops cleanly on an interrupt and not on a kill.
	s.cmd = exec.Command(binary, append(args, "--log-json", "--log-level", "debug", "--drain", "1")...)
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", binary, err)
	}
	stderr, err := s.cmd.StderrPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", binary, err)
	}
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w; type make build", binary, err)
	}
	listening := make(chan string, 1)
	s.reading.Go(func() { s.readLog(stderr) })
	s.reading.Go(func() { readAddress(stdout, listening) })
	select {
	case s.address = <-listening:
	case <-ctx.Done():
		_ = s.stop() // the interrupt is what is told
		return nil, ctx.Err()
	}
	url, ok := strings.CutPrefix(s.address, "listening on ")
	if !ok {
		s.reading.Wait()
		return nil, &earlyExit{err: s.cmd.Wait(), words: s.lastWords()}
	}
	s.url = url
	return s, nil
}

// readAddress passes on the first line, or nothing when there is none, and then
// reads on, so that the server never waits for a reader.
func readAddress(stdout io.Reader, listening chan<- string) {
	in := bufio.NewReader(stdout)
	line, _ := in.ReadString('\n') // an end without a line is an empty one
	listening <- strings.TrimSpace(line)
	_, _ = io.Copy(io.Discard, in) // its end is the process's end
}

// turnLine is what the server logs when a host's call, or a turn, has ended.
type turnLine struct {
	Level  string `json:"level"`
	Msg    string `json:"msg"`
	Round  int    `json:"round"`
	Tool   string `json:"tool"`
	Skill  string `json:"skill"`
	Detail string `json:"detail"`
	Bytes  int    `json:"bytes"`
	Rounds int    `json:"rounds"`
	Calls  int    `json:"host_calls"`
	In     int    `json:"tokens_in"`
	Out    int    `json:"tokens_out"`
	Took   int64  `json:"took"` // nanoseconds
}

// call tells a call to a person.
func (l turnLine) call() string {
	what := l.Tool
	if l.Skill != "" {
		what += " " + l.Skill + "/" + l.Detail
	}
	return fmt.Sprintf("[round %d] the model called %s; the server answered with %d bytes", l.Round, what, l.Bytes)
}

// turn tells a turn to a person.
func (l turnLine) turn() string {
	return fmt.Sprintf("%s with the model and %s that the server answered; a client sees one answer. %d tokens in, %d out, %s.",
		count(l.Rounds, "round"), count(l.Calls, "call"), l.In, l.Out, time.Duration(l.Took).Round(time.Millisecond))
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// keptLines are enough to see why a server failed, greeting is what one says
// about its upstream and its skills.
const (
	keptLines = 40
	greeting  = 2
)

func (s *server) readLog(stderr io.Reader) {
	in := bufio.NewReader(stderr)
	said := 0
	for {
		line, err := in.ReadBytes('\n')
		line = bytes.TrimSpace(line)
		var l turnLine
		switch {
		case len(line) == 0:
		case json.Unmarshal(line, &l) == nil && l.Msg == "turn":
			select {
			case s.turns <- l:
			default: // one question, one turn
			}
		case l.Msg == "call":
			s.follow(l.call())
		case l.Level == "DEBUG":
		default:
			s.keep(string(line))
			if said++; said == greeting {
				close(s.greeted)
			}
		}
		if err != nil {
			return
		}
	}
}

func (s *server) keep(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.words = append(s.words, line)
	s.words = s.words[max(0, len(s.words)-keptLines):]
}

// welcome is what the server says about its upstream and its skills, one line
// each.
func (s *server) welcome(ctx context.Context) []string {
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-s.greeted:
	case <-late.C:
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.words)
}

// lastWords is what the server said last, the log of turns apart.
func (s *server) lastWords() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.words, "\n")
}

// patience is what a process or a line gets that should be there at once.
const patience = 10 * time.Second

// turn tells what the server logged about the turn.
func (s *server) turn(ctx context.Context) string {
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case l := <-s.turns:
		return l.turn()
	case <-late.C:
		return "The server logged no turn."
	case <-ctx.Done():
		return ""
	}
}

// stop interrupts the server and waits for its end, and kills it only if it
// does not come.
func (s *server) stop() error {
	if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
		_ = s.cmd.Process.Kill() // there are no interrupts here, or it has ended
	}
	kill := time.AfterFunc(patience, func() {
		_ = s.cmd.Process.Kill() // it may have ended just now
	})
	s.reading.Wait()
	err := s.cmd.Wait()
	if !kill.Stop() {
		return fmt.Errorf("the server did not stop within %s of an interrupt and was killed", patience)
	}
	if err != nil {
		return fmt.Errorf("the server ended badly: %w\n%s", err, s.lastWords())
	}
	return nil
}
