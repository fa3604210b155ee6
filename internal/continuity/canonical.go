package continuity

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/llm"
)

// Canonical is what a message is told apart by: role, joined text without outer
// white space, the call it answers, its calls with canonical arguments, and
// digests of what is not text. Null fields, reasoning, names, refusals and cache
// markers do not count: SDKs drop, add and reorder them.
func Canonical(m llm.Message) []string {
	out := []string{string(m.Role), strings.TrimSpace(m.Text()), m.CallID}
	for _, c := range m.Calls {
		out = append(out, "call", c.ID, c.Name, canonicalArguments(c.Arguments))
	}
	for _, p := range m.Parts {
		switch {
		case p.Media != nil:
			sum := sha256.Sum256([]byte(p.Media.DataURL()))
			out = append(out, "media", hex.EncodeToString(sum[:]))
		case p.Kind == llm.Other:
			sum := sha256.Sum256(canonicalJSON(p.Raw.Bytes))
			out = append(out, "media", hex.EncodeToString(sum[:]))
		}
	}
	return out
}

// canonicalArguments is the same for arguments that mean the same: SDKs parse
// and write them again.
func canonicalArguments(arguments string) string {
	if strings.TrimSpace(arguments) == "" {
		return "{}"
	}
	return string(canonicalJSON([]byte(arguments)))
}

// canonicalJSON is v as RFC 8785 writes it, or v itself when it is no JSON.
func canonicalJSON(v []byte) []byte {
	c := jsontext.Value(append([]byte(nil), v...))
	if err := c.Canonicalize(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)); err != nil {
		return []byte(strings.TrimSpace(string(v)))
	}
	return c
}
