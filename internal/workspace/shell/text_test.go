package shell

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/metier-run/metier/internal/interpreter"
	"github.com/metier-run/metier/internal/sandbox"
)

// TestScriptGolden shows whole scripts. That of PowerShell cannot be run where this is
// tested.
func TestScriptGolden(t *testing.T) {
	exports := []variable{
		{name: "A", value: "it's\ntwo"},
		{name: "L", array: &array{items: []item{{"0", "a"}, {"1", "b c"}}}},
		{name: "M", array: &array{named: true, items: []item{{"k ]", "v"}}}},
	}
	base := text{dialect: Bash, work: "/w/work", dir: "/w/work", kept: "/w/state/shell/kept-x", line: "make"}
	for name, change := range map[string]func(*text){
		"plain.sh":      func(*text) {},
		"exports.sh":    func(t *text) { t.exports, t.dir = exports, "/w/work/it's" },
		"workdir.sh":    func(t *text) { t.dir, t.must = "/w/work/a", true },
		"background.sh": func(t *text) { t.exports, t.kept = exports[:1], "" },
		"trap.sh":       func(t *text) { t.line = "trap 'rm x' EXIT\nmake" },
		"windows.sh": func(t *text) {
			t.windows, t.work, t.dir, t.kept = true, `C:\w\work`, `C:\w\work\a`, `C:\w\state\shell\kept-x`
		},
		"plain.ps1": func(t *text) { t.dialect = PowerShell },
		"exports.ps1": func(t *text) {
			t.dialect, t.exports, t.dir = PowerShell, []variable{{name: "A", value: "it's\u2019 $x"}}, "/w/work/b"
		},
		"workdir.ps1": func(t *text) { t.dialect, t.dir, t.must, t.kept = PowerShell, "/w/work/a", true, "" },
	} {
		x := base
		change(&x)
		script, before := x.script()
		golden(t, name, script)
		all := strings.Split(script, "\n")
		if got := strings.Join(all[before:before+strings.Count(x.line, "\n")+1], "\n"); got != x.line {
			t.Errorf("%s: at line %d is %q", name, before, got)
		}
		if bom := strings.HasPrefix(script, "\ufeff"); bom != (x.dialect == PowerShell) {
			t.Errorf("%s: a byte order mark: %t", name, bom)
		}
	}
}

// TestProse pins what a model reads.
func TestProse(t *testing.T) {
	var b strings.Builder
	for _, e := range []sandbox.Result{
		{Ended: sandbox.Exited, Exit: 2},
		{Ended: sandbox.Signalled, Signal: "term"},
		{Ended: sandbox.Cancelled},
		{Ended: sandbox.OutOfRoom},
		{Ended: sandbox.OutOfMem},
		{Ended: sandbox.TooMany},
	} {
		e.Wall = 61*time.Second + 240*time.Millisecond
		b.WriteString(jobEnd("job-1", e))
	}
	golden(t, "prose.txt", strings.Join([]string{commandMark, noWorkdir, jobLogFull, b.String()}, "\n--\n"))
}

// host makes programs in a directory.
func host(t *testing.T, names ...string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	check(t, err)
	for _, name := range names {
		check(t, os.WriteFile(filepath.Join(dir, name), []byte("\x7fELF"), 0o755))
	}
	return dir
}

// TestFind: B1 9.15.
func TestFind(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("programs of the fixture have modes")
	}
	bin := host(t, "bash", "zsh", "dash", "busybox", "mksh", "bash-5.2", "fish", "pwsh", "pwsh.exe", "powershell.exe", "bash.exe", "plain")
	check(t, os.Chmod(filepath.Join(bin, "plain"), 0o644))
	check(t, os.Symlink("busybox", filepath.Join(bin, "sh")))
	links := host(t)
	check(t, os.Symlink(filepath.Join(bin, "zsh"), filepath.Join(links, "zsh")))
	without := host(t, "bash.exe")
	o := interpreter.Options{Path: bin, System: []string{bin, links, without}}
	for _, c := range []struct {
		named   string
		windows bool
		path    string
		want    string // dialect and arguments
	}{
		{"", false, bin, "bash $bin/bash --noprofile --norc"},
		{"", true, bin, "PowerShell $bin/pwsh.exe -NoLogo -NoProfile -NonInteractive -ExecutionPolicy Bypass -File"},
		{"", true, without, "find a shell: no directory of PATH has pwsh or powershell: install one, or name one with --code-exec-shell"},
		{"bash", true, bin, "bash $bin/bash.exe --noprofile --norc"},
		{"dash", false, bin, "sh $bin/dash"},
		{"busybox", false, bin, "sh $bin/busybox sh"},
		{"$bin/sh", false, bin, "sh $bin/sh"},
		{"$bin/bash-5.2", false, bin, "bash $bin/bash-5.2 --noprofile --norc"},
		{"$links/zsh", false, bin, "zsh $bin/zsh -f"},
		{"mksh", false, bin, "ksh $bin/mksh"},
		{"pwsh", false, bin, "PowerShell $bin/pwsh -NoLogo -NoProfile -NonInteractive -ExecutionPolicy Bypass -File"},
		{"fish", false, bin, `find the shell "fish": its language is not known here: give --code-exec-shell a bash, sh, dash, ash, busybox, zsh, ksh, pwsh or powershell`},
		{"nope-shell", false, bin, `find the shell "nope-shell": no directory of PATH has it: give --code-exec-shell its path`},
		{"./bash", false, bin, `find the shell "./bash": give --code-exec-shell an absolute path`},
		{"$bin/plain", false, bin, `find the shell "$bin/plain": it is no program`},
		{"$bin", false, bin, `find the shell "$bin": it is no program`},
	} {
		o.Path = c.path
		short := strings.NewReplacer("$bin", bin, "$links", links)
		got, err := finder{o: o, windows: c.windows}.find(short.Replace(c.named))
		text := string(got.Dialect) + " " + strings.Join(got.Argv, " ")
		if err != nil {
			text = err.Error()
		}
		if text = strings.ReplaceAll(text, bin, "$bin"); text != c.want {
			t.Errorf("%q on windows %t: %s, and not %s", c.named, c.windows, text, c.want)
		}
		if err == nil && c.named != "" && len(got.Read) != 1 {
			t.Errorf("%q: a launch sees %q", c.named, got.Read)
		}
	}
	bare := interpreter.Options{Path: without, System: []string{without}}
	if p, err := Find("", bare); err == nil && p.Dialect != Sh {
		t.Errorf("without bash: %+v", p) // the system's own sh is always looked for
	}
}

func TestNeverKeptNames(t *testing.T) {
	for _, name := range strings.Fields("PATH _ IFS Http_Proxy NO_PROXY GRPC_PROXY npm_config_noproxy METIER_X DYLD_X LD_LIBRARY_PATH SHELLOPTS BASH_VERSINFO curl_ca_bundle") {
		if !neverKept(name) {
			t.Errorf("%s is kept", name)
		}
	}
	for _, name := range strings.Fields("PYTHONPATH NODE_PATH EDITOR API_URL MY_PATH LANG TZ PROXYSQL CFLAGS") {
		if neverKept(name) {
			t.Errorf("%s is not kept", name)
		}
	}
}

func TestAround(t *testing.T) {
	const sep = string(filepath.ListSeparator)
	list := func(s string) string { return strings.ReplaceAll(s, ":", sep) }
	for _, c := range []struct{ value, base, next, want string }{
		{"src:/a:/b", "/a:/b", "/c", "src:/c"},
		{"/a:/b:end", "/a:/b", "/c", "/c:end"},
		{"x:/a:y", "/a", "/c:/d", "x:/c:/d:y"},
		{"/ab:/a", "/a", "/c", "/ab:/c"},
		{":/a:", "/a", "/c", ":/c:"},
		{"/ab", "/a", "/c", "/ab"},
		{"x", "", "/c", "x"},
	} {
		vars := changed([]variable{{name: "LIST", value: list(c.value)}}, map[string]string{"LIST": list(c.base)})
		if got := settled(vars, map[string]string{"LIST": list(c.next)}); len(got) != 1 || got[0].value != list(c.want) {
			t.Errorf("%+v: %+v", c, got)
		}
	}
	if vars := changed([]variable{{name: "LIST", value: "/a"}}, map[string]string{"LIST": "/a"}); len(vars) != 0 {
		t.Errorf("unchanged: %+v", vars)
	}
}
