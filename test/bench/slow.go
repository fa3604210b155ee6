package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

// slowName is the workload of many open streams, and the scenario's name.
const slowName = "slow-streams"

// streamAim is what an open stream may use, in KiB.
const streamAim = 64

// slowScenario streams a chunk a second, for longer than any hold.
const slowScenario = `A chunk a second.

-- 1.answer --
200
Content-Type: text/event-stream
-- 1.body --
data: {"id":"chatcmpl-slow","object":"chat.completion.chunk","created":1767225600,"model":"slow","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}

@repeat 600
@stall 1s
data: {"id":"chatcmpl-slow","object":"chat.completion.chunk","created":1767225600,"model":"slow","choices":[{"index":0,"delta":{"content":"word{{i}} "},"finish_reason":null}]}

@end
`

// runSlow opens many streams at once through one target after the other, each
// freshly started, and measures what they use while they are open.
func runSlow(ctx context.Context, h *house, rep *report, size sizes) error {
	if !hasProc() {
		h.say("skipping %s: this system does not tell what a process uses", slowName)
		return nil
	}
	dir := filepath.Join(h.dir, "scenarios")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, slowName+".txtar"), []byte(slowScenario), 0o600); err != nil {
		return err
	}
	up, err := h.start(ctx, direct, h.upstream, "-dir", dir)
	if err != nil {
		return err
	}
	defer h.stop(up)
	h.say("measuring %s", slowName)
	between := targets()[1:]
	for round := range size.slowRounds {
		for i := range between {
			if err := slowTarget(ctx, h, rep, between[(i+round)%len(between)], up.url, size); err != nil {
				return err
			}
		}
	}
	return nil
}

func slowTarget(ctx context.Context, h *house, rep *report, name, upstream string, size sizes) error {
	p, err := h.target(ctx, rep, name, upstream)
	if err != nil {
		return err
	}
	defer h.stop(p)
	before, err := residentKiB(p.pid())
	if err != nil {
		return err
	}
	s, err := openStreams(ctx, p.url, size.slow)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	defer s.close()
	cpu, err := cpuTime(p.pid())
	if err != nil {
		return err
	}
	reads := s.reads.Load()
	if err := pause(ctx, size.hold); err != nil {
		return err
	}
	cpuAfter, err := cpuTime(p.pid())
	if err != nil {
		return err
	}
	after, err := residentKiB(p.pid())
	if err != nil {
		return err
	}
	if err := context.Cause(s.ctx); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	chunks := s.reads.Load() - reads
	if chunks == 0 {
		return fmt.Errorf("%s: no chunk came in %s", name, size.hold)
	}
	title := fmt.Sprintf("%d open streams, a chunk a second", size.slow)
	rep.row(slowName+"-cpu", title, "us CPU a chunk", most).add(name, float64((cpuAfter-cpu).Nanoseconds())/1e3/float64(chunks))
	rep.row(slowName+"-memory", title, "KiB resident a stream", 0).limit(streamAim).add(name, (after-before)/float64(size.slow))
	return nil
}

// streams are open answers that are read as they come.
type streams struct {
	ctx    context.Context // over when a stream has ended, with why as its cause
	cancel context.CancelCauseFunc
	done   func()
	wg     sync.WaitGroup
	// reads counts chunks: they come a second apart, so each is a read of its own.
	reads atomic.Int64
}

// openTime bounds how long it may take until each stream has begun.
const openTime = 60 * time.Second

// openStreams opens n streams and returns when each has sent something.
func openStreams(ctx context.Context, url string, n int) (*streams, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	client, done := newClient(n)
	s := &streams{ctx: ctx, cancel: cancel, done: done}
	begun, turns := make(chan error, n), make(chan struct{}, 64)
	ask := question(slowName, true)
	for range n {
		s.wg.Go(func() { s.follow(client, url, ask, begun, turns) })
	}
	late := time.After(openTime)
	for range n {
		var err error
		select {
		case err = <-begun:
		case <-late:
			err = fmt.Errorf("not every stream began within %s", openTime)
		}
		if err != nil {
			s.close()
			return nil, err
		}
	}
	return s, nil
}

// follow reads one stream until it ends. turns bounds how many open at a time.
func (s *streams) follow(client *http.Client, url string, r request, begun chan<- error, turns chan struct{}) {
	turns <- struct{}{}
	res, err := ask(s.ctx, client, url, r)
	<-turns
	if err != nil {
		begun <- err
		return
	}
	defer res.Body.Close()
	buf := make([]byte, 1<<10)
	for first := true; ; first = false {
		_, err := res.Body.Read(buf)
		if first {
			begun <- err
		}
		if err != nil {
			s.cancel(fmt.Errorf("a stream ended before it should: %w", err))
			return
		}
		if !first {
			s.reads.Add(1)
		}
	}
}

func (s *streams) close() {
	s.cancel(nil)
	s.wg.Wait()
	s.done()
}
