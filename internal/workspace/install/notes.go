package install

import "strings"

// State is what became of packages that were asked for (B1 13.11).
type State int

// The states, in the order in which [Note] is read best.
const (
	Installed State = iota
	// Already says that an earlier call of the session installed them.
	Already
	// BuiltIn says that the host itself has them.
	BuiltIn
	// ManifestDone says that what a package.json lists is there.
	ManifestDone
	// Failed says that they were not installed, for the outcome's reason.
	Failed
	// Together says that they were not installed because another package of the same
	// install could not be, which the outcome's reason names.
	Together
	// Skipped says that they were not tried, since an install before them failed
	// (B1 13.10).
	Skipped
)

// Outcome is what became of some packages of one request.
type Outcome struct {
	Kind  Kind
	State State
	// Names are the packages, with the versions that came where they are known:
	// "numpy 2.1.0".
	Names []string
	// Reason is a sentence without its full stop, for [Failed]; for [Together] the names
	// of what could not be installed.
	Reason string
	// Unchecked says of [BuiltIn] that a version was asked for and not looked at.
	Unchecked bool
}

// Note is what a model reads about installs: a line for each outcome, without a
// newline at the end. It is empty for none.
func Note(outcomes []Outcome) string {
	lines := make([]string, 0, len(outcomes))
	for _, o := range outcomes {
		lines = append(lines, o.line())
	}
	return strings.Join(lines, "\n")
}

// BuiltIn is what to say of those specs of a request that the host itself has; ok
// is false when there are none.
func (r Request) BuiltIn() (o Outcome, ok bool) {
	o = Outcome{Kind: r.Kind, State: BuiltIn}
	for _, s := range r.Specs {
		if s.Provided {
			o.Names = append(o.Names, s.Name)
			o.Unchecked = o.Unchecked || s.Version != ""
		}
	}
	return o, len(o.Names) > 0
}
