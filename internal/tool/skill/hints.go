package skill

import (
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
	"github.com/metier-run/metier/skill"
)

// What the messages of interpreters and systems look like.
var (
	noPythonModule = regexp.MustCompile(`(?:ModuleNotFoundError|ImportError): No module named '?([\w.]+)'?`)
	noNodeModule   = regexp.MustCompile(`Cannot find (?:module|package) '([^'./][^']*)'`)
	noNetwork      = regexp.MustCompile(`(?i:name resolution|name or service not known|nodename nor servname|network is unreachable|could not resolve host)|\b(?:ENETUNREACH|EAI_AGAIN|ENOTFOUND)\b`)
	noWrite        = regexp.MustCompile(`(?i:read-only file system)|\bEROFS\b`)
	notAllowed     = regexp.MustCompile(`(?i:permission denied|operation not permitted)|\b(?:EACCES|EPERM)\b`)
	noSuchFile     = regexp.MustCompile(`(?i:no such file or directory)|\b(?:ENOENT|FileNotFoundError)\b`)
	badJSON        = regexp.MustCompile(`JSONDecodeError|Unexpected token|JSON at position|in JSON|(?i)(?:invalid|malformed|parse).{0,20}json|json.{0,20}(?:parse|invalid)|Expecting (?:value|property name|',' delimiter)`)
	newSyntax      = regexp.MustCompile(`SyntaxError: |TypeError: unsupported operand type\(s\) for \||TypeError: 'type' object is not subscriptable|ImportError: cannot import name '\w+' from 'typing'|unexpected keyword argument 'strict'`)
)

// firstPlainPython is the minor version of Python 3 from which on a script may expect
// the syntax that is in use (B1 15.6).
const firstPlainPython = 10

// failed is a script that did not end well, for finding out why.
type failedRun struct {
	script
	scratch string
	output  string
	network sandbox.NetworkMode
}

// hints says what the host knows of a failure and the output does not say.
func (f failedRun) hints() []string {
	var hints []string
	add := func(hint string) {
		if hint != "" {
			hints = append(hints, hint)
		}
	}
	add(f.module())
	add(f.oldPython())
	add(f.json())
	if f.network == sandbox.NetworkDenied && noNetwork.MatchString(f.output) {
		add(hintNetwork)
	}
	if noWrite.MatchString(f.output) || f.deniedInSkill() {
		add(hintReadOnly)
	}
	add(f.file())
	return hints
}

// module is about a module that was not found (B1 15.5).
func (f failedRun) module() string {
	name := ""
	if m := noPythonModule.FindStringSubmatch(f.output); m != nil {
		name, _, _ = strings.Cut(m[1], ".")
	} else if m := noNodeModule.FindStringSubmatch(f.output); m != nil {
		parts := strings.Split(m[1], "/")
		if name = parts[0]; name[0] == '@' && len(parts) > 1 {
			name += "/" + parts[1]
		}
	}
	if name == "" {
		return ""
	}
	if at := partOf(f.skill, name); at != "" {
		return fmt.Sprintf(hintOwnModule, name, at)
	}
	return fmt.Sprintf(hintNoModule, name)
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
func (f failedRun) oldPython() string {
	major, rest, _ := strings.Cut(f.with.Version, ".")
	text, _, _ := strings.Cut(rest, ".")
	minor, err := strconv.Atoi(text)
	if f.with.Kind != interpreter.Python || err != nil || major == "3" && minor >= firstPlainPython || !newSyntax.MatchString(f.output) {
		return ""
	}
	return fmt.Sprintf(hintOldPython, f.with.Version)
}

// deniedInSkill reports whether a line of the output says that something in the
// skill may not be written.
func (f failedRun) deniedInSkill() bool {
	for line := range strings.Lines(f.output) {
		if notAllowed.MatchString(line) && strings.Contains(line, f.skill.Name+"/") {
			return true
		}
	}
	return false
}

// file is about a file that is not there: an argument that names one of the skill's,
// or a working directory that is empty at the start.
func (f failedRun) file() string {
	if !noSuchFile.MatchString(f.output) {
		return ""
	}
	for _, arg := range f.args {
		if _, err := f.skill.Lookup(arg); err == nil && strings.Contains(f.output, arg) {
			return fmt.Sprintf(hintSkillFile, arg)
		}
	}
	return hintNoFile
}

// json is about an argument that is JSON, or names a file of it, and is not valid: the
// script is not to blame then (B1 15.7).
func (f failedRun) json() string {
	if !badJSON.MatchString(f.output) {
		return ""
	}
	for i, arg := range f.args {
		trimmed := strings.TrimSpace(arg)
		if strings.HasPrefix(trimmed, "{") || strings.HasPrefix(trimmed, "[") {
			if what := jsonMistake(arg); what != "" {
				return fmt.Sprintf(hintJSONArgument, i+1, what)
			}
			continue
		}
		for _, dir := range []string{f.scratch, f.dir} {
			text, ok := smallFile(dir, arg)
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

// smallFile reads a file in a directory that a script may have written to.
func smallFile(dir, name string) (string, bool) {
	if !strings.EqualFold(filepath.Ext(name), ".json") {
		return "", false
	}
	if rel, err := filepath.Rel(dir, name); filepath.IsAbs(name) && err == nil {
		name = filepath.ToSlash(rel)
	}
	root, err := guard.OpenRoot(dir)
	if err != nil {
		return "", false
	}
	defer root.Close()
	f, err := root.Open(name)
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
