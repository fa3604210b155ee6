package tool

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestPlainText(t *testing.T) {
	for _, tt := range []struct {
		in, want string
		dropped  int
	}{
		{"plain\ttext\nof lines\n", "plain\ttext\nof lines\n", 0},
		{"é 漢 👩\u200d🚀 ", "é 漢 👩\u200d🚀 ", 0},
		{"\xff\xfe a\xc3", "\ufffd a\ufffd", 0},
		{"\x1b[1;31mred\x1b[0m", "red", 2},
		{"\x1b[?25l\x1b[2J\x1b[Hx", "x", 3},
		{"\x1b]0;title\x07x\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "xlink", 3},
		{"\x1b]0;never ended\nnext", "\nnext", 1},
		{"\x1bP never ended", "", 1},
		{"\x1b(Bx\x1b=y\x1b", "xy", 3},
		{"\x1b\nx", "\nx", 1},
		{"\x1b\u00e9x", "\u00e9x", 1},
		{"\u009b31mx", "x", 1},
		{"\x1b[", "", 1},
		{"a\x00b\x07c\x08d\x7fe\u0085f", "abcdef", 5},
		{"a\r\nb\rc", "a\nb\nc", 0},
		{"a\u2028b\u2029c", "a\nb\nc", 0},
		{"a\u202eb\u2066c\ufeffd\U000e0041e\u200ff", "abcdef", 5},
		{"", "", 0},
	} {
		got, dropped := PlainText(tt.in)
		if got != tt.want || dropped != tt.dropped {
			t.Errorf("%q: %q, %d left out", tt.in, got, dropped)
		}
	}
}

// FuzzPlainText: what comes out is clean, cleaning it again changes nothing, and no
// fence is closed from inside.
func FuzzPlainText(f *testing.F) {
	for _, seed := range []string{"\x1b[31m", "\x1b\x1b[", "a\r\r\nb", "\xff\x1b]\xff\x07", "```\n````", "\x1b[\x1b[0m", "\x1b \xf9"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, _ := PlainText(text)
		if again, n := PlainText(got); !utf8.ValidString(got) || again != got || n != 0 || len(got) > 3*len(text) {
			t.Fatalf("%q: %q, then %q", text, got, again)
		}
		s := Stream{Head: got}
		fence := FenceFor(s, Stream{})
		var b strings.Builder
		s.Render(&b, "stdout", fence)
		if strings.Count(b.String(), fence) != 2 && got != "" {
			t.Errorf("%q: %s", text, b.String())
		}
		for n := range 8 {
			c := s.Clip(n)
			if !utf8.ValidString(c.Head+c.Tail) || len(c.Head)+len(c.Tail) > max(n, 0) || !strings.HasPrefix(got, c.Head) || !strings.HasSuffix(got, c.Tail) {
				t.Errorf("%q clipped to %d: %+v", got, n, c)
			}
		}
	})
}

func TestSeconds(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "0.0 s", 60 * time.Second: "60 s", 1234 * time.Millisecond: "1.2 s", 90 * time.Millisecond: "0.1 s"} {
		if got := Seconds(d); got != want {
			t.Errorf("%v: %s", d, got)
		}
	}
}
