package sandbox

import (
	"fmt"
	"strings"
)

// Mode says what becomes of a launch when no backend confines it as much as the
// policy asks (DESIGN 5.4).
type Mode int

// The modes. Required is the zero value.
const (
	// Required confines at least as much as the minimum, or refuses.
	Required Mode = iota
	// Preferred takes the best that there is and names the gaps.
	Preferred
	// Off confines nothing in the operating system.
	Off
)

// modes are the words, by mode.
func modes() []string { return []string{"required", "preferred", "off"} }

// String is the word for the mode.
func (m Mode) String() string {
	if words := modes(); m >= 0 && int(m) < len(words) {
		return words[m]
	}
	return fmt.Sprintf("mode %d", int(m))
}

// ParseMode reads the word for a mode.
func ParseMode(word string) (Mode, error) {
	for i, w := range modes() {
		if strings.EqualFold(w, word) {
			return Mode(i), nil
		}
	}
	return Required, fmt.Errorf("sandbox mode %q: give one of %s", word, strings.Join(modes(), ", "))
}

// Policy is what the operator asks of a sandbox.
type Policy struct {
	Mode Mode
	// Minimum is the weakest tier that Required accepts.
	Minimum Tier
	// Backend is the one backend to use, by name; empty chooses.
	Backend string
}

// DefaultPolicy requires full confinement.
func DefaultPolicy() Policy { return Policy{Minimum: TierFull} }

// Finding is a backend as it was found on this host: ready, or why it is not.
type Finding struct {
	Name string
	// Backend is nil when Problem says why.
	Backend Backend
	Problem error
}

// Choose takes the first backend, in the order of found, that the policy
// accepts. With none it says what is missing and what the policy asks for.
//
// Preferred takes the best tier that there is. Off takes the finding named
// "bare", whatever else there is.
func (p Policy) Choose(found []Finding) (Backend, error) {
	var best Backend
	for _, f := range found {
		if f.Backend == nil || p.Backend != "" && p.Backend != f.Name {
			continue
		}
		tier := f.Backend.Capabilities().Tier
		switch {
		case p.Mode == Off:
			if f.Name == Bare {
				return f.Backend, nil
			}
			continue
		case tier >= max(p.Minimum, TierWeak):
			return f.Backend, nil
		case p.Mode == Preferred && (best == nil || tier > best.Capabilities().Tier):
			best = f.Backend
		}
	}
	if best != nil {
		return best, nil
	}
	return nil, p.refusal(found)
}

// Bare is the name of the backend that confines nothing.
const Bare = "bare"

func (p Policy) refusal(found []Finding) error {
	var why []string
	for _, f := range found {
		if p.Backend != "" && p.Backend != f.Name {
			continue
		}
		switch {
		case f.Problem != nil:
			why = append(why, f.Problem.Error())
		case p.Backend == Bare:
			why = append(why, Bare+" confines nothing")
		case f.Name != Bare && f.Backend != nil:
			why = append(why, fmt.Sprintf("%s confines only at tier %s", f.Name, f.Backend.Capabilities().Tier))
		}
	}
	if len(why) == 0 {
		why = []string{"there is no such backend"}
	}
	return &Refusal{Policy: p, Why: why}
}

// Refusal says that nothing here confines as much as the policy asks.
type Refusal struct {
	Policy Policy
	// Why has a sentence for each backend that was looked at.
	Why []string
}

// Error is one line.
func (e *Refusal) Error() string {
	what := e.Policy.Minimum.String()
	if e.Policy.Backend != "" {
		what += " confinement by " + e.Policy.Backend
	} else {
		what += " confinement"
	}
	return fmt.Sprintf("sandbox %s: this host has no %s: %s", e.Policy.Mode, what, strings.Join(e.Why, "; "))
}
