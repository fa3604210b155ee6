// Package access says who is calling: it compares what a request presents with
// the keys of the operator, and carries the caller through the request's context.
//
// It keeps no key's text, only its hash, and it never lets a credential of this
// server reach a handler: what was presented is taken out of the request. What a
// caller may do beyond its skills and models is not decided here.
//
// Start at [New] and [Require].
package access

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/fault"
)

// DefaultTenant owns the state of every caller until there are more tenants.
const DefaultTenant = "default"

// Key is a key that the server accepts.
type Key struct {
	ID string
	// Hash is the SHA-256 of the key's text; see [Hash].
	Hash [sha256.Size]byte
	// Skills are selected for each request of the key.
	Skills []string
	// Models are those that the key may use; none means all.
	Models []string
	// Admin: the key's holder sees the sessions of all callers.
	Admin bool
}

// Hash is what a key's text is compared by.
func Hash(key config.Secret) [sha256.Size]byte { return sha256.Sum256([]byte(key.Reveal())) }

// KeyPrefix begins each key that [NewKey] makes: what looks for secrets in texts
// knows a key by it.
const KeyPrefix = "sk-metier-"

// NewKey makes a key of 130 random bits and its hash as a file writes it.
func NewKey() (key config.Secret, hash string) {
	key = config.NewSecret(KeyPrefix + strings.ToLower(rand.Text()))
	sum := Hash(key)
	return key, config.HashPrefix + hex.EncodeToString(sum[:])
}

// Caller is who asks.
type Caller struct {
	// ID is the key's; empty for everybody who needs none.
	ID string
	// Tenant owns the caller's state.
	Tenant string
	// Skills are selected in addition to those that a request names.
	Skills []string
	// Models are those that the caller may use; none means all.
	Models []string
	// Admin: the caller sees the sessions of all callers of its tenant.
	Admin bool
}

// Anonymous is who needs no key: the person at a terminal, and everybody while
// the server has no keys.
func Anonymous() Caller { return Caller{Tenant: DefaultTenant} }

// Sees reports whether a model is the caller's to list and to use.
func (c Caller) Sees(model string) bool {
	return len(c.Models) == 0 || slices.Contains(c.Models, model)
}

// May is nil when the caller may use a model, and else [fault.Forbidden] with
// those that it may use.
func (c Caller) May(model string) error {
	if c.Sees(model) {
		return nil
	}
	e := fault.New(fault.Forbidden, "the key %q may not use the model %q: it may use %s", c.ID, model, strings.Join(c.Models, ", "))
	e.Param, e.Detail = "model", "model_not_allowed"
	return e
}

// Keys are the keys of a server. Nil and the zero value accept everybody as
// anonymous. Keys are safe for concurrent use.
type Keys struct{ keys []Key }

// New checks keys against each other: ids differ, and so do the keys.
func New(keys []Key) (*Keys, error) {
	for i, k := range keys {
		if k.Hash == [sha256.Size]byte{} || k.Hash == sha256.Sum256(nil) {
			return nil, fmt.Errorf("key %s: it has no text: make one with metier keys new %s", k.ID, k.ID)
		}
		for _, other := range keys[:i] {
			if other.ID == k.ID {
				return nil, fmt.Errorf("key %s: there are two of that name: rename one", k.ID)
			}
			if other.Hash == k.Hash {
				return nil, fmt.Errorf("keys %s and %s are the same key: make one anew with metier keys new %s", other.ID, k.ID, k.ID)
			}
		}
	}
	return &Keys{keys: slices.Clone(keys)}, nil
}

// Len is how many keys there are. With none, everybody who reaches the server is
// served.
func (k *Keys) Len() int {
	if k == nil {
		return 0
	}
	return len(k.keys)
}

// Identify says who sends a request: the holder of the key in its header
// "Authorization: Bearer KEY" or "x-api-key". The error is
// [fault.Unauthenticated].
func (k *Keys) Identify(r *http.Request) (Caller, error) {
	if k.Len() == 0 {
		return Anonymous(), nil
	}
	given := presented(r.Header)
	for _, text := range given {
		if key, ok := k.find(text); ok {
			return Caller{ID: key.ID, Tenant: DefaultTenant, Skills: key.Skills, Models: key.Models, Admin: key.Admin}, nil
		}
	}
	if len(given) == 0 {
		e := fault.New(fault.Unauthenticated, "this server asks for a key: send the header Authorization: Bearer KEY, or x-api-key: KEY")
		e.Detail = "missing_api_key"
		return Caller{}, e
	}
	e := fault.New(fault.Unauthenticated, "the key is none of this server's: check it, or ask the operator for one")
	e.Detail = "invalid_api_key"
	return Caller{}, e
}

// find compares a text with every key in the same time, whichever it is.
func (k *Keys) find(text string) (Key, bool) {
	sum := sha256.Sum256([]byte(text))
	at := -1
	for i := range k.keys {
		same := subtle.ConstantTimeCompare(sum[:], k.keys[i].Hash[:])
		at = subtle.ConstantTimeSelect(same, i, at)
	}
	if at < 0 {
		return Key{}, false
	}
	return k.keys[at], true
}

// The headers that carry a key.
const (
	authorization = "Authorization"
	apiKey        = "X-Api-Key"
)

// presented lists what the header offers as keys.
func presented(h http.Header) []string {
	var given []string
	for _, v := range h.Values(authorization) {
		scheme, text, _ := strings.Cut(strings.TrimSpace(v), " ")
		if text = strings.TrimSpace(text); strings.EqualFold(scheme, "Bearer") && text != "" {
			given = append(given, text)
		}
	}
	for _, v := range h.Values(apiKey) {
		if v = strings.TrimSpace(v); v != "" {
			given = append(given, v)
		}
	}
	return given
}

type contextKey struct{}

// WithCaller is a context that knows the caller.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, contextKey{}, c)
}

// FromContext is the caller of a context; [Anonymous] where none was put in.
func FromContext(ctx context.Context) Caller {
	if c, ok := ctx.Value(contextKey{}).(Caller); ok {
		return c
	}
	return Anonymous()
}
