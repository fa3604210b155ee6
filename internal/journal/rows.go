package journal

import (
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/metier-run/metier/internal/llm"
)

// EncodeData is the stored form of a fact without its event: JSON, the same bytes for the
// same fact. Stores that keep the rest of an event in columns use it.
func EncodeData(d Data) ([]byte, error) {
	b, err := json.Marshal(d, llm.Verbatim())
	if err != nil {
		return nil, fmt.Errorf("journal: encode %s: %w", d.Kind(), err)
	}
	return b, nil
}

// DecodeData reads what [EncodeData] wrote under a kind and a schema. It refuses what
// this build does not know, as [Decode] does.
func DecodeData(kind Kind, schema int, b []byte) (Data, error) {
	if schema > Schema {
		return nil, fmt.Errorf("journal: %s has schema %d and this build knows up to %d: use a newer metier", kind, schema, Schema)
	}
	d, err := decodeData(kind, b)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	return d, nil
}
