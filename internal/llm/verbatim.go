package llm

import (
	"encoding/base64"
	"errors"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Verbatim are the options with which messages, requests and what holds them are stored
// as JSON: the same bytes for the same value, and each raw part comes back byte by byte,
// white space, doubled names and odd escapes included. Encoded as JSON inside JSON it
// would not; so a raw part is stored as a string, or where it is no UTF-8 as an array of
// one string in base64.
func Verbatim() json.Options {
	return json.JoinOptions(
		json.Deterministic(true), jsontext.AllowInvalidUTF8(true),
		json.WithMarshalers(json.MarshalToFunc(storeRaw)),
		json.WithUnmarshalers(json.UnmarshalFromFunc(loadRaw)),
	)
}

func storeRaw(e *jsontext.Encoder, v jsontext.Value) error {
	if v == nil {
		return e.WriteToken(jsontext.Null)
	}
	if utf8.Valid(v) {
		return e.WriteToken(jsontext.String(string(v)))
	}
	if err := e.WriteToken(jsontext.BeginArray); err != nil {
		return err
	}
	if err := e.WriteToken(jsontext.String(base64.StdEncoding.EncodeToString(v))); err != nil {
		return err
	}
	return e.WriteToken(jsontext.EndArray)
}

var errRaw = errors.New("a raw part is a string, or an array of one string in base64")

func loadRaw(d *jsontext.Decoder, v *jsontext.Value) error {
	switch d.PeekKind() {
	case 'n':
		*v = nil
		return d.SkipValue()
	case '"':
		t, err := d.ReadToken()
		*v = jsontext.Value(t.String())
		return err
	case '[':
		var in []string
		if err := json.UnmarshalDecode(d, &in); err != nil {
			return err
		}
		if len(in) != 1 {
			return errRaw
		}
		b, err := base64.StdEncoding.DecodeString(in[0])
		*v = b
		return err
	}
	return errRaw
}
