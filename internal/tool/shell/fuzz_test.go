package shell

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzParse: whatever a model sends is read or refused, and what was read is a command.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", `{"command":"ls"}`, `{"command":["bash","-lc","ls"],"args":["a"]}`, `{"input":["ls"]}`, `["a","b"]`, "ls -la", `{"command":"a","timeout":"2m","workdir":3}`,
		"{\"command\":\"```sh\\nls\\n```\"}", `{"commands":["a b","c"]}`, `{"command":"a`, `{"command":"a","timeout_ms":1e999}`, "\xff\xfe",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, sentence := parse(text)
		switch {
		case !utf8.ValidString(sentence) && utf8.ValidString(text):
			t.Errorf("%q", sentence)
		case sentence == "" && (strings.TrimSpace(a.command) == "" || strings.Contains(a.command, "\x00") || a.timeout < 0):
			t.Errorf("%q: %+v", text, a)
		}
	})
}

// FuzzLine: no line makes the look at it panic, and a patch is one only if the line has
// the command.
func FuzzLine(f *testing.F) {
	for _, seed := range []string{
		"ls", "apply_patch <<'E'\n" + envelopeText + "E", "apply_patch <<E\n", "bash -c 'apply_patch x'", "cat <<A <<B\na\nA\nb\nB\n", "(')';", "a &", "`", "eval \"$x\"", "apply_patch \"$(x)\"", "<<-\t'a b'",
		"coproc apply_patch {", "\\", "cat <<''\n\n", "apply_patch <<$x\n$x\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		shape := lookAtLine(line)
		if shape.envelope != "" && !shape.patches {
			t.Errorf("%q: %+v", line, shape)
		}
		if shape.background && !shape.jobs {
			t.Errorf("%q: %+v", line, shape)
		}
	})
}
