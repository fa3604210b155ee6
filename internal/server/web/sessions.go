package web

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/metier-run/metier/internal/code"
	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/internal/gateway"
)

// SessionOptions set up [Sessions].
type SessionOptions struct {
	// Code gives each session a workspace; nil gives none.
	Code *code.Service
	// Journals keep what is said in sessions; nil keeps nothing.
	Journals Journals
	Limits   config.Values
	Now      func() time.Time
	NewID    func() string
	Logger   *slog.Logger
}

// Journals keep the turns of sessions, longer than this process and for others, too. An
// owner is who alone can name a session, within the tenant of the context's caller.
type Journals interface {
	// Begin makes the journal of a new session.
	Begin(ctx context.Context, id, owner string) error
	// Has reports whether there is one of the owner's.
	Has(ctx context.Context, id, owner string) (bool, error)
	// Journal is what a session's turns are written to.
	Journal(id, owner string) gateway.Journal
	// Remove removes one for ever.
	Remove(ctx context.Context, id string) error
}

// Sessions are those of all callers. Each belongs to one, who alone can name it, and
// each caller has one that a request without an id means. A session ends when its caller
// says so, when it has not been used for long, and with [Sessions.Close]; its workspace
// goes with it. Sessions are safe for concurrent use.
type Sessions struct {
	code               *code.Service
	o                  SessionOptions
	most, owned, files int
	idle               time.Duration

	mu       sync.Mutex
	byID     map[string]*session
	byCaller map[string]*session // those that a request without an id means
	closed   bool
	ending   sync.WaitGroup // the sessions that are not gone
}

// owner is a caller, and the owner of the files that its sessions make.
type owner struct{ caller, files string }

// NewSessions makes none yet. Close what it returns.
func NewSessions(o SessionOptions) *Sessions {
	return &Sessions{
		code: o.Code, o: o, most: o.Limits.Int(config.WebSessions), owned: o.Limits.Int(config.WebOwned),
		files: o.Limits.Int(config.AttachCount), idle: o.Limits.Duration(config.WebIdle),
		byID: map[string]*session{}, byCaller: map[string]*session{},
	}
}

func removed() error { return fault.New(fault.Conflict, "the session was removed while it answered") }

func stopping() error {
	e := fault.New(fault.Unavailable, "the server is stopping")
	e.Detail = "server_stopping"
	return e
}

const detailNoSession = "session_not_found"

// noSession does not tell one that is gone from one of somebody else.
func noSession() error {
	e := fault.New(fault.NotFound, "there is no such session: it may have ended; POST /api/sessions begins one")
	e.Detail = detailNoSession
	return e
}

// begin makes a session and gives its id.
func (s *Sessions) begin(ctx context.Context, o owner) (string, error) {
	x, err := s.open(o, func() (*session, error) { return s.add(o, s.o.NewID()) })
	if err != nil {
		return "", err
	}
	defer s.leave(x)
	return x.id, s.record(ctx, x)
}

// record makes the journal of a new session. One that gets none is taken out again, before
// those who wait for it learn why.
func (s *Sessions) record(ctx context.Context, x *session) error {
	defer close(x.recorded)
	if s.o.Journals == nil {
		return nil
	}
	if x.missing = s.o.Journals.Begin(ctx, x.id, x.owner.caller); x.missing != nil {
		s.forget(x)
	}
	return x.missing
}

// forget takes out a session that is in use: no request finds it any more.
func (s *Sessions) forget(x *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !x.ended {
		s.drop(x, nil)
	}
}

// enter finds a session and keeps it from ending by itself until [Sessions.leave].
// Without an id it is the caller's own, made with the first request.
//
// A session that this process does not know may be known to another one, or have ended
// here because it was not used for long: it goes on, in a new workspace.
func (s *Sessions) enter(ctx context.Context, o owner, id string) (*session, error) {
	kept, err := s.kept(ctx, o, id)
	if err != nil {
		return nil, err
	}
	if id != "" {
		return s.open(o, func() (*session, error) {
			x, err := s.find(o, id)
			if err != nil && kept && s.byID[id] == nil {
				return s.add(o, id)
			}
			return x, err
		})
	}
	for {
		x, err := s.enterOwn(ctx, o)
		if !errors.Is(err, errLeft) {
			return x, err
		}
	}
}

// errLeft: the client whose request was to make a session has left before it was made.
var errLeft = errors.New("web: a session was given up before it had a journal")

// enterOwn finds the caller's own session. Of several requests at once one makes it, and
// the others wait until it has its journal.
func (s *Sessions) enterOwn(ctx context.Context, o owner) (*session, error) {
	fresh := false
	x, err := s.open(o, func() (x *session, err error) {
		if x = s.byCaller[o.caller]; x != nil {
			return x, nil
		}
		if x, err = s.add(o, s.o.NewID()); err == nil {
			s.byCaller[o.caller], fresh = x, true
		}
		return x, err
	})
	if err != nil {
		return nil, err
	}
	if fresh {
		err = s.record(ctx, x)
	} else {
		err = x.awaitJournal(ctx)
	}
	if err != nil {
		s.leave(x)
		return nil, err
	}
	return x, nil
}

// kept reports whether a session that is not here has a journal.
func (s *Sessions) kept(ctx context.Context, o owner, id string) (bool, error) {
	if id == "" || s.o.Journals == nil {
		return false, nil
	}
	s.mu.Lock()
	_, here := s.byID[id]
	s.mu.Unlock()
	if here {
		return false, nil
	}
	return s.o.Journals.Has(ctx, id, o.caller)
}

// open has a session in use. What had to make room for it is gone then.
func (s *Sessions) open(o owner, get func() (*session, error)) (*session, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, stopping()
	}
	x, err := get()
	if err != nil {
		s.mu.Unlock()
		return nil, err
	}
	x.uses++
	x.timer.Stop()
	crowded := s.crowded(o, x)
	s.mu.Unlock()
	if crowded != nil {
		s.o.Logger.Info("session ended to make room for another of its caller", "session", crowded.id)
		crowded.close()
	}
	return x, nil
}

// find is a session of the caller. s.mu is held.
func (s *Sessions) find(o owner, id string) (*session, error) {
	x := s.byID[id]
	if x == nil || x.owner != o {
		return nil, noSession()
	}
	return x, nil
}

// add makes a session, if there is or can be room for one. s.mu is held.
func (s *Sessions) add(o owner, id string) (*session, error) {
	own := s.of(o)
	free := oldest(own)
	if (len(s.byID) >= s.most || len(own) >= s.owned) && free == nil {
		e := fault.New(fault.Busy, "there are too many sessions: DELETE /api/sessions/{id} ends one of yours, and each ends by itself when it is not used for %s", s.idle)
		e.Detail = "too_many_sessions"
		return nil, e
	}
	x := &session{sessions: s, id: id, owner: o, used: s.o.Now(), recorded: make(chan struct{}), gone: make(chan struct{})}
	if s.code != nil {
		x.work = s.code.Open(o.files, nil)
	}
	x.timer = time.AfterFunc(s.idle, x.expire)
	s.byID[x.id] = x
	s.ending.Add(1)
	return x, nil
}

// crowded takes out the session that has to make room for a new one: of the same caller,
// and not in use. s.mu is held.
func (s *Sessions) crowded(o owner, fresh *session) *session {
	own := s.of(o)
	if len(s.byID) <= s.most && len(own) <= s.owned {
		return nil
	}
	x := oldest(own)
	if x == nil || x == fresh {
		return nil
	}
	s.drop(x, nil)
	return x
}

// of are a caller's sessions. s.mu is held.
func (s *Sessions) of(o owner) []*session {
	var own []*session
	for _, x := range s.byID {
		if x.owner == o {
			own = append(own, x)
		}
	}
	return own
}

// oldest is the one that is unused for the longest, or nil if all are in use.
func oldest(of []*session) *session {
	var found *session
	for _, x := range of {
		if x.uses == 0 && (found == nil || x.used.Before(found.used)) {
			found = x
		}
	}
	return found
}

// drop takes a session out, so that no request finds it, and ends its turn. s.mu is
// held. Whoever is the last to use it closes it.
func (s *Sessions) drop(x *session, cause error) {
	delete(s.byID, x.id)
	if s.byCaller[x.owner.caller] == x {
		delete(s.byCaller, x.owner.caller)
	}
	x.ended = true
	x.timer.Stop()
	if x.cancel != nil {
		x.cancel(cause)
	}
}

// leave ends a use. It waits until the session is gone, if it was the last use of one
// that has ended.
func (s *Sessions) leave(x *session) {
	s.mu.Lock()
	x.uses--
	x.used = s.o.Now()
	last := x.uses == 0
	ended := x.ended
	if last && !ended {
		x.timer.Reset(s.idle)
	}
	s.mu.Unlock()
	if last && ended {
		x.close()
	}
}

// turn says that a turn runs in a session, until done is called; cancel ends it. It
// fails while another one runs.
func (s *Sessions) turn(x *session, cancel context.CancelCauseFunc) (done func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x.ended {
		return nil, noSession()
	}
	if x.cancel != nil {
		e := fault.New(fault.Conflict, "the session is still answering: wait for its done frame, or begin another one with POST /api/sessions")
		e.Detail = "session_busy"
		return nil, e
	}
	x.cancel = cancel
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		x.cancel = nil
	}), nil
}

// end removes a session, its workspace and what was kept of it, and cancels its turn. It
// returns when all of that is gone, or with the error of ctx; what has begun goes on.
func (s *Sessions) end(ctx context.Context, o owner, id string) error {
	kept, err := s.kept(ctx, o, id)
	if err != nil {
		return err
	}
	var left error
	if !kept {
		x, err := s.endHere(o, id)
		if err != nil {
			return err
		}
		select {
		case <-x.gone:
		case <-ctx.Done():
			left = context.Cause(ctx)
		}
	}
	if s.o.Journals == nil {
		return left
	}
	return errors.Join(left, s.o.Journals.Remove(context.WithoutCancel(ctx), id))
}

// endHere removes a session of this process. It is gone when nobody uses it any more.
func (s *Sessions) endHere(o owner, id string) (*session, error) {
	s.mu.Lock()
	x, err := s.find(o, id)
	if err != nil {
		s.mu.Unlock()
		return nil, err
	}
	x.uses++
	s.drop(x, removed())
	s.mu.Unlock()
	s.leave(x)
	return x, nil
}

// Close ends all sessions, cancels their turns, and returns when all are gone. No new
// one begins.
func (s *Sessions) Close() {
	s.mu.Lock()
	s.closed = true
	var free []*session
	for _, x := range s.byID {
		s.drop(x, stopping())
		if x.uses == 0 {
			free = append(free, x)
		}
	}
	s.mu.Unlock()
	for _, x := range free {
		x.close()
	}
	s.ending.Wait()
}

// session is one conversation.
type session struct {
	sessions *Sessions
	id       string
	owner    owner
	work     *code.Conversation // nil without code work

	// Guarded by sessions.mu.
	uses   int
	used   time.Time
	cancel context.CancelCauseFunc // of the turn that runs
	timer  *time.Timer
	ended  bool

	recorded chan struct{} // of a new one: closed when it has its journal, or has none for the reason missing
	missing  error

	gone  chan struct{} // closed when the workspace is gone
	files files
}

// awaitJournal waits until the session has its journal, which another request makes.
func (x *session) awaitJournal(ctx context.Context) error {
	select {
	case <-x.recorded:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if errors.Is(x.missing, context.Canceled) || errors.Is(x.missing, context.DeadlineExceeded) {
		return errLeft
	}
	return x.missing
}

// journal keeps the session's turns; nil keeps none.
func (x *session) journal() gateway.Journal {
	if x.sessions.o.Journals == nil {
		return nil
	}
	return x.sessions.o.Journals.Journal(x.id, x.owner.caller)
}

// expire ends a session that was not used for long.
func (x *session) expire() {
	s := x.sessions
	s.mu.Lock()
	if x.uses > 0 || x.ended {
		s.mu.Unlock()
		return
	}
	// It may have been in use since the timer fired.
	if left := s.idle - s.o.Now().Sub(x.used); left > 0 {
		x.timer.Reset(left)
		s.mu.Unlock()
		return
	}
	s.drop(x, nil)
	s.mu.Unlock()
	x.close()
}

// close removes the workspace. It is called once, when nobody uses the session any more.
func (x *session) close() {
	defer x.sessions.ending.Done()
	defer close(x.gone)
	if x.work == nil {
		return
	}
	// The session is over for everybody, whatever happens to who ended it.
	if err := x.work.Close(context.Background()); err != nil {
		x.sessions.o.Logger.Error("workspace left behind", "session", x.id, "error", err)
	}
}
