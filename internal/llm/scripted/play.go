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
	flush   func() error
	ctx     context.Context
	sleep   func(context.Context, time.Duration) error
	results int
}

// play sends the step. It returns early, and quietly, when the client is gone.
func (p *player) play(s *Step) {
	if !p.run(s.before, 0) {
		return
	}
	for name, values := range s.Header {
		for _, v := range values {
			p.w.Header().Add(name, v)
		}
	}
	p.w.WriteHeader(s.Status)
	p.run(s.body, 0)
}

// run reports whether the player may go on.
func (p *player) run(ops []op, index int) bool {
	for i := range ops {
		if !p.do(&ops[i], index) {
			return false
		}
	}
	return true
}

func (p *player) do(o *op, index int) bool {
	switch o.kind {
	case opStall:
		return p.flush() == nil && p.sleep(p.ctx, o.pause) == nil
	case opHang:
		if p.flush() == nil {
			<-p.ctx.Done()
		}
		return false
	case opCut:
		// The server answers this panic by dropping the connection without the end
		// that the client waits for.
		_ = p.flush()
		panic(http.ErrAbortHandler)
	case opClose:
		return false
	case opRepeat:
		for i := 1; i <= o.times; i++ {
			if !p.run(o.ops, i) {
				return false
			}
		}
		return true
	}
	return p.write(o, index)
}

func (p *player) write(o *op, index int) bool {
	data := o.data
	if o.fill {
		data = bytes.ReplaceAll(data, []byte(placeIndex), strconv.AppendInt(nil, int64(index), 10))
		data = bytes.ReplaceAll(data, []byte(placeResults), strconv.AppendInt(nil, int64(p.results), 10))
	}
	for o.split > 0 && len(data) > o.split {
		if !p.send(data[:o.split], true) {
			return false
		}
		data = data[o.split:]
	}
	return p.send(data, o.flush || o.split > 0)
}

func (p *player) send(data []byte, flush bool) bool {
	if p.ctx.Err() != nil {
		return false
	}
	if _, err := p.w.Write(data); err != nil {
		return false
	}
	return !flush || p.flush() == nil
}
