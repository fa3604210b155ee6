package shell

import (
	"strings"

	"github.com/metier-run/metier/internal/bash"
)

// text is the script of one command, before it is written.
type text struct {
	dialect Dialect
	work    string // the work folder
	dir     string // where the command begins; must says that it may not begin elsewhere
	must    bool
	exports []variable
	kept    string // the file for what is remembered; empty remembers nothing
	line    string
	windows bool // the shell is one like sh on Windows
}

// These words are between this host and its scripts.
const (
	prefix    = "__metier_" // of names in a script
	dirMark   = "# metier: directory\n"
	endMark   = "# metier: end\n"
	resetTail = ".reset" // of the file that tells that variables could not be set
)

// script is the whole script, and how many lines of it stand before the model's text.
func (t text) script() (script string, lines int) {
	if t.dialect == PowerShell {
		return t.powerShell()
	}
	return t.posix()
}

// posix is the script for all shells that are like sh (B1 9.3). It uses nothing but
// builtins, because a command may leave PATH as it likes. What of it runs after the
// model's text expects every option, and no function to be what it was.
func (t text) posix() (string, int) {
	var b strings.Builder
	t.posixDir(&b)
	t.posixExports(&b)
	if t.kept != "" {
		t.posixEnd(&b)
	}
	b.WriteString("# " + commandMark + "\n")
	lines := strings.Count(b.String(), "\n")
	b.WriteString(t.line)
	b.WriteString("\n")
	if t.kept != "" && setsExitTrap(t.line, t.dialect) {
		// The model's own trap has replaced ours. An empty line ends a continuation.
		b.WriteString("\n{ " + prefix + "end \"$?\"; } 2>/dev/null; exit \"$" + prefix + "status\"\n")
	}
	return b.String(), lines
}

func (t text) posixDir(b *strings.Builder) {
	dir := " " + bash.Quote(t.path(t.dir)) + " 2>/dev/null"
	switch {
	case t.must:
		b.WriteString("cd --" + dir + " || { printf '%s\\n' " + bash.Quote(noWorkdir) + " >&2; exit 1; }\n")
	case t.dir != t.work:
		b.WriteString("cd --" + dir + " || :\n")
	}
}

// posixExports sets the variables, after a trial in a subshell: a shell ends at a
// variable that may not be set, and would do so for ever.
func (t text) posixExports(b *strings.Builder) {
	if len(t.exports) == 0 {
		return
	}
	b.WriteString(prefix + "env() {\n")
	for _, v := range t.exports {
		b.WriteString(v.posix())
	}
	b.WriteString("}\n")
	b.WriteString("if (" + prefix + "env) >/dev/null 2>&1; then " + prefix + "env 2>/dev/null; ")
	if t.kept != "" {
		b.WriteString("else printf '' >|" + bash.Quote(t.path(t.kept+resetTail)) + "; ")
	}
	b.WriteString("fi\nunset -f " + prefix + "env\n")
}

// posixEnd leaves the state behind, once. It works in a subshell, so that it changes
// nothing for a trap of the model's own. The status stays what it was, because the
// last one before a trap is that of the shell.
func (t text) posixEnd(b *strings.Builder) {
	here := "pwd -P"
	if t.windows {
		here = "pwd -W"
	}
	own := "unset -f unset umask export printf pwd"
	if t.dialect == Ksh {
		own = ":" // there it would take the builtins of these names away
	}
	for _, l := range []string{
		prefix + "end() {",
		`case "${` + prefix + `status-}" in '') ;; *) return 0 ;; esac`,
		prefix + "status=$1",
		"(",
		own,
		"umask 077",
		"export -p",
		`printf '\n%s' ` + bash.Quote(dirMark),
		here,
		"printf %s " + bash.Quote(endMark),
		") >|" + bash.Quote(t.path(t.kept)) + " 2>/dev/null || :",
		"}",
		"trap '{ " + prefix + `end "$?"; } 2>/dev/null' EXIT`,
	} {
		b.WriteString(l)
		b.WriteString("\n")
	}
}

// path is a path as a shell like sh takes it.
func (t text) path(path string) string {
	if t.windows {
		return strings.ReplaceAll(path, `\`, "/")
	}
	return path
}

// powerShell is the script for PowerShell. It begins with a byte order mark, without
// which Windows PowerShell reads it in the host's old code page (B1 9.5).
func (t text) powerShell() (string, int) {
	var b strings.Builder
	b.WriteString("\ufeff")
	b.WriteString("$ProgressPreference = 'SilentlyContinue'\n")
	b.WriteString("[Console]::OutputEncoding = $OutputEncoding = New-Object Text.UTF8Encoding $false\n")
	dir := quotePowerShell(t.dir)
	switch {
	case t.must:
		b.WriteString("try { Set-Location -LiteralPath " + dir + " -ErrorAction Stop } catch { [Console]::Error.WriteLine(" + quotePowerShell(noWorkdir) + "); exit 1 }\n")
	case t.dir != t.work:
		b.WriteString("Set-Location -LiteralPath " + dir + " -ErrorAction SilentlyContinue\n")
	}
	for _, v := range t.exports {
		b.WriteString("$env:" + v.name + " = " + quotePowerShell(v.value) + "\n")
	}
	b.WriteString("$global:LASTEXITCODE = 0\n")
	b.WriteString("try {\n# " + commandMark + "\n")
	lines := strings.Count(b.String(), "\n")
	b.WriteString(t.line)
	b.WriteString("\n$" + prefix + "ok = $?\n} finally {\n")
	if t.kept != "" {
		b.WriteString(powerShellEnd(t.kept))
	}
	b.WriteString("}\nif ($" + prefix + "ok) { exit 0 }\nif ($LASTEXITCODE) { exit $LASTEXITCODE }\nexit 1\n")
	return b.String(), lines
}

// powerShellEnd leaves the state behind in the form in which sh does.
func powerShellEnd(kept string) string {
	return strings.Join([]string{
		"try {",
		"$" + prefix + "kept = @([Environment]::GetEnvironmentVariables().GetEnumerator() | Where-Object { $_.Key -match '^[A-Za-z_][A-Za-z0-9_]*$' } |",
		`ForEach-Object { 'export ' + $_.Key + "='" + ([string]$_.Value).Replace("'", "'\''") + "'" })`,
		"$" + prefix + "kept += @(" + quotePowerShell(strings.TrimSpace(dirMark)) + ", (Get-Location -PSProvider FileSystem).ProviderPath, " + quotePowerShell(endMark) + ")",
		"[IO.File]::WriteAllText(" + quotePowerShell(kept) + ", ($" + prefix + "kept -join \"`n\"), (New-Object Text.UTF8Encoding $false))",
		"} catch { }",
		"",
	}, "\n")
}

// quotePowerShell makes one string of a text for PowerShell, where the printed forms
// of the apostrophe end a string as well.
func quotePowerShell(s string) string {
	var b strings.Builder
	b.WriteByte('\'')
	for _, r := range s {
		if strings.ContainsRune("'\u2018\u2019\u201a\u201b", r) {
			b.WriteRune(r)
		}
		b.WriteRune(r)
	}
	b.WriteByte('\'')
	return b.String()
}
