package admission

import (
	"context"
	"sync"
	"sync/atomic"
)

// turn is what the rounds of one turn share.
type turn struct {
	in   atomic.Bool // one of its rounds was let in
	over atomic.Bool

	once         sync.Once
	ask          func() string
	conversation string
}

type turnKey struct{}

// WithTurn is a context for one turn, and what is to be called at the turn's end.
// When its first round was let in, its later rounds may have to wait but are not
// turned away, and a round finds its slot again (see [Pin]).
//
// conversation names what the turn continues, "" for nothing; it is called once
// and only for an upstream that has slots. It may be nil.
func WithTurn(ctx context.Context, conversation func() string) (turned context.Context, end func()) {
	t := &turn{ask: conversation}
	return context.WithValue(ctx, turnKey{}, t), func() { t.over.Store(true) }
}

// turnOf is the turn that ctx belongs to; nil when there is none.
func turnOf(ctx context.Context) *turn {
	t, _ := ctx.Value(turnKey{}).(*turn)
	return t
}

// name is the conversation's.
func (t *turn) name() string {
	t.once.Do(func() {
		if t.ask != nil {
			t.conversation = t.ask()
		}
	})
	return t.conversation
}
