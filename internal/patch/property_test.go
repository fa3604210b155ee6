package patch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/metier-run/metier/internal/guard"
)

// model is the naive file set of the property tests: what each file's lines are,
// and how it spells them.
type model map[string]modelFile

type modelFile struct {
	lines []string
	style style
}

// style is how a file spells its lines.
type style struct {
	end  string
	open bool // no line break at the end
	enc  Encoding
}

// bytes spells a file, apart from the code under test.
func (f modelFile) bytes() string {
	text := ""
	for i, l := range f.lines {
		text += l
		if i < len(f.lines)-1 || !f.style.open {
			text += f.style.end
		}
	}
	if f.style.enc == Plain {
		return text
	}
	if f.style.enc == Marked {
		return "\xef\xbb\xbf" + text
	}
	var b strings.Builder
	for _, u := range utf16.Encode([]rune("\ufeff" + text)) {
		hi, lo := byte(u>>8), byte(u)
		if f.style.enc == Little {
			hi, lo = lo, hi
		}
		b.WriteByte(hi)
		b.WriteByte(lo)
	}
	return b.String()
}

func (m model) texts() map[string]string {
	texts := map[string]string{}
	for name, f := range m {
		texts[name] = f.bytes()
	}
	return texts
}

// drawer draws files and edits. Every line that it makes is another, so that a
// right patch has one meaning.
type drawer struct {
	*rapid.T
	made int
}

func (d *drawer) line() string {
	d.made++
	return rapid.SampledFrom([]string{"", "  ", "\t", "    "}).Draw(d.T, "indent") +
		rapid.SampledFrom([]string{"if x", "- item", "+ more", "@@ at", "*** star", "\u00e9t\u00e9", "\\ x", "1 | y", "\""}).Draw(d.T, "text") +
		fmt.Sprintf(" #%d", d.made)
}

func (d *drawer) lines(least int) []string {
	lines := []string{}
	for range rapid.IntRange(least, 12).Draw(d.T, "lines") {
		lines = append(lines, d.line())
	}
	return lines
}

func (d *drawer) file() modelFile {
	f := modelFile{lines: d.lines(1)}
	f.style.end = rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(d.T, "end")
	f.style.open = rapid.Bool().Draw(d.T, "open")
	if len(f.lines) == 1 && f.style.open {
		f.style.end = "\n" // nothing shows another
	}
	f.style.enc = rapid.SampledFrom([]Encoding{Plain, Plain, Marked, Little, Big}).Draw(d.T, "encoding")
	return f
}

// spots are the paths that patches name; some stand in each other's folders.
func spots() []string { return []string{"a", "b.py", "d/c", "d/e/f", "g"} }

func (d *drawer) files() model {
	m := model{}
	for _, name := range spots() {
		if rapid.Bool().Draw(d.T, "exists") {
			m[name] = d.file()
		}
	}
	return m
}

// step is one line of an edit: kept, removed or added.
type modelStep struct {
	op   byte
	text string
}

// edit draws a change of lines.
func (d *drawer) edit(lines []string) []modelStep {
	var steps []modelStep
	for _, l := range lines {
		switch rapid.IntRange(0, 5).Draw(d.T, "step") {
		case 0:
			steps = append(steps, modelStep{'+', d.line()}, modelStep{' ', l})
		case 1:
			steps = append(steps, modelStep{'-', l})
		case 2:
			steps = append(steps, modelStep{'-', l}, modelStep{'+', d.line()})
		default:
			steps = append(steps, modelStep{' ', l})
		}
	}
	return steps
}

// after are the lines that an edit leaves.
func after(steps []modelStep) []string {
	lines := []string{}
	for _, s := range steps {
		if s.op != '-' {
			lines = append(lines, s.text)
		}
	}
	return lines
}

// hunks spell an edit as hunks with up to some lines kept around.
func hunks(steps []modelStep, around int) []string {
	shown := make([]bool, len(steps))
	for i, s := range steps {
		if s.op == ' ' {
			continue
		}
		for j := max(0, i-around); j <= min(len(steps)-1, i+around); j++ {
			shown[j] = true
		}
	}
	var out []string
	for i, s := range steps {
		if !shown[i] {
			continue
		}
		if i == 0 || !shown[i-1] {
			out = append(out, "@@")
		}
		out = append(out, string(s.op)+s.text)
	}
	return out
}

// section draws one right section for the file set and does to the model what it
// says; nil if it drew one that says nothing.
func (d *drawer) section(m model) []string {
	name := rapid.SampledFrom(spots()).Draw(d.T, "name")
	f, exists := m[name]
	if !exists {
		lines := d.lines(0)
		m[name] = modelFile{lines: lines, style: style{end: "\n"}}
		out := []string{"*** Add File: " + name}
		for _, l := range lines {
			out = append(out, "+"+l)
		}
		return out
	}
	if rapid.IntRange(0, 4).Draw(d.T, "kind") == 0 {
		delete(m, name)
		return []string{"*** Delete File: " + name}
	}
	out := []string{"*** Update File: " + name}
	to := name
	if rapid.Bool().Draw(d.T, "move") {
		to = rapid.SampledFrom(spots()).Draw(d.T, "to")
		if _, taken := m[to]; taken {
			to = name
		}
		out = append(out, "*** Move to: "+to)
	}
	steps := d.edit(f.lines)
	changed := hunks(steps, rapid.IntRange(1, 3).Draw(d.T, "around"))
	if len(changed) == 0 && len(out) == 1 || len(f.lines) == 0 {
		return nil
	}
	delete(m, name)
	f.lines = after(steps)
	switch {
	case len(f.lines) == 0:
		f.style.open = false // there is no last line to be open any more
	case len(f.lines) == 1 && f.style.open:
		f.style.end = "\n"
	}
	m[to] = f
	return append(out, changed...)
}

// change draws a file set, a right patch for it, and what must come of it.
func (d *drawer) change() (before, after model, patch string) {
	before = d.files()
	after = maps.Clone(before)
	var sections []string
	for range rapid.IntRange(1, 6).Draw(d.T, "sections") {
		sections = append(sections, d.section(after)...)
	}
	if len(sections) == 0 {
		sections = d.section(after)
	}
	return before, after, env(sections...)
}

// TestRightPatches: a right patch does to any file set what the naive model says,
// names and styles included, however its sections compose.
func TestRightPatches(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		before, want, patch := (&drawer{T: rt}).change()
		if !strings.Contains(patch, " File: ") {
			return
		}
		got, c, err := run(before.texts(), patch)
		if err != nil {
			rt.Fatalf("%v\n%s", err, patch)
		}
		if diff := cmp.Diff(want.texts(), got); diff != "" {
			rt.Fatalf("%s\n%s\n%s", diff, patch, c.Summary())
		}
	})
}

// TestFaultsAnywhere: whichever write fails, before or after it took effect, the
// files are as they were; if the way back fails as well, what differs is named.
func TestFaultsAnywhere(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		before, _, patch := (&drawer{T: rt}).change()
		p, err := Parse(patch, guard.Clean, Limits{})
		if err != nil {
			return
		}
		d := newDisk(before.texts())
		c, err := p.Resolve(context.Background(), d, Limits{})
		if err != nil {
			rt.Fatalf("%v\n%s", err, patch)
		}
		if len(c.steps) == 0 {
			return
		}
		d.failAt = rapid.IntRange(1, len(c.steps)).Draw(rt, "fails at")
		d.half = rapid.Bool().Draw(rt, "half")
		d.stuck = rapid.Bool().Draw(rt, "stuck")
		err = c.Apply(context.Background(), d)
		e, ok := errors.AsType[*UndoneError](err)
		if !ok {
			rt.Fatalf("%v", err)
		}
		for _, name := range spots() {
			was, had := before.texts()[name]
			is, has := d.texts()[name]
			if (had != has || was != is) && !slices.Contains(e.Lost, name) {
				rt.Fatalf("%s was %q and is %q, and is not named: %v", name, was, is, e)
			}
		}
		if !d.stuck && len(e.Lost) > 0 {
			rt.Fatalf("%v", e)
		}
	})
}

// TestMixedEnds: in a file with mixed line ends every line that is not changed
// keeps its own.
func TestMixedEnds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := &drawer{T: rt}
		lines := d.lines(1)
		ends := map[string]string{}
		text := ""
		for _, l := range lines {
			ends[l] = rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(rt, "end")
			text += l + ends[l]
		}
		steps := d.edit(lines)
		changed := hunks(steps, 2)
		if len(changed) == 0 {
			return
		}
		got, _, err := run(map[string]string{"f": text}, env("*** Update File: f\n"+strings.Join(changed, "\n")))
		if err != nil {
			rt.Fatal(err)
		}
		var is []string
		for _, l := range splitLines(got["f"]) {
			is = append(is, l.s)
			if end, ok := ends[l.s]; ok && end != l.end {
				rt.Fatalf("%q ended in %q and ends in %q", l.s, end, l.end)
			}
		}
		if want := after(steps); !slices.Equal(want, is) {
			rt.Fatalf("%q is not %q", is, want)
		}
	})
}

// TestFindAgainstNaive: the search finds what comparing at every place finds.
func TestFindAgainstNaive(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		word := rapid.SampledFrom([]string{"a", " a", "a ", "b"})
		text := rapid.SliceOfN(word, 0, 30).Draw(rt, "text")
		want := rapid.SliceOfN(word, 1, 4).Draw(rt, "want")
		from := rapid.IntRange(0, 31).Draw(rt, "from")
		lines := make([]fileLine, len(text))
		for i, s := range text {
			lines[i].s = s
		}
		for r := range rungs {
			var naive []int
			for at := from; at+len(want) <= len(text); at++ {
				if slices.EqualFunc(text[at:at+len(want)], want, func(a, b string) bool { return r.form(a) == r.form(b) }) {
					naive = append(naive, at)
				}
			}
			if got := newIndex(lines).find(r, want, from, 100); !slices.Equal(got, naive) {
				rt.Fatalf("rung %d: %v, want %v", r, got, naive)
			}
		}
	})
}
