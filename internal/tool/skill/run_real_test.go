//go:build unix

package skill

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/interpreter"
	"github.com/metier-run/metier/internal/sandbox"
	unconfined "github.com/metier-run/metier/internal/sandbox/bare"
)

// realRunner runs scripts for real, as nothing confines them.
type realRunner struct{ backend sandbox.Backend }

func (r realRunner) Run(ctx context.Context, l sandbox.Launch) (sandbox.Result, error) {
	l.Network.Mode = sandbox.NetworkOpen
	return sandbox.Run(ctx, r.backend, l)
}

func (r realRunner) Capabilities() sandbox.Capabilities { return r.backend.Capabilities() }

func (realRunner) Network() (sandbox.NetworkMode, []string) { return sandbox.NetworkOpen, nil }

func (realRunner) Refusal() error { return nil }

// tell are scripts that write their arguments to a file, one in base 64 a line or as
// JSON, with what they see of their surroundings on stdout.
func tell() map[string]string {
	return map[string]string{
		"tell.py":  "import base64, json, os, sys\njson.dump([os.fsencode(a).decode() for a in sys.argv[1:]], open('args.json', 'w'))\nprint(os.getcwd() == os.environ['HOME'] == os.environ['PWD'], repr(sys.stdin.read()))\nprint(sorted(os.environ))\nimport beside, lib.top\n",
		"tell.mjs": "import fs from 'node:fs';\nfs.writeFileSync('args.json', JSON.stringify(process.argv.slice(2)));\nconsole.log(process.cwd() === process.env.HOME, JSON.stringify(fs.readFileSync(0, 'utf8')));\nconsole.log(JSON.stringify(Object.keys(process.env).sort()));\n",
		"tell.sh":  "set -o pipefail\nsep=\nprintf '[' >args.json\nfor a in \"$@\"; do a=${a//\\\\/\\\\\\\\}; a=${a//\\\"/\\\\\\\"}; a=${a//$'\\n'/\\\\n}; a=${a//$'\\t'/\\\\t}; printf '%s\"%s\"' \"$sep\" \"$a\" >>args.json; sep=,; done\nprintf ']' >>args.json\nread -r line && echo got\n[ \"$PWD\" = \"$HOME\" ] && echo same\ncompgen -e\n",
	}
}

func realBench(t *testing.T, change func(*Options)) *Set {
	t.Helper()
	backend := unconfined.New(unconfined.Options{})
	t.Cleanup(func() {
		if err := backend.Close(); err != nil {
			t.Error(err)
		}
	})
	dir := t.TempDir()
	write(t, filepath.Join(dir, "tell", "SKILL.md"), "---\nname: tell\ndescription: Tells.\n---\nx\n")
	write(t, filepath.Join(dir, "tell", "scripts", "beside.py"), "")
	write(t, filepath.Join(dir, "tell", "lib", "top.py"), "")
	for name, text := range tell() {
		write(t, filepath.Join(dir, "tell", "scripts", name), text)
	}
	o := Options{Skills: load(t, dir), Runner: realRunner{backend}, Scripts: Scripts{
		Interpreters: interpreter.Options{Path: os.Getenv("PATH")}, Environ: append(os.Environ(), "SECRET_CANARY=do not tell", "LANG=C.UTF-8"),
		Scratch: filepath.Join(t.TempDir(), "scratch"),
	}}
	if change != nil {
		change(&o)
	}
	t.Cleanup(func() { bench{scratch: o.Scripts.Scratch}.empty(t) })
	return New(o)
}

// TestRealScripts: arguments arrive byte for byte in real programs, with nothing of
// the host's environment.
func TestRealScripts(t *testing.T) {
	args := []string{
		"plain", "", " two  spaces ", "a;b", "| tee x", "> out", "$HOME ${PATH}", "$(id)", "`id`", "&& exit 7", "it's", `say "hi"`, `back\slash\n`, "line\nbreak", "tab\there",
		"é漢👩‍🚀", "*", "?", "[a-z]", "~", "#", "!!", "%s", "--", "-c", "-", "{a,b}", "\\",
	}
	written, err := json.Marshal(map[string]any{"skill": "tell", "args": args})
	if err != nil {
		t.Fatal(err)
	}
	for kind, name := range map[interpreter.Kind]string{interpreter.Python: "tell.py", interpreter.Node: "tell.mjs", interpreter.Bash: "tell.sh"} {
		t.Run(string(kind), func(t *testing.T) {
			if _, err := (interpreter.Options{Path: os.Getenv("PATH")}).Find(kind); err != nil {
				t.Skip(err)
			}
			files := store(t)
			s := realBench(t, func(o *Options) { o.Scripts.Artifacts, o.Scripts.FilesURL = files, "/files" })
			r := invoke(t, s, RunName, strings.Replace(string(written), "{", `{"path":"scripts/`+name+`",`, 1))
			if !r.OK || !strings.Contains(r.Text, "- [args.json](/files/00112233445566aa/args.json)") || strings.Contains(r.Text, "CANARY") {
				t.Fatal(r.Text)
			}
			text, err := os.ReadFile(filepath.Join(files.Dir("00112233445566aa"), "args.json"))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			if err := json.Unmarshal(text, &got); err != nil {
				t.Fatalf("%v: %s", err, text)
			}
			if diff := cmp.Diff(args, got); diff != "" {
				t.Error(diff)
			}
			allowed := strings.Fields("PATH HOME PWD TMPDIR TEMP TMP PYTHONPATH PYTHONDONTWRITEBYTECODE PYTHONUNBUFFERED LANG LC_ALL TZ LC_CTYPE SHLVL OLDPWD _")
			for word := range strings.FieldsFuncSeq(r.Text, func(r rune) bool { return strings.ContainsRune("[]',\" \n", r) }) {
				if word == strings.ToUpper(word) && len(word) > 2 && strings.Trim(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == "" && !slices.Contains(allowed, word) {
					t.Errorf("%s is in the environment", word)
				}
			}
			if !strings.Contains(r.Text, "Not confined on this host: may write anywhere; may read the home directory") || !strings.Contains(r.Text, "sandbox: bare") {
				t.Error(r.Text)
			}
		})
	}
}

// TestRealDeadline: a script that does not end is ended, and its directory goes.
func TestRealDeadline(t *testing.T) {
	if _, err := (interpreter.Options{Path: os.Getenv("PATH")}).Find(interpreter.Bash); err != nil {
		t.Skip(err)
	}
	s := realBench(t, func(o *Options) { o.Scripts.Limits = limit(t, config.ScriptTime, 1) })
	write(t, filepath.Join(s.skills[0].Dir(), "scripts", "tell.sh"), "echo begun; mkdir -p a/b; chmod 0 a/b a; while :; do :; done\n")
	began := time.Now()
	r := invoke(t, s, RunName, `{"skill":"tell","path":"scripts/tell.sh"}`)
	if r.OK || !strings.HasPrefix(r.Text, "Error: tell/scripts/tell.sh: stopped after 1 s") || !strings.Contains(r.Text, "begun") || time.Since(began) > 20*time.Second {
		t.Errorf("%v: %s", time.Since(began), r.Text)
	}
}
