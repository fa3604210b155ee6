package install

import (
	"slices"
	"strings"
)

// ask is a command that was recognised as an install, or as something that may
// hide one.
type ask struct {
	family family
	name   string // the tool's: pip, npm, yarn, apt-get; empty if unclear
	at     word   // names the program
	// shown is the command as a sentence names it: "python3 -m pip install".
	shown string
	verb  string
	// early are options before the verb, args all words behind it.
	early, args []word
	advice      string
	unclear     bool // the tool's name is only known when the shell runs
	script      []word
	input       bool // of a shell: it runs what it reads
}

// recognise says what a simple command asks for, if it asks for anything: the
// words of the command, without redirections and without what wraps it.
func (r *reader) recognise(words []word) (ask, bool) {
	words, told := r.unwrap(words)
	if told || len(words) == 0 {
		return ask{}, false
	}
	name := programOf(words[0])
	shown := clip(words[0].raw)
	if name == "" && len(words) > 2 && words[1].is("-m") {
		name = "python"
	}
	if name == "" {
		unclear := len(words) > 1 && words[1].is("install", "add", "i", "ci")
		return ask{unclear: unclear, shown: shown}, unclear
	}
	rest := words[1:]
	if name == "python" {
		var module string
		module, rest = moduleOf(rest)
		if !slices.Contains(modules(), module) {
			return ask{}, false
		}
		name, shown = module, shown+" -m "+module
	}
	t, known := r.tools[name]
	if !known {
		return ask{}, false
	}
	a := ask{family: t.family, name: name, at: words[0], shown: shown, advice: t.advice}
	switch t.family {
	case shell:
		a.script, a.input = scriptOf(name, rest)
		if a.shown = shown; !a.input {
			a.shown += " -c"
		}
		return a, a.input || a.script != nil
	case evals:
		a.script = rest
		return a, len(rest) > 0
	case traps:
		a.script = trapped(rest)
		return a, a.script != nil
	case feeds:
		return r.fed(a, rest)
	}
	return a.withVerb(t, rest)
}

// unwrap drops what runs the command that follows it, such as sudo and env. Told
// is true when the wrapper only tells about that command.
func (r *reader) unwrap(words []word) (rest []word, told bool) {
	for len(words) > 0 {
		w, wraps := r.wrappers[programOf(words[0])]
		if !wraps {
			return words, false
		}
		words = words[1:]
		for len(words) > 0 && (words[0].isOption() || w.assigns && assignment(words[0])) {
			name, _, attached := words[0].option()
			switch {
			case strings.Contains(w.asks, " "+name+" "):
				return nil, true
			case !words[0].isOption():
				_, value, _ := strings.Cut(words[0].raw, "=")
				r.setting(name, value)
			case words[0].is("--"):
			case !attached && strings.Contains(w.valued, " "+name+" ") && len(words) > 1:
				words = words[1:]
			}
			words = words[1:]
		}
		words = words[min(w.operands, len(words)):]
	}
	return nil, false
}

func assignment(w word) bool {
	name, _, set := strings.Cut(w.text, "=")
	return set && name != "" && strings.IndexFunc(name, func(c rune) bool {
		return c != '_' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z')
	}) < 0
}

// moduleOf is the module that python is told to run, and the words that are for
// the module.
func moduleOf(words []word) (string, []word) {
	for i := 0; i < len(words); i++ {
		w := words[i]
		if !w.isOption() || w.expands || strings.HasPrefix(w.text, "--") {
			return "", nil
		}
		at := strings.IndexAny(w.text, "cmWX")
		switch {
		case at < 0:
		case w.text[at] == 'c':
			return "", nil
		case w.text[at] == 'm' && at+1 < len(w.text):
			return w.text[at+1:], words[i+1:]
		case w.text[at] == 'm' && i+1 < len(words):
			return words[i+1].text, words[i+2:]
		case at+1 == len(w.text):
			i++ // the value of -W or -X
		}
	}
	return "", nil
}

// scriptOf is the word that holds what a shell is told to run, in a list of one; nil if
// it runs a file, or what it reads, which is its input.
func scriptOf(name string, words []word) (script []word, input bool) {
	operands := 0
	if name == "su" {
		operands = 1 // the user
	}
	for i := 0; i < len(words); i++ {
		w := words[i]
		switch {
		case !w.isOption() && !strings.HasPrefix(w.text, "+"):
			if operands--; operands < 0 {
				return nil, false // a file, and all behind it is for the file
			}
		case w.is("-s"):
			return nil, true
		case w.is("--command"), !strings.HasPrefix(w.text, "--") && strings.Contains(w.text, "c"):
			at := slices.IndexFunc(words[i+1:], func(w word) bool { return !w.isOption() })
			if at < 0 {
				return nil, false
			}
			return words[i+1+at : i+2+at], false
		case w.is("-o", "+o", "-O", "+O"):
			i++
		}
	}
	return nil, true
}

// trapped is the word that holds what a trap is to run, in a list of one.
func trapped(words []word) []word {
	if len(words) > 0 && words[0].is("--") {
		words = words[1:]
	}
	if len(words) < 2 || words[0].isOption() {
		return nil
	}
	return words[:1]
}

// fed recognises an install that gets its words from elsewhere: from the input of
// xargs, or from find. It may stand at any word, behind options that nobody
// knows.
func (r *reader) fed(a ask, words []word) (ask, bool) {
	for i, w := range words {
		name := programOf(w)
		if name == "python" {
			if module, rest := moduleOf(words[i+1:]); module == "pip" && len(rest) > 0 && rest[0].is("install") {
				a.shown += " ... " + clip(w.raw) + " -m pip install"
				return a, true
			}
		}
		t, known := r.tools[name]
		switch {
		case !known || t.family == feeds || t.family == evals || t.family == traps:
		case t.family == shell:
			script, _ := scriptOf(name, words[i+1:])
			if _, asks := r.hidden(script); asks {
				a.shown += " ... " + clip(w.raw) + " -c"
				return a, true
			}
		case t.family == runner:
			a.shown += " ... " + clip(w.raw)
			return a, true
		default:
			if verb, n := verbAt(t.verbs, words[i+1:]); n > 0 {
				a.shown += " ... " + clip(w.raw) + " " + verb
				return a, true
			}
		}
	}
	return a, false
}

// hidden is the install that a text for a shell seems to hold, in one word or in all of
// them together.
func (r *reader) hidden(script []word) (command string, found bool) {
	var raw, text []string
	for _, w := range script {
		raw, text = append(raw, w.raw), append(text, w.text)
	}
	for _, piece := range slices.Concat(raw, text, []string{strings.Join(raw, " "), strings.Join(text, " ")}) {
		if command, found = r.mentioned(piece); found {
			return command, true
		}
	}
	return "", false
}

// withVerb tells by its verb whether a command of a tool is an install.
func (a ask) withVerb(t tool, words []word) (ask, bool) {
	at := slices.IndexFunc(words, func(w word) bool { return !w.isOption() })
	if probe(words, at, t.family == runner) {
		return ask{}, false
	}
	if t.family == runner || len(t.verbs) == 0 {
		a.args = words
		return a, len(words) > 0
	}
	if i := slices.IndexFunc(words, func(w word) bool { return w.isOption() && slices.Contains(t.verbs, w.text) }); i >= 0 {
		return a.split(words, i, words[i].text, 1), true
	}
	if at < 0 {
		// Of the tools here, only yarn and bundle do something without a verb.
		a.early, a.verb = words, "install"
		return a, a.name == "yarn" || a.name == "bundle"
	}
	// The value of an option that is not known looks like the verb.
	for i := at; i < len(words) && (i == at || i == at+1 && at > 0); i++ {
		if verb, n := verbAt(t.verbs, words[i:]); n > 0 {
			a = a.split(words, i, verb, n)
			return a, a.name != "go" || verb != "install" || fetches(a.args)
		}
		if verb, n := verbAt(t.runs, words[i:]); n > 0 {
			a = a.split(words, i, verb, n)
			a.family = runner
			return a, true
		}
	}
	return a, false
}

// fetches says whether go install names something that is not in the workspace.
func fetches(words []word) bool {
	return slices.ContainsFunc(words, func(w word) bool { return !w.isOption() && !strings.HasPrefix(w.text, ".") })
}

func (a ask) split(words []word, at int, verb string, n int) ask {
	a.verb, a.shown = verb, a.shown+" "+verb
	a.early, a.args = words[:at], words[at+n:]
	return a
}

// verbAt is the verb of a list that words begin with, and of how many it is.
func verbAt(verbs []string, words []word) (string, int) {
	for _, v := range verbs {
		parts := strings.Fields(v)
		if len(parts) <= len(words) && !slices.ContainsFunc(words[:len(parts)], func(w word) bool { return w.expands }) &&
			slices.EqualFunc(parts, words[:len(parts)], func(p string, w word) bool { return p == w.text }) {
			return v, len(parts)
		}
	}
	return "", 0
}

// probe says whether a command only asks a tool for its version or its help: a
// single option behind at most the verb. The option may mean a package's version
// when there is more. What follows a runner's package is the package's.
func probe(words []word, verb int, runs bool) bool {
	if len(words) == 0 {
		return false
	}
	last := words[len(words)-1]
	if len(words) == 1 {
		return last.is("--version", "--help", "-h", "-V", "-v", "-help") || !runs && last.is("help", "version")
	}
	if runs {
		return false
	}
	if words[0].is("help") {
		return true
	}
	return verb == 0 && len(words) == 2 && last.is("--help", "-h") || slices.ContainsFunc(words, func(w word) bool { return w.is("--help") })
}

// mentioned is the install that a text that cannot be parsed seems to have as a
// command: the first words of a piece of it, cut at whatever may stand between
// commands. It is rather found than missed.
func (r *reader) mentioned(text string) (command string, found bool) {
	pieces := strings.FieldsFunc(text, func(c rune) bool { return strings.ContainsRune("\n;|&(){}`'\"", c) })
	for _, piece := range pieces {
		fields := strings.Fields(piece)
		for len(fields) > 0 && (leads(fields[0]) || assignment(word{text: fields[0]})) {
			fields = fields[1:]
		}
		var words []word
		for _, f := range fields {
			words = append(words, word{text: f, raw: f})
		}
		if a, asks := r.recognise(words); asks && a.family != shell && a.family != evals && a.family != traps {
			return strings.TrimRight(strings.Join(fields, " "), `\ `), true
		}
	}
	return "", false
}

// leads says whether a word of the shell's grammar may stand before a command.
func leads(text string) bool {
	switch text {
	case "if", "then", "else", "elif", "do", "while", "until", "!", "time", "coproc", "$":
		return true
	}
	return false
}
