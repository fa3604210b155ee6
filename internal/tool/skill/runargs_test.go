package skill

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/tool"
)

const fire = "kiln/scripts/fire.py"

// TestRunShapes: what models send, and what the script gets, its arguments joined
// with "|". What begins with "Error" must not run.
func TestRunShapes(t *testing.T) {
	tests := []struct{ arguments, want string }{
		// As declared.
		{`{"skill":"kiln","path":"scripts/fire.py"}`, fire},
		{`{"skill":"kiln","path":"scripts/fire.py","args":"--cone 6"}`, fire + "|--cone|6"},
		{`{"skill":"kiln","path":"scripts/fire.py","args":""}`, fire},
		{`{"skill":"kiln","path":"scripts/fire.py","args":null}`, fire},
		{`{"skill":"kiln","path":"scripts/fire.py","args":"None"}`, fire},
		{`{"skill":"kiln","path":"scripts/fire.py","args":[]}`, fire},
		{`{"skill":"kiln","path":"scripts/fire.py","args":{}}`, fire},

		// A list keeps each element as it is.
		{`{"skill":"kiln","path":"scripts/fire.py","args":["--in","a file.pdf",""," x ","$HOME","a\nb","é","*;|>` + "`id`" + `"]}`, fire + "|--in|a file.pdf|| x |$HOME|a\nb|é|*;|>`id`"},
		{`{"skill":"kiln","path":"scripts/fire.py","args":["a",null,6,1.50,true,{"k":[1, 2]},["x"]]}`, fire + `|a|6|1.50|true|{"k":[1, 2]}|["x"]`},
		{`{"skill":"kiln","path":"scripts/fire.py","args":["{\"path\":\"x\"}","[1,2]"]}`, fire + `|{"path":"x"}|[1,2]`},
		{`{"skill":"kiln","path":"scripts/fire.py","args":["None","null"]}`, fire + `|None|null`},

		// A list in a text.
		{`{"skill":"kiln","path":"scripts/fire.py","args":"[\"--in\", \"a b\", \"\"]"}`, fire + "|--in|a b|"},
		{`{"skill":"kiln","path":"scripts/fire.py","args":" [\"x\"]\n"}`, fire + "|x"},
		{`{"skill":"kiln","path":"scripts/fire.py","args":"['--in', 'a b']"}`, fire + "|--in|a b"},
		{`{"skill":"kiln","path":"scripts/fire.py","args":"[]"}`, fire},
		{`{"skill":"kiln","path":"scripts/fire.py","args":"[1,2]"}`, `Error: args begins with "["`},
		{`{"skill":"kiln","path":"scripts/fire.py","args":"[\"a\", null]"}`, `Error: args begins with "["`},
		{`{"skill":"kiln","path":"scripts/fire.py","args":"[draft] --x"}`, `Error: args begins with "["`},
		{`{"skill":"kiln","path":"scripts/fire.py","args":"[\"a\""}`, `Error: args begins with "["`},

		// A text is read as words.
		{`{"skill":"kiln","path":"scripts/fire.py","args":"  --a 'b c' \"d \\\" $e\" f\\ g '' \"\" h'i'j\tk\nl "}`, fire + `|--a|b c|d " $e|f g|||hij|k|l`},
		{`{"skill":"kiln","path":"scripts/fire.py","args":"a;b | c > $D ` + "`e`" + ` *.md ~ && # {x,y} !1"}`, fire + "|a;b|||c|>|$D|`e`|*.md|~|&&|#|{x,y}|!1"},
		{`{"skill":"kiln","path":"scripts/fire.py","args":"'a\\b' \"a\\b\" \"a\\\\b\" a\\\\b a\\"}`, fire + `|a\b|a\b|a\b|a\b|a\`},
		{`{"skill":"kiln","path":"scripts/fire.py","args":"it's"}`, "Error: a quote in args"},
		{`{"skill":"kiln","path":"scripts/fire.py","args":"--a \"b"}`, "Error: a quote in args"},
		{`{"skill":"kiln","path":"scripts/fire.py","args":"{\"path\": \"x y\"}"}`, fire + `|{path:|x y}`},

		// Other values.
		{`{"skill":"kiln","path":"scripts/fire.py","args":6}`, fire + "|6"},
		{`{"skill":"kiln","path":"scripts/fire.py","args":true}`, fire + "|true"},
		{`{"skill":"kiln","path":"scripts/fire.py","args":{"cone":6}}`, "Error: args is an object"},
		{`{"skill":"kiln","path":"scripts/fire.py","args":["a\u0000b"]}`, "Error: an argument holds a NUL"},

		// Other names.
		{`{"name":"skills_run","path":"kiln/scripts/fire.py"}`, fire},
		{`{"skill":"kiln","path":["scripts/fire.py"]}`, fire},
		{`{"skill":"kiln","path":["scripts/fire.py","--cone","it's 6"]}`, `Error: path holds more than the path of a script, so nothing ran. Call skills_run with {"skill": "kiln", "path": "scripts/fire.py", "args": ["--cone", "it's 6"]}`},
		{`{"skill":"kiln","command":["python3","scripts/fire.py","--cone"],"args":"6"}`, `Error: path holds more than the path of a script, so nothing ran. Call skills_run with {"skill": "kiln", "path": "scripts/fire.py", "args": ["--cone", "6"]}`},
		{`{"skill":"kiln","script":"scripts/fire.py","arguments":["x"]}`, fire + "|x"},
		{`{"skill":"kiln","script":"scripts/fire.py","args":"","arguments":"x y"}`, fire + "|x|y"},
		{`{"skill":"kiln","script":"scripts/fire.py","args":"a","arguments":"x y"}`, fire + "|a"},
		{`{"skill_name":"KILN","scriptPath":"./scripts/fire.py","argv":["x"]}`, fire + "|x"},
		{`{"name":"$kiln","file":"kiln/scripts/fire.py","args":"x"}`, fire + "|x"},
		{`{"skill":"kiln","path":"scripts\\fire.py"}`, fire},
		{`{"skill":"kiln/scripts/fire.py"}`, fire},
		{`{"path":"kiln/scripts/fire.py","args":"x"}`, fire + "|x"},
		{`{"skill":{"name":"kiln"},"path":"scripts/fire.py"}`, fire},
		{`{"skill":"kiln","path":"scripts/cool down.sh"}`, "kiln/scripts/cool down.sh"},

		// Calls in something.
		{`{"arguments":{"skill":"kiln","path":"scripts/fire.py","args":"x"}}`, fire + "|x"},
		{`{"name":"skills_run","arguments":{"skill":"kiln","path":"scripts/fire.py","args":["x"]}}`, fire + "|x"},
		{`{"name":"skills_run","arguments":"{\"skill\":\"kiln\",\"path\":\"scripts/fire.py\",\"args\":[\"x\"]}"}`, fire + "|x"},
		{`{"name":"skills_run","id":"call_7","parameters":{"name":"kiln","script":"scripts/fire.py","arguments":"x"}}`, fire + "|x"},
		{`{"name":"run_skill","arguments":["kiln","scripts/fire.py","x"]}`, fire + "|x"},
		{`{"skill":"kiln","args":{"path":"scripts/fire.py","args":"x"}}`, fire + "|x"},
		{`{"input":{"args":{"skill":"kiln","path":"scripts/fire.py"}}}`, fire},
		{`{"input":"kiln/scripts/fire.py"}`, fire},
		{`"{\"skill\":\"kiln\",\"path\":\"scripts/fire.py\"}"`, fire},
		{`["kiln","scripts/fire.py"]`, fire},
		{`["kiln","scripts/fire.py","--a 'b c'"]`, fire + "|--a|b c"},
		{`["kiln","scripts/fire.py","a b","c"]`, fire + "|a b|c"},
		{`["kiln","scripts/fire.py",["a b","c"]]`, fire + "|a b|c"},
		{"```json\n{'skill': 'kiln', 'path': 'scripts/fire.py', 'args': ['x',],}\n```", fire + "|x"},
		{`kiln/scripts/fire.py`, fire},
		{`{"arguments":{"skill":"kiln","path":"scripts/fire.py","args":"'"}}`, "Error: a quote in args"},

		// A script's argument that looks like a call is an argument.
		{`{"skill":"kiln","path":"scripts/fire.py","args":["{\"skill\":\"tide\",\"path\":\"tide.js\"}"]}`, fire + `|{"skill":"tide","path":"tide.js"}`},
		{`{"skill":"kiln","path":"scripts/fire.py","args":"'{\"skill\":\"tide\",\"path\":\"tide.js\"}'"}`, fire + `|{"skill":"tide","path":"tide.js"}`},
		{`{"skill":"kiln","path":"scripts/fire.py","input":{"skill":"tide","path":"tide.js"}}`, fire},
		{`{"skill":"kiln","path":"scripts/fire.py","args":["--skill","tide"]}`, fire + "|--skill|tide"},

		{`{"skill":`, "Error: the arguments of skills_run cannot be read"},
		{`5`, "Error: the arguments of skills_run cannot be read"},
		{``, "Error: no skill is named"},
		{`{}`, "Error: no skill is named"},
	}
	b := newBench(t, nil)
	for _, tt := range tests {
		before := b.runner.count
		r := invoke(t, b.Set, RunName, tt.arguments)
		if strings.HasPrefix(tt.want, "Error") {
			if !strings.HasPrefix(r.Text, tt.want) || b.runner.count != before {
				t.Errorf("%s\ngot %s, %d launches", tt.arguments, r.Text, b.runner.count-before)
			}
			continue
		}
		if got := b.args(); got != tt.want || b.runner.count != before+1 || !r.OK {
			t.Errorf("%s\ngot  %s\nwant %s\n%s", tt.arguments, got, tt.want, r.Text)
		}
	}
	b.empty(t)
}

// TestRunOneOfMany: the first of a list of calls runs, and the others are said not to
// have run.
func TestRunOneOfMany(t *testing.T) {
	b := newBench(t, nil)
	r := invoke(t, b.Set, RunName, `[{"skill":"kiln","path":"scripts/fire.py"},{"skill":"tide","path":"tide.js"},{"skill":"tide","path":"tide.js"}]`)
	if b.args() != fire || b.runner.count != 1 || !strings.HasSuffix(r.Text, "the other calls in the same list (2) did not run.") {
		t.Errorf("%s, %d launches: %s", b.args(), b.runner.count, r.Text)
	}
}

// TestSplitWords goes beyond what the shapes hold.
func TestSplitWords(t *testing.T) {
	for text, want := range map[string][]string{
		"": nil, " \t\n": nil, "''": {""}, "a''b": {"ab"}, "\\ ": {" "}, "\\\n": nil, "a\\\nb": {"ab"}, `"a\nb"`: {`a\nb`}, "\"a\\\nb\"": {"ab"}, `"\$\` + "`" + `\\"`: {"$`\\"}, "'a\"b'": {`a"b`},
	} {
		got, err := splitWords(text)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%q: %v %s", text, err, diff)
		}
	}
}

// FuzzRun: whatever a model writes, it gets a result, and what runs is a script of a
// reachable skill, with arguments that a process can be given.
func FuzzRun(f *testing.F) {
	for _, seed := range []string{
		`{"skill":"kiln","path":"scripts/fire.py","args":"a 'b' \"c\" \\d"}`, `{"skill":"kiln","path":"../chest/notes.md"}`, `["kiln","scripts/fire.py",["x"]]`,
		`{"skill":"kiln","path":"python3 scripts/fire.py ../../x"}`, `{"arguments":{"arguments":{"args":{}}}}`, `{"skill":"kiln","path":"scripts/fire.py","args":"[\"\\u0000\"]"}`,
		`{"skill":"secret","path":"scripts/x.py"}`, "\xff", "[", `"kiln"`,
	} {
		f.Add(seed)
	}
	b := newBench(f, func(o *Options) { o.Skills = o.Skills[1:2] })
	f.Fuzz(func(t *testing.T, arguments string) {
		before := b.runner.count
		r, err := b.Invoke(t.Context(), llm.Call{Name: RunName, Arguments: arguments}, tool.Env{})
		if err != nil || r.Text == "" || r.OK == strings.HasPrefix(r.Text, "Error: ") || r.OK != (b.runner.count == before+1) {
			t.Fatalf("%v, %d launches: %+v", err, b.runner.count-before, r)
		}
		if !r.OK {
			return
		}
		if !strings.HasPrefix(b.args(), "kiln/") || strings.Contains(b.args(), "..") && !strings.Contains(arguments, "..") || b.runner.last.Check() != nil {
			t.Errorf("%q ran %s: %v", arguments, b.args(), b.runner.last.Check())
		}
	})
}
