package sandbox

import (
	"fmt"
	"strings"
)

// Tier says how much a backend confines, as one word that an operator can
// name.
type Tier int

// The tiers, weakest first.
const (
	// TierNone confines nothing in the operating system.
	TierNone Tier = iota
	// TierWeak is Landlock and seccomp under the operator's own user.
	TierWeak
	// TierPartial is Landlock and seccomp under a user of its own.
	TierPartial
	// TierFull has namespaces of its own: files, processes and network of the
	// host are not there.
	TierFull
	// TierStrong has a kernel of its own in between.
	TierStrong
)

// tiers are the words, by tier.
func tiers() []string { return []string{"none", "weak", "partial", "full", "strong"} }

// String is the word for the tier.
func (t Tier) String() string {
	if words := tiers(); t >= 0 && int(t) < len(words) {
		return words[t]
	}
	return fmt.Sprintf("tier %d", int(t))
}

// ParseTier reads the word for a tier.
func ParseTier(word string) (Tier, error) {
	for i, w := range tiers() {
		if strings.EqualFold(w, word) {
			return Tier(i), nil
		}
	}
	return TierNone, fmt.Errorf("sandbox tier %q: give one of %s", word, strings.Join(tiers(), ", "))
}
