package seatbelt

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// expr is a word or a list of the profile's language.
type expr struct {
	word   string
	quoted bool // a string or an expression to match
	list   []expr
}

// token is a word, a string, an expression, a bracket, or something to skip.
var token = regexp.MustCompile(`#"[^"]*"|"(?:[^"\\]|\\.)*"|[()]|[^\s()";]+|;[^\n]*`)

// parse reads a whole profile.
func parse(t *testing.T, text string) []expr {
	t.Helper()
	stack := []expr{{}}
	for _, w := range token.FindAllString(text, -1) {
		top := &stack[len(stack)-1]
		switch {
		case w[0] == ';':
		case w == "(":
			stack = append(stack, expr{})
		case w == ")":
			if len(stack) < 2 {
				t.Fatal("a bracket is closed that was not opened")
			}
			done := *top
			stack = stack[:len(stack)-1]
			top = &stack[len(stack)-1]
			top.list = append(top.list, done)
		case strings.HasSuffix(w, `"`):
			top.list = append(top.list, expr{word: strings.TrimSuffix(w[strings.IndexByte(w, '"')+1:], `"`), quoted: true})
		default:
			top.list = append(top.list, expr{word: w})
		}
	}
	if len(stack) != 1 {
		t.Fatal("a bracket is not closed")
	}
	return stack[0].list
}

// attempt is something that a launch tries: an operation on a path, an address or
// a name.
type attempt struct {
	op     string
	path   string
	remote string // host:port
	socket string // path of a socket
	name   string // of a service
}

// evaluator decides as the kernel does: the last rule that matches.
type evaluator struct {
	rules  []expr
	params map[string]string
}

func newEvaluator(t *testing.T, p *profile) evaluator {
	t.Helper()
	e := evaluator{rules: parse(t, p.text.String()), params: map[string]string{}}
	for _, param := range p.params {
		name, value, _ := strings.Cut(param, "=")
		e.params[name] = value
	}
	return e
}

func (e evaluator) allowed(a attempt) bool {
	verdict := false
	for _, rule := range e.rules {
		verb := rule.list[0].word
		if verb == "version" {
			continue
		}
		var filters []expr
		hit := false
		for _, x := range rule.list[1:] {
			switch {
			case x.list != nil && x.list[0].word == "with":
			case x.list != nil:
				filters = append(filters, x)
			case x.word == "default" || x.word == a.op || strings.HasSuffix(x.word, "*") && strings.HasPrefix(a.op, strings.TrimSuffix(x.word, "*")):
				hit = true
			}
		}
		if hit && (len(filters) == 0 || e.any(filters, a)) {
			verdict = verb == "allow"
		}
	}
	return verdict
}

func (e evaluator) any(filters []expr, a attempt) bool {
	for _, f := range filters {
		if e.matches(f, a) {
			return true
		}
	}
	return false
}

func (e evaluator) matches(f expr, a attempt) bool {
	switch kind := f.list[0].word; kind {
	case "literal":
		return a.path == e.value(f.list[1])
	case "subpath":
		dir := e.value(f.list[1])
		return a.path == dir || strings.HasPrefix(a.path, dir+"/")
	case "regex", "path-regex":
		return a.path != "" && regexp.MustCompile(f.list[1].word).MatchString(a.path)
	case "global-name":
		return a.name == f.list[1].word
	case "global-name-regex":
		return a.name != "" && regexp.MustCompile(f.list[1].word).MatchString(a.name)
	case "remote", "local":
		if f.list[1].word == "unix-socket" {
			return a.socket != "" && e.matches(f.list[2], attempt{path: a.socket})
		}
		pattern := f.list[2].word
		return a.remote != "" && (pattern == "*:*" || pattern == a.remote)
	case "require-all", "target", "socket-domain", "sysctl-name", "sysctl-name-prefix", "iokit-registry-entry-class", "ipc-posix-name-prefix":
		return false // nothing here tries these
	default:
		panic(fmt.Sprintf("the filter %q is not known to the test", kind))
	}
}

func (e evaluator) value(x expr) string {
	if x.list != nil {
		value, known := e.params[x.list[1].word]
		if !known {
			panic("no value for the parameter " + x.list[1].word)
		}
		return value
	}
	return x.word
}
