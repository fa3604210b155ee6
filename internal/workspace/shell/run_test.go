//go:build unix

package shell

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/metier-run/metier/internal/bash"
	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/workspace"
)

// TestPersistence: the directory and the exports go on, and nothing else (B1 9.1, 9.3).
func TestPersistence(t *testing.T) {
	each(t, programs(), func(t *testing.T, r *rig) {
		out := r.run(Command{Line: "mkdir -p 'a b/c'; cd 'a b'; export A=1 B='two  words'; NOT=exported; f() { echo f; }; alias g=f; umask 0; set -f"})
		if diff := cmp.Diff(Outcome{Result: out.Result, Ran: ".", Dir: "a b", Moved: true, Script: out.Script}, out); diff != "" || !out.OK() {
			t.Errorf("%s %v", diff, out.Stderr.Text())
		}
		r.want("pwd; echo \"$A,$B,$NOT\"; type f g >/dev/null 2>&1 || echo none", r.path("a b")+"\n1,two  words,\nnone\n")
		if mask := strings.TrimSpace(r.says("umask")); strings.Trim(mask, "0") == "" {
			t.Errorf("the umask is %s", mask)
		}
		out = r.run(Command{Line: "cd c; unset A; export B="})
		if out.Dir != "a b/c" || !out.Moved || out.Ran != "a b" || out.Reset {
			t.Errorf("%+v", out)
		}
		r.want(`echo "${A-unset},${B-unset}"; cd ../..`, "unset,\n")
		r.want("pwd", r.w.Work()+"\n")
		if out := r.run(Command{Line: "cd 'a b/c'; rmdir \"$PWD\""}); out.Dir != "." || out.Moved {
			t.Errorf("in a directory that is gone: %+v", out)
		}
		if entries, err := os.ReadDir(r.w.Saved()); err != nil || len(entries) > 1 {
			t.Errorf("left behind: %v %v", entries, err)
		}
	})
}

// TestNeverKept: B1 9.4, also under the attributes that bash writes.
func TestNeverKept(t *testing.T) {
	names := strings.Fields("PATH HOME TMPDIR TEMP TMP OLDPWD SHLVL IFS LD_PRELOAD LD_LIBRARY_PATH DYLD_INSERT_LIBRARIES HTTP_PROXY https_proxy ALL_PROXY no_proxy GRPC_PROXY npm_config_https_proxy SSL_CERT_FILE REQUESTS_CA_BUNDLE NODE_EXTRA_CA_CERTS METIER_KEY __metier_own ENV BASH_ENV")
	each(t, common(), func(t *testing.T, r *rig) {
		base := map[string]string{}
		for line := range strings.Lines(r.says("export -p")) {
			base[line] = line
		}
		for _, how := range []string{"export", "declare -x", "declare -rx", "declare -ix", "typeset -x"} {
			if how != "export" && r.Dialect() != Bash {
				continue
			}
			var b strings.Builder
			for _, name := range names {
				b.WriteString(how + " " + name + "=7\n")
			}
			if out := r.run(Command{Line: how + " SEEN=1\n" + b.String()}); !out.OK() || out.Reset {
				t.Fatalf("%s: %+v %s", how, out, out.Stderr.Text())
			}
			r.want(`echo "$SEEN"; unset SEEN`, "1\n")
			for line := range strings.Lines(r.says("export -p")) {
				if base[line] == "" {
					t.Errorf("after %s: %s", how, line)
				}
			}
		}
	})
}

// TestValues: any value comes back, newlines and bytes that are no text among them, so
// that nothing needs a reset (B1 9.12).
func TestValues(t *testing.T) {
	each(t, programs(), func(t *testing.T, r *rig) {
		values := rapid.SliceOfN(rapid.OneOf(
			rapid.StringMatching(`[ -~\n\t]{0,12}`),
			rapid.StringOfN(rapid.RuneFrom([]rune("'\"\\$`!\n\r\t\x01\x1b\x7fé漢🚀 ~*#=()[]{}")), 0, 8, -1),
			rapid.Map(rapid.SliceOfN(rapid.ByteRange(1, 255), 0, 6), func(b []byte) string { return string(b) }),
		), 1, 30)
		for seed := range 8 { // each starts two shells
			want := values.Example(seed)
			if d := r.Dialect(); d == Zsh || d == Ksh {
				for i := range want { // they are at odds with bytes that are no text
					want[i] = strings.Map(func(c rune) rune { return max(' ', min(c, '~')) }, want[i])
				}
			}
			var set, get strings.Builder
			for i, v := range want {
				fmt.Fprintf(&set, "export V%d=%s\n", i, bash.Quote(v))
				fmt.Fprintf(&get, "printf '%%s\n--\n' \"$V%d\"\n", i)
			}
			if out := r.run(Command{Line: set.String()}); !out.OK() || out.Reset {
				t.Fatalf("reset %t: %s", out.Reset, out.Stderr.Text())
			}
			got := strings.Split(r.says(get.String()), "\n--\n")
			if diff := cmp.Diff(want, got[:len(got)-1]); diff != "" {
				t.Error(diff)
			}
		}
	})
}

// TestArrays: bash's exported arrays go on, and old bashes' spelling of them is read.
func TestArrays(t *testing.T) {
	each(t, bashOnly(t), func(t *testing.T, r *rig) {
		r.want("export L=(a 'b  c' $'d\\ne'); declare -Ax M=([k]=v ['a ]b']=\"it's\"); declare -ix N=5; declare -nx REF=N; export REF", "")
		r.want(`printf '%s|' "${L[@]}" "${M[k]}" "${M["a ]b"]}" "$N"`, "a|b  c|d\ne|v|it's|5|")
		r.want(`L+=(f); printf '%s|' "${L[@]}"`, "a|b  c|d\ne|f|")
		r.want(`echo "${#L[@]}"`, "4\n")
	})
	vars, _, err := parseExports("declare -ax L='([0]=\"a\" [1]=\"b c\")'\n", Bash)
	if err != nil || len(vars) != 1 || vars[0].posix() != "L=([0]='a' [1]='b c'); export L\n" {
		t.Errorf("%+v %v", vars, err)
	}
}

// TestHostVariables: what the host sets for each launch is its own to change, also
// where a command put something before it.
func TestHostVariables(t *testing.T) {
	each(t, common(), func(t *testing.T, r *rig) {
		with := func(value, line string) string {
			out := r.run(Command{Line: line, Extra: workspace.Extra{Env: []string{"HOSTS=" + value}}})
			return out.Stdout.Text() + out.Stderr.Text()
		}
		with("one", "true")
		if got := with("two", `echo "$HOSTS"; export HOSTS="src:$HOSTS:end"`); got != "two\n" {
			t.Errorf("unchanged: %q", got)
		}
		if got := with("three", `echo "$HOSTS"`); got != "src:three:end\n" {
			t.Errorf("with something around: %q", got)
		}
		if got := with("four", `echo "$HOSTS"; HOSTS=mine`); got != "src:four:end\n" {
			t.Errorf("for the second time: %q", got)
		}
		if got := with("five", `echo "$HOSTS"`); got != "mine\n" {
			t.Errorf("replaced: %q", got)
		}
		r.want("unset PYTHONUNBUFFERED", "")
		r.want(`echo "$PYTHONUNBUFFERED"`, "1\n")
	})
}

// TestWorkdir: a call's own directory moves nothing (B1 9.7).
func TestWorkdir(t *testing.T) {
	each(t, common(), func(t *testing.T, r *rig) {
		r.want("mkdir -p a/b c; cd a", "")
		out := r.run(Command{Line: "pwd; cd ..; export X=1", Workdir: "c"})
		if out.Stdout.Text() != r.path("c")+"\n" || out.Dir != "a" || out.Moved || out.Ran != "c" {
			t.Errorf("%+v", out)
		}
		r.want("pwd; echo $X", r.path("a")+"\n1\n")
		if out := r.run(Command{Line: "pwd", Workdir: "."}); out.Stdout.Text() != r.w.Work()+"\n" || out.Ran != "." || out.Dir != "a" {
			t.Errorf("%+v", out)
		}
		out = r.run(Command{Line: "echo ran; export X=2", Workdir: "no\nsuch"})
		if out.Exit != 1 || out.Stdout.Text() != "" || out.Stderr.Text() != noWorkdir+"\n" || out.Dir != "a" {
			t.Errorf("%+v", out)
		}
		r.want("echo $X", "1\n")
	})
}

// TestOutside: a directory outside is not remembered, nor one that a link leads to, and
// a link inside leads to what it names (B1 9.7).
func TestOutside(t *testing.T) {
	each(t, common(), func(t *testing.T, r *rig) {
		r.want("mkdir -p a/b; ln -s a/b in; ln -s / out; cd a", "")
		for _, dir := range []string{"/", "..//../state", "../out/usr", "../../work/../tmp"} {
			if out := r.run(Command{Line: "cd " + dir}); !out.OK() || !out.Outside || out.Moved || out.Dir != "a" {
				t.Errorf("%s: %+v", dir, out)
			}
		}
		if out := r.run(Command{Line: "cd ../in"}); out.Outside || out.Dir != "a/b" {
			t.Errorf("%+v", out)
		}
		// A link that takes the place of a directory meanwhile is not followed.
		r.want("cd ..; rm -r b; ln -s / b", "")
		check(t, os.WriteFile(filepath.Join(r.w.Saved(), cwdName), []byte(r.path("a/b")), 0o600))
		r.want("pwd", r.w.Work()+"\n")
	})
}

// TestStatus: the status is the command's own however it ends, and what it left is
// remembered wherever a shell still runs something at its end.
func TestStatus(t *testing.T) {
	// Each line is run after "export SEEN=1"; seen says whether that is remembered.
	cases := []struct {
		line string
		exit int
		seen bool
	}{
		{"true", 0, true},
		{"(exit 3)", 3, true},
		{"exit 7", 7, true},
		{"exit 300", 44, true},
		{"set -e; false; exit 9", 1, true},
		{"set -u; set -C; set -f; IFS=e; umask 777; true", 0, true},
		{"unset PATH; PATH=; exit 4", 4, true},
		{"exec 1>&- 2>&-; exit 5", 5, true},
		{"pwd() { echo no; }; printf() { echo no; }; cd() { :; }; mv() { :; }; exit 6", 6, true},
		{"trap 'exit 8' EXIT; true", 8, true},
		{"trap 'echo bye; exit 8' EXIT; (exit 2)", 8, true},
		{"trap - EXIT; (exit 2)", 2, true},
		{"trap 'true' EXIT; exit 2", 2, false}, // the model's own trap has replaced ours
		{"trap '' TERM; kill $$; exit 4", 4, true},
		{"kill -KILL $$", 137, false},
		{"exec sh -c 'exit 3'", 3, false},
		{"set -n; exit 2", 0, false},
		{"cat <<EOF\nexit 1", 0, true},
		{"false \\", 1, true},
		{"trap 'true' EXIT; false \\", 1, true},
		{"# trap\ntrue # trap", 0, true},
		{"rm -r \"$PWD\"; exit 3", 3, true},
		{"exit 2 & wait; exit 3", 3, true},
		{"(cd /; exit 2)", 2, true},
	}
	each(t, common(), func(t *testing.T, r *rig) {
		for _, c := range cases {
			r.vars = []variable{{name: "SEEN", value: "0"}}
			out := r.run(Command{Line: "export SEEN=1\n" + c.line})
			if out.Exit != c.exit || out.Reset {
				t.Errorf("%s: exit %d, reset %t: %s", c.line, out.Exit, out.Reset, out.Stderr.Text())
			}
			if _, err := r.w.Restore(); err != nil {
				t.Fatal(err)
			}
			if r.remembers("SEEN", "1") != c.seen || r.remembers("SEEN", "0") == c.seen {
				t.Errorf("%s: remembered are %+v", c.line, r.vars)
			}
		}
	})
}

// TestQuiet: the host's own part says nothing, also to those who trace their shell.
func TestQuiet(t *testing.T) {
	each(t, common(), func(t *testing.T, r *rig) {
		r.want("set -x\ncd .", "+ cd .\n")
		r.want("set -x\n:", "+ :\n")
		r.want("PS4='> '; set -eux; exit 0", "> exit 0\n")
		r.want("cd /", "")
		r.want("export CDPATH=/ LC_ALL=xx_YY 2>/dev/null", "")
		r.want("echo \"$CDPATH\"", "/\n")
	})
}

// TestTimeout: a command that is killed changes nothing (B1 9.8).
func TestTimeout(t *testing.T) {
	each(t, common(), func(t *testing.T, r *rig) {
		r.want("mkdir a b; cd a; export X=1", "")
		out, err := r.Run(t.Context(), Command{Line: "cd ../b; export X=2; echo begun; while :; do :; done", Timeout: 200 * time.Millisecond})
		if err != nil || out.Ended != sandbox.TimedOut || out.Stdout.Text() != "begun\n" || out.Dir != "a" || out.Moved || out.Reset {
			t.Errorf("%+v %v", out, err)
		}
		r.want("pwd; echo $X", r.path("a")+"\n1\n")
	})
}

func TestTimeoutBounds(t *testing.T) {
	for _, c := range []struct {
		usual         int64
		asked, expect time.Duration
	}{
		{120, 0, 2 * time.Minute},
		{120, -time.Second, 2 * time.Minute},
		{120, time.Second, time.Second},
		{120, time.Hour, 10 * time.Minute},
		{1200, time.Hour, 20 * time.Minute},
	} {
		starter := &played{}
		r := newRig(t, Program{Dialect: Sh, Argv: []string{"/bin/sh"}}, starter, limits(t, map[config.Name]int64{config.CodeTime: c.usual}))
		r.run(Command{Line: "true", Timeout: c.asked})
		want := c.expect
		if c.asked == 0 {
			want = min(patience, want) // the rig asks for that
		}
		if got := r.Timeout(c.asked); got != c.expect || starter.last.Deadline != want {
			t.Errorf("%v of %v: %v, %v", c.asked, c.usual, got, starter.last.Deadline)
		}
	}
}

// TestOutput: what is too much is dropped from the middle and still watched (B1 9.9).
func TestOutput(t *testing.T) {
	l := unconfined(t)
	for name, p := range common() {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, p, l, limits(t, map[config.Name]int64{config.CodeOutput: 1024}))
			var seen bytes.Buffer
			out := r.run(Command{Line: "i=0; while [ $i -lt 1000 ]; do echo $i; i=$((i+1)); done", Watch: func(s sandbox.Stream, p []byte) {
				if s == sandbox.Stdout {
					seen.Write(p)
				}
			}})
			text := out.Stdout.Text()
			if !strings.HasPrefix(text, "0\n1\n") || !strings.HasSuffix(text, "998\n999\n") || out.Stdout.Dropped() != out.Stdout.Total-1024 || int64(seen.Len()) != out.Stdout.Total {
				t.Errorf("%d dropped of %d, %d seen", out.Stdout.Dropped(), out.Stdout.Total, seen.Len())
			}
		})
	}
}

// TestLineNumbers: the shells' own messages lead to the model's lines, whatever is
// remembered (B1 9.5).
func TestLineNumbers(t *testing.T) {
	each(t, common(), func(t *testing.T, r *rig) {
		r.want("export A='x\ny\nz' B='it'\"'\"'s'; mkdir -p d; cd d", "")
		out := r.run(Command{Line: "true\n\nno-such-program-here"})
		at := fmt.Sprintf("%s: line %d: ", out.Script.Path, out.Script.Lines+3)
		if r.Dialect() == Sh && !strings.Contains(r.o.Program.Argv[0], "busybox") {
			at = fmt.Sprintf("%s: %d: ", out.Script.Path, out.Script.Lines+3)
		}
		if got := out.Stderr.Text(); !strings.HasPrefix(got, at+"no-such-program-here: ") || out.Exit != 127 {
			t.Errorf("%q does not begin with %q", got, at)
		}
		text, err := os.ReadFile(out.Script.Path)
		check(t, err)
		if all := strings.Split(string(text), "\n"); all[out.Script.Lines-1] != "# "+commandMark || all[out.Script.Lines] != "true" || bytes.HasPrefix(text, []byte("\xef\xbb\xbf")) {
			t.Errorf("%q", text)
		}
	})
}

// TestScripts: those of the latest commands are kept (B1 9.5).
func TestScripts(t *testing.T) {
	r := newRig(t, Program{Dialect: Sh, Argv: []string{"/bin/sh"}}, &played{}, limits(t, map[config.Name]int64{config.CodeWrappers: 3}))
	for range 7 {
		r.run(Command{Line: "true"})
	}
	found, err := filepath.Glob(filepath.Join(r.w.State(), "command-*"))
	check(t, err)
	for i, path := range found {
		found[i] = filepath.Base(path)
	}
	if diff := cmp.Diff([]string{"command-5.sh", "command-6.sh", "command-7.sh"}, found); diff != "" {
		t.Error(diff)
	}
}

// TestLong: a line may be longer than an argument, and exports longer than what is
// remembered are told of.
func TestLong(t *testing.T) {
	each(t, common(), func(t *testing.T, r *rig) {
		r.want("export KEPT=1; X="+strings.Repeat("x", 200<<10)+"; echo ${#X}", "204800\n")
		out := r.run(Command{Line: "mkdir a; cd a; export X=" + strings.Repeat("x", 130<<10)})
		if !out.Reset || !out.OK() {
			t.Errorf("%+v %s", out.Result.Exit, out.Stderr.Text())
		}
		out = r.run(Command{Line: `echo "$KEPT,${#X}"`})
		if out.Reset || out.Stdout.Text() != ",0\n" {
			t.Errorf("%s, reset %t", out.Stdout.Text(), out.Reset)
		}
	})
}

// TestUnset: a variable that the shell refuses is given up, and does not keep commands
// from running.
func TestUnset(t *testing.T) {
	each(t, common(), func(t *testing.T, r *rig) {
		r.vars = []variable{{name: "GOOD", value: "1"}, {name: "2BAD", value: "1"}}
		out := r.run(Command{Line: "echo \"$GOOD\"; export NEW=2"})
		if !out.Reset || !out.OK() || out.Stdout.Text() != "\n" || out.Stderr.Text() != "" {
			t.Errorf("%+v", out)
		}
		out = r.run(Command{Line: "echo \"$GOOD,$NEW\""})
		if out.Reset || out.Stdout.Text() != ",2\n" {
			t.Errorf("%+v", out)
		}
		r.vars = []variable{{name: "2BAD", value: "1"}}
		if out := r.run(Command{Line: "exec true"}); !out.Reset {
			t.Error("a reset is not told when nothing is left behind")
		}
		if out := r.run(Command{Line: "true"}); out.Reset {
			t.Error("a reset is told twice")
		}
	})
}

// TestNUL: what no shell reads is said and is no fault of the host.
func TestNUL(t *testing.T) {
	starter := &played{}
	r := newRig(t, Program{Dialect: Sh, Argv: []string{"/bin/sh"}}, starter, config.Values{})
	_, err := r.Run(t.Context(), Command{Line: "a\x00b"})
	if err == nil || !strings.Contains(err.Error(), "NUL") || starter.count.Load() != 0 || r.failed != 0 {
		t.Errorf("%v", err)
	}
}
