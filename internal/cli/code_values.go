package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/spf13/pflag"
)

// words is a list whose entries are parted by commas, semicolons or white space, and
// which may be given more than once. One that was given without an entry is empty, and
// one that was not given is nil (B1 13.14).
type words struct{ to *[]string }

// temperature is a number from 0 to 2, or a negative one that takes it back (B1 18.3).
type temperature struct{ to **float64 }

// removed is a flag that is no more: whoever gives it is told what to do (B1 18.4).
type removed struct{ flag, instead string }

var (
	_ pflag.Value = words{}
	_ pflag.Value = temperature{}
	_ pflag.Value = removed{}
)

// Set adds the entries of a text.
func (w words) Set(text string) error {
	if *w.to == nil {
		*w.to = []string{}
	}
	*w.to = append(*w.to, strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ';' || unicode.IsSpace(r) })...)
	return nil
}

// String is the list as one text.
func (w words) String() string {
	if w.to == nil {
		return ""
	}
	return strings.Join(*w.to, ",")
}

// Type is what help says after the flag.
func (w words) Type() string { return "strings" }

// Set reads a number.
func (t temperature) Set(text string) error {
	n, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	switch {
	case err == nil && n < 0:
		*t.to = nil
	case err == nil && n <= 2:
		*t.to = &n
	default:
		return errors.New("give a number from 0 to 2, or a negative one to leave it to the upstream")
	}
	return nil
}

// String is the number, empty when there is none.
func (t temperature) String() string {
	if t.to == nil || *t.to == nil {
		return ""
	}
	return strconv.FormatFloat(**t.to, 'g', -1, 64)
}

// Type is what help says after the flag.
func (t temperature) Type() string { return "number" }

// Error says that the flag is gone, and what to do.
func (r removed) Error() string { return fmt.Sprintf("--%s was removed: %s", r.flag, r.instead) }

// Set refuses.
func (r removed) Set(string) error { return r }

// String is empty: there is no value.
func (r removed) String() string { return "" }

// Type is what help would say after the flag.
func (r removed) Type() string { return "string" }
