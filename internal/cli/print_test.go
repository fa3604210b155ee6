package cli

import (
	"errors"
	"strings"
	"testing"
)

func TestShown(t *testing.T) {
	for path, want := range map[string]string{
		"/srv/skills/tide tables": "/srv/skills/tide tables",
		"/srv/été/技能":             "/srv/été/技能",
		"/srv/bad\x1b[31m\nname":  `"/srv/bad\x1b[31m\nname"`,
		"/srv/a\u202eb":           `"/srv/a\u202eb"`,
		"/srv/\xff":               `"/srv/\xff"`,
	} {
		if got := shownPath(path); got != want {
			t.Errorf("%q: %s, want %s", path, got, want)
		}
	}
	if got := sentence(errors.New(" two\x1b[31m\n  lines\r\n")); got != "two [31m\n  lines" {
		t.Errorf("sentence: %q", got)
	}
	if got := printable("a\x1b[31m\u200bb\u009bc\nd"); got != "a [31mb c d" {
		t.Errorf("printable: %q", got)
	}
}

// TestSayNotLoaded: a folder that did not load has one line, whatever it is
// called.
func TestSayNotLoaded(t *testing.T) {
	var said strings.Builder
	s := &session{std: IO{Err: &said}}
	s.sayNotLoaded(skillListing{Errors: []errorRow{{Path: "/bad\x1b\nname", Message: "one\ntwo\x1b[2J"}}})
	if want := "skills: not loaded: \"/bad\\x1b\\nname\": one two [2J\n"; said.String() != want {
		t.Errorf("%q, want %q", said.String(), want)
	}
}
