package install

import (
	"path"
	"strings"
)

// family is how a tool's commands are read.
type family int

const (
	other  family = iota // an installer that the host cannot be in the place of
	pip                  // performed
	npm                  // performed: npm, pnpm, yarn
	runner               // fetches a package in order to run it: npx, uvx
	shell                // runs a text: sh -c
	evals                // the shell's eval
	traps                // the shell's trap
	feeds                // xargs, find: gives a command words from elsewhere
)

// tool is a row of the table of what is looked for in a line.
type tool struct {
	family family
	// verbs are the first words that make a command of the tool an install; of
	// two words when the first alone does not tell. Empty: every command is one.
	verbs []string
	// runs are verbs that fetch a package in order to run it.
	runs []string
	// advice is what to do instead.
	advice string
}

// tools is the table (B1 13.2), by the tool's name.
//
// Verbs that only look (uv pip list) or that work on what is there (go mod tidy,
// cargo build) are left out, so that they run; where they turn out to need the
// network, the command fails and says so.
func tools() map[string]tool {
	npmVerbs := []string{
		"install", "i", "in", "ins", "inst", "add", "ci", "clean-install", "ic",
		"update", "up", "upgrade", "exec", "x", "dlx", "init", "create", "innit", "install-test", "it", "global",
	}
	all := map[string]tool{
		"pip": {family: pip, verbs: []string{"install", "download", "wheel"}},
		"npm": {family: npm, verbs: npmVerbs}, "pnpm": {family: npm, verbs: npmVerbs}, "yarn": {family: npm, verbs: npmVerbs},

		"npx":  {family: runner, advice: useBinary},
		"bunx": {family: runner, advice: useBinary},
		"pnpx": {family: runner, advice: useBinary},
		"uvx":  {family: runner, advice: useModule},

		"uv": {
			verbs: []string{"pip install", "pip sync", "pip compile", "pip download", "add", "sync", "lock", "install", "python install", "tool install", "tool upgrade"},
			runs:  []string{"tool run"}, advice: usePip,
		},
		"pipx":         {verbs: []string{"install", "inject", "upgrade", "upgrade-all", "reinstall"}, runs: []string{"run"}, advice: usePip},
		"poetry":       {verbs: []string{"add", "install", "update", "lock", "sync"}, advice: usePip},
		"pipenv":       {verbs: []string{"install", "update", "sync", "lock", "upgrade"}, advice: usePip},
		"pdm":          {verbs: []string{"add", "install", "update", "lock", "sync"}, advice: usePip},
		"easy_install": {advice: usePip},
		"conda":        {verbs: []string{"install", "create", "update", "env create", "env update"}, advice: usePip},
		"bun":          {verbs: []string{"install", "i", "add", "a", "update"}, runs: []string{"x", "create"}, advice: useNpm},
		"deno":         {verbs: []string{"install", "i", "add"}, advice: useNpm},

		"go":       {verbs: []string{"get", "install", "mod download", "mod vendor"}, advice: otherLanguage},
		"cargo":    {verbs: []string{"install", "add", "fetch", "update", "binstall"}, advice: otherLanguage},
		"gem":      {verbs: []string{"install", "i", "update", "fetch"}, advice: otherLanguage},
		"bundle":   {verbs: []string{"install", "update", "add", "lock"}, advice: otherLanguage},
		"dotnet":   {verbs: []string{"restore", "add", "tool install", "tool restore", "tool update", "workload install"}, advice: otherLanguage},
		"composer": {verbs: []string{"install", "require", "update", "create-project"}, advice: otherLanguage},
		"luarocks": {verbs: []string{"install", "build"}, advice: otherLanguage},
		"cpan":     {advice: otherLanguage}, "cpanm": {advice: otherLanguage},

		"bash": {family: shell}, "sh": {family: shell}, "zsh": {family: shell}, "dash": {family: shell}, "ksh": {family: shell}, "ash": {family: shell}, "su": {family: shell},
		"eval": {family: evals}, "trap": {family: traps},
		"xargs": {family: feeds}, "parallel": {family: feeds}, "find": {family: feeds},
	}
	for _, name := range []string{"mamba", "micromamba"} {
		all[name] = all["conda"]
	}
	addSystem(all)
	return all
}

// addSystem adds the managers of the system's own packages.
func addSystem(all map[string]tool) {
	verbs := []string{"install", "update", "upgrade", "dist-upgrade", "full-upgrade", "reinstall", "build-dep", "download", "groupinstall", "localinstall", "add", "tap", "-S", "-Sy", "-Syu", "-U"}
	for _, name := range []string{"apt", "apt-get", "aptitude", "yum", "dnf", "microdnf", "zypper", "brew", "apk", "snap", "flatpak", "port", "pacman", "choco", "winget", "scoop"} {
		all[name] = tool{verbs: verbs, advice: noPrograms}
	}
}

// programOf is the name by which a command's first word is looked up: the last
// name of a path, without the ending of an executable file, and pip for pip3.12.
// Of "$VENV/bin/pip" it is pip.
func programOf(w word) string {
	text := w.text
	if w.expands {
		if !strings.Contains(w.tail, "/") {
			return ""
		}
		text = w.tail
	}
	name := withoutEnding(path.Base(text))
	if version(name, "pip") {
		return "pip"
	}
	if version(name, "python") || version(name, "pypy") || name == "py" {
		return "python"
	}
	return name
}

// withoutEnding is a name without the ending of an executable file.
func withoutEnding(name string) string {
	for _, ending := range []string{".exe", ".cmd", ".bat"} {
		name = strings.TrimSuffix(name, ending)
	}
	return name
}

// anyPython says whether a program's name does not tell which Python it is of: those of
// Python 3 that the host is asked for by default.
func anyPython(program word) bool {
	switch withoutEnding(program.text) {
	case "pip", "pip3", "python", "python3", "py":
		return true
	}
	return false
}

// version says whether a name is another with a version or nothing behind.
func version(name, of string) bool {
	rest, found := strings.CutPrefix(name, of)
	return found && strings.Trim(rest, "0123456789.") == ""
}

// modules are the installers that python -m runs.
func modules() []string {
	return []string{"pip", "uv", "pipx", "pipenv", "poetry", "pdm", "easy_install"}
}

// wrapper is a program that runs the command in its own arguments.
type wrapper struct {
	valued   string // its options that take the next word, with spaces around each
	operands int    // words before the command, as of timeout
	assigns  bool   // VAR=x may stand before the command, as of env
	asks     string // options with which it only tells about the command
}

func wrappers() map[string]wrapper {
	return map[string]wrapper{
		"sudo":    {valued: " -u -g -h -p -C -r -t -T -U -D -R --user --group --host --prompt --chdir ", assigns: true, asks: " -l -v --list --validate "},
		"doas":    {valued: " -u -C "},
		"env":     {valued: " -u -C --unset --chdir ", assigns: true},
		"command": {asks: " -v -V "},
		"builtin": {}, "exec": {valued: " -a "}, "nohup": {}, "setsid": {}, "chronic": {}, "unbuffer": {}, "caffeinate": {},
		"time":    {valued: " -f -o --format --output "},
		"nice":    {valued: " -n --adjustment "},
		"ionice":  {valued: " -c -n -p --class --classdata "},
		"timeout": {valued: " -k -s --kill-after --signal ", operands: 1},
		"stdbuf":  {valued: " -i -o -e --input --output --error "},
		"strace":  {valued: " -e -o -p -s "},
		"winpty":  {}, "busybox": {},
	}
}
