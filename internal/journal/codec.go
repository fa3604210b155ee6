package journal

import (
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/llm"
)

// stored is an event as it is written down. The names are for ever.
type stored struct {
	Seq    int64          `json:"seq"`
	Schema int            `json:"schema"`
	At     time.Time      `json:"at"`
	TurnID string         `json:"turn_id,omitzero"`
	Anchor NodeID         `json:"anchor,omitzero"`
	Kind   Kind           `json:"kind"`
	Data   jsontext.Value `json:"data"`
}

// Encode is the stored form of an event: one JSON object, the same bytes for
// the same event.
func Encode(e Event) ([]byte, error) {
	data, err := EncodeData(e.Data)
	if err != nil {
		return nil, err
	}
	return json.Marshal(stored{e.Seq, e.Schema, e.At, e.TurnID, e.Anchor, e.Data.Kind(), data})
}

// Decode reads what [Encode] wrote. An event of a kind or schema that this
// build does not know is an error, never skipped: a fold that misses a fact is
// wrong.
func Decode(b []byte) (Event, error) {
	var s stored
	if err := json.Unmarshal(b, &s); err != nil {
		return Event{}, fmt.Errorf("journal: decode event: %w", err)
	}
	if s.Schema > Schema {
		return Event{}, fmt.Errorf("journal: event %d has schema %d and this build knows up to %d: use a newer metier", s.Seq, s.Schema, Schema)
	}
	data, err := decodeData(s.Kind, s.Data)
	if err != nil {
		return Event{}, fmt.Errorf("journal: event %d: %w", s.Seq, err)
	}
	return Event{Seq: s.Seq, Schema: s.Schema, At: s.At, TurnID: s.TurnID, Anchor: s.Anchor, Data: data}, nil
}

func decodeData(kind Kind, v jsontext.Value) (Data, error) {
	switch kind {
	case KindMessagesAdded:
		return decodeAs[MessagesAdded](v)
	case KindTurnStarted:
		return decodeAs[TurnStarted](v)
	case KindTurnResumed:
		return decodeAs[TurnResumed](v)
	case KindTurnEnded:
		return decodeAs[TurnEnded](v)
	case KindGenerateRequested:
		return decodeAs[GenerateRequested](v)
	case KindGenerateEnded:
		return decodeAs[GenerateEnded](v)
	case KindGenerateFailed:
		return decodeAs[GenerateFailed](v)
	case KindInvokeRequested:
		return decodeAs[InvokeRequested](v)
	case KindInvokeEnded:
		return decodeAs[InvokeEnded](v)
	case KindResultsElided:
		return decodeAs[ResultsElided](v)
	case KindSessionCreated:
		return decodeAs[SessionCreated](v)
	case KindHeadMoved:
		return decodeAs[HeadMoved](v)
	case KindConfigSet:
		return decodeAs[ConfigSet](v)
	case KindStateSet:
		return decodeAs[StateSet](v)
	}
	return nil, fmt.Errorf("unknown kind %q", kind)
}

func decodeAs[T Data](v jsontext.Value) (Data, error) {
	var d T
	if err := json.Unmarshal(v, &d, llm.Verbatim()); err != nil {
		return nil, fmt.Errorf("decode %s: %w", d.Kind(), err)
	}
	return d, nil
}
