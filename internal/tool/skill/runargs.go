package skill

import (
	"errors"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// runCall is what a model wrote for skills_run, as far as it can be understood.
type runCall struct {
	target
	args []string
	// line is what stood for the arguments, if that was one text.
	line string
	// packages are to be installed before the script runs (B1 3.1).
	packages []string
	// others counts further calls in the same list, which are not carried out.
	others int
}

// What is wrong with the arguments for a script. Running it with something else
// would report a result for what nobody asked (seed 1, the args bug).
var (
	errArgsObject = errors.New("args is an object")
	errArgsList   = errors.New("args begins like a list and is none of strings")
	errArgsQuote  = errors.New("a quote in args is not closed")
)

// parseRun reads whatever stands for the arguments of skills_run. A member "args"
// holds the script's own arguments there, so it is looked into for the call itself
// only where nothing beside it names a skill or a path.
func parseRun(text string) (runCall, error) {
	text = unfenced(text)
	if text == "" {
		return runCall{}, nil
	}
	v, ok := jsonValue(text)
	switch {
	case ok:
		return runOf(v, deepest)
	case bare(text):
		return runCall{target: target{skill: text}}, nil
	}
	return runCall{}, errNoObject
}

func runOf(v jsontext.Value, depth int) (runCall, error) {
	switch {
	case depth == 0 || v.Kind() == 'n':
		return runCall{}, nil
	case v.Kind() == '"':
		s := stringOf(v)
		if inner, ok := jsonValue(unfenced(s)); ok && structured(s) {
			return runOf(inner, depth-1)
		}
		return runCall{target: target{skill: s}}, nil
	case v.Kind() == '{':
		return runOfObject(membersOf(v), depth)
	case v.Kind() == '[':
		return runOfArray(elementsOf(v), depth)
	}
	return runCall{}, errNoObject
}

// runOfArray reads a list of calls, of which one is carried out, or of values:
// skill, path and arguments.
func runOfArray(elements []jsontext.Value, depth int) (runCall, error) {
	if len(elements) == 0 {
		return runCall{}, nil
	}
	if holdsObject(elements[0]) {
		c, err := runOf(elements[0], depth-1)
		c.others += len(elements) - 1
		return c, err
	}
	c := runCall{target: target{skill: first(words(elements[0]))}}
	if len(elements) > 1 {
		c.path = first(words(elements[1]))
	}
	var err error
	switch rest := elements[min(2, len(elements)):]; len(rest) {
	case 0:
	case 1:
		err = c.takeArgs(rest[0])
	default:
		c.args = verbatim(rest)
	}
	return c, err
}

// runOfObject reads the members by name.
func runOfObject(members []member, depth int) (runCall, error) {
	members = withoutToolName(members)
	surest := append(slices.Clone(skillKeys()[:surestSkillKeys]), runPathKeys()...)
	if pickMember(members, surest) == nil {
		if c, found, err := runInWrapper(members, depth, holdsCall); found {
			return c, err
		}
	}
	skills := pickMember(members, skillKeys())
	c := runCall{target: target{skill: first(words(skills)), path: pathOf(pickMember(members, runPathKeys()))}}
	if holdsObject(skills) {
		inner, err := runOf(skills, depth-1)
		if err != nil {
			return inner, err
		}
		c.skill = inner.skill
	}
	if c.target == (target{}) {
		c, _, err := runInWrapper(members, depth, func(jsontext.Value) bool { return true })
		return c, err
	}
	return runArgs(c, members, depth)
}

// runArgs reads the script's arguments, under the first key that holds any.
func runArgs(c runCall, members []member, depth int) (runCall, error) {
	c.packages = packagesOf(pickMember(members, packageKeys()))
	for _, key := range argsKeys() {
		v := memberOf(members, key)
		if c.path == "" && holdsObject(v) { // half of the call is in a wrapper
			inner, err := runOf(v, depth-1)
			c.path, c.args, c.line = inner.path, inner.args, inner.line
			if len(c.packages) == 0 {
				c.packages = inner.packages
			}
			return c, err
		}
		if err := c.takeArgs(v); err != nil || len(c.args) > 0 {
			return c, err
		}
	}
	return c, nil
}

// takeArgs reads the script's arguments.
func (c *runCall) takeArgs(v jsontext.Value) (err error) {
	if v.Kind() == '"' {
		c.line = rawString(v)
	}
	c.args, err = argsOf(v)
	return err
}

func packageKeys() []string { return []string{"packages", "package", "requirements", "dependencies"} }

// packagesOf reads packages: a list, also in a text, or a text with commas or
// semicolons between them. What no package can be called is kept, for who judges names.
func packagesOf(v jsontext.Value) []string {
	switch v.Kind() {
	case '[':
		return nonempty(verbatim(elementsOf(v)))
	case '"':
		text := stringOf(v)
		if list, ok := jsonValue(text); ok && list.Kind() == '[' {
			return nonempty(verbatim(elementsOf(list)))
		}
		return packagesIn(text)
	case '{', '0':
		return []string{string(v)}
	}
	return nil
}

func nonempty(texts []string) []string {
	for i, t := range texts {
		texts[i] = strings.TrimSpace(t)
	}
	return slices.DeleteFunc(texts, func(t string) bool { return t == "" })
}

// packagesIn tells packages in a text apart. A comparison belongs to the name before
// it, also behind a comma: "numpy>=1,<2".
func packagesIn(text string) []string {
	const comparison = "<>=!~"
	var found []string
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune(",;\n", r) }) {
		for i, word := range strings.Fields(part) {
			last := len(found) - 1
			switch {
			case last >= 0 && strings.IndexByte(comparison, word[0]) >= 0 && i == 0:
				found[last] += "," + word
			case last >= 0 && strings.IndexByte(comparison, word[0]) >= 0, last >= 0 && i > 0 && strings.IndexByte(comparison, found[last][len(found[last])-1]) >= 0:
				found[last] += word
			default:
				found = append(found, word)
			}
		}
	}
	return found
}

// withoutToolName drops the tool's own name from a call that was written whole.
func withoutToolName(members []member) []member {
	wrapped := slices.ContainsFunc(members, func(m member) bool { return wrapper(m.key) })
	return slices.DeleteFunc(slices.Clone(members), func(m member) bool {
		name := first(words(m.value))
		return m.key == "name" && (name == RunName || wrapped && (runs(name) || Means(name) != ""))
	})
}

// pathOf is the path in a value. A list of more than a path becomes a line, so that
// what else it holds is explained like arguments that are glued to a path, and not lost.
func pathOf(v jsontext.Value) string {
	parts := words(v)
	if len(parts) < 2 {
		return first(parts)
	}
	for i, part := range parts {
		parts[i] = "'" + strings.ReplaceAll(part, "'", `'\''`) + "'"
	}
	return strings.Join(parts, " ")
}

// runInWrapper reads a call in a member that may hold a whole one.
func runInWrapper(members []member, depth int, fits func(jsontext.Value) bool) (c runCall, found bool, err error) {
	for _, m := range members {
		if !wrapper(m.key) || !fits(m.value) {
			continue
		}
		if c, err := runOf(m.value, depth-1); isArgsError(err) || err == nil && c.target != (target{}) {
			return c, true, err
		}
	}
	return runCall{}, false, nil
}

// holdsCall reports whether a value is an object or a list of them.
func holdsCall(v jsontext.Value) bool {
	if v.Kind() != '[' {
		return holdsObject(v)
	}
	elements := elementsOf(v)
	return len(elements) > 0 && holdsObject(elements[0])
}

// surestSkillKeys is how many of the keys for a skill mean nothing else.
const surestSkillKeys = 3

// runPathKeys are the keys under which the path of a script comes.
func runPathKeys() []string {
	return append(pathKeys(), "script", "scriptname", "scriptfile", "command")
}

func argsKeys() []string {
	return []string{"args", "arguments", "argv", "scriptargs", "scriptarguments", "arglist"}
}

// pickMember is the value under the surest of the keys that holds anything.
func pickMember(members []member, keys []string) jsontext.Value {
	for _, key := range keys {
		if v := memberOf(members, key); first(words(v)) != "" || holdsObject(v) {
			return v
		}
	}
	return nil
}

func memberOf(members []member, key string) jsontext.Value {
	for _, m := range members {
		if m.key == key {
			return m.value
		}
	}
	return nil
}

// argsOf reads the script's arguments in every shape in which models send them
// (B1 4.7). Nothing in them is expanded.
func argsOf(v jsontext.Value) ([]string, error) {
	switch v.Kind() {
	case '[':
		return verbatim(elementsOf(v)), nil
	case '"':
		return argsIn(rawString(v))
	case '{':
		if len(membersOf(v)) > 0 {
			return nil, errArgsObject
		}
		return nil, nil
	case '0', 't', 'f':
		return []string{string(v)}, nil
	}
	return nil, nil
}

// verbatim takes each element as it is: the text of a string, and anything else as
// JSON. Nulls are no arguments.
func verbatim(elements []jsontext.Value) []string {
	var args []string
	for _, e := range elements {
		switch e.Kind() {
		case 'n':
		case '"':
			args = append(args, rawString(e))
		default:
			args = append(args, string(e))
		}
	}
	return args
}

// argsIn reads arguments in a text: a list of strings in JSON if it begins like
// one, or words as a shell would tell them apart.
func argsIn(text string) ([]string, error) {
	trimmed := strings.TrimSpace(text)
	if slices.Contains([]string{"null", "None", "undefined"}, trimmed) {
		return nil, nil
	}
	if !strings.HasPrefix(trimmed, "[") {
		return splitWords(text)
	}
	list, ok := jsonValue(trimmed)
	if !ok || list.Kind() != '[' {
		return nil, errArgsList
	}
	elements := elementsOf(list)
	if slices.ContainsFunc(elements, func(e jsontext.Value) bool { return e.Kind() != '"' }) {
		return nil, errArgsList
	}
	return verbatim(elements), nil
}

// rawString is the text of a valid string, white space included.
func rawString(v jsontext.Value) string {
	var s string
	if unmarshal(v, &s) != nil {
		return ""
	}
	return s
}

// splitWords tells words apart as a POSIX shell does, quotes and backslashes
// included, and expands nothing: "$", "*", "|" and the rest stand for themselves.
func splitWords(text string) ([]string, error) {
	var words []string
	var word strings.Builder
	begun := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case strings.IndexByte(" \t\r\n", c) >= 0:
			if begun {
				words, begun = append(words, word.String()), false
				word.Reset()
			}
		case c == '\'' || c == '"':
			n := quoted(&word, text[i:])
			if n == 0 {
				return nil, errArgsQuote
			}
			i, begun = i+n-1, true
		case c == '\\' && i+1 < len(text):
			i++
			if text[i] != '\n' {
				word.WriteByte(text[i])
				begun = true
			}
		default:
			word.WriteByte(c)
			begun = true
		}
	}
	if begun {
		words = append(words, word.String())
	}
	return words, nil
}

// quoted writes the inside of the quotes that text begins with and tells how long
// they are, or 0 if they are not closed.
func quoted(b *strings.Builder, text string) int {
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == text[0]:
			return i + 1
		case c == '\\' && text[0] == '"' && i+1 < len(text) && strings.IndexByte("\\\"$`\n", text[i+1]) >= 0:
			if i++; text[i] != '\n' {
				b.WriteByte(text[i])
			}
		default:
			b.WriteByte(c)
		}
	}
	return 0
}
