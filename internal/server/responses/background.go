package responses

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/continuity"
	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/internal/gateway"
	"github.com/metier-run/metier/internal/server"
	"github.com/metier-run/metier/internal/turn"
)

// errCancelled ends a turn whose client has cancelled its response.
var errCancelled = errors.New("responses: cancelled by its client")

// background is what is worked on apart from the requests that asked for it.
type background struct {
	most, owned int
	events      int64

	mu      sync.Mutex
	closed  bool
	jobs    map[key]*job
	ended   []key // in the order in which they ended
	running map[continuity.Owner]int
	total   int
	wait    sync.WaitGroup
}

// key names a response of an owner.
type key struct {
	owner continuity.Owner
	id    string
}

func newBackground(limits config.Values) *background {
	return &background{
		most: limits.Int(config.BackgroundCount), owned: limits.Int(config.BackgroundOwned), events: limits.Get(config.BackgroundEvents),
		jobs: map[key]*job{}, running: map[continuity.Owner]int{},
	}
}

// begin takes a job in. What it returns must be called when the job has ended.
func (b *background) begin(j *job) (end func(), err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	owner := j.key.owner
	switch {
	case b.closed:
		return nil, stopping()
	case b.total >= b.most, b.running[owner] >= b.owned:
		e := fault.New(fault.Busy, "too many responses are worked on in the background: wait until one has ended, or cancel one")
		e.Detail = "too_many_responses"
		return nil, e
	}
	b.jobs[j.key] = j
	b.running[owner]++
	b.total++
	b.wait.Add(1)
	return func() {
		defer b.wait.Done()
		b.mu.Lock()
		defer b.mu.Unlock()
		b.total--
		if b.running[owner]--; b.running[owner] == 0 {
			delete(b.running, owner)
		}
		// Who streams it may come back for a while.
		if b.ended = append(b.ended, j.key); len(b.ended) > b.most {
			delete(b.jobs, b.ended[0])
			b.ended = slices.Delete(b.ended, 0, 1)
		}
	}, nil
}

// find is a job that runs, or has ended not long ago; nil when there is none.
func (b *background) find(k key) *job {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.jobs[k]
}

// forget takes out a job that has ended.
func (b *background) forget(k key) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.jobs, k)
}

// close ends all jobs and waits for them.
func (b *background) close() {
	b.mu.Lock()
	b.closed = true
	for _, j := range b.jobs {
		j.cancel(stopping())
	}
	b.mu.Unlock()
	b.wait.Wait()
}

// job is one response that is worked on in the background, and its events.
type job struct {
	key    key
	cancel context.CancelCauseFunc
	over   chan struct{} // closed when it has ended and is kept
	most   int64         // bytes of events

	mu      sync.Mutex
	body    []byte // the response as it stands
	events  []framed
	first   int64 // the number of the first event that is still there
	size    int64
	ended   bool
	changed chan struct{} // closed with the next event
}

// framed is an event as a stream has it.
type framed []byte

func newJob(k key, most int64, cancel context.CancelCauseFunc) *job {
	return &job{key: k, cancel: cancel, most: most, over: make(chan struct{}), changed: make(chan struct{})}
}

// event keeps an event, for all who watch.
func (j *job) event(kind string, event []byte) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.events = append(j.events, appendFrame(nil, kind, event))
	j.size += int64(len(j.events[len(j.events)-1]))
	for j.size > j.most && len(j.events) > 1 {
		j.size -= int64(len(j.events[0]))
		j.events[0] = nil
		j.events, j.first = j.events[1:], j.first+1
	}
	close(j.changed)
	j.changed = make(chan struct{})
}

func (j *job) stand(body []byte) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.body = body
}

// stands is the response as it stands.
func (j *job) stands() []byte {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.body
}

// end says that no event follows.
func (j *job) end() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.ended = true
	close(j.changed)
	j.changed = make(chan struct{})
	close(j.over)
}

// after are the events behind the one of the given number, whether they were the last, and
// what closes when there are more. gone says that some are not there any more.
func (j *job) after(number int64) (events []framed, ended bool, changed <-chan struct{}, gone bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	from := number + 1 - j.first
	if from < 0 {
		return nil, j.ended, j.changed, true
	}
	if from < int64(len(j.events)) {
		events = slices.Clone(j.events[from:])
	}
	return events, j.ended, j.changed, false
}

// createLater answers at once, and has the turn run on.
func (d *Door) createLater(w http.ResponseWriter, r *http.Request, a *ask) {
	j, err := d.begin(r.Context(), a, warner(w))
	if err != nil {
		d.Refuse(w, r, err)
		return
	}
	if a.stream {
		d.follow(w, r, j, -1)
		return
	}
	server.WriteBody(w, http.StatusOK, j.stands())
}

// begin has a response worked on. It goes on whatever happens to its request.
func (d *Door) begin(ctx context.Context, a *ask, warn func(string)) (*job, error) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	j := newJob(key{a.owner, a.id}, d.work.events, cancel)
	end, err := d.work.begin(j)
	if err != nil {
		cancel(nil)
		return nil, err
	}
	t, err := d.beginTurn(ctx, a, j, warn)
	if err != nil {
		cancel(nil)
		j.end()
		end()
		d.work.forget(j.key)
		return nil, err
	}
	go func() {
		defer end()
		defer cancel(nil)
		d.worked(ctx, a, j, t)
	}()
	return j, nil
}

// beginTurn prepares the turn of a response and keeps what can be fetched of it from now on.
func (d *Door) beginTurn(ctx context.Context, a *ask, j *job, warn func(string)) (*gateway.Turn, error) {
	if d.options.Journal != nil {
		if a.session = "ses_" + d.options.NewID(); !a.idle {
			a.in.Journal = d.options.Journal(a.session)
		}
		if a.in.Journal == nil {
			a.session = ""
		}
	}
	t, err := d.turn(ctx, a, warn)
	if err != nil {
		return nil, err
	}
	body := a.object(state{status: queued})
	j.stand(body)
	if !d.keep(ctx, a, queued, []byte("[]"), body) {
		return nil, fault.New(fault.Unavailable, `the response cannot be kept; the server's log has the reason. Ask for it without "background"`)
	}
	return t, nil
}

// worked runs a turn to its end.
func (d *Door) worked(ctx context.Context, a *ask, j *job, t *gateway.Turn) {
	e := newAnswer(a, j.event)
	defer j.end()
	defer func() {
		if p := recover(); p != nil {
			d.options.Logger.ErrorContext(ctx, "panic", "response", a.id, "panic", p, "stack", string(debug.Stack()))
			// What the answer was when it broke may be anything.
			rest := newAnswer(a, j.event)
			rest.seq, rest.begun = e.seq, true
			j.stand(d.finish(ctx, rest, turn.Outcome{}, fmt.Errorf("panic: %v", p)))
		}
	}()
	e.queue()
	out, err := d.run(ctx, t, e, func(bool) error {
		if e.begun && len(j.stands()) > 0 {
			d.begun(a, j)
		}
		return nil
	})
	j.stand(d.finish(ctx, e, out, err))
}

// begun says once that a response is worked on.
func (d *Door) begun(a *ask, j *job) {
	if a.working {
		return
	}
	a.working = true
	j.stand(a.object(state{status: inProgress}))
}

// follow streams the events of a response behind the one of the given number, until it has
// ended.
func (d *Door) follow(w http.ResponseWriter, r *http.Request, j *job, number int64) {
	ctx, release := server.Watching(r)
	defer release()
	s := server.NewStream(w, d.keepAlive, server.Form{})
	defer s.Close() // whatever happens: a keep-alive must not write when the handler has returned
	for {
		events, ended, changed, gone := j.after(number)
		if gone {
			e := invalid("starting_after", "the events behind %d are not kept any more: fetch the response without stream", number)
			e.Detail = "events_not_found"
			if !s.Begun() {
				_ = s.Close() // nothing was written, so nothing can fail
				d.Refuse(w, r, e)
				return
			}
			_ = s.Write(appendFrame(nil, "error", errorEvent(e, number+1)), true) // the end in any case
			break
		}
		for i, event := range events {
			if err := s.Write(event, i == len(events)-1); err != nil {
				return
			}
		}
		if number += int64(len(events)); ended {
			break
		}
		select {
		case <-changed:
		case <-ctx.Done():
			// The response goes on, or its process ends: this is not its end.
			panic(http.ErrAbortHandler)
		}
	}
	if !s.Begun() {
		_ = s.Write(nil, true) // an answer without events is one, too
	}
	if err := s.Close(); err != nil {
		panic(http.ErrAbortHandler)
	}
}

// errorEvent is an error where no response can tell of it.
func errorEvent(f *fault.Error, number int64) []byte {
	out := appendText([]byte{'{'}, "type", "error")
	out = appendCount(out, "sequence_number", number)
	out = appendText(out, "code", cmp.Or(f.Detail, string(f.Code)))
	out = appendText(out, "message", f.Message)
	if f.Param == "" {
		return append(appendMember(out, "param", []byte("null")), '}')
	}
	return append(appendText(out, "param", f.Param), '}')
}
