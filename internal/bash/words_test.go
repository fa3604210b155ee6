package bash

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// commandOf is the one simple command of a text; nil if it is anything else.
func commandOf(text string) *syntax.CallExpr {
	file, err := Parse(text)
	if err != nil || len(file.Stmts) != 1 || len(file.Stmts[0].Redirs) > 0 {
		return nil
	}
	c, _ := file.Stmts[0].Cmd.(*syntax.CallExpr)
	return c
}

// TestRead: each shape of a word that a shell has.
func TestRead(t *testing.T) {
	for word, want := range map[string]Literal{
		`a`:               {Head: "a"},
		`''`:              {},
		`'a b'"c d"\ e`:   {Head: "a bc d e"},
		`"a\$b\"c\\d\e"`:  {Head: `a$b"c\d\e`},
		"\"a\\`b\\\nc\"":  {Head: "a`bc"},
		`a\b\\c\'`:        {Head: `ab\c'`},
		"a\\\nb":          {Head: "ab"},
		`$'a b'`:          {Head: "a b"},
		`x$'a\nb'y`:       {Head: "x", Tail: "y", Expands: true},
		`$"a b"`:          {Head: "a b"},
		`~/a*[b]?`:        {Head: "~/a*[b]?"},
		`{a,b}`:           {Expands: true},
		`'{a,b}'\{a`:      {Head: "{a,b}{a"},
		`{a}`:             {Head: "{a}"},
		`{a,"b"}`:         {Expands: true},
		`{"a",b$c}`:       {Expands: true},
		`\{a,b}`:          {Head: "{a,b}"},
		`{a\,b}`:          {Head: "{a,b}"},
		`"{"a,b}`:         {Head: "{a,b}"},
		`a,{b}.{c.}.`:     {Head: "a,{b}.{c.}."},
		`a{1..3}b`:        {Expands: true},
		`a$b/c"d"$e/'f'g`: {Head: "a", Tail: "/fg", Expands: true},
		`"a$(b)c"d`:       {Head: "a", Tail: "cd", Expands: true},
		"a`b`":            {Head: "a", Expands: true},
		`$((1+2))`:        {Expands: true},
		`<(a)b`:           {Tail: "b", Expands: true},
		`@(a|b)c`:         {Tail: "c", Expands: true},
		"é\\é":            {Head: "éé"},
	} {
		c := commandOf("echo " + word)
		if c == nil {
			t.Errorf("%q is no word", word)
			continue
		}
		if got := Read(c.Args[1]); got != want {
			t.Errorf("%q is %+v, want %+v", word, got, want)
		}
		text, plain := Word(c.Args[1])
		if plain == want.Expands || plain && text != want.Head || !plain && text != "" {
			t.Errorf("%q is %q, %v", word, text, plain)
		}
	}
	if got := Words(commandOf(`a "b c" $d e`)); !slices.Equal(got, []string{"a", "b c", "", "e"}) {
		t.Errorf("%q", got)
	}
	if text, plain := Word(nil); text != "" || plain {
		t.Errorf("no word is %q, %v", text, plain)
	}
	if got := Read(nil); got != (Literal{}) {
		t.Errorf("no word is %+v", got)
	}
}

// texts are such as a shell has a meaning for.
func texts() []string {
	return []string{"", "a", "a b", "it's", "''", `\`, `"$(x)" $y`, "a\nb\t", "~", "*", "-rf", "a=b", "{a,b}", "#", "!", "é", "\xff", "%", "@scope/name@1.2", "a:b,c+d_e"}
}

// TestQuote: what is quoted is the text again, for bash itself. What is plain is left as
// it is.
func TestQuote(t *testing.T) {
	line, want := "printf '%s\\0'", ""
	for _, text := range texts() {
		line += " " + Quote(text) + " " + Argument(text)
		want += text + "\x00" + text + "\x00"
	}
	if bash, err := exec.LookPath("bash"); err == nil {
		got, err := exec.CommandContext(t.Context(), bash, "-c", line).Output()
		if err != nil || string(got) != want {
			t.Errorf("%v: %q", err, got)
		}
	}
	for text, want := range map[string]string{"a/b-c_d.e": "a/b-c_d.e", "@a/b@1": "@a/b@1", "": "''", "a b": "'a b'", "it's": `'it'\''s'`, "$x": "'$x'", "é": "'é'", "a=b": "'a=b'"} {
		if got := Argument(text); got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
	if got := Quote("a"); got != "'a'" {
		t.Error(got)
	}
}

// FuzzWord: a word that is plain is what a shell makes of it, by another reader of words;
// and what is quoted is the text again.
func FuzzWord(f *testing.F) {
	for _, seed := range append(texts(), `"a\$b\"c\\d\e"`, `$'a\n'`, `{1..3}`, `a\ b"c"'d'`, "a\\\nb", `@(a|b)`, "$x/y") {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		// The parser takes no other text, and drops the end of a line of Windows.
		if len(text) > 1<<12 || strings.ContainsAny(text, "\x00\r") || !utf8.ValidString(text) {
			return
		}
		for _, made := range []string{Quote(text), Argument(text)} {
			c := commandOf("echo " + made)
			if c == nil || len(c.Args) != 2 {
				t.Fatalf("%q became %q", text, made)
			}
			if got, plain := Word(c.Args[1]); !plain || got != text {
				t.Fatalf("%q became %q and then %q", text, made, got)
			}
		}
		c := commandOf(text)
		if c == nil {
			return
		}
		for _, w := range c.Args {
			got, plain := Word(w)
			if !plain || strings.HasPrefix(got, "~") {
				continue // a home is the shell's to know
			}
			want, err := expand.Fields(&expand.Config{Env: expand.ListEnviron()}, w)
			if err != nil || !slices.Equal(want, []string{got}) {
				t.Errorf("%q is %q and not %q, %v", text, got, want, err)
			}
		}
	})
}
