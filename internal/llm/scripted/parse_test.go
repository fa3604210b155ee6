package scripted

import (
	"bytes"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// TestParseErrors holds that a broken file is refused and that the error names
// file, step and line.
func TestParseErrors(t *testing.T) {
	const sse = "-- 1.answer --\n200\nContent-Type: text/event-stream\n-- 1.body --\n"
	for name, tt := range map[string]struct{ text, want string }{
		"empty":            {"", "scenario s.txtar: line 1: no step"},
		"prose only":       {"hello\n", "line 1: no step"},
		"half a marker":    {"-- --\n", "line 1: section marker"},
		"empty marker":     {"x\n--   --\n", "line 2: section marker"},
		"other section":    {"prose\n-- notes --\n", `line 2: section "notes"`},
		"other part":       {"-- 1.wen --\n", `step 1, line 1: section "1.wen"`},
		"odd number":       {"-- 01.when --\n", `section "01.when"`},
		"starts at 2":      {"-- 2.answer --\n200\n", "line 1: step 2 comes where step 1 should"},
		"gap":              {"-- 1.answer --\n200\n-- 3.answer --\n200\n", "line 3: step 3 comes where step 2 should"},
		"no answer":        {"-- 1.when --\nstream: true\n-- 2.answer --\n200\n", "step 1, line 3: it has no answer"},
		"no last answer":   {"-- 1.answer --\n200\n-- 2.when --\n", "step 2, line 3: it has no answer"},
		"wrong order":      {"-- 1.answer --\n200\n-- 1.when --\n", "step 1, line 3: section \"1.when\" comes twice or too late"},
		"twice":            {"-- 1.answer --\n200\n-- 1.answer --\n200\n", "comes twice"},
		"late client":      {"-- 1.answer --\n200\n-- client.request --\n", "step 1, line 3: section client.request"},
		"no colon":         {"-- 1.when --\nstream\n-- 1.answer --\n200\n", `step 1, line 2: condition "stream"`},
		"unknown key":      {"p\n-- 1.when --\nhas: x\nstrem: true\n-- 1.answer --\n200\n", `step 1, line 4: condition "strem"`},
		"bad flag":         {"-- 1.when --\nstream: yes\n-- 1.answer --\n200\n", "give true or false"},
		"bad choice":       {"-- 1.when --\nchoice: maybe\n-- 1.answer --\n200\n", "choice: maybe"},
		"bad results":      {"-- 1.when --\nresults: -1\n-- 1.answer --\n200\n", "results: -1"},
		"bad nth":          {"-- 1.when --\nnth: 0\n-- 1.answer --\n200\n", "nth: 0"},
		"no status":        {"-- 1.answer --\n", "step 1, line 1: the answer has no status"},
		"bad status":       {"-- 1.answer --\nOK\n", `step 1, line 2: status "OK"`},
		"status 100":       {"-- 1.answer --\n100\n", `status "100"`},
		"bad header":       {"-- 1.answer --\n200\nRetry After: 7\n", `step 1, line 3: header "Retry After: 7"`},
		"late directive":   {"-- 1.answer --\n200\n@stall 1s\n", "step 1, line 3: @stall 1s after the status"},
		"other directive":  {"-- 1.answer --\n@split 3\n200\n", "step 1, line 2: @split"},
		"body alone":       {"-- 1.body --\n@close\n", "step 1, line 1: a body without an answer"},
		"no type":          {"-- 1.answer --\n200\n-- 1.body --\n{}\n", "step 1, line 3: the answer has a body and no Content-Type"},
		"unknown word":     {sse + "data: 1\n\n@stal 1s\n", `step 1, line 7: directive "@stal"`},
		"bad stall":        {sse + "@stall soon\n", "step 1, line 5: @stall soon"},
		"negative stall":   {sse + "@stall -1s\n", "@stall -1s"},
		"bad split":        {sse + "@split 0\n", "@split 0"},
		"split of nothing": {sse + "data: 1\n\n@split 2\n", "@split with no event"},
		"bad repeat":       {sse + "@repeat\n", "@repeat : give a number"},
		"nested repeat":    {sse + "@repeat 2\n@repeat 2\n", "step 1, line 6: @repeat inside"},
		"open repeat":      {sse + "data: 1\n\n@repeat 2\ndata: 2\n\n", "step 1, line 7: @repeat without an @end"},
		"stray end":        {sse + "@end\n", "@end without"},
		"bad raw":          {sse + "@raw x\n", "@raw x"},
		"chomp nothing":    {sse + "data: 1\n\n@chomp\n", "@chomp: there is no open line"},
		"cut with word":    {sse + "@cut now\n", "the directive stands alone"},
		"request acts":     {"-- 1.request --\n@stall 1s\n-- 1.answer --\n200\n", "a request holds bytes only"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("dir/s.txtar", []byte(tt.text))
			if err == nil || !strings.Contains(err.Error(), strings.Replace(tt.want, "s.txtar", "dir/s.txtar", 1)) {
				t.Fatalf("got %v, want %q", err, tt.want)
			}
			if e, ok := errors.AsType[*ParseError](err); !ok || e.File != "dir/s.txtar" || e.Line < 1 {
				t.Errorf("got %#v, want a ParseError with file and line", err)
			}
		})
	}
}

func TestParse(t *testing.T) {
	s, err := Parse("a/b.c.txtar", []byte("Two lines\nof prose.\n\n-- client.request --\n{\n@@x\n}\n@chomp\n-- 1.request --\n{}\n-- 1.when --\n\nresults: 1+\n-- 1.answer --\n201 Created\nX-A: 1\nX-A: 2\n-- 2.answer --\n@cut\n"))
	if err != nil {
		t.Fatal(err)
	}
	if s.Name != "b.c" || s.Note != "Two lines\nof prose." || string(s.Client) != "{\n@x\n}" || len(s.Steps) != 2 {
		t.Errorf("got %+v", s)
	}
	one := s.Steps[0]
	if one.Number != 1 || one.Status != 201 || string(one.Request) != "{}\n" || len(one.when) != 1 {
		t.Errorf("got %+v", one)
	}
	if d := cmp.Diff([]string{"1", "2"}, one.Header.Values("X-A")); d != "" {
		t.Error(d)
	}
}

func TestNewNamesTheBrokenFile(t *testing.T) {
	_, err := New(Options{FS: fstest.MapFS{
		"good.txtar": {Data: []byte("-- 1.answer --\n200\n")},
		"poor.txtar": {Data: []byte("-- 1.answer --\n200\n-- 2.answer --\n")},
	}})
	if err == nil || !strings.Contains(err.Error(), "poor.txtar: step 2, line 3") {
		t.Errorf("got %v", err)
	}
	if _, err := New(Options{FS: fstest.MapFS{}}); err == nil || !strings.Contains(err.Error(), "no *.txtar") {
		t.Errorf("empty folder: got %v", err)
	}
}

func FuzzParse(f *testing.F) {
	files, err := fs.Glob(Embedded(), "*"+Ext)
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := fs.ReadFile(Embedded(), file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte("-- --\n-- 1.answer --\n200\r\n"))
	f.Add([]byte("-- 1.answer --\n200\nContent-Type: text/event-stream\n-- 1.body --\n@crlf\nx\n@chomp\n@raw \"\\xff\"\n@split 1\ny\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Parse("fuzz.txtar", data)
		if err != nil {
			if e, ok := errors.AsType[*ParseError](err); !ok || e.Line < 1 || e.Line > 1+bytes.Count(data, []byte("\n")) {
				t.Fatalf("%v: names no line of the file", err)
			}
			return
		}
		if len(s.Steps) == 0 {
			t.Fatal("a scenario without steps")
		}
		for i, step := range s.Steps {
			if step.Number != i+1 || step.Status == 0 && !ends(step.before) {
				t.Fatalf("step %d: %+v", i+1, step)
			}
		}
	})
}

// FuzzRecording holds that bytes of any kind come back out of a recording.
func FuzzRecording(f *testing.F) {
	f.Add([]byte("data: 1\n\n"), true)
	f.Add([]byte("@cut\n-- 1.body --\n\r\n{{results}}\xff"), false)
	f.Add([]byte(`{"a":1}`), false)
	f.Fuzz(func(t *testing.T, body []byte, sse bool) {
		kind := "application/json"
		if sse {
			kind = "text/event-stream"
		}
		const request = `{"model":"m","messages":[{"role":"user","content":"q"}]}`
		var file bytes.Buffer
		err := Write(&file, Recording{Note: string(body), Client: body, Rounds: []Round{{
			Request: []byte(request), Status: 200, Header: map[string][]string{"Content-Type": {kind}}, Body: body,
		}}})
		if err != nil {
			t.Fatal(err)
		}
		s, err := Parse("r.txtar", file.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		var played []byte
		for _, o := range s.Steps[0].body {
			if o.kind != opWrite || o.fill {
				t.Fatalf("the body acts: %+v", o)
			}
			played = append(played, o.data...)
		}
		if !bytes.Equal(played, body) || !bytes.Equal(s.Client, body) || string(s.Steps[0].Request) != request {
			t.Fatalf("got %q and %q, want %q; file:\n%s", played, s.Client, body, file.Bytes())
		}
	})
}
