package packages

import (
	"regexp"
	"strings"
)

// Reason says why an install failed.
type Reason string

// The reasons.
const (
	NoPackage   Reason = "no package"   // no registry has a package of this name
	NoVersion   Reason = "no version"   // there is none of the versions that were asked for
	NoWheel     Reason = "no wheel"     // it is there, but not built for this Python or system
	Conflict    Reason = "conflict"     // what is wanted does not go together
	NotAllowed  Reason = "not allowed"  // it lies on a host that the operator did not allow
	Denied      Reason = "denied"       // a registry wants another credential
	NoAnswer    Reason = "no answer"    // a registry gave none, or an error
	Damaged     Reason = "damaged"      // what a registry sent is not what it promised
	Late        Reason = "late"         // the time for an install is up
	NoRoom      Reason = "no room"      // it is larger than what may be kept
	NoInstaller Reason = "no installer" // this host has no pip or npm that can be used
	Busy        Reason = "busy"         // too much runs at once
	Refused     Reason = "refused"      // what was asked for, or what came, is not allowed
	Unknown     Reason = "unknown"      // the installer failed in another way
)

// Failure is an install that did not happen, for a reader who may be a model. Its text
// is whole sentences, and has no path of this host and no address.
type Failure struct {
	Reason Reason
	Text   string
	// Package is the one that it is about, as the registry spells it; empty where it is
	// about all of them, or where that is not known. What another package needs may be
	// it, too.
	Package string
}

// Error is the text.
func (f *Failure) Error() string { return f.Text }

func failure(reason Reason, text string) error { return &Failure{Reason: reason, Text: text} }

// clipped is how much of a text that somebody else wrote is quoted.
const clipped = 300

// What no sentence quotes: addresses, and paths of this host.
var (
	addresses = regexp.MustCompile(`[A-Za-z0-9+.-]*:?//[^\s'")>\]]*`)
	hostPaths = regexp.MustCompile(`(^|[^A-Za-z0-9._@/-])(?:/[A-Za-z0-9._@+~-]+)+/?|\b[A-Za-z]:\\[^\s'")]*`)
)

// clip makes a text of somebody else a short piece of one line that holds no address and
// no path.
func clip(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\t' || r == '\n':
			return ' '
		case r < ' ' || r >= 0x7f && r < 0xa0 || r == 0xfffd || r == 0x2028 || r == 0x2029 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069:
			return -1
		}
		return r
	}, text)
	text = addresses.ReplaceAllString(text, "[address]")
	text = hostPaths.ReplaceAllString(text, "${1}[path]")
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > clipped {
		text = strings.ToValidUTF8(text[:clipped], "") + " ..."
	}
	return text
}
