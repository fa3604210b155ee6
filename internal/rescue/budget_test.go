package rescue

import (
	"context"
	"iter"
	"strings"
	"testing"

	"github.com/metier-run/metier/internal/llm"
)

// costly are texts that look like calls again and again. Each once cost a reading
// of all that was held for every few bytes.
func costly() map[string]string {
	return map[string]string{
		"marks":               "<tool_call>",
		"marks of each kind":  "<tool_call>[TOOL_CALLS]<|tool_call_begin|>",
		"objects":             `{"name":"search","arguments":{"query":"`,
		"marked objects":      `<tool_call>{"name":"search","arguments":{"query":"`,
		"brackets":            `<tool_call>search(a=[`,
		"brackets and quotes": `<tool_call>search({"`,
		"elements":            "<function=search>",
		"parameters":          "<function=search><parameter=query><",
		"closing parameters":  "<function=search><parameter=query></parameter>   ",
		"keys and values":     "<tool_call>search<arg_key>a</arg_key><arg_value>b</arg_value>",
		"calls then brackets": `[TOOL_CALLS]get_time{}search[ARGS]{"a":[`,
		"reasoning ends":      `</think>{"name":"search","arguments":{"query":"`,
		"fences":              "<tool_call>```json\n",
		"prints":              "<tool_call>print(",
		"space":               "<tool_call>\n\n\n\n\n\n\n\n",
		"space behind a call": "<function=get_time></function>" + strings.Repeat(" ", 1000),
		"harmony":             `<|channel|>commentary to=search<|message|>{"a":[`,
		"quoted":              `[TOOL_CALLS]search[ARGS]"{`,
	}
}

// TestWorkIsBounded counts what is read, in place of measuring time: the work for
// a byte that comes must not depend on how long the reply is, nor on how it was
// cut.
func TestWorkIsBounded(t *testing.T) {
	const (
		perByte = 500     // eager readings of short holds, and what is linear
		once    = 6 << 20 // long holds: 32 of 32 KiB, read as they grow
	)
	for name, unit := range costly() {
		for _, before := range []string{"", "So: "} {
			for how, size := range map[string]int{"units": len(unit), "bytes": 1, "whole": 1 << 20} {
				f := newFilter(testHold)
				text := before + strings.Repeat(unit, (64<<10)/len(unit))
				most := once + perByte*len(text)
				for rest := text; rest != "" && f.work <= most; {
					n := min(size, len(rest))
					f.Push(rest[:n])
					rest = rest[n:]
				}
				f.Flush()
				if f.work > most {
					t.Errorf("%s in %s behind %q: %d bytes were read for %d, want at most %d", name, how, before, f.work, len(text), most)
				}
			}
		}
	}
}

// TestCostlyTextIsKept checks that what is costly comes out the same however it is
// cut, and that nothing of it is lost.
func TestCostlyTextIsKept(t *testing.T) {
	for name, unit := range costly() {
		for _, n := range []int{1, 300, 2000, 6000} {
			text := "So: " + strings.Repeat(unit, n/len(unit)+1) + marked1 + "!"
			want := play(newFilter(600), text)
			if len(want.Calls) == 0 && want.Show != text {
				t.Errorf("%s: text was lost", name)
			}
			for size := range 5 {
				var pieces []string
				for rest := text; rest != ""; {
					k := min(size+1, len(rest))
					pieces, rest = append(pieces, rest[:k]), rest[k:]
				}
				if got := play(newFilter(600), pieces...); !got.equal(want) {
					t.Errorf("%s, %d bytes in pieces of %d: got %d bytes and %q, want %d and %q", name, len(text), size+1, len(got.Show), got.Calls, len(want.Show), want.Calls)
				}
			}
		}
	}
}

// TestGivesUp checks after how many long holds calls are no longer read, and that
// short ones are free.
func TestGivesUp(t *testing.T) {
	short := "a <tool_call> b <function=nothing> c </think> "
	long := `<tool_call>{"name": "search", "arguments": "` + strings.Repeat("x", shortHold) + `"` + "\n!<- "
	for name, c := range map[string]struct {
		before string
		calls  int
	}{
		"short ones":  {strings.Repeat(short, 4*longHolds), 1},
		"one to go":   {strings.Repeat(long, longHolds-1), 1},
		"no more":     {strings.Repeat(long, longHolds), 0},
		"and no JSON": {strings.Repeat(long, longHolds) + "</think>", 0},
	} {
		text := c.before + marked1 + "."
		for how, pieces := range map[string][]string{"whole": {text}, "byte by byte": bytesOf(text)} {
			got := play(newFilter(testHold), pieces...)
			if len(got.Calls) != c.calls {
				t.Errorf("%s, %s: got %d calls, want %d", name, how, len(got.Calls), c.calls)
			}
			if want := text; c.calls == 0 && got.Show != want {
				t.Errorf("%s, %s: text was lost", name, how)
			}
		}
	}
}

// TestLongCalls checks that a call as long as may be held is read from pieces of
// any size, and at once where its pieces are those of a model.
func TestLongCalls(t *testing.T) {
	body := strings.Repeat(`a<b (c) [d] {e} 'f' `, 1500)
	for name, text := range map[string]string{
		"json":    `<tool_call>{"name": "write_file", "arguments": {"content": "` + body + `"}}</tool_call>`,
		"bare":    `{"name": "write_file", "arguments": {"content": "` + body + `"}}`,
		"element": "<function=write_file>\n<parameter=content>\n" + body + "\n</parameter>\n</function>",
		"python":  `<tool_call>write_file(content="` + body + `")</tool_call>`,
		"glm":     `<tool_call>write_file<arg_key>content</arg_key><arg_value>` + body + `</arg_value></tool_call>`,
		"mistral": `[TOOL_CALLS]write_file[ARGS]{"content": "` + body + `"}`,
		"harmony": `<|channel|>commentary to=functions.write_file<|message|>{"content": "` + body + `"}<|call|>`,
	} {
		for _, size := range []int{1, 4, len(text)} {
			f := newFilter(testHold)
			var o outcome
			for rest := text; rest != ""; {
				n := min(size, len(rest))
				o.add(f.Push(rest[:n]))
				rest = rest[n:]
			}
			early := len(o.Calls)
			o.add(f.Flush())
			if len(o.Calls) != 1 || !strings.Contains(o.Calls[0], "'f' ") {
				t.Errorf("%s in pieces of %d: got %d calls", name, size, len(o.Calls))
			}
			if name == "json" && size > 1 && early != 1 {
				t.Errorf("%s in pieces of %d: the call came only at the end", name, size)
			}
		}
	}
}

// TestDropCatchesUp checks that a call that was whole when the reply was cut off is
// given out although its last piece was not tried.
func TestDropCatchesUp(t *testing.T) {
	f := newFilter(testHold)
	f.work = 1 << 40 // nothing is tried at once
	var o outcome
	long := strings.Repeat("x", 2*shortHold)
	text := `<tool_call>{"name": "search", "arguments": {"query": "` + long + `"}}</tool_call>!`
	o.add(f.Push(text[:len(text)-16]))
	o.add(f.Push(text[len(text)-16:]))
	if !f.deferred {
		t.Fatal("the last piece was tried")
	}
	o.add(f.Drop())
	if len(o.Calls) != 1 || o.Show != "!" {
		t.Errorf("got %+v, want the call", o)
	}
}

// fragments is a provider whose one call comes in n pieces.
type fragments struct {
	llm.Provider
	n int
}

func (p fragments) Stream(context.Context, *llm.Request) iter.Seq2[llm.Piece, error] {
	return func(yield func(llm.Piece, error) bool) {
		deltas := []llm.CallDelta{{Arguments: "abcd"}}
		for range p.n {
			if !yield(llm.Piece{Calls: deltas}, nil) {
				return
			}
		}
		yield(llm.Piece{Finish: llm.FinishCalls}, nil)
	}
}

// TestFragmentsAreAppended checks that a fragment of a call is not joined to all
// those before it.
func TestFragmentsAreAppended(t *testing.T) {
	run := func(n int) float64 {
		w := Wrap(fragments{n: n}, Options{MaxHeld: testHold, NewID: ids()})
		r := asking()
		return testing.AllocsPerRun(5, func() {
			for range w.Stream(t.Context(), r) {
			}
		})
	}
	if few, many := run(10), run(5000); many > few+500 {
		t.Errorf("got %v allocations for 5000 fragments and %v for 10", many, few)
	}
}

// TestRepairIsLinear checks that brackets at the end are not looked through for
// each element before them: the text is one that took minutes.
func TestRepairIsLinear(t *testing.T) {
	text := "[" + strings.Repeat("1,", 1<<20) + strings.Repeat("}", 1<<20)
	if _, ok := repairValue(text); !ok {
		t.Error("brackets too many were not left out")
	}
}
