package guard

// spelling is a path, what Clean makes of it, and why it refuses it.
type spelling struct {
	name, clean string
	err         error
}

// spellings is shared by the tests of the check and the seeds of the fuzzers.
func spellings() []spelling {
	var all []spelling
	for _, group := range [][]spelling{plain(), parents(), absolutes(), windows(), texts()} {
		all = append(all, group...)
	}
	return all
}

// plain spellings name what they seem to name, on every host.
func plain() []spelling {
	return []spelling{
		{"SKILL.md", "SKILL.md", nil},
		{"references/api.md", "references/api.md", nil},
		{"./references//api.md", "references/api.md", nil},
		{"a/./b/", "a/b", nil},
		{"a//b", "a/b", nil},
		{"a/", "a", nil},
		{"a///", "a", nil},
		{".", ".", nil},
		{"./", ".", nil},
		{"././.", ".", nil},
		{"./.", ".", nil},
		{".hidden/x", ".hidden/x", nil},
		{".a", ".a", nil},
		{"a b/c d.md", "a b/c d.md", nil},
		{" a", " a", nil},
		{"a~b/~c", "a~b/~c", nil},
		{"a/~", "a/~", nil},
		{"数据/表.md", "数据/表.md", nil},
		{"é.md", "é.md", nil},
		{"e\u0301.md", "e\u0301.md", nil},
		{"😀", "😀", nil},
		{"..data/x", "..data/x", nil},
		{"a..b", "a..b", nil},
		{"a/..b/c", "a/..b/c", nil},
		{"...a", "...a", nil},
		{"-rf", "-rf", nil},
		{"--help", "--help", nil},
		{"*", "*", nil},
		{"a?b", "a?b", nil},
		{"[a]", "[a]", nil},
		{"$HOME/x", "$HOME/x", nil},
		{"${HOME}", "${HOME}", nil},
		{"%2e%2e/x", "%2e%2e/x", nil}, // nobody decodes it below this check
		{"..%2fx", "..%2fx", nil},
		{"%USERPROFILE%/x", "%USERPROFILE%/x", nil},
		{"．．/x", "．．/x", nil}, // full-width dots are letters like any other
		{"a∕b", "a∕b", nil},
		{"‥/x", "‥/x", nil},
		{"PROGRA~1/x", "PROGRA~1/x", nil},
		{"console.log", "console.log", nil},
		{"com", "com", nil},
		{"com10", "com10", nil},
		{"coma.txt", "coma.txt", nil},
		{"null", "null", nil},
		{"my.nul", "my.nul", nil},
		{"auxiliary/con-figuration", "auxiliary/con-figuration", nil},
		{"lptx", "lptx", nil},
	}
}

// parents would leave the folder through "..", or pretend to.
func parents() []spelling {
	return []spelling{
		{"..", "", ErrParent},
		{"../", "", ErrParent},
		{"../x", "", ErrParent},
		{"./..", "", ErrParent},
		{"./../x", "", ErrParent},
		{"a/../../x", "", ErrParent},
		{"a/..", "", ErrParent},
		{"a/../a", "", ErrParent},
		{"a/b/../../../x", "", ErrParent},
		{"a//..//b", "", ErrParent},
		{"../../../../../../../../etc/passwd", "", ErrParent},
		{`..\x`, "", ErrParent},
		{`a\..\..\x`, "", ErrParent},
		{`a/..\x`, "", ErrParent},
		{`..\/x`, "", ErrParent},
		{".. /x", "", ErrParent},
		{"a/..  /x", "", ErrParent},
		{".. ", "", ErrParent},
		{"../C:/x", "", ErrParent},
		{"ab:c/../x", "", ErrParent},
		{"..../x", "", ErrEnding},
		{"...", "", ErrEnding},
		{".../x", "", ErrEnding},
		{"a/...", "", ErrEnding},
		{". /x", "", ErrEnding},
		{"a/. /x", "", ErrEnding},
		{".. ./x", "", ErrEnding},
		{" ..", "", ErrEnding},
	}
}

// absolutes start somewhere else.
func absolutes() []spelling {
	return []spelling{
		{"/etc/passwd", "", ErrAbsolute},
		{"/", "", ErrAbsolute},
		{"/..", "", ErrAbsolute},
		{"/.", "", ErrAbsolute},
		{"/SKILL.md", "", ErrAbsolute},
		{"/proc/self/root", "", ErrAbsolute},
		{`\windows`, "", ErrAbsolute},
		{`\`, "", ErrAbsolute},
		{"~", "", ErrHome},
		{"~/x", "", ErrHome},
		{"~root/x", "", ErrHome},
		{"~+/x", "", ErrHome},
		{"./~", "", ErrHome},
		{".//~/x", "", ErrHome},
		{`~\x`, "", ErrHome},
		{"C:", "", ErrDrive},
		{`C:\x`, "", ErrDrive},
		{"c:/x", "", ErrDrive},
		{"C:x", "", ErrDrive},
		{"z:..", "", ErrDrive},
		{"x:y", "", ErrDrive},
		{`\\server\share`, "", ErrShare},
		{"//server/share", "", ErrShare},
		{"///etc/passwd", "", ErrShare},
		{`\\?\C:\x`, "", ErrShare},
		{`\\.\PhysicalDrive0`, "", ErrShare},
		{"//?/C:/x", "", ErrShare},
		{"//./pipe/x", "", ErrShare},
		{`\/server\share`, "", ErrAbsolute},
		{`/\server\share`, "", ErrAbsolute},
		{`\??\C:\x`, "", ErrAbsolute},
	}
}

// windows spellings mean something else there.
func windows() []spelling {
	return []spelling{
		{`a\b`, "", ErrBackslash},
		{`a\`, "", ErrBackslash},
		{`references\api.md`, "", ErrBackslash},
		{`a b\c.`, "", ErrBackslash},
		{"ab:c", "", ErrStream},
		{"SKILL.md:hidden", "", ErrStream},
		{"SKILL.md::$DATA", "", ErrStream},
		{"a/b:c/d", "", ErrStream},
		{"dir:$I30:$INDEX_ALLOCATION/x", "", ErrStream},
		{":x", "", ErrStream},
		{":", "", ErrStream},
		{"file:///etc/passwd", "", ErrStream},
		{"https://example.com/x", "", ErrStream},
		{"1:/x", "", ErrStream},
		{"run.py.", "", ErrEnding},
		{"run.py...", "", ErrEnding},
		{"run.py ", "", ErrEnding},
		{"a./b", "", ErrEnding},
		{"a /b", "", ErrEnding},
		{" ", "", ErrEnding},
		{"a/ ", "", ErrEnding},
		{"a/ /b", "", ErrEnding},
		{"CON", "", ErrReserved},
		{"con", "", ErrReserved},
		{"Con.md", "", ErrReserved},
		{"a/NUL", "", ErrReserved},
		{"nul.tar.gz", "", ErrReserved},
		{"nul .txt", "", ErrReserved},
		{"AUX/x", "", ErrReserved},
		{"prn.py", "", ErrReserved},
		{"COM1", "", ErrReserved},
		{"com0.txt", "", ErrReserved},
		{"LPT9/x", "", ErrReserved},
		{"COM¹", "", ErrReserved},
		{"lpt³.x", "", ErrReserved},
		{"CONIN$", "", ErrReserved},
		{"conout$.md", "", ErrReserved},
	}
}

// texts are not names that a person could write.
func texts() []spelling {
	return []spelling{
		{"", "", ErrEmpty},
		{"a\x00b", "", ErrText},
		{"\x00", "", ErrText},
		{"SKILL.md\x00.png", "", ErrText},
		{"../x\x00", "", ErrText},
		{"a\nb", "", ErrText},
		{"a\r", "", ErrText},
		{"a\tb", "", ErrText},
		{"a\x1b[2J", "", ErrText},
		{"a\x7f", "", ErrText},
		{"a\u0085", "", ErrText},
		{"a\xff", "", ErrText},
		{"\xc0\xae\xc0\xae/x", "", ErrText}, // ".." in an overlong encoding
		{"\xe2\x82", "", ErrText},
		{"\xed\xa0\x80", "", ErrText}, // half of a surrogate pair
	}
}
