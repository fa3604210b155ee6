package bash

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"mvdan.cc/sh/v3/syntax"
	"pgregory.net/rapid"
)

// size is that of the longest command line by default.
const size = 256 << 10

// filled is a text of the size, made of one piece again and again.
func filled(piece string) string { return strings.Repeat(piece, size/len(piece)) }

// TestDeep: whatever nests, the parser stops before it takes much memory. Closing
// brackets in quotes, and words that a line end is in the middle of, hide nothing.
func TestDeep(t *testing.T) {
	for _, piece := range []string{
		"(", "{ ", "$(", "${a:-", "$((", "((", "\"$(", "(')';", "(\\);", "if ", "if a;then ", "i\\\nf ", "while ", "case a in a)", "for a in b;do ",
		"a()", "a() ", "time ", "coproc ", "$((-", "$((!", "$((a=", "$((a?b:", "${a[", "<(", "\"${a:-\"", "if a;then a;elif ", "{ a\n", "<<A $(", "$[", "until ",
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Parse(filled(piece))
		runtime.ReadMemStats(&after)
		if took := (after.TotalAlloc - before.TotalAlloc) >> 20; !errors.Is(err, ErrDeep) || took > 16 {
			t.Errorf("%q: %d MiB, %.80v", piece, took, err)
		}
	}
}

// TestWide: what is long and flat is read, and so is what a person would nest.
func TestWide(t *testing.T) {
	for _, text := range []string{
		filled("a;"), filled("a &"), filled("a\n"), filled("echo $(a) `b`\n"), strings.Repeat("a && ", 40000) + "b", strings.Repeat("a | ", 40000) + "b",
		strings.Repeat("(", 100) + "a" + strings.Repeat(")", 100), "cat <<'E'\n" + filled("({[ if\n") + "E\n",
	} {
		if _, err := Parse(text); err != nil {
			t.Errorf("%.20q: %.80v", text, err)
		}
	}
}

// TestSame: the text comes in pieces, and is read as in one.
func TestSame(t *testing.T) {
	piece := rapid.SampledFrom([]string{"a", "\n", " ", ";", "|", "&&", "'x'", `"y $z"`, "$(b)", "<<E\nq\nE\n", "<<-'F'\n\tr\n\tF\n", "\\\n", "(", ")", "é", "#", ">", "f()", "if", "then", "fi", "${v}", "`c`", "$((1+2))", "\\"})
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(piece, 0, 40).Draw(t, "text"), "") + strings.Repeat("w ", rapid.IntRange(0, 600).Draw(t, "more"))
		text += strings.Join(rapid.SliceOfN(piece, 0, 40).Draw(t, "rest"), "")
		want, wantErr := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
		got, err := Parse(text)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%q: %v and not %v", text, err, wantErr)
		}
		if bad, ok := errors.AsType[syntax.ParseError](err); ok && bad.Error() != wantErr.Error() {
			t.Fatalf("%q: %v and not %v", text, bad, wantErr)
		}
		if err == nil && places(got) != places(want) {
			t.Fatal(cmp.Diff(places(want), places(got)))
		}
	})
}

// places are all nodes of a text with where they stand.
func places(f *syntax.File) string {
	var b strings.Builder
	if err := syntax.DebugPrint(&b, f); err != nil {
		return err.Error()
	}
	return b.String()
}

// TestRefused: a NUL byte, and what the parser does not understand.
func TestRefused(t *testing.T) {
	if _, err := Parse("a\x00b"); !errors.Is(err, ErrNUL) {
		t.Error(err)
	}
	_, err := Parse("a\n(")
	if bad, ok := errors.AsType[syntax.ParseError](err); !ok || bad.Pos.Line() != 2 {
		t.Error(err)
	}
	if _, err := ParseIn(syntax.LangPOSIX, "a=(b)"); err == nil {
		t.Error("an array in POSIX")
	}
}

// FuzzParse: no text makes it panic.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"", "a", "apply_patch <<'E'\nx\nE", filled("(')';")[:4096], "$((1", "case a in a)", "\\", "${a[b]:-`c`}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > size {
			return
		}
		if file, err := Parse(text); (file == nil) == (err == nil) {
			t.Errorf("%q: %v, %v", text, file, err)
		}
	})
}
