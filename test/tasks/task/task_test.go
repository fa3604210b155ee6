package task_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/test/tasks/task"
)

func TestApply(t *testing.T) {
	const start = "one\ntwo\nthree\ntwo\n"
	for _, c := range []struct {
		name, patch string
		give, want  task.Tree
		wrong       string
	}{
		{
			name: "an update", patch: "*** Update File: a\n@@\n-two\n+2\n three",
			give: task.Tree{"a": []byte(start)}, want: task.Tree{"a": []byte("one\n2\nthree\ntwo\n")},
		},
		{
			name: "an anchor chooses the place", patch: "*** Update File: a\n@@ three\n-two\n+2",
			give: task.Tree{"a": []byte(start)}, want: task.Tree{"a": []byte("one\ntwo\nthree\n2\n")},
		},
		{
			name: "line ends and mark stay", patch: "*** Update File: a\n@@\n-one\n+1\n+1.5",
			give: task.Tree{"a": []byte("\ufeffone\r\ntwo\r\n")}, want: task.Tree{"a": []byte("\ufeff1\r\n1.5\r\ntwo\r\n")},
		},
		{
			name: "add, move and delete", patch: "*** Add File: d/new\n+x\n*** Update File: a\n*** Move to: b\n@@\n-one\n+1\n*** Delete File: c",
			give: task.Tree{"a": []byte("one\n"), "c": nil}, want: task.Tree{"d/new": []byte("x\n"), "b": []byte("1\n")},
		},
		{
			name: "a file below the folder that the shell is in", patch: "*** Update File: a\n@@\n-one\n+1",
			give: task.Tree{"d/a": []byte("one\n")}, want: task.Tree{"d/a": []byte("1\n")},
		},
		{name: "all or nothing", patch: "*** Update File: a\n@@\n-one\n+1\n*** Delete File: z", give: task.Tree{"a": []byte(start)}, wrong: "no file"},
		{name: "lines that are not there", patch: "*** Update File: a\n@@\n-One\n+1", give: task.Tree{"a": []byte(start)}, wrong: "not there"},
		{name: "an anchor that is not there", patch: "*** Update File: a\n@@ four\n-one\n+1", give: task.Tree{"a": []byte(start)}, wrong: "anchor"},
		{name: "a file that exists", patch: "*** Add File: a\n+1", give: task.Tree{"a": []byte(start)}, wrong: "exists"},
		{name: "a line without a sign", patch: "*** Update File: a\n@@\n-one\n\n+1", give: task.Tree{"a": []byte(start)}, wrong: "no sign"},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := task.Tree{}
			for name, data := range c.give {
				before[name] = data
			}
			err := c.give.Apply("*** Begin Patch\n" + c.patch + "\n*** End Patch")
			if c.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), c.wrong) {
					t.Errorf("Apply = %v, want an error with %q", err, c.wrong)
				}
				c.want = before
			} else if err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(c.want, c.give); diff != "" {
				t.Errorf("the files differ (-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzParsePatch(f *testing.F) {
	f.Add("*** Begin Patch\n*** Update File: a\n*** Move to: b\n@@ x\n-one\n+1\n*** End Patch")
	f.Add("*** Begin Patch\n*** Add File: a\n+1\n*** End Patch")
	f.Fuzz(func(t *testing.T, text string) {
		tree := task.Tree{"a": []byte("one\n")}
		if err := tree.Apply(text); err != nil && string(tree["a"]) != "one\n" {
			t.Errorf("a refused patch changed a file: %q", text)
		}
	})
}

func TestBrokenFolders(t *testing.T) {
	good := map[string]string{
		"prompt.md": "Do it.", "check.py": "pass", "files/a": "a",
		"trajectory.json": `{"rounds":[[{"tool":"shell","args":{"command":["ls","-l"]}}]],"answer":"Done.","half":{"after":0,"calls":[]}}`,
	}
	for _, c := range []struct{ file, text, wrong string }{
		{"", "", ""},
		{"prompt.md", "", "prompt.md"},
		{"check.py", "", "check.py"},
		{"files/a", "", "files"},
		{"trajectory.json", `{"rounds":[],"answer":"Done."}`, "no rounds"},
		{"trajectory.json", `{"rounds":[[]],"answer":"Done."}`, "no call"},
		{"trajectory.json", `{"rounds":[[{"tool":"python","args":{}}]],"answer":"Done."}`, `"python"`},
		{"trajectory.json", `{"rounds":[[{"tool":"shell","args":{"command":[1]}}]],"answer":"Done."}`, "no string"},
		{"trajectory.json", `{"rounds":[[{"tool":"shell","args":{}}]],"answer":"Done.","half":{"after":1}}`, "half state"},
		{"trajectory.json", `{"rounds":[[{"tool":"shell","arguments":{}}]]}`, "arguments"},
	} {
		dir := filepath.Join(t.TempDir(), "01-task")
		for name, text := range good {
			if name == c.file {
				text = c.text
			}
			if text == "" {
				continue
			}
			file := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		k, err := task.Open(dir)
		switch {
		case c.wrong == "" && err != nil:
			t.Error(err)
		case c.wrong == "" && k.Rounds[0][0].Text("command") != "ls\n-l":
			t.Errorf("the command is %q, want its lines joined", k.Rounds[0][0].Text("command"))
		case c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)):
			t.Errorf("%s = %q: %v, want an error with %q", c.file, c.text, err, c.wrong)
		}
	}
}
