package store_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/store"
	"github.com/metier-run/metier/internal/tool"
	"github.com/metier-run/metier/internal/turn"
)

// The environment of a child: a server that is killed.
const (
	childURL   = "METIER_TEST_CHILD_URL"
	childFile  = "METIER_TEST_CHILD_FILE"  // where its tools leave traces
	childTurns = "METIER_TEST_CHILD_TURNS" // that it begins; 0 only ends what others began
)

// turnsOfASession is how many turns each session has.
const turnsOfASession = 3

// child is a server: it takes up what the one before left, and begins turns of its own.
func child() error {
	limits, err := config.Values{}.Set(config.SessionHold, 3)
	if err != nil {
		return err
	}
	ctx := context.Background()
	db, err := store.Open(ctx, store.Options{
		URL: config.NewSecret(os.Getenv(childURL)), Limits: limits, Now: time.Now,
		NewID: newID, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	s := &server{db: db, file: os.Getenv(childFile)}
	if err := s.takeUp(ctx); err != nil {
		return err
	}
	if os.Getenv(childTurns) != "0" {
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() { s.work(ctx) })
		}
		group.Wait()
	}
	return db.Close()
}

type server struct {
	db   *store.DB
	file string
	out  sync.Mutex
}

// tell acknowledges: whoever reads this may rely on it.
func (s *server) tell(format string, args ...any) {
	s.out.Lock()
	defer s.out.Unlock()
	fmt.Printf(format+"\n", args...)
}

// takeUp ends the turns that a process before began, and with them their sessions.
func (s *server) takeUp(ctx context.Context) error {
	for cursor, first := "", true; first || cursor != ""; first = false {
		found, next, err := s.db.Sessions(ctx, store.Query{Tenant: tenant, Status: journal.Running, Limit: 50, Cursor: cursor})
		if err != nil {
			return err
		}
		for _, f := range found {
			l := s.db.Log(tenant, f.ID)
			at, err := l.Take(ctx) // the parent has killed whoever had it
			if err != nil {
				return err
			}
			if err := s.drive(ctx, l, at); err != nil {
				return fmt.Errorf("take up %s: %w", f.ID, err)
			}
		}
		cursor = next
	}
	return nil
}

// work begins sessions and their turns until it is killed.
func (s *server) work(ctx context.Context) {
	for {
		id := newID()
		l, err := s.db.CreateSession(ctx, tenant, id, journal.Draft{Data: journal.SessionCreated{Origin: "test"}})
		for n := 1; err == nil && n <= turnsOfASession; n++ {
			err = s.turn(ctx, l, n)
		}
		if err != nil {
			s.tell("failed %s: %v", id, err)
			return
		}
	}
}

// turn runs one turn of a session.
func (s *server) turn(ctx context.Context, l *store.Log, n int) error {
	h, err := l.Hold(ctx)
	if err != nil {
		return err
	}
	var state turn.State
	for e, err := range l.Read(ctx, 0) {
		if err != nil {
			return err
		}
		state = state.Apply(e)
	}
	id, node := fmt.Sprint("t", n), journal.NodeID(fmt.Sprint("in", n))
	at, err := l.Append(ctx, h.At,
		journal.Draft{TurnID: id, Anchor: state.Path().Tip(), Data: journal.MessagesAdded{
			Entries: []journal.Entry{{ID: node, Message: llm.TextMessage(llm.User, "question "+id)}},
		}},
		journal.Draft{TurnID: id, Anchor: node, Data: journal.TurnStarted{Model: "m", Bounds: journal.Bounds{Rounds: 8, Calls: 8}}},
	)
	if err != nil {
		return err
	}
	s.tell("input %s %d", l.ID(), n)
	if err := s.drive(ctx, l, at); err != nil {
		return err
	}
	s.tell("ended %s %d", l.ID(), n)
	return h.Release(ctx)
}

// drive runs what a log holds to its end.
func (s *server) drive(ctx context.Context, l *store.Log, at journal.Position) error {
	var state turn.State
	for e, err := range l.Read(ctx, 0) {
		if err != nil {
			return err
		}
		state = state.Apply(e)
	}
	d := &turn.Driver{Log: l, At: at, Provider: questions(), Tools: traces{s, l.ID()}, Host: freshIDs{}}
	_, err := d.Run(ctx, &state, func(turn.Signal) error { return nil })
	return err
}

type freshIDs struct{}

func (freshIDs) NewID() string { return newID() }

// questions is a model that calls two tools for each question and then answers: three
// turns of two rounds each.
func questions() llm.Provider {
	var s llm.Script
	for n := range turnsOfASession {
		call := func(i int, name string) llm.CallDelta {
			return llm.CallDelta{Index: i, ID: fmt.Sprintf("c%d.%d", n+1, i), Name: name, Arguments: `{}`}
		}
		s.Rounds = append(
			s.Rounds,
			llm.ScriptedRound{Pieces: []llm.Piece{{Calls: []llm.CallDelta{call(0, "once"), call(1, "often")}}, {Finish: llm.FinishCalls}}},
			llm.ScriptedRound{Pieces: []llm.Piece{{Text: fmt.Sprint("answer ", n+1)}, {Finish: llm.FinishStop}}},
		)
	}
	return &s
}

// traces are tools that leave a line in a file for each run: what the world outside sees.
type traces struct {
	server  *server
	session string
}

func (traces) Offer(journal.Path) journal.Offer {
	schema := jsontext.Value(`{"type":"object"}`)
	return journal.Offer{Declared: []llm.Declaration{{Name: "once", Parameters: schema}, {Name: "often", Parameters: schema}}}
}

func (traces) Ordered(string) bool { return false }

func (traces) Replay(name string) journal.Replay {
	if name == "once" {
		return journal.Never
	}
	return journal.Again
}

func (r traces) Invoke(_ context.Context, c llm.Call, _ tool.Env) (journal.Result, error) {
	f, err := os.OpenFile(r.server.file, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return journal.Result{}, err
	}
	_, err = fmt.Fprintf(f, "%s %s %s\n", r.session, c.ID, c.Name)
	r.server.tell("ran %s", r.session) // a moment for a kill
	return journal.Result{Text: "ran " + c.ID, OK: true}, errors.Join(err, f.Close())
}

// TestKilled: a server that is killed at any moment has lost nothing that it
// acknowledged, and the one after it ends what it began, on both databases.
func TestKilled(t *testing.T) {
	kills := 24
	if testing.Short() {
		kills = 4
	}
	each(t, func(t *testing.T, p place) {
		trace := filepath.Join(t.TempDir(), "trace")
		random := rand.New(rand.NewPCG(1, 2)) // a kill comes when so many lines were heard
		var heard []string
		for range kills {
			heard = append(heard, run(t, p, trace, 1+random.IntN(60))...)
		}
		heard = append(heard, run(t, p, trace, 0)...)
		db := p.open(t)
		if !strings.HasPrefix(p.url, "postgres") {
			p.checkIntegrity(t, db)
		}
		checkAcknowledged(t, db, heard)
		checkSessions(t, db, trace)
	})
}

// run runs a child, kills it after so many lines, and returns them. With 0 lines it is
// one that only ends what others began.
func run(t *testing.T, p place, trace string, lines int) []string {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), childURL+"="+p.url, childFile+"="+trace, fmt.Sprintf("%s=%d", childTurns, lines))
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	var heard []string
	in := bufio.NewReader(out)
	for lines == 0 || len(heard) < lines {
		line, err := in.ReadString('\n')
		if err != nil {
			break
		}
		heard = append(heard, strings.TrimSpace(line))
	}
	if lines > 0 {
		if err := c.Process.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	// What it said before it died was said.
	rest, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(rest)) {
		if strings.HasSuffix(line, "\n") {
			heard = append(heard, strings.TrimSpace(line))
		}
	}
	if err := c.Wait(); lines == 0 && err != nil {
		t.Fatalf("the last server: %v\n%s", err, strings.Join(heard, "\n"))
	}
	return heard
}

func (p place) checkIntegrity(t *testing.T, db *store.DB) {
	t.Helper()
	for _, pragma := range []string{"integrity_check", "foreign_key_check"} {
		if got, err := db.Pragma(t.Context(), pragma); err != nil || got != "ok" && got != "" {
			t.Errorf("%s: %s, %v", pragma, got, err)
		}
	}
}

// checkAcknowledged: what was said to be stored is there.
func checkAcknowledged(t *testing.T, db *store.DB, heard []string) {
	t.Helper()
	if len(heard) < 20 {
		t.Errorf("the servers said only %d things", len(heard))
	}
	for _, line := range heard {
		var what, id string
		var n int
		if strings.HasPrefix(line, "ran ") {
			continue
		}
		if _, err := fmt.Sscanf(line, "%s %s %d", &what, &id, &n); err != nil {
			t.Errorf("a server said %q", line)
			continue
		}
		started, ended := 0, 0
		for _, e := range read(t, db.Log(tenant, id), 0) {
			switch e.Data.(type) {
			case journal.TurnStarted:
				started++
			case journal.TurnEnded:
				ended++
			}
		}
		if started < n || ended < n {
			t.Errorf("%q, and the journal has %d turns begun and %d ended", line, started, ended)
		}
	}
}

// checkSessions: each session is as if nobody had died, but for answers that say that
// nobody knows whether a tool ran.
func checkSessions(t *testing.T, db *store.DB, trace string) {
	t.Helper()
	b, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	ran := map[string]int{}
	for line := range strings.Lines(string(b)) {
		ran[strings.TrimSpace(line)]++
		if strings.Contains(line, "once") && ran[strings.TrimSpace(line)] > 1 {
			t.Errorf("ran twice: %s", line)
		}
	}
	interrupted, sessions := 0, 0
	for cursor, first := "", true; first || cursor != ""; first = false {
		found, next, err := db.Sessions(t.Context(), store.Query{Tenant: tenant, Limit: 100, Cursor: cursor})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range found {
			sessions++
			interrupted += checkSession(t, db, s, ran)
		}
		cursor = next
	}
	t.Logf("%d sessions, %d runs of tools, %d answers that say interrupted", sessions, len(ran), interrupted)
}

func checkSession(t *testing.T, db *store.DB, s store.Session, ran map[string]int) (interrupted int) {
	t.Helper()
	if s.Status == journal.Running {
		t.Errorf("session %s: a turn runs for ever", s.ID)
	}
	var state turn.State
	turns := 0
	for _, e := range read(t, db.Log(tenant, s.ID), 0) {
		state = state.Apply(e)
		if _, ok := e.Data.(journal.TurnEnded); ok {
			turns++
		}
	}
	messages := state.Path().Messages()
	if len(messages) != 5*turns {
		t.Errorf("session %s: %d messages after %d turns, want 5 each", s.ID, len(messages), turns)
		return 0
	}
	for n := range turns {
		for i, name := range []string{"once", "often"} {
			id := fmt.Sprintf("c%d.%d", n+1, i)
			answer := messages[5*n+2+i].Text()
			did := ran[strings.Join([]string{s.ID, id, name}, " ")]
			switch {
			case answer == "ran "+id && did > 0:
			case name == "once" && strings.Contains(answer, "the host restarted while once was running"):
				interrupted++
			default:
				t.Errorf("session %s: call %s of %s ran %d times and is answered %q", s.ID, id, name, did, answer)
			}
		}
		if got, want := messages[5*n+4].Text(), fmt.Sprint("answer ", n+1); got != want {
			t.Errorf("session %s: turn %d is answered %q, want %q", s.ID, n+1, got, want)
		}
	}
	return interrupted
}
