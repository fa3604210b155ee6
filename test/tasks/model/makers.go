package model

import (
	"math/rand/v2"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/metier-run/metier/test/tasks/task"
)

// view is what a maker sees of a plan: the right rounds, and the files before each.
type view struct {
	steps []task.Round
	trees []task.Tree
	rng   *rand.Rand
}

// maker spoils call j of step i, if the fault can be made there.
type maker func(v view, i, j int) (injection, bool)

// makers are the ways to spoil a round, by the name of the fault in faults.toml.
func makers() map[string]maker {
	return map[string]maker{
		"forgotten-install":   forgottenInstall,
		"foreign-installer":   foreignInstaller,
		"install-options":     installOptions,
		"guessed-api":         guessedAPI,
		"drifted-context":     driftedContext,
		"copied-line-numbers": copiedLineNumbers,
		"ambiguous-hunk":      ambiguousHunk,
		"broken-syntax":       brokenSyntax,
		"lost-end":            lostEnd,
		"fenced-patch":        fencedPatch,
		"carriage-returns":    carriageReturns,
		"unified-diff":        unifiedDiff,
		"patch-in-shell":      patchInShell,
		"patch-through-pipe":  patchThroughPipe,
		"string-replacement":  stringReplacement,
		"overwritten-file":    overwrittenFile,
		"retyped-file":        retypedFile,
		"misspelled-path":     misspelledPath,
		"read-directory":      readDirectory,
		"rooted-path":         rootedPath,
		"path-from-trace":     pathFromTrace,
		"python-spelling":     pythonSpelling,
		"trailing-ampersand":  trailingAmpersand,
		"repeated-failure":    repeatedFailure,
		"misread-exit":        misreadExit,
		"other-arguments":     otherArguments,
		"command-as-list":     commandAsList,
		"unknown-tool":        unknownTool,
	}
}

func (v view) call(i, j int) task.Call { return v.steps[i][j] }

// alone says whether a step is one call of a tool.
func (v view) alone(i int, tool string) bool {
	return len(v.steps[i]) == 1 && v.steps[i][0].Tool == tool
}

// swap sends another call in the place of one; the right one is the fix.
func (v view) swap(i, j int, c task.Call) injection {
	round := slices.Clone(v.steps[i])
	right := round[j]
	c.Fails, c.Benign = false, false
	round[j] = c
	return injection{
		at: i, faulty: round, fix: []task.Round{{right}}, tool: right.Tool,
		look: task.Round{command("pwd && ls -la")},
	}
}

// --- packages

var installs = regexp.MustCompile(`^(pip|npm) install ([^&]+?)(?: && (.+))?$`)

// install reads an install out of a step of one command.
func (v view) install(i int) (tool, packages, rest string, ok bool) {
	if !v.alone(i, task.Shell) {
		return "", "", "", false
	}
	m := installs.FindStringSubmatch(v.steps[i][0].Text("command"))
	if m == nil {
		return "", "", "", false
	}
	return m[1], m[2], m[3], true
}

func forgottenInstall(v view, i, j int) (injection, bool) {
	tool, packages, rest, ok := v.install(i)
	if !ok {
		return injection{}, false
	}
	name := packages
	if file, ok := strings.CutPrefix(packages, "-r "); ok {
		name = string(v.trees[i][file])
	}
	name, _, _ = strings.Cut(name, "==")
	words := map[string]string{"dist": name}
	if rest != "" {
		in := v.swap(i, j, v.call(i, j).With("command", rest))
		in.words, in.look = words, installed(tool)
		return in, true
	}
	for k := i + 1; k < len(v.steps); k++ {
		if !v.alone(k, task.Shell) {
			continue
		}
		c := v.steps[k][0]
		if !starts(c) {
			return injection{}, false
		}
		both := c.With("command", tool+" install "+packages+" && "+c.Text("command"))
		return injection{
			at: k, silent: map[int]task.Round{i: nil}, faulty: v.steps[k],
			fix: []task.Round{{both}}, look: installed(tool), words: words, tool: task.Shell,
		}, true
	}
	return injection{}, false
}

// starts says whether a command runs a program of the workspace.
func starts(c task.Call) bool {
	text := c.Text("command")
	return strings.HasPrefix(text, "python3 ") || strings.HasPrefix(text, "node ")
}

func installed(tool string) task.Round {
	if tool == "npm" {
		return task.Round{command("ls node_modules")}
	}
	return task.Round{command("python3 -m pip list")}
}

func foreignInstaller(v view, i, j int) (injection, bool) {
	if tool, _, _, ok := v.install(i); !ok || tool != "pip" {
		return injection{}, false
	}
	return v.swap(i, j, v.call(i, j).With("command", "uv "+v.call(i, j).Text("command"))), true
}

func installOptions(v view, i, j int) (injection, bool) {
	tool, _, _, ok := v.install(i)
	if !ok {
		return injection{}, false
	}
	more := map[string]string{"pip": "pip install --user -U ", "npm": "npm install --silent --save "}[tool]
	text := strings.Replace(v.call(i, j).Text("command"), tool+" install ", more, 1)
	return v.swap(i, j, v.call(i, j).With("command", text)), true
}

// --- libraries

// guesses are names of the standard library, and what a model that has not looked
// takes them for. They are too far from the right ones for the interpreter's own
// suggestion.
func guesses() []struct{ right, wrong, module, object string } {
	return []struct{ right, wrong, module, object string }{
		{"DictReader", "DictionaryReader", "csv", "csv"},
		{"most_common", "top_items", "collections", "collections.Counter"},
	}
}

func guessedAPI(v view, i, j int) (injection, bool) {
	c := v.call(i, j)
	if c.Tool != task.WriteFile {
		return injection{}, false
	}
	for _, g := range guesses() {
		word := regexp.MustCompile(`\.` + g.right + `\(`)
		if len(word.FindAllString(c.Text("content"), -1)) != 1 {
			continue
		}
		wrong := func(text string) string { return word.ReplaceAllLiteralString(text, "."+g.wrong+"(") }
		silent := slices.Clone(v.steps[i])
		silent[j] = c.With("content", wrong(c.Text("content")))
		for k := i + 1; k < len(v.steps); k++ {
			if !v.alone(k, task.Shell) || !starts(v.steps[k][0]) || !strings.Contains(v.steps[k][0].Text("command"), c.Text("path")) {
				continue
			}
			line := lineWith(string(v.trees[k][c.Text("path")]), word)
			return injection{
				at: k, silent: map[int]task.Round{i: silent}, faulty: v.steps[k],
				fix:  []task.Round{{lineFix(c.Text("path"), wrong(line), line)}, v.steps[k]},
				look: task.Round{command(`python3 -c "import ` + g.module + `; print(dir(` + g.object + `))"`)},
				tool: task.Shell, words: map[string]string{"right": g.right},
			}, line != ""
		}
	}
	return injection{}, false
}

func lineWith(text string, re *regexp.Regexp) string {
	for line := range strings.Lines(text) {
		if re.MatchString(line) {
			return strings.TrimRight(line, "\r\n")
		}
	}
	return ""
}

// lineFix is a patch of one line.
func lineFix(name, from, to string) task.Call {
	return patchCall("*** Begin Patch\n*** Update File: " + name + "\n@@\n-" + from + "\n+" + to + "\n*** End Patch")
}

func patchCall(text string) task.Call {
	return task.Call{Tool: task.ApplyPatch, Args: map[string]any{"patch": text}}
}

// --- files

func misspelledPath(v view, i, j int) (injection, bool) {
	c := v.call(i, j)
	name := c.Text("path")
	base := path.Base(name)
	stem := strings.TrimSuffix(base, path.Ext(base))
	if c.Tool != task.ReadFile || len(stem) < 3 {
		return injection{}, false
	}
	at := 1 + v.rng.IntN(len(stem)-1)
	wrong := path.Join(path.Dir(name), base[:at]+base[at+1:])
	in := v.swap(i, j, c.With("path", wrong))
	in.words, in.look = map[string]string{"base": base}, list(name)
	return in, !strings.Contains(wrong, base)
}

// list looks into the folder of a file.
func list(name string) task.Round { return task.Round{command("ls " + path.Dir(name))} }

func readDirectory(v view, i, j int) (injection, bool) {
	c := v.call(i, j)
	if c.Tool != task.ReadFile {
		return injection{}, false
	}
	name := c.Text("path")
	in := v.swap(i, j, c.With("path", path.Dir(name)))
	in.words, in.look = map[string]string{"base": path.Base(name)}, list(name)
	return in, true
}

// elsewhere is the folder of a machine that the model has seen in its training.
const elsewhere = "/home/user/project/"

func rootedPath(v view, i, j int) (injection, bool) {
	c := v.call(i, j)
	switch c.Tool {
	case task.ReadFile:
		in := v.swap(i, j, c.With("path", elsewhere+c.Text("path")))
		in.words, in.look = map[string]string{"path": c.Text("path")}, task.Round{command("pwd && ls -la")}
		return in, true
	case task.ApplyPatch:
		sections, err := task.ParsePatch(c.Text("patch"))
		if err != nil || len(sections) == 0 {
			return injection{}, false
		}
		text := strings.Replace(c.Text("patch"), " File: ", " File: "+elsewhere, 1)
		in := v.swap(i, j, c.With("patch", text))
		in.words = map[string]string{"path": sections[0].Path}
		return in, true
	}
	return injection{}, false
}

func pathFromTrace(v view, i, j int) (injection, bool) {
	c := v.call(i, j)
	if c.Tool != task.ReadFile || i == 0 || !v.alone(i-1, task.Shell) || !v.steps[i-1][0].Fails {
		return injection{}, false
	}
	in := v.swap(i, j, c.With("path", "{{seen}}"))
	in.seen = regexp.MustCompile(`File "([^"\n]*` + regexp.QuoteMeta(path.Base(c.Text("path"))) + `)", line`)
	in.look = list(c.Text("path"))
	return in, true
}
