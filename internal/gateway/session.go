package gateway

import (
	"context"
	"fmt"

	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/turn"
)

// Journal is the durable journal of the conversation that a request belongs to. A turn of
// it is recorded as it runs, and survives this process; what its client does not send is
// still found by continuity alone.
type Journal interface {
	// Open takes the journal for one turn, and makes it if it is not there. It fails with
	// [fault.Conflict] while another turn has it. release lets go of it.
	Open(ctx context.Context) (log journal.Log, at journal.Position, release func(context.Context), err error)
}

// begin opens the turn's journal, writes down what the turn begins with, and makes the
// driver that goes on from there. Call release when the turn has ended.
func (t *Turn) begin(ctx context.Context) (d *turn.Driver, s *turn.State, release func(context.Context), err error) {
	if t.request.Journal == nil {
		d, s, err = t.open(ctx)
		return d, s, func(context.Context) {}, err
	}
	log, at, release, err := t.request.Journal.Open(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	if d, s, err = t.resume(ctx, log, at); err != nil {
		release(ctx)
		return nil, nil, nil, err
	}
	return d, s, release, nil
}

// resume goes on from where a journal stands.
func (t *Turn) resume(ctx context.Context, log journal.Log, at journal.Position) (*turn.Driver, *turn.State, error) {
	var state turn.State
	if err := fold(ctx, log, 0, &state); err != nil {
		return nil, nil, err
	}
	from := at.Seq
	var err error
	if drafts := Abandon(state); len(drafts) > 0 {
		if at, err = log.Append(ctx, at, drafts...); err != nil {
			return nil, nil, fmt.Errorf("end the turn before: %w", err)
		}
	}
	if at, err = log.Append(ctx, at, t.draftsAfter(state.Tree())...); err != nil {
		return nil, nil, fmt.Errorf("begin turn: %w", err)
	}
	if err := fold(ctx, log, from, &state); err != nil {
		return nil, nil, err
	}
	return t.driver(log, at), &state, nil
}

// Abandon is what ends a turn that is open although nobody runs it. A turn of a request
// is nobody's without its client (DESIGN section 2, rule 1): one whose process ended in
// the middle of it is cancelled. One that waited for its client has answered it.
func Abandon(s turn.State) []journal.Draft {
	if !s.Open() {
		return nil
	}
	ended := journal.TurnEnded{Reason: journal.Cancelled, Error: "the process that ran the turn ended in the middle of it"}
	if s.Next().Wait != nil {
		ended = journal.TurnEnded{Reason: journal.Answered}
	}
	return []journal.Draft{{TurnID: s.TurnID(), Anchor: s.Path().Tip(), Data: ended}}
}

func fold(ctx context.Context, log journal.Log, after int64, s *turn.State) error {
	for e, err := range log.Read(ctx, after) {
		if err != nil {
			return fmt.Errorf("read journal: %w", err)
		}
		*s = s.Apply(e)
	}
	return nil
}

// draftsAfter are the facts that the turn adds to a conversation that is there already:
// the messages that are not, and what was rendered.
func (t *Turn) draftsAfter(tree journal.Tree) []journal.Draft {
	messages := make([]llm.Message, len(t.request.Messages))
	for i, m := range t.request.Messages {
		messages[i] = t.request.expand(m)
	}
	drafts := tree.Match(messages)
	tip := tree.Path().Tip()
	for i := range drafts {
		drafts[i].TurnID = t.id
		switch d := drafts[i].Data.(type) {
		case journal.HeadMoved:
			tip = d.To
		case journal.MessagesAdded:
			for k := range d.Entries {
				d.Entries[k].ID = journal.NodeID(fmt.Sprintf("%s.%d", t.id, k))
			}
			tip = d.Entries[len(d.Entries)-1].ID
		}
	}
	return append(drafts, journal.Draft{TurnID: t.id, Anchor: tip, Data: t.start})
}
