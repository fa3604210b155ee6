package skill

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/guard"
	"github.com/metier-run/metier/internal/interpreter"
	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/tool"
	"github.com/metier-run/metier/internal/workspace/diagnose"
	"github.com/metier-run/metier/internal/workspace/install"
	"github.com/metier-run/metier/skill"
)

// What the messages of interpreters and systems look like.
var (
	noNetwork  = regexp.MustCompile(`(?i:name resolution|name or service not known|nodename nor servname|network is unreachable|could not resolve host)|\b(?:ENETUNREACH|EAI_AGAIN|ENOTFOUND)\b`)
	noWrite    = regexp.MustCompile(`(?i:read-only file system)|\bEROFS\b`)
	notAllowed = regexp.MustCompile(`(?i:permission denied|operation not permitted)|\b(?:EACCES|EPERM)\b`)
	noSuchFile = regexp.MustCompile(`(?i:no such file or directory)|\b(?:ENOENT|FileNotFoundError)\b`)
	badJSON    = regexp.MustCompile(`JSONDecodeError|Unexpected token|JSON at position|in JSON|(?i)(?:invalid|malformed|parse).{0,20}json|json.{0,20}(?:parse|invalid)|Expecting (?:value|property name|',' delimiter)`)
	newSyntax  = regexp.MustCompile(`SyntaxError: |TypeError: unsupported operand type\(s\) for \||TypeError: 'type' object is not subscriptable|ImportError: cannot import name '\w+' from 'typing'|unexpected keyword argument 'strict'`)
)

// firstPlainPython is the minor version of Python 3 from which on a script may expect
// the syntax that is in use (B1 15.6).
const firstPlainPython = 10

// hints says what the host knows of a failure and the output does not say.
func (r report) hints(ctx context.Context) []string {
	if r.ended.OK() {
		return nil
	}
	var hints []string
	add := func(hint string) {
		if hint != "" {
			hints = append(hints, hint)
		}
	}
	output := r.output()
	add(r.module(ctx))
	add(r.oldPython(output))
	add(r.json(output))
	if r.network == sandbox.NetworkDenied && noNetwork.MatchString(output) {
		add(hintNetwork)
	}
	if noWrite.MatchString(output) || r.deniedInSkill(output) {
		add(hintReadOnly)
	}
	add(r.absent(output))
	return hints
}

// module is about a module that was not found (B1 15.5, 10.3).
func (r report) module(ctx context.Context) string {
	f := r.read(ctx)
	m, missing := f.Module, f.Class == diagnose.MissingModule
	if m.Name == "" {
		// The class may speak of something else, and the module still be the skill's.
		m, _ = diagnose.Missing(r.output())
	}
	if at := partOf(r.skill, m.Name); m.Name != "" && at != "" {
		return fmt.Sprintf(hintOwnModule, m.Name, at)
	}
	switch {
	case !missing && m.Name != "" && m.Distribution == "": // a part of the language
		if text := f.Coach(); text != "" {
			return fmt.Sprintf(hintOf, text)
		}
		return ""
	case !missing:
		return ""
	case r.place == nil || !r.place.options(ctx).Allowed:
		return fmt.Sprintf(hintNoModule, m.Name)
	}
	kind := m.Tool.Interpreter()
	line := installLine(install.KindOf(kind), []string{m.Distribution})
	reason, again, failed := r.place.Packages.Failed(kind, m.Distribution)
	reading := install.Read(line, r.place.options(ctx))
	switch {
	case failed && again:
		return fmt.Sprintf(hintNotYet, m.Distribution, reason)
	case failed:
		return fmt.Sprintf(hintNotInstalled, m.Distribution, reason)
	case reading.Refusal != "":
		return fmt.Sprintf(hintUnlisted, m.Distribution)
	case r.place.Packages.Has(kind, m.Distribution), len(reading.Requests) == 1 && len(reading.Requests[0].Needs()) == 0:
		return fmt.Sprintf(hintUnusable, m.Distribution, m.Name)
	}
	return fmt.Sprintf(hintInstall, m.Distribution, line)
}

// partOf is the folder or the module of a skill that has a name, or empty.
func partOf(k skill.Skill, name string) string {
	for _, f := range k.Files {
		for at := path.Dir(f.Path); at != "."; at = path.Dir(at) {
			if path.Base(at) == name {
				return at
			}
		}
		if stem(path.Base(f.Path)) == name && f.Kind == skill.KindScript {
			return f.Path
		}
	}
	return ""
}

// oldPython is about syntax that the host's Python is too old for.
func (r report) oldPython(output string) string {
	major, rest, _ := strings.Cut(r.with.Version, ".")
	text, _, _ := strings.Cut(rest, ".")
	minor, err := strconv.Atoi(text)
	if r.with.Kind != interpreter.Python || err != nil || major == "3" && minor >= firstPlainPython || !newSyntax.MatchString(output) {
		return ""
	}
	return fmt.Sprintf(hintOldPython, r.with.Version)
}

// deniedInSkill reports whether a line of the output says that something in the
// skill may not be written.
func (r report) deniedInSkill(output string) bool {
	for line := range strings.Lines(output) {
		if notAllowed.MatchString(line) && strings.Contains(line, r.skill.Name+"/") {
			return true
		}
	}
	return false
}

// absent is about a file that is not there: an argument that names one of the skill's,
// or a working directory that is not where the model thinks.
func (r report) absent(output string) string {
	if !noSuchFile.MatchString(output) {
		return ""
	}
	for _, arg := range r.args {
		if f, err := r.skill.Lookup(arg); err == nil && strings.Contains(output, arg) {
			if r.place != nil {
				return fmt.Sprintf(hintSkillFileHere, arg, r.skill.Name, f.Path)
			}
			return fmt.Sprintf(hintSkillFile, arg)
		}
	}
	switch {
	case r.place == nil:
		return hintNoFile
	case r.here() == ".":
		return hintNoFileHere
	}
	return fmt.Sprintf(hintNoFileIn, r.here())
}

// json is about an argument that is JSON, or names a file of it, and is not valid: the
// script is not to blame then (B1 15.7).
func (r report) json(output string) string {
	if !badJSON.MatchString(output) {
		return ""
	}
	for i, arg := range r.args {
		trimmed := strings.TrimSpace(arg)
		if strings.HasPrefix(trimmed, "{") || strings.HasPrefix(trimmed, "[") {
			if what := jsonMistake(arg); what != "" {
				return fmt.Sprintf(hintJSONArgument, i+1, what)
			}
			continue
		}
		for _, folder := range [][2]string{{r.root, r.here()}, {r.script.dir, "."}} {
			text, ok := smallFile(folder[0], folder[1], arg)
			if what := jsonMistake(text); ok && what != "" {
				return fmt.Sprintf(hintJSONFile, arg, what)
			}
		}
	}
	return ""
}

// jsonFileBytes is the size of a file of arguments beyond which it is not looked
// into: reading it is a courtesy.
const jsonFileBytes = 1 << 20

// smallFile reads a file in a directory that a script may have written to, by its path
// from a folder there.
func smallFile(dir, from, name string) (string, bool) {
	if !strings.EqualFold(filepath.Ext(name), ".json") {
		return "", false
	}
	if rel, err := filepath.Rel(dir, name); filepath.IsAbs(name) && err == nil {
		from, name = ".", filepath.ToSlash(rel)
	}
	root, err := guard.OpenRoot(dir)
	if err != nil {
		return "", false
	}
	defer root.Close()
	f, err := root.Open(path.Join(from, name))
	if err != nil {
		return "", false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Size() > jsonFileBytes {
		return "", false
	}
	text, err := io.ReadAll(io.NewSectionReader(f, 0, info.Size()))
	return string(text), err == nil
}

// jsonMistake says where a text stops being JSON, with the lines around that; empty
// when it is JSON.
func jsonMistake(text string) string {
	d := jsontext.NewDecoder(strings.NewReader(text), lenient())
	_, err := d.ReadValue()
	if err == nil {
		if _, err = d.ReadToken(); errors.Is(err, io.EOF) {
			return ""
		}
	}
	offset := d.InputOffset()
	bad, ok := errors.AsType[*jsontext.SyntacticError](err)
	if ok {
		offset = bad.ByteOffset
	}
	offset = min(max(offset, 0), int64(len(text)))
	before := text[:offset]
	line := strings.Count(before, "\n") + 1
	column := len([]rune(before[strings.LastIndexByte(before, '\n')+1:])) + 1
	var b strings.Builder
	fmt.Fprintf(&b, hintJSONAt, line, column)
	lines := strings.Split(text, "\n")
	for n := max(line-1, 1); n <= min(line+1, len(lines)); n++ {
		shown, _ := tool.PlainText(lines[n-1])
		fmt.Fprintf(&b, hintJSONLine, n, clipLine(shown))
	}
	return b.String()
}

// longestLine is how many characters of a line are quoted.
const longestLine = 160

func clipLine(line string) string {
	runes := []rune(line)
	if len(runes) <= longestLine {
		return line
	}
	return string(runes[:longestLine]) + "..."
}
