package guard

import (
	"errors"
	"testing"
)

// spelling is a path, what Clean makes of it, and why it refuses it.
type spelling struct {
	name, clean string
	err         error
}

// spellings is shared by the tests of the check and the seeds of the fuzzer.
func spellings() []spelling {
	return []spelling{
		{"SKILL.md", "SKILL.md", nil},
		{"references/api.md", "references/api.md", nil},
		{"./references//api.md", "references/api.md", nil},
		{"a/./b/", "a/b", nil},
		{".", ".", nil},
		{"./", ".", nil},
		{".hidden/x", ".hidden/x", nil},
		{"a b/c d.md", "a b/c d.md", nil},
		{"a~b/~c", "a~b/~c", nil},
		{"x:y", "", ErrDrive},
		{"ab:c", "ab:c", nil},
		{"数据/表.md", "数据/表.md", nil},
		{"..data/x", "..data/x", nil},

		{"", "", ErrEmpty},
		{"..", "", ErrParent},
		{"../x", "", ErrParent},
		{"a/../../x", "", ErrParent},
		{"a/..", "", ErrParent},
		{"a/../a", "", ErrParent},
		{`..\x`, "", ErrParent},
		{`a\..\..\x`, "", ErrParent},
		{".. /x", "", ErrParent},
		{"/etc/passwd", "", ErrAbsolute},
		{"/", "", ErrAbsolute},
		{`\windows`, "", ErrAbsolute},
		{"~", "", ErrHome},
		{"~/x", "", ErrHome},
		{"~root/x", "", ErrHome},
		{"C:", "", ErrDrive},
		{`C:\x`, "", ErrDrive},
		{"c:/x", "", ErrDrive},
		{"C:x", "", ErrDrive},
		{`\\server\share`, "", ErrShare},
		{"//server/share", "", ErrShare},
		{`\\?\C:\x`, "", ErrShare},
		{`a\b`, "", ErrBackslash},
		{"a\x00b", "", ErrText},
		{"a\nb", "", ErrText},
		{"a\xff", "", ErrText},
		{"run.py.", "", ErrEnding},
		{"run.py ", "", ErrEnding},
		{"a./b", "", ErrEnding},
		{"a /b", "", ErrEnding},
		{"...", "", ErrEnding},
		{" ", "", ErrEnding},
	}
}

func TestClean(t *testing.T) {
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
