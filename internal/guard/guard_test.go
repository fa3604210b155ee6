package guard

import (
	"errors"
	"strings"
	"testing"
)

func TestClean(t *testing.T) {
	if n := len(spellings()); n < 120 {
		t.Errorf("the table has %d spellings and should have at least 120", n)
	}
	for _, tt := range spellings() {
		got, err := Clean(tt.name)
		if got != tt.clean || !errors.Is(err, tt.err) {
			t.Errorf("Clean(%q) = %q, %v; want %q, %v", tt.name, got, err, tt.clean, tt.err)
		}
		if _, ok := errors.AsType[*PathError](err); ok != (tt.err != nil) {
			t.Errorf("Clean(%q): error %v is a PathError: %v", tt.name, err, ok)
		}
	}
}

func TestPathErrorNamesThePath(t *testing.T) {
	_, err := Clean("a/../b")
	const want = `path "a/../b": ".." is refused, because files outside this folder may not be opened: write the path from the top of the folder`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestCleanLength(t *testing.T) {
	long := strings.Repeat("a/", longest/2)
	if _, err := Clean(long); err != nil {
		t.Errorf("%d bytes: %v", len(long), err)
	}
	if _, err := Clean(long + "a"); !errors.Is(err, ErrLong) {
		t.Errorf("%d bytes: %v", len(long)+1, err)
	}
}
