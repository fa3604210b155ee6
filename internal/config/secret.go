package config

import (
	"bytes"
	"log/slog"
)

// Secret is a text that must never be shown: it prints, formats, marshals and
// logs as three stars. Only [Secret.Reveal] gives it away.
type Secret struct{ text string }

const hidden = "***"

// NewSecret keeps a text from being shown.
func NewSecret(text string) Secret { return Secret{text} }

// Reveal is the text itself, for the one place that sends it.
func (s Secret) Reveal() string { return s.text }

// shortest is the length below which a text is too common to be taken out of
// others: "x" is no secret.
const shortest = 8

// Scrub takes the secret out of a text that somebody else wrote. A secret of less
// than 8 bytes stays: it would take half the words with it.
func (s Secret) Scrub(b []byte) []byte {
	if len(s.text) < shortest {
		return b
	}
	return bytes.ReplaceAll(b, []byte(s.text), []byte(hidden))
}

// IsZero reports whether there is no secret.
func (s Secret) IsZero() bool { return s.text == "" }

// String hides the text.
func (s Secret) String() string { return hidden }

// GoString hides the text from %#v.
func (s Secret) GoString() string { return hidden }

// LogValue hides the text from slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(hidden) }

// MarshalText hides the text from every encoder.
func (s Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }
