package rescue

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// TestProsePasses checks that ordinary text is shown as it comes: only the
// beginning of a mark may wait.
func TestProsePasses(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	words := []string{"the ", "weather ", "a<b ", "[1] ", "{x} ", "`code` ", "\n", "\n\n", "…", "<b>", "</b> ", "世界 ", "12%", "<", "[", "\t", "```\nx\n```\n", "tool ", "<to ", "< tool"}
	for range 500 {
		f := newFilter(testHold)
		in, out := "Well: ", ""
		show, _ := f.Push(in)
		out += show
		for range 60 {
			w := words[r.IntN(len(words))]
			for len(w) > 0 {
				n := 1 + r.IntN(len(w))
				show, calls := f.Push(w[:n])
				if len(calls) > 0 {
					t.Fatalf("%q became calls", in)
				}
				in, out, w = in+w[:n], out+show, w[n:]
				held := in[len(out):]
				if held != "" && !beginsMark(held) {
					t.Fatalf("after %q, %q is held, which begins no mark", in, held)
				}
			}
		}
		show, _ = f.Flush()
		if out += show; out != in {
			t.Fatalf("got %q, want %q", out, in)
		}
	}
}

// beginsMark reports whether s is a proper beginning of an opening mark.
func beginsMark(s string) bool {
	for _, m := range newMarkers().open {
		if len(s) < len(m) && strings.HasPrefix(m, s) {
			return true
		}
	}
	return false
}

// TestReleases checks that text is shown as soon as it can be no call any more.
func TestReleases(t *testing.T) {
	for name, c := range map[string]struct{ pieces, shown string }{
		"undeclared name":          {`<tool_call>{"name": "launch_rocket"`, `<tool_call>{"name": "launch_rocket"`},
		"undeclared bare":          {`{"name": "launch_rocket"`, `{"name": "launch_rocket"`},
		"foreign member":           {`{"city"`, `{"city"`},
		"foreign member later":     {`{"name": "search", "age"`, `{"name": "search", "age"`},
		"word behind a mark":       {"<tool_call> and", "<tool_call> and"},
		"word at the start":        {"get_weather is", "get_weather is"},
		"first letter":             {"T", "T"},
		"code fence":               {"```go", "```go"},
		"list of words":            {`["name"`, `["name"`},
		"list of lists":            {`[[1`, `[[1`},
		"JSON that goes on":        {"{\"name\": \"get_time\", \"arguments\": {}}\nT", "{\"name\": \"get_time\", \"arguments\": {}}\nT"},
		"declared name is held":    {`{"name": "get_time"`, ``},
		"declared element is held": {`Go. <function=get_time>`, `Go. `},
		"undeclared element":       {`Go. <function=launch>`, `Go. <function=launch>`},
		"final channel":            {`<|channel|>f`, `<|channel|>f`},
		"long white space":         {strings.Repeat("\n", longestSpace+1), strings.Repeat("\n", longestSpace+1)},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFilter(testHold)
			shown := ""
			for _, p := range bytesOf(c.pieces) {
				show, _ := f.Push(p)
				shown += show
			}
			if shown != c.shown {
				t.Errorf("got %q, want %q", shown, c.shown)
			}
		})
	}
}

// TestCallsAtOnce checks that a call does not wait for the reply's end.
func TestCallsAtOnce(t *testing.T) {
	for name, text := range map[string]string{
		"hermes":  `<tool_call>{"name": "get_time", "arguments": {}}</tool_call>`,
		"element": "<function=get_time>\n</function>",
		"mistral": `[TOOL_CALLS]get_time[ARGS]{}`,
	} {
		t.Run(name, func(t *testing.T) {
			if _, calls := newFilter(testHold).Push(text); len(calls) != 1 || !calls[0].Rescued || calls[0].ID != "call_1" {
				t.Errorf("got %+v, want a rescued call call_1", calls)
			}
		})
	}
}

func TestMaxHeld(t *testing.T) {
	long := strings.Repeat("x", 300)
	for name, text := range map[string]string{
		"between marks": `Hm. <tool_call>{"name": "write_file", "arguments": {"content": "` + long + `"}}</tool_call> End.`,
		"bare":          `{"name": "write_file", "arguments": {"content": "` + long + `"}}`,
		"element":       "<function=write_file>\n<parameter=content>\n" + long + "\n</parameter>\n</function>",
		"mark only":     "[TOOL_CALLS]" + strings.Repeat(" ", 300) + "get_time{}",
	} {
		t.Run(name, func(t *testing.T) {
			everyWay(t, text, 200, outcome{Show: text})
			f := newFilter(200)
			in, out := 0, 0
			for _, p := range bytesOf(text) {
				show, _ := f.Push(p)
				in, out = in+len(p), out+len(show)
				if in-out > 200 {
					t.Fatalf("%d bytes are held, want at most 200", in-out)
				}
			}
		})
	}
}

// TestShortHold plays every shape with little room: what comes out must not
// depend on how it was cut then either.
func TestShortHold(t *testing.T) {
	for _, s := range append(hermesShapes(), elementShapes()...) {
		for _, held := range []int{0, 1, 11, 40, 90} {
			everyWay(t, s.text, held, play(newFilter(held), s.text))
		}
	}
}

// TestUnreported plays shapes that the models' own formats have, of which no
// report was found.
func TestUnreported(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"mistral call id":       {`[TOOL_CALLS]get_weather[CALL_ID]a1B2c3D4e[ARGS]{"city":"Oslo"}`, oslo},
		"harmony analysis":      {`<|channel|>analysis to=functions.get_time code<|message|>{}<|call|>`, clock},
		"deepseek mark lost":    {"<｜tool▁calls▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{\"city\":\"Oslo\"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>", oslo},
		"LM Studio marks":       {`[TOOL_REQUEST]{"name": "get_time", "arguments": {}}[END_TOOL_REQUEST]`, clock},
		"nemotron":              {`<TOOLCALL>[{"name": "get_time", "arguments": {}}]</TOOLCALL>`, clock},
		"invoke without prefix": {"<function_calls>\n<invoke name=\"get_weather\">\n<parameter name=\"city\">Oslo</parameter>\n</invoke>\n</function_calls>", oslo},
		"invoke with prefix":    {"<antml:function_calls>\n<antml:invoke name=\"get_time\">\n</antml:invoke>\n</antml:function_calls>", clock},
		"tool_code fence":       {"```tool_code\nprint(default_api.get_weather(city=\"Oslo\"))\n```", oslo},
		"keyed":                 {`<tool_call>{"get_weather": {"city":"Oslo"}}</tool_call>`, oslo},
		"flat":                  {`<tool_call>{"name": "get_weather", "city": "Oslo"}</tool_call>`, oslo},
		"one property":          {`<tool_call>{"name": "calculate", "arguments": "2+2"}</tool_call>`, `Calculate {"expression":"2+2"}`},
		"positional":            {`<|tool_call_start|>[calculate("2+2")]<|tool_call_end|>`, `Calculate {"expression":"2+2"}`},
		"null for a string":     {"<function=write_file>\n<parameter=mode>null</parameter>\n</function>", `write_file {"mode":null}`},
		"quotes in a string":    {"<function=get_weather>\n<parameter=city>\"Oslo\"</parameter>\n</function>", `get_weather {"city":"\"Oslo\""}`},
		"opening tag in a text": {
			"<function=write_file>\n<parameter=content>\nuse <parameter=path> there\n</parameter>\n</function>",
			`write_file {"content":"use <parameter=path> there"}`,
		},
		"closing tags in a file": {
			"<function=write_file>\n<parameter=content>\n<parameter=x>\n1\n</parameter>\nend </function>\n</parameter>\n</function>",
			`write_file {"content":"<parameter=x>\n1\n</parameter>\nend </function>"}`,
		},
	} {
		t.Run(name, func(t *testing.T) { everyWay(t, c.text, testHold, outcome{Calls: []string{c.want}}) })
	}
}

func TestDrop(t *testing.T) {
	f := newFilter(testHold)
	var o outcome
	o.add(f.Push(`<tool_call>{"name": "get_time", "arguments": {}}</tool_call><tool_call>{"name": "write_file", "arg`))
	o.add(f.Drop())
	want := outcome{`<tool_call>{"name": "write_file", "arg`, []string{clock}}
	if !o.equal(want) {
		t.Errorf("got %+v, want %+v", o, want)
	}
}

func TestNames(t *testing.T) {
	n := newNames(declared())
	for in, want := range map[string]string{
		"get_weather": "get_weather", "GET_WEATHER": "get_weather", "get-weather": "get_weather", "functions.get_weather": "get_weather",
		"functions.Get-Weather": "get_weather", "fs__list_directory": "fs__list-directory", "calculate": "Calculate",
		"default_api.search": "search", "searching": "", "sear": "", "": "", "functions.": "",
	} {
		got, _ := n.find(in)
		if got.name != want {
			t.Errorf("find(%q): got %q, want %q", in, got.name, want)
		}
		if want != "" {
			for i := range in {
				if !n.begins(in[:i]) {
					t.Errorf("begins(%q): got false, want true", in[:i])
				}
			}
		}
	}
	twins := names{{name: "a-b", key: "a_b"}, {name: "a_b", key: "a_b"}}
	if got, _ := twins.find("a-b"); got.name != "a-b" {
		t.Errorf("an exact name: got %q, want a-b", got.name)
	}
	if got, ok := twins.find("A-b"); !ok || got.name != "a-b" {
		t.Errorf("another case: got %q, want a-b", got.name)
	}
	if _, ok := twins.find("functions.a-b"); ok {
		t.Error("a name that fits two tools was found")
	}
}

func TestNoTools(t *testing.T) {
	f := New(Options{MaxHeld: testHold, NewID: ids()})
	text := `<tool_call>{"name": "get_time", "arguments": {}}</tool_call>`
	if got := play(f, text); got.Show != text {
		t.Errorf("got %q, want it unchanged", got.Show)
	}
}

func TestStructured(t *testing.T) {
	text := `{"name": "get_time", "arguments": {}}`
	f := New(Options{Tools: declared(), MaxHeld: testHold, Structured: true, NewID: ids()})
	if got := play(f, text); got.Show != text {
		t.Errorf("got %q, want it unchanged", got.Show)
	}
	f = New(Options{Tools: declared(), MaxHeld: testHold, Structured: true, NewID: ids()})
	if got := play(f, "<tool_call>"+text+"</tool_call>"); len(got.Calls) != 1 {
		t.Errorf("between marks: got %+v, want a call", got)
	}
}

// FuzzFilter checks that no way of cutting a text changes what comes out, and
// that no byte is lost or made when no call comes out.
func FuzzFilter(f *testing.F) {
	for _, list := range [][]shape{hermesShapes(), jsonShapes(), elementShapes(), mistralShapes(), deepseekShapes(), harmonyShapes(), gemmaShapes(), otherShapes()} {
		for _, s := range list {
			f.Add(s.text, uint16(testHold), uint64(1))
		}
	}
	for _, a := range append(jsonAnswers(), proseAnswers()...) {
		f.Add(a.text, uint16(60), uint64(2))
	}
	f.Fuzz(func(t *testing.T, text string, held uint16, seed uint64) {
		want := play(newFilter(int(held)), text)
		if len(want.Calls) == 0 && want.Show != text {
			t.Fatalf("got %q, want %q", want.Show, text)
		}
		if got := play(newFilter(int(held)), bytesOf(text)...); !got.equal(want) {
			t.Fatalf("byte by byte: got %+v, whole: %+v", got, want)
		}
		r := rand.New(rand.NewPCG(seed, 0))
		var pieces []string
		for rest := text; rest != ""; {
			n := 1 + r.IntN(min(len(rest), 20))
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		if got := play(newFilter(int(held)), pieces...); !got.equal(want) {
			t.Fatalf("cut as %q: got %+v, whole: %+v", pieces, got, want)
		}
	})
}

func BenchmarkProse(b *testing.B) {
	f := newFilter(testHold)
	f.Push("Well, ")
	pieces := []string{" the", " weather", " in", " Oslo", " is", " fine", ",\n", "12 °C", " and", " dry."}
	b.ReportAllocs()
	for i := range b.N {
		f.Push(pieces[i%len(pieces)])
	}
}

func TestProseAllocatesNothing(t *testing.T) {
	f := newFilter(testHold)
	f.Push("Well, ")
	if n := testing.AllocsPerRun(1000, func() { f.Push(" the weather\n"); f.Push(" is fine.") }); n != 0 {
		t.Errorf("got %v allocations, want none", n)
	}
}

// BenchmarkLongCall holds a call of 30 KiB that comes in small pieces.
func BenchmarkLongCall(b *testing.B) {
	text := `<tool_call>{"name": "write_file", "arguments": {"content": "` + strings.Repeat(`a{\"b\"}<c> `, 2500) + `"}}</tool_call>`
	for range b.N {
		f := newFilter(testHold)
		for i := 0; i < len(text); i += 4 {
			f.Push(text[i:min(i+4, len(text))])
		}
	}
}
