package patch

import (
	"fmt"
	"strings"
)

// Error is a patch that was refused: nothing was changed. Its text is for the
// model that sent the patch and begins with that.
type Error struct {
	// Faults are what is wrong, in the order of the patch; at least one.
	Faults []Fault
	// More says that more of the patch does not fit and is left out.
	More bool
}

// Fault is one thing that is wrong with a patch.
type Fault struct {
	// Path is the file that it is about, "" for the patch itself.
	Path string
	// Line is where it stands in the patch text, counted from 1; 0 if nowhere.
	Line int
	// Text says what is wrong and what to send instead.
	Text string
	// Err is the reason behind it, or nil: the [Cleaner]'s error, [fs.ErrExist],
	// [fs.ErrNotExist].
	Err error
}

// Error is the text for the model.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(sayNothingChanged)
	for i, f := range e.Faults {
		if i > 0 {
			b.WriteString("\n\n")
		}
		if f.Line > 0 {
			fmt.Fprintf(&b, sayLine, f.Line)
		}
		b.WriteString(f.Text)
	}
	if e.More {
		b.WriteString(sayMoreFaults)
	}
	return b.String()
}

// Unwrap are the reasons behind the faults.
func (e *Error) Unwrap() []error {
	var causes []error
	for _, f := range e.Faults {
		if f.Err != nil {
			causes = append(causes, f.Err)
		}
	}
	return causes
}

// refuse is an error about a line of the patch text, 0 for the whole of it.
func refuse(line int, format string, args ...any) *Error {
	return &Error{Faults: []Fault{{Line: line, Text: fmt.Sprintf(format, args...)}}}
}

// about names the file that an error is about.
func (e *Error) about(path string, cause error) *Error {
	for i := range e.Faults {
		e.Faults[i].Path = path
		if cause != nil {
			e.Faults[i].Err = cause
		}
	}
	return e
}

// UndoneError is a change that failed while it was being written. What had been
// written before it was taken back, but for what Lost names.
type UndoneError struct {
	// Path is the file that could not be written.
	Path string
	// Err is why.
	Err error
	// Lost are files that could not be put back as they were.
	Lost []string
}

// Error says what failed and in what state the files are.
func (e *UndoneError) Error() string {
	if len(e.Lost) == 0 {
		return fmt.Sprintf(sayUndone, e.Path, e.Err)
	}
	return fmt.Sprintf(sayLost, e.Path, e.Err, strings.Join(e.Lost, ", "))
}

// Unwrap is why the file could not be written.
func (e *UndoneError) Unwrap() error { return e.Err }
