// Package codec is what the codecs of all dialects share: the error of a request that is not
// of its format, the bounds that requests are held to, and names that are spelt as they must
// be.
//
// It knows no dialect.
//
// Start at [Error].
package codec

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/internal/wire"
)

// Error is a request that is not of its format. Param names the member; Detail is the code
// of the limit that it breaks, if it is one.
type Error struct{ Param, Detail, Message string }

// Error is the text.
func (e *Error) Error() string { return e.Message }

// Fault is the error as doors answer it.
func (e *Error) Fault() *fault.Error {
	return &fault.Error{Code: fault.Invalid, Message: e.Message, Param: e.Param, Detail: e.Detail, Err: e}
}

// Bounds limit what a request may hold, in messages, tools, and bytes of the model's name:
// small JSON can become many objects.
type Bounds struct{ Messages, Tools, Model int }

// NewBounds are those of the limits table.
func NewBounds(limits config.Values) Bounds {
	return Bounds{
		Messages: limits.Int(config.RequestMessages), Tools: limits.Int(config.RequestTools), Model: limits.Int(config.RequestModel),
	}
}

// ModelName reads the member "model".
func (b Bounds) ModelName(v jsontext.Value) (string, error) {
	text, ok := wire.String(v)
	switch {
	case !ok:
		return "", &Error{Param: "model", Message: `"model" must be a string`}
	case len(text) > b.Model:
		return "", &Error{Param: "model", Detail: "model_name_too_long", Message: fmt.Sprintf(`"model" has %d bytes: the limit is %d`, len(text), b.Model)}
	}
	return text, nil
}

// TooManyMessages is the error of a request that has one more than it may.
func (b Bounds) TooManyMessages() error {
	return &Error{Param: "messages", Detail: "too_many_messages", Message: fmt.Sprintf("the request has more than %d messages", b.Messages)}
}

// TooManyTools is the error of a request that has one more than it may.
func (b Bounds) TooManyTools() error {
	return &Error{Param: "tools", Detail: "too_many_tools", Message: fmt.Sprintf("the request has more than %d tools", b.Tools)}
}

// Name is a member's name without escapes. Names that only differ in case from one of known,
// which are those that the host reads, are refused: some upstreams take them for it, and the
// host has checked another value (a key's models, for one).
func Name(raw []byte, known []string) (string, error) {
	name, ok := wire.Unquote(raw)
	if !ok {
		return "", &Error{Message: fmt.Sprintf("the member %q has a name that is not valid JSON", raw)}
	}
	for _, k := range known {
		if k != name && strings.EqualFold(k, name) {
			return "", &Error{Param: name, Message: fmt.Sprintf("%q is not a member of the format: write %q", name, k)}
		}
	}
	return name, nil
}

// Boolean reads a member that is true or false; null is what absent means.
func Boolean(name string, v jsontext.Value, absent bool) (bool, error) {
	switch {
	case wire.IsNull(v):
		return absent, nil
	case string(v) == "true":
		return true, nil
	case string(v) == "false":
		return false, nil
	}
	return false, &Error{Param: name, Message: fmt.Sprintf("%q must be true or false", name)}
}
