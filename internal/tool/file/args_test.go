package file

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/metier-run/metier/internal/guard"
	"github.com/metier-run/metier/internal/patch"
	"github.com/metier-run/metier/internal/tool"
)

// readText is what was understood of the arguments of read_file, in a line.
func readText(arguments string) string {
	c, err := parse(arguments)
	if err != nil {
		return "unreadable"
	}
	name, others, err := c.path()
	if err != nil {
		return "refused"
	}
	l, said, err := c.lines()
	if err != nil {
		return "refused"
	}
	text := name
	if said {
		text += fmt.Sprintf("@%d+%d", l.first, l.n)
	}
	if more := others + c.Others; more > 0 {
		text += fmt.Sprintf(" and %d", more)
	}
	return text
}

// TestReadArguments: the shapes in which models ask for a part of a file (B1 4.3 to 4.5).
func TestReadArguments(t *testing.T) {
	const top = "9223372036854775807"
	tests := []struct{ arguments, want string }{
		{`{"path":"a.py"}`, "a.py"},
		{`{"path":" a.py\n"}`, "a.py"},
		{`{"path":"` + "`a.py`" + `"}`, "a.py"},
		{`{"path":"'a b.py'"}`, "a b.py"},
		{`{"file_path":"a.py"}`, "a.py"},
		{`{"file":"a.py"}`, "a.py"},
		{`{"filename":"a.py"}`, "a.py"},
		{`{"filePath":"a.py"}`, "a.py"},
		{`{"target_file":"a.py"}`, "a.py"},
		{`{"path":"","file":"a.py"}`, "a.py"},
		{`{"path":null,"file":"a.py"}`, "a.py"},
		{`{"paths":["a.py","b.py"]}`, "a.py and 1"},
		{`{"path":"[\"a.py\"]"}`, "a.py"},
		{`{"path":12}`, "12"},
		{`{"path":"a.py","path":"a.py"}`, "a.py"},
		{`{"path":"a.py","path":"b.py"}`, "refused"},
		{`"a.py"`, "a.py"},
		{`a.py`, "a.py"},
		{`["a.py",3,4]`, "a.py@3+4"},
		{`["a.py","3"]`, "a.py@3+0"},
		{`{"path":"a.py","offset":3,"limit":4}`, "a.py@3+4"},
		{`{"path":"a.py","offset":"3","limit":"4"}`, "a.py@3+4"},
		{`{"path":"a.py","offset":3.0,"limit":4.9}`, "a.py@3+4"},
		{`{"path":"a.py","offset":null,"limit":""}`, "a.py"},
		{`{"path":"a.py","offset":-5}`, "a.py@0+0"},
		{`{"path":"a.py","offset":1e300,"limit":99999999999999999999}`, "a.py@" + top + "+" + top},
		{`{"path":"a.py","offset":true}`, "refused"},
		{`{"path":"a.py","offset":{"x":1}}`, "refused"},
		{`{"path":"a.py","start_line":3,"num_lines":4}`, "a.py@3+4"},
		{`{"path":"a.py","from_line":3,"line_count":4}`, "a.py@3+4"},
		{`{"path":"a.py","line":3,"count":4}`, "a.py@3+4"},
		{`{"path":"a.py","start":3,"lines":4}`, "a.py@3+4"},
		{`{"path":"a.py","start_line":3,"end_line":4}`, "a.py@3+2"},
		{`{"path":"a.py","start_line":3,"end_line":-1}`, "a.py@3+" + top},
		{`{"path":"a.py","end_line":4}`, "a.py@1+4"},
		{`{"path":"a.py","view_range":[3,6]}`, "a.py@3+4"},
		{`{"path":"a.py","view_range":["3","6"]}`, "a.py@3+4"},
		{`{"path":"a.py","view_range":[3,-1]}`, "a.py@3+" + top},
		{`{"path":"a.py","view_range":"[3, 6]"}`, "a.py@3+4"},
		{`{"path":"a.py","range":"3-6"}`, "a.py@3+4"},
		{`{"path":"a.py","range":"3:6"}`, "a.py@3+4"},
		{`{"path":"a.py","line_range":"3,6"}`, "a.py@3+4"},
		{`{"path":"a.py","line_range":"L3-L6"}`, "a.py@3+4"},
		{`{"path":"a.py","lines":"3-6"}`, "a.py@3+4"},
		{`{"path":"a.py","view_range":[6,3]}`, "refused"},
		{`{"path":"a.py","view_range":"some"}`, "refused"},
		{`{"path":"a.py","view_range":[1,2,3]}`, "refused"},
		{`{"path":"a.py","view_range":[]}`, "a.py"},
		{`{"arguments":{"path":"a.py"}}`, "a.py"},
		{`{"arguments":"{\"path\":\"a.py\"}","offset":3}`, "a.py@3+0"},
		{`{"name":"read_file","parameters":{"path":"a.py"}}`, "a.py"},
		{`{"input":["a.py",3]}`, "a.py@3+0"},
		{`"{\"path\":\"a.py\"}"`, "a.py"},
		{`[{"path":"a.py"},{"path":"b.py"}]`, "a.py and 1"},
		{"```json\n{\"path\":\"a.py\"}\n```", "a.py"},
		{`{'path': 'a.py', 'offset': None,}`, "a.py"},
		{`{"path":"a.py`, "unreadable"},
		{`read a.py`, "unreadable"},
		{`12`, "unreadable"},
		{`{}`, ""},
		{``, ""},
		{`null`, ""},
		{`[]`, ""},
		{`{"path":[]}`, ""},
	}
	for _, tt := range tests {
		if got := readText(tt.arguments); got != tt.want {
			t.Errorf("%s\ngot  %s\nwant %s", tt.arguments, got, tt.want)
		}
	}
}

func writeText(arguments string) string {
	c, err := parse(arguments)
	if err != nil {
		return "unreadable"
	}
	w, err := writeOf(c)
	if err != nil {
		return "refused"
	}
	return fmt.Sprintf("%s|%s|%t", w.name, w.content, w.overwrite)
}

// TestWriteArguments: the text is taken exactly (B1 4.3 to 4.6).
func TestWriteArguments(t *testing.T) {
	tests := []struct{ arguments, want string }{
		{`{"path":"a","content":" x\n "}`, "a| x\n |false"},
		{`{"path":"a","content":""}`, "a||false"},
		{`{"path":"a","text":"x"}`, "a|x|false"},
		{`{"path":"a","file_text":"x"}`, "a|x|false"},
		{`{"path":"a","contents":"x"}`, "a|x|false"},
		{`{"path":"a","data":"x"}`, "a|x|false"},
		{`{"path":"a","body":"x"}`, "a|x|false"},
		{`{"path":"a","content":"","text":"x"}`, "a|x|false"},
		{`{"path":"a","content":"null"}`, "a|null|false"},
		{`{"path":"a","content":"{\"path\":\"b\",\"content\":\"y\"}"}`, `a|{"path":"b","content":"y"}|false`},
		{`{"path":"a","content":"[1]"}`, "a|[1]|false"},
		{`{"path":"a","content":12.50}`, "a|12.50|false"},
		{`{"path":"a","content":false}`, "a|false|false"},
		{`{"path":"a","content":null}`, "refused"},
		{`{"path":"a"}`, "refused"},
		{`{"content":"x"}`, "refused"},
		{`{"path":"a","content":"x","overwrite":true}`, "a|x|true"},
		{`{"path":"a","content":"x","overwrite":"True"}`, "a|x|true"},
		{`{"path":"a","content":"x","overwrite":1}`, "a|x|true"},
		{`{"path":"a","content":"x","overwrite":"no"}`, "a|x|false"},
		{"{\"path\":\"a\",\"content\":\"x\n\ty\"}", "a|x\n\ty|false"},
		{`{'path': 'a', 'content': 'it\'s "x"\n'}`, "a|it's \"x\"\n|false"},
		{`{"arguments":{"path":"a","content":"x"}}`, "a|x|false"},
		{`{"path":"a","arguments":{"content":"x"}}`, "a|x|false"},
		{`["a","x"]`, "a|x|false"},
		{`{"path":"a","content":"x`, "unreadable"},
		{`{"path":"a","content":"\d"}`, "unreadable"},
		{`{"path":"a","content":"x","content":"y"}`, "refused"},
		{`{"path":"a","content":"\udc00"}`, "refused"},
	}
	for _, tt := range tests {
		if got := writeText(tt.arguments); got != tt.want {
			t.Errorf("%s\ngot  %q\nwant %q", tt.arguments, got, tt.want)
		}
	}
}

func editText(arguments string) string {
	c, err := parse(arguments)
	if err != nil {
		return "unreadable"
	}
	w, err := editOf(c)
	if err != nil {
		return "refused"
	}
	return fmt.Sprintf("%s|%s|%s|%t", w.name, w.old, w.fresh, w.all)
}

// TestEditArguments: the names of B1 4.3.
func TestEditArguments(t *testing.T) {
	tests := []struct{ arguments, want string }{
		{`{"path":"a","old_string":" x ","new_string":""}`, "a| x ||false"},
		{`{"path":"a","old_str":"x","new_str":"y"}`, "a|x|y|false"},
		{`{"path":"a","old":"x","new":"y"}`, "a|x|y|false"},
		{`{"path":"a","search":"x","replace":"y"}`, "a|x|y|false"},
		{`{"path":"a","find":"x","replacement":"y"}`, "a|x|y|false"},
		{`{"path":"a","from":"x","to":"y"}`, "a|x|y|false"},
		{`{"file_path":"a","oldString":"x","newString":"y","replaceAll":true}`, "a|x|y|true"},
		{`{"path":"a","old":"x","new":"y","all":"yes"}`, "a|x|y|true"},
		{`{"path":"a","old":"x","new":"y","global":1}`, "a|x|y|true"},
		{`["a","x","y",true]`, "a|x|y|true"},
		{`{"path":"a","old":1,"new":2}`, "a|1|2|false"},
		{`{"path":"a","old":"x","new":null}`, "refused"},
		{`{"path":"a","old":"x","new":"x"}`, "refused"},
		{`{"path":"a","new":"x"}`, "refused"},
		{`x y`, "unreadable"},
	}
	for _, tt := range tests {
		if got := editText(tt.arguments); got != tt.want {
			t.Errorf("%s\ngot  %q\nwant %q", tt.arguments, got, tt.want)
		}
	}
}

// TestPatchArguments: wherever a patch is written, it is found (B1 4.3, 12.3).
func TestPatchArguments(t *testing.T) {
	const p = "*** Begin Patch\n*** Add File: a\n+x\n*** End Patch"
	quoted := string(tool.Quote(p))
	twice := string(tool.Quote(`{"patch":` + quoted + `}`))
	for _, arguments := range []string{
		p, "```\n" + p + "\n```", quoted,
		`{"patch":` + quoted + `}`, `{"input":` + quoted + `}`, `{"diff":` + quoted + `}`, `{"content":` + quoted + `}`, `{"text":` + quoted + `}`,
		`{"cmd":` + quoted + `}`, `{"command":["apply_patch",` + quoted + `]}`, `["apply_patch",` + quoted + `]`,
		`{"arguments":{"patch":` + quoted + `}}`, `{"arguments":` + twice + `}`, twice,
		`{"patch":["*** Begin Patch","*** Add File: a\n","+x","*** End Patch"]}`,
		`{"reason":"because","patch":` + quoted + `}`,
		`{"type":"create_file","path":"a","diff":"+x"}`,
		`{"operations":[{"type":"create_file","path":"a","diff":"+x"}]}`,
		`{"operation":{"type":"create_file","path":"a","diff":"+x"}}`,
		`[{"type":"create_file","path":"a","diff":"+x"}]`,
		`{"patch":{"type":"create_file","path":"a","diff":"+x"}}`,
		`{"input":"[{\"type\":\"create_file\",\"path\":\"a\",\"diff\":\"+x\"}]"}`,
		"{\"patch\":\"*** Begin Patch\n*** Add File: a\n+x\n*** End Patch\"}",
	} {
		text, err := patchText(arguments)
		if err != nil {
			t.Errorf("%s: %v", arguments, err)
			continue
		}
		read, err := patch.Parse(text, guard.Clean, patch.Limits{})
		if err != nil || strings.Join(read.Paths(), " ") != "a" {
			t.Errorf("%s\ngives %q: %v", arguments, text, err)
		}
	}
	for _, arguments := range []string{`{"patch":"\ud800 *** Begin Patch"}`, `{"patch":"x","patch":"y"}`, `12`} {
		if text, err := patchText(arguments); err == nil {
			t.Errorf("%s gives %q", arguments, text)
		}
	}
}

// FuzzArguments: no arguments bring a tool down, and what is taken for the text of a
// file is one that a file can hold.
func FuzzArguments(f *testing.F) {
	for _, seed := range []string{
		`{"path":"a","offset":"3","view_range":[1,2]}`, `["a",1,2]`, `{"arguments":"{\"path\":\"a\"}"}`, "```json\n{'path':'a',}\n```",
		`{"path":"a","content":{"x":[1]},"overwrite":1}`, `{"path":"a","old":"x","new":"y","all":true}`, `{"patch":"*** Begin Patch\n*** End Patch"}`,
		`[[[[[[[["a"]]]]]]]]`, `{"input":{"input":{"input":{"input":{"input":{"input":{"path":"a"}}}}}}}`, `{"path":"\ud800"}`, "\xff",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, arguments string) {
		readText(arguments)
		editText(arguments)
		if text := writeText(arguments); !utf8.ValidString(text) {
			t.Errorf("%q gives %q", arguments, text)
		}
		text, err := patchText(arguments)
		if err == nil {
			_, _ = patch.Parse(text, guard.Clean, patch.Limits{PatchBytes: 1 << 16, PatchFiles: 16})
		}
	})
}
