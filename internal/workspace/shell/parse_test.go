package shell

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/metier-run/metier/internal/bash"
)

func TestParseExports(t *testing.T) {
	type pair struct{ Name, Value string }
	for _, c := range []struct {
		text string
		want []pair
	}{
		{"declare -x A=\"it's \\\"q\\\" \\$x \\`y\\` \\\\ !\"\n", []pair{{"A", "it's \"q\" $x `y` \\ !"}}},
		{"declare -x B=$'l1\\nl2\\ttab\\001\\177'\ndeclare -x C=\"\"\n", []pair{{"B", "l1\nl2\ttab\x01\x7f"}, {"C", ""}}},
		{"declare -x F=$'\\377\\376 \\303\\251'\n", []pair{{"F", "\xff\xfe é"}}},
		{"declare -x H\ndeclare -rx R=\"2\"\ndeclare -ix N=\"5\"\n", []pair{{"R", "2"}, {"N", "5"}}},
		{"declare -x M=\"one\ntwo\"\r\n", []pair{{"M", "one\ntwo"}}},
		{"export A='it'\"'\"'s'\nexport Q=''\"''\"'a'\"'''\"\n", []pair{{"A", "it's"}, {"Q", "''a'''"}}},
		{"export B='l1\nexport C=2\n'\nexport H\n", []pair{{"B", "l1\nexport C=2\n"}}},
		{"export A=$'it\\'s \\\\ \\x01\\x7f\\e\\E'\nexport D=plain\nexport _\n", []pair{{"A", "it's \\ \x01\x7f\x1b\x1b"}, {"D", "plain"}}},
		{"export A='it'\\''s'\nexport B=$'\\C-A\\C-?\\M-\\C-?\\M-~\\M-C\\M-)'\nexport -i10 N=1\nexport -T PATH path=( /usr/bin )\n", []pair{{"A", "it's"}, {"B", "\x01\x7f\xff\xfe\xc3\xa9"}, {"N", "1"}}},
		{"export A=$'\\u00e9\\U0001F680\\cA'\n", []pair{{"A", "é🚀\x01"}}},
		{"declare -nx R=\"A\"\n\n\n", nil},
		{"typeset -x A='1'", []pair{{"A", "1"}}},
		{"export -r A=1\nexport E=a\\ b~/x:=y%\n", []pair{{"A", "1"}, {"E", "a b~/x:=y%"}}},
	} {
		vars, rest, err := parseExports(c.text+"# end", Bash)
		if strings.HasSuffix(c.text, "'") {
			vars, rest, err = parseExports(c.text, Bash)
			rest += "# end"
		}
		var got []pair
		for _, v := range vars {
			got = append(got, pair{v.name, v.value})
		}
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil || rest != "# end" {
			t.Errorf("%q: %v %q %s", c.text, err, rest, diff)
		}
	}
}

// TestParseRefuses: what no shell writes is read as nothing.
func TestParseRefuses(t *testing.T) {
	for _, text := range []string{
		"exit 3\n", "A=1\n", "export A=1; rm x\n", "export A=$(id)\n", "export A=`id`\n", "export A=\"$(id)\"\n", "export A=\"`id`\"\n", "export A=\"$B\"\n",
		"export A=$B\n", "export A='x\n", "export A=\"x\n", "export A=$'x\n", "export A=$'\\q'\n", "export A=$'\\x'\n", "export A=$'\\0'\n", "export A=$'\\U00110000'\n",
		"export 1A=1\n", "export A-B=1\n", "export =1\n", "export A =1\n", "export A=1 B=2\n", "export A&\n", "export\n", "export -x", "exportA=1\n", "export A=1\x00\n",
		"readonly A=1\n", "export A=(1)\n", "declare -ax A=([x]=\"1\")\n", "declare -ax A=([-1]=\"1\")\n", "declare -ax A=([$(id)]=\"1\")\n", "declare -ax A=([0]=\"1\"\n", "declare -ax A=([0]=\"1\"); id\n",
		"declare -ax A='([0]=\"1\") x'\n", "declare -Ax A=([]=\"1\")\n", "declare -ax A=\"1\"\n", "export A=a|b\n", "export A=a>b\n", "cd() { :; }\n", "export A=\\",
	} {
		if vars, rest, err := parseExports(text, Bash); err == nil {
			t.Errorf("%q: %+v %q", text, vars, rest)
		}
	}
	if _, _, err := parseExports("declare -ax A=([0]=\"1\")\n", Sh); err == nil {
		t.Error("an array gets into the script of a shell that has none")
	}
}

// TestQuoteParses: what this host writes is what it reads.
func TestQuoteParses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := strings.ReplaceAll(rapid.String().Draw(t, "value"), "\x00", "")
		vars, _, err := parseExports("export A="+bash.Quote(value)+"\n", Sh)
		if err != nil || len(vars) != 1 || vars[0].value != value {
			t.Fatalf("%v %+v", err, vars)
		}
	})
}

// FuzzParseExports: whatever is read, what is written of it is read again as the same,
// and holds nothing that a shell would expand.
func FuzzParseExports(f *testing.F) {
	for _, seed := range []string{
		"declare -x A=\"b\\$\"\n# x", "export A='b'\"'\"'c'\n", "declare -ax A=([0]=\"x\" [1]=$'\\n')\n", "declare -Ax A=([\"a b\"]=\"x\" )\n",
		"export B=$'\\C-A\\M-\\C-?\\u00e9\\377'\n", "export -T PATH path=( x )\n", "declare -ax L='([0]=\"a\")'\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		vars, _, err := parseExports(text, Bash)
		if err != nil {
			return
		}
		for _, v := range vars {
			line := v.posix()
			if v.array != nil {
				// The form that bash writes, from the one that it is told.
				kind := "-ax "
				if v.array.named {
					kind = "-Ax "
					line = strings.TrimPrefix(line, "declare -gA "+v.name+"; ")
				}
				line = "declare " + kind + strings.TrimSuffix(line, "; export "+v.name+"\n") + "\n"
			}
			again, rest, err := parseExports(line, Bash)
			if err != nil || rest != "" || len(again) != 1 {
				t.Fatalf("%q of %q: %v", line, text, err)
			}
			if diff := cmp.Diff(v, again[0], cmp.AllowUnexported(variable{}, array{}, item{})); diff != "" {
				t.Fatalf("%q of %q: %s", line, text, diff)
			}
		}
	})
}

// TestExitTrap: only a trap of the shell's own end asks for another end.
func TestExitTrap(t *testing.T) {
	for line, want := range map[string]bool{
		"trap 'rm x' EXIT; make":      true,
		"set -e\ntrap cleanup 0":      true,
		"if a; then trap - exit; fi":  true,
		`\trap x INT EXIT`:            true,
		`'trap' x "exit"`:             true,
		"trap 'rm x' INT TERM":        false,
		"echo trap EXIT":              false,
		"# trap x EXIT":               false,
		"trap 'x' EXIT; cat <<E\nabc": false, // what follows would be part of the text
		"trap 'x' EXIT; if":           false,
		"make":                        false,
	} {
		for _, d := range []Dialect{Bash, Sh, Zsh, Ksh} {
			if got := setsExitTrap(line, d); got != want {
				t.Errorf("%s, %q: %t", d, line, got)
			}
		}
	}
}
