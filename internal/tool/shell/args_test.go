package shell

import (
	"math"
	"strings"
	"testing"
	"time"
)

// TestArguments are the shapes in which models send a command (B1 4.3, 4.4).
func TestArguments(t *testing.T) {
	for text, want := range map[string]arguments{
		`{"command":"ls -la"}`:                          {command: "ls -la"},
		`{"cmd":"ls"}`:                                  {command: "ls"},
		`{"script":"ls\npwd"}`:                          {command: "ls\npwd"},
		`{"shell":"ls"}`:                                {command: "ls"},
		`{"input":"ls"}`:                                {command: "ls"},
		`{"shell":"bash","input":"ls"}`:                 {command: "ls"},
		`{"shell":"bash","script":"ls"}`:                {command: "ls"},
		`{"Command":" ls "}`:                            {command: " ls "},
		`{"command":"","cmd":"ls"}`:                     {command: "ls"},
		`"{\"command\":\"ls\"}"`:                        {command: "ls"},
		`{"arguments":{"command":"ls"}}`:                {command: "ls"},
		"```json\n{\"command\":\"ls\"}\n```":            {command: "ls"},
		`{'command': 'ls', 'run_in_background': True,}`: {command: "ls", background: true},
		`ls`:                    {command: "ls"},
		"python3 -c 'print(1)'": {command: "python3 -c 'print(1)'"},
		`"ls -la"`:              {command: "ls -la"},
		"{\"command\":\"```bash\\nls -la\\n```\"}":             {command: "ls -la\n"},
		`{"command":["bash","-lc","ls | wc -l"]}`:              {command: "ls | wc -l"},
		`{"command":["/bin/sh","-c","ls"]}`:                    {command: "ls"},
		`{"command":["bash","-l","-c","ls"]}`:                  {command: "ls"},
		`{"command":["powershell.exe","-Command","dir"]}`:      {command: "dir"},
		`{"command":["bash","run.sh","a b"]}`:                  {command: "bash run.sh 'a b'"},
		`{"command":["ls","-la","a b","$x"]}`:                  {command: "ls -la 'a b' '$x'"},
		`{"command":["cat","a.txt","|","grep","x"]}`:           {command: "cat a.txt | grep x"},
		`{"command":["cd","src","&&","make"]}`:                 {command: "cd src && make"},
		`{"command":["ls -la"]}`:                               {command: "ls -la"},
		`{"command":"[\"ls\",\"-la\"]"}`:                       {command: "ls -la"},
		`{"commands":["cd src","make test"]}`:                  {command: "cd src && make test"},
		`{"command":["echo",1,true]}`:                          {command: "echo 1 true"},
		`["bash","-lc","ls"]`:                                  {command: "ls"},
		`["ls","-la"]`:                                         {command: "ls -la"},
		`{"input":["bash","-lc","ls"]}`:                        {command: "ls"},
		`{"args":["ls","-la"]}`:                                {command: "ls -la"},
		`{"command":"python3","args":["a.py","--name","a b"]}`: {command: "python3 a.py --name 'a b'"},
		`{"command":["git"],"args":["log"]}`:                   {command: "git log"},

		`{"command":"a","workdir":" src "}`:                 {command: "a", workdir: "src"},
		`{"command":"a","work_dir":"src"}`:                  {command: "a", workdir: "src"},
		`{"command":"a","cwd":"src"}`:                       {command: "a", workdir: "src"},
		`{"command":"a","directory":"src"}`:                 {command: "a", workdir: "src"},
		`{"command":"a","background":"yes"}`:                {command: "a", background: true},
		`{"command":"a","detach":1}`:                        {command: "a", background: true},
		`{"command":"a","run_in_background":"false"}`:       {command: "a"},
		`{"command":"a","run_in_background":null}`:          {command: "a"},
		`{"command":"a","timeout_ms":500}`:                  {command: "a", timeout: 500 * time.Millisecond},
		`{"command":"a","timeoutMs":"5000"}`:                {command: "a", timeout: 5 * time.Second},
		`{"command":"a","timeout_ms":5.9}`:                  {command: "a", timeout: 5 * time.Millisecond},
		`{"command":"a","timeout":30}`:                      {command: "a", timeout: 30 * time.Second},
		`{"command":"a","timeout_s":999}`:                   {command: "a", timeout: 999 * time.Second},
		`{"command":"a","timeoutSeconds":"60"}`:             {command: "a", timeout: time.Minute},
		`{"command":"a","timeout":1000}`:                    {command: "a", timeout: time.Second},
		`{"command":"a","timeout":60000}`:                   {command: "a", timeout: time.Minute},
		`{"command":"a","timeout":"30s"}`:                   {command: "a", timeout: 30 * time.Second},
		`{"command":"a","timeout":"2 m"}`:                   {command: "a", timeout: 2 * time.Minute},
		`{"command":"a","timeout":"none"}`:                  {command: "a"},
		`{"command":"a","timeout_ms":0}`:                    {command: "a"},
		`{"command":"a","timeout_ms":-5}`:                   {command: "a"},
		`{"command":"a","timeout_ms":1e300}`:                {command: "a", timeout: math.MaxInt64},
		`{"command":"a","timeout_ms":99999999999999999999}`: {command: "a", timeout: math.MaxInt64},
		`{"command":"a","timeout_ms":"","timeout":5}`:       {command: "a", timeout: 5 * time.Second},
	} {
		got, sentence := parse(text)
		if sentence != "" || got != want {
			t.Errorf("%s\n%+v, %q\nwant %+v", text, got, sentence, want)
		}
	}
}

// TestBadArguments: what cannot be read runs nothing, and says how to send it.
func TestBadArguments(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  noCommand,
		"{}":                                noCommand,
		"null":                              noCommand,
		"[]":                                noCommand,
		`{"command":""}`:                    noCommand,
		`{"command":" \n "}`:                noCommand,
		`{"command":null}`:                  noCommand,
		`{"command":[]}`:                    noCommand,
		`{"code":"print(1)"}`:               noCommand,
		`{"command": "ls`:                   badArguments,
		`{"command": "ls"`:                  badArguments,
		`["ls"`:                             badArguments,
		"<command>ls</command>":             badArguments,
		"command=ls":                        badArguments,
		"command: ls -la":                   badArguments,
		`{"command":"a\u0000b"}`:            nulByte,
		`[{"command":"a"},{"command":"b"}]`: oneCall,
		`{"command":"a","command":"b"}`:     "twice",
		`{"command":"a","workdir":"b","workdir":"c"}`: "twice",
		`{"command":"a","timeout_ms":"soon"}`:         "timeout_ms is \"soon\"",
	} {
		if got, sentence := parse(text); !strings.Contains(sentence, want) || sentence == "" {
			t.Errorf("%s\n%+v, %q\nwant %q", text, got, sentence, want)
		}
	}
}

// TestMeans: names that models have for the tool, and names that are others'.
func TestMeans(t *testing.T) {
	for _, name := range []string{"shell", "Bash", "run_command", "execute-command", "functions.shell", "local_shell", "run_shell_command", "container.exec"} {
		if !Means(name) {
			t.Errorf("%s is not the shell", name)
		}
	}
	for _, name := range []string{"", "read_file", "apply_patch", "python", "view", "open", "skills_run", "search"} {
		if Means(name) {
			t.Errorf("%s is the shell", name)
		}
	}
}
