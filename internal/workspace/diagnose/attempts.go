package diagnose

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"sync"
	"unicode"
)

// Attempts remembers which commands failed, to notice that one is tried again as it
// was (B1 10.7). It is safe for concurrent use.
type Attempts struct {
	limit int

	mu     sync.Mutex
	failed map[[sha256.Size]byte]int
}

// NewAttempts makes a table that remembers limit commands and is then cleared; with 0
// it remembers none.
func NewAttempts(limit int) *Attempts {
	return &Attempts{limit: limit, failed: map[[sha256.Size]byte]int{}}
}

// Record takes in how a command went, as it was typed, and returns a warning if it
// failed and had failed before. White space makes no difference. A benign exit is no
// failure; a success forgets the failures before it.
func (a *Attempts) Record(command string, failed bool) (warning string) {
	key := sha256.Sum256([]byte(strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, command)))
	a.mu.Lock()
	defer a.mu.Unlock()
	if !failed {
		delete(a.failed, key)
		return ""
	}
	before := a.failed[key]
	if before == 0 && len(a.failed) >= a.limit {
		clear(a.failed)
	}
	if a.limit > 0 {
		a.failed[key] = before + 1
	}
	switch before {
	case 0:
		return ""
	case 1:
		return repeatTwice
	}
	return fmt.Sprintf(repeatMany, before+1)
}
