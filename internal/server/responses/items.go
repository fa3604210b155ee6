package responses

import (
	"context"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/continuity"
	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/internal/wire"
)

func unixTime(seconds int64) time.Time { return time.Unix(seconds, 0) }

// spoken is a conversation up to a response, with it.
type spoken struct {
	id    string
	items []jsontext.Value
	kept  bool // so that it is found in the store, too
}

// converse gives a request its items: those of the conversation that it goes on with, and
// its own.
func (d *Door) converse(ctx context.Context, a *ask, before *spoken) error {
	if a.previous != "" {
		if err := d.goOn(ctx, a, before); err != nil {
			return err
		}
	}
	input, err := a.inputItems(d.bounds.Messages)
	if err != nil {
		return err
	}
	find := d.newFinder(a)
	for i, v := range input {
		if kindOf(v) == "item_reference" {
			if v, err = find.item(ctx, v, "input["+strconv.Itoa(i)+"]"); err != nil {
				return err
			}
		}
		a.input = append(a.input, a.named(v, i))
	}
	a.items = append(a.items, a.input...)
	if len(a.items) > d.bounds.Messages {
		return tooMany("input", "too_many_messages", "items, those of the responses before included", d.bounds.Messages)
	}
	return d.fits(a.items)
}

// fits refuses a conversation of more bytes than a request may have.
func (d *Door) fits(items []jsontext.Value) error {
	size, most := int64(0), d.options.Limits.Get(config.RequestBody)
	for _, v := range items {
		size += int64(len(v))
	}
	if size <= most {
		return nil
	}
	e := fault.New(fault.TooLarge, "the conversation has %d bytes with the responses before it, and may have %d (limit %s): begin another one, or raise --max-body", size, most, config.RequestBody)
	e.Param, e.Detail = "previous_response_id", "request_too_large"
	return e
}

// goOn finds the items of the response that a request goes on from, and of those before it.
func (d *Door) goOn(ctx context.Context, a *ask, before *spoken) error {
	if before != nil && before.id == a.previous {
		a.items, a.apart = append(a.items, before.items...), !before.kept
		return nil
	}
	chain, err := d.store.Chain(ctx, a.owner, a.previous, d.bounds.Messages)
	if err != nil {
		return err
	}
	if len(chain) == 0 {
		return noPrevious("there is no response %.80q: it may have been removed, or be too old, or was made with store set to false; send the whole conversation in input", a.previous)
	}
	if first := chain[0]; first.Previous != "" {
		return noPrevious("the response %.80q, which %.80q goes on from, is not kept any more: send the whole conversation in input", first.Previous, a.previous)
	}
	if last := chain[len(chain)-1]; last.Status != completed && last.Status != incomplete {
		e := invalid("previous_response_id", "the response %.80q is %s: go on from one that is completed", a.previous, last.Status)
		e.Detail = "previous_response_not_completed"
		return e
	}
	for _, r := range chain {
		a.items = append(append(a.items, elements(r.Input)...), elements(r.Output)...)
	}
	return nil
}

func elements(v jsontext.Value) []jsontext.Value {
	var out []jsontext.Value
	for c := wire.Array(v); c.Next(); {
		out = append(out, c.Value)
	}
	return out
}

// inputItems are the items of a request: a text is a message of the user.
func (r *request) inputItems(most int) ([]jsontext.Value, error) {
	v := r.said["input"]
	switch v.Kind() {
	case '"':
		message := append([]byte(`{"type":"message","role":"user","content":[{"type":"input_text","text":`), v...)
		return []jsontext.Value{append(message, "}]}"...)}, nil
	case '[':
		var items []jsontext.Value
		for c := wire.Array(v); c.Next(); {
			if len(items) == most {
				return nil, tooMany("input", "too_many_messages", "items", most)
			}
			if c.Value.Kind() != '{' {
				return nil, invalid("input", "input[%d] must be an object", len(items))
			}
			items = append(items, c.Value)
		}
		return items, nil
	}
	if v == nil {
		if r.idle {
			return nil, nil
		}
		return nil, invalid("input", `"input" is missing: give a text, or an array of items`)
	}
	return nil, invalid("input", `"input" must be a text, or an array of items`)
}

// named is an item of the input with an id and a type, as it is listed.
func (a *ask) named(v jsontext.Value, n int) jsontext.Value {
	if wire.IsNull(wire.Member(v, "type")) && wire.Member(v, "role") != nil {
		v = wire.Set(v, "type", []byte(`"message"`))
	}
	if id, _ := wire.String(wire.Member(v, "id")); id != "" {
		return v
	}
	prefix := "item_"
	switch kindOf(v) {
	case "message":
		prefix = "msg_"
	case "function_call_output":
		prefix = "fco_"
	case "function_call":
		prefix = "fc_"
	}
	return wire.Set(v, "id", wire.AppendString(nil, a.itemID(prefix, "in"+strconv.Itoa(n))))
}

// finder finds the items that a request refers to.
type finder struct {
	door  *Door
	owner continuity.Owner
	items map[string]jsontext.Value // those that are known, by their ids
	read  map[string]bool           // the responses whose items are
}

func (d *Door) newFinder(a *ask) *finder {
	f := &finder{door: d, owner: a.owner, items: map[string]jsontext.Value{}, read: map[string]bool{}}
	f.know(a.items)
	return f
}

func (f *finder) know(items []jsontext.Value) {
	for _, v := range items {
		if id, _ := wire.String(wire.Member(v, "id")); id != "" {
			f.items[id] = v
		}
	}
}

// item is the one that v refers to.
func (f *finder) item(ctx context.Context, v jsontext.Value, at string) (jsontext.Value, error) {
	id, _ := wire.String(wire.Member(v, "id"))
	if of, ok := responseOf(id); ok && f.items[id] == nil && !f.read[of] {
		r, _, err := f.door.store.GetResponse(ctx, f.owner, of)
		if err != nil {
			return nil, err
		}
		f.read[of] = true
		f.know(elements(r.Input))
		f.know(elements(r.Output))
	}
	if item := f.items[id]; item != nil {
		return item, nil
	}
	e := invalid(at, "there is no item %.80q: send the item itself", id)
	e.Detail = "item_not_found"
	return nil, e
}
