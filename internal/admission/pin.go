package admission

import (
	"context"
	"iter"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/llm"
)

// idSlot is the request's member by which llama-server lets a slot be named.
const idSlot = "id_slot"

// PinOptions set up [Pin].
type PinOptions struct {
	// Slots tells how many slots the upstream has; false when it has none that a
	// request can name, or that is not known.
	Slots func(context.Context) (int, bool)
	// Most is how many of them are named; fewer than 2 name none.
	Most int
	// Reused reads, from the event that has the usage, how many tokens of the
	// prompt the upstream found in the slot; false when it does not say.
	Reused func(event jsontext.Value) (tokens int64, told bool)
	// Rest is how long no slot is named after one was found to be emptied between
	// rounds; it doubles from one such time to the next.
	Rest   time.Duration
	Logger *slog.Logger
}

// Pin is p, whose upstream works on each round in one of its slots and keeps the
// round's prompt there: the rounds of a turn, and later turns of a conversation,
// are sent to the same slot, where their beginning need not be read again.
//
// A slot is named with the member id_slot, behind the client's own members, in
// an upstream of that kind. None is named for a request that names one itself, wants no
// cache or several choices, nor while a round could have to wait for the slot.
func Pin(p llm.Provider, o PinOptions) llm.Provider {
	return &pinned{Provider: p, o: o, slots: &slots{rest: o.Rest}}
}

type pinned struct {
	llm.Provider
	o     PinOptions
	slots *slots
}

// Unwrap is the provider whose rounds are kept on slots.
func (p *pinned) Unwrap() llm.Provider { return p.Provider }

// Stream asks for one generation, on a slot if one can be named.
func (p *pinned) Stream(ctx context.Context, r *llm.Request) iter.Seq2[llm.Piece, error] {
	return func(yield func(llm.Piece, error) bool) {
		n := p.number(ctx)
		at := p.slots.enter(min(n, p.o.Most), p.wish(ctx, r, n))
		if !at.named {
			defer p.slots.leave(at, 0, false)
			p.Provider.Stream(ctx, r)(yield)
			return
		}
		var reused int64
		told := false
		defer func() { p.leave(ctx, at, reused, told) }()
		p.Provider.Stream(ctx, onSlot(r, at.slot.id))(func(piece llm.Piece, err error) bool {
			if piece.Usage != nil {
				reused, told = p.o.Reused(piece.Raw.Bytes)
			}
			return yield(piece, err)
		})
	}
}

// number is how many slots there are; 0 when naming one makes no sense.
func (p *pinned) number(ctx context.Context) int {
	if p.o.Most < 2 {
		return 0
	}
	n, ok := p.o.Slots(ctx)
	if !ok || n < 2 {
		return 0
	}
	return n
}

func (p *pinned) leave(ctx context.Context, at place, reused int64, told bool) {
	if pause := p.slots.leave(at, reused, told); pause > 0 {
		p.o.Logger.InfoContext(ctx, "the upstream empties idle slots: it chooses them by itself for a while", "slot", at.slot.id, "pause", pause)
	}
}

// wish reads what a request leaves open, on an upstream of n slots.
func (p *pinned) wish(ctx context.Context, r *llm.Request, n int) wish {
	w := wish{turn: turnOf(ctx), client: -1}
	if n == 0 {
		return w
	}
	w.open = w.turn != nil && r.Options.Choices < 2
	for _, m := range r.Rest {
		switch m.Name {
		case idSlot:
			w.open = false
			// A number that is too large counts on from 0 (llama.cpp, get_slot_by_id).
			if id, err := strconv.Atoi(string(m.Value)); err == nil && id >= 0 && r.Options.Choices < 2 {
				w.client = id % n
			}
		case "cache_prompt":
			w.open = w.open && string(m.Value) != "false"
		}
	}
	if w.open {
		w.conversation = w.turn.name()
	}
	return w
}

// onSlot is r with a slot named; r stays as it is.
func onSlot(r *llm.Request, id int) *llm.Request {
	named := *r
	named.Added = append(slices.Clip(r.Added), llm.Member{Name: idSlot, Value: strconv.AppendInt(nil, int64(id), 10)})
	return &named
}
