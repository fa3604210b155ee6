package scripted

import (
	"bytes"
	"context"
	"net/http"
	"strconv"
	"time"
)

// player sends one step to one client.
type player struct {
	w       http.ResponseWriter
	flusher func() error
	sleep   func(context.Context, time.Duration) error
	results int
	begun   bool // the headers are out, so there is something to flush
}

// play sends the step. It returns early, and quietly, when the client is gone.
func (p *player) play(ctx context.Context, s *Step) {
	if !p.run(ctx, s.before, 0) {
		return
	}
	for name, values := range s.Header {
		for _, v := range values {
			p.w.Header().Add(name, v)
		}
	}
	p.w.WriteHeader(s.Status)
	p.begun = true
	p.run(ctx, s.body, 0)
}

// run reports whether the player may go on.
func (p *player) run(ctx context.Context, ops []op, index int) bool {
	for i := range ops {
		if !p.do(ctx, &ops[i], index) {
			return false
		}
	}
	return true
}

func (p *player) do(ctx context.Context, o *op, index int) bool {
	switch o.kind {
	case opStall:
		return p.flush() == nil && p.sleep(ctx, o.pause) == nil
	case opHang:
		if p.flush() == nil {
			<-ctx.Done()
		}
		return false
	case opCut:
		// The server answers this panic by dropping the connection without the end
		// that the client waits for. Whether the flush reached it matters no more.
		_ = p.flush()
		panic(http.ErrAbortHandler)
	case opClose:
		return false
	case opRepeat:
		for i := 1; i <= o.times; i++ {
			if !p.run(ctx, o.ops, i) {
				return false
			}
		}
		return true
	}
	return p.write(ctx, o, index)
}

func (p *player) write(ctx context.Context, o *op, index int) bool {
	data := o.data
	if o.fill {
		data = bytes.ReplaceAll(data, []byte(placeResults), strconv.AppendInt(nil, int64(p.results), 10))
		if index > 0 {
			data = bytes.ReplaceAll(data, []byte(placeIndex), strconv.AppendInt(nil, int64(index), 10))
		}
	}
	for o.split > 0 && len(data) > o.split {
		if !p.send(ctx, data[:o.split], true) {
			return false
		}
		data = data[o.split:]
	}
	return p.send(ctx, data, o.flush || o.split > 0)
}

func (p *player) send(ctx context.Context, data []byte, flush bool) bool {
	if ctx.Err() != nil {
		return false
	}
	if _, err := p.w.Write(data); err != nil {
		return false
	}
	return !flush || p.flush() == nil
}

func (p *player) flush() error {
	if !p.begun {
		return nil
	}
	return p.flusher()
}
