package config

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
)

// later are the sections of the design that this version does not read yet. They
// are known to the hints, so that a slip in their names is told apart from one
// in the version.
func later() []string {
	return []string{"agent", "skill", "plugin", "worker", "mcp", "children", "run", "remote"}
}

// unknown yields a problem for each key that nobody asked for, here and below.
func (t *Table) unknown() iter.Seq[Problem] {
	return func(yield func(Problem) bool) {
		for _, layer := range t.layers {
			for _, key := range layer.names() {
				if slices.Contains(t.known, key) {
					continue
				}
				for _, p := range t.stray(key, layer.table[key]) {
					if !yield(p) {
						return
					}
				}
			}
		}
		for _, below := range t.below() {
			for p := range below.unknown() {
				if !yield(p) {
					return
				}
			}
		}
	}
}

// below are the sections that were asked for.
func (t *Table) below() []*Table {
	var all []*Table
	for _, key := range sortedKeys(t.sections) {
		all = append(all, t.sections[key])
	}
	for _, key := range sortedKeys(t.named) {
		for _, id := range sortedKeys(t.named[key]) {
			all = append(all, t.named[key][id])
		}
	}
	return all
}

// stray says what is wrong with one key that nobody asked for, and names the
// secrets below it, since those should go before anything else is mended.
func (t *Table) stray(key string, n *node) []Problem {
	if n.kind != isTable {
		if n.kind == isText && secretName(key) {
			return []Problem{{At: n.at, Text: t.secret(key)}}
		}
		return []Problem{{At: n.at, Text: t.strayKey(key)}}
	}
	problems := []Problem{{At: n.at, Text: t.straySection(key, n)}}
	return append(problems, t.child(key).secrets(n)...)
}

func (t *Table) secrets(n *node) []Problem {
	var problems []Problem
	for _, key := range n.names() {
		switch child := n.table[key]; {
		case child.kind == isTable:
			problems = append(problems, t.child(key).secrets(child)...)
		case child.kind == isText && secretName(key):
			problems = append(problems, Problem{At: child.at, Text: t.secret(key)})
		}
	}
	return problems
}

// secretName reports whether a key's name says that its value is a secret.
// Variables that hold one are named by keys that end in env.
func secretName(key string) bool {
	words := strings.FieldsFunc(strings.ToLower(key), func(r rune) bool { return r == '-' || r == '_' || r == '.' })
	if len(words) == 0 {
		return false
	}
	switch words[len(words)-1] {
	case "token", "key", "apikey", "password", "passwd", "passphrase", "secret", "credential", "credentials":
		return true
	}
	return false
}

func (t *Table) secret(key string) string {
	hint := "put it into an environment variable"
	for _, name := range []string{key + "_env", key + "-env", "env", "api_key_env"} {
		if slices.Contains(t.known, name) {
			hint += ", and name that variable with " + name
			break
		}
	}
	if len(t.path) > 0 {
		key = t.title() + " " + key
	}
	return fmt.Sprintf("%s: a secret must not stand in this file: %s", key, hint)
}

func (t *Table) strayKey(key string) string {
	text := fmt.Sprintf("%s has no key %s", t.title(), quoteKey(key))
	if len(t.path) == 0 {
		text = fmt.Sprintf("no key %s stands before the sections", quoteKey(key))
	}
	if hint := meant(key, t.known); hint != "" {
		return text + hint
	}
	for _, s := range t.doc.top.below() {
		if near := nearest(key, s.known); near != "" && s != t {
			return text + fmt.Sprintf(": did you mean %s in %s?", quoteKey(near), s.title())
		}
	}
	if len(t.path) == 0 || len(t.known) == 0 {
		return text
	}
	return text + ": its keys are " + strings.Join(slices.Sorted(slices.Values(t.known)), ", ")
}

func (t *Table) straySection(key string, n *node) string {
	title := t.child(key).title()
	if len(t.path) == 0 {
		return t.straySectionAtTop(key, n)
	}
	text := fmt.Sprintf("there is no section %s", title)
	// [skills.pdf] was meant to be [skill.pdf].
	if len(t.path) == 1 {
		for _, name := range append(sortedKeys(t.doc.top.named), later()...) {
			if name != t.path[0] && singular(t.path[0]) == singular(name) {
				return text + fmt.Sprintf(": did you mean [%s.%s]?", quoteKey(name), quoteKey(key))
			}
		}
	}
	return text + meant(key, t.known)
}

func (t *Table) straySectionAtTop(key string, n *node) string {
	known := slices.Concat(sortedKeys(t.sections), sortedKeys(t.named))
	if slices.Contains(later(), key) && !slices.Contains(known, key) {
		return fmt.Sprintf("this version does not read the section [%s] yet", key)
	}
	// One section alone is written [near], one of many [near.id].
	like, id := sortedKeys(t.sections), ""
	for _, name := range n.names() {
		if n.table[name].kind == isTable {
			like, id = append(sortedKeys(t.named), later()...), "."+quoteKey(name)
			break
		}
	}
	text := fmt.Sprintf("there is no section [%s%s]", quoteKey(key), id)
	if near := nearest(key, like); near != "" {
		return text + fmt.Sprintf(": did you mean [%s%s]?", near, id)
	}
	return text + ": the sections are " + strings.Join(slices.Sorted(slices.Values(known)), ", ")
}

// meant asks whether a known word was meant, where one is near enough.
func meant(word string, known []string) string {
	if near := nearest(word, known); near != "" {
		return fmt.Sprintf(": did you mean %s?", quoteKey(near))
	}
	return ""
}

// nearest is the known word that is at most a third of the letters away, the
// spelling of joints and the plural not counted; empty when there is none.
func nearest(word string, known []string) string {
	best, distance := "", len(word)/3+1
	for _, k := range slices.Sorted(slices.Values(known)) {
		if d := edits(fold(word), fold(k)); d < distance {
			best, distance = k, d
		}
	}
	return best
}

func fold(word string) string {
	return singular(strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(word)))
}

func singular(word string) string { return strings.TrimSuffix(word, "s") }

// edits counts the letters to change, add, drop or swap.
func edits(a, b string) int {
	x, y := []rune(a), []rune(b)
	rows := [3][]int{make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)}
	for j := range rows[0] {
		rows[0][j] = j
	}
	before, last, now := rows[2], rows[0], rows[1]
	for i := 1; i <= len(x); i++ {
		now[0] = i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			now[j] = min(last[j]+1, now[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				now[j] = min(now[j], before[j-2]+1)
			}
		}
		before, last, now = last, now, before
	}
	return last[len(y)]
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
