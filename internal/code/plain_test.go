package code

import (
	"testing"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/tool/file"
	toolshell "github.com/metier-run/metier/internal/tool/shell"
)

// TestAsDeclared: a host without recovery takes arguments as they are declared and in no
// other way.
func TestAsDeclared(t *testing.T) {
	shell := toolshell.Declaration(toolshell.Facts{Files: true}).Parameters
	read := file.Declarations(config.Values{})[0].Parameters
	for _, c := range []struct {
		parameters, arguments string
		want                  bool
	}{
		{string(shell), `{"command":"ls"}`, true},
		{string(shell), `{"command":"ls","timeout_ms":1000,"run_in_background":false}`, true},
		{string(shell), `{"cmd":"ls"}`, false},
		{string(shell), `{"command":["ls","-l"]}`, false},
		{string(shell), `{"command":"ls","timeout":1}`, false},
		{string(shell), `{"command":"ls","run_in_background":"true"}`, false},
		{string(shell), `{}`, false},
		{string(shell), `ls`, false},
		{string(shell), `"{\"command\":\"ls\"}"`, false},
		{string(read), `{"path":"a.txt","offset":3}`, true},
		{string(read), `{"file_path":"a.txt"}`, false},
		{string(read), `{"path":"a.txt","offset":"3"}`, false},
	} {
		if got := asDeclared(c.arguments, []byte(c.parameters)); got != c.want {
			t.Errorf("%s: %v", c.arguments, got)
		}
	}
}

func TestEnvelope(t *testing.T) {
	for arguments, want := range map[string]bool{
		`{"patch":"*** Begin Patch\n*** Delete File: a\n*** End Patch"}`:                   true,
		`{"patch":"*** Begin Patch\n*** Delete File: a\n*** End Patch\n"}`:                 true,
		`{"patch":"*** Begin Patch\n*** Delete File: a\n"}`:                                false,
		`{"patch":"*** Begin Patch\r\n*** Delete File: a\r\n*** End Patch"}`:               false,
		"{\"patch\":\"```\\n*** Begin Patch\\n*** Delete File: a\\n*** End Patch\\n```\"}": false,
		`{"patch":"--- a/a\n+++ b/a\n"}`:                                                   false,
		`{}`:                                                                               false,
	} {
		if envelope(arguments) != want {
			t.Errorf("%s: %v", arguments, !want)
		}
	}
}

func TestFirstSentence(t *testing.T) {
	for text, want := range map[string]string{
		"Nothing was changed. There is no file a.txt. Did you mean b.txt?":                               "Nothing was changed. There is no file a.txt.",
		"Nothing was changed. Patch line 3: a.py, hunk 1 does not match the file. These lines\n 1 | one": "Nothing was changed. Patch line 3: a.py, hunk 1 does not match the file.",
		"Nothing was changed. a is a folder. \"a\" holds: b.":                                            "Nothing was changed. a is a folder.",
		"Nothing was changed. a.py is closed.":                                                           "Nothing was changed. a.py is closed.",
		"no end":                                                                                         "no end",
	} {
		if got := firstSentence(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}
