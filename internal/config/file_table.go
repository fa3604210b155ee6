package config

import (
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"
)

// Table is a section as the files say it together. Each reader takes the keys
// that it knows by name and keeps its default where a key is not there. A value
// of the wrong type is a problem of the document, in whichever file it stands.
type Table struct {
	doc  *Document
	path []string
	// layers are the tables of the files that have the section, in order.
	layers []*node
	// known are the keys that were asked for; sections and named those of them
	// that are tables, and tables of tables.
	known    []string
	sections map[string]*Table
	named    map[string]map[string]*Table
}

// title is how errors name the table; empty for the top of the file.
func (t *Table) title() string {
	if len(t.path) == 0 {
		return ""
	}
	var parts []string
	for _, p := range t.path {
		parts = append(parts, quoteKey(p))
	}
	return "[" + strings.Join(parts, ".") + "]"
}

// quoteKey is a key as TOML writes it.
func quoteKey(key string) string {
	if key != "" && strings.Trim(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == "" {
		return key
	}
	return fmt.Sprintf("%q", key)
}

func (t *Table) ask(key string) {
	if !slices.Contains(t.known, key) {
		t.known = append(t.known, key)
	}
}

// find is the node of a key that is in force, nil when no file has it.
func (t *Table) find(key string) *node {
	for _, layer := range slices.Backward(t.layers) {
		if n := layer.table[key]; n != nil {
			return n
		}
	}
	return nil
}

// Has reports whether a file sets the key.
func (t *Table) Has(key string) bool { return t.find(key) != nil }

// At is where the value in force stands; where there is none, it is where the
// section begins.
func (t *Table) At(key string) Position {
	if n := t.find(key); n != nil {
		return n.at
	}
	if len(t.layers) == 0 {
		return Position{}
	}
	return t.layers[len(t.layers)-1].at
}

// Problem notes that a key's value is wrong, or that a key is missing; without a
// key it is about the section. The
// format must not hold a value that could be a secret.
func (t *Table) Problem(key, format string, args ...any) {
	subject := strings.TrimSpace(t.title() + " " + key)
	t.doc.problem(t.At(key), "%s: %s", subject, fmt.Sprintf(format, args...))
}

// Table is the section below this one that the key names. It may be empty.
func (t *Table) Table(key string) *Table {
	t.ask(key)
	if s := t.sections[key]; s != nil {
		return s
	}
	if t.sections == nil {
		t.sections = map[string]*Table{}
	}
	s := t.child(key)
	for _, layer := range t.layers {
		if n := layer.table[key]; n != nil {
			s.add(n, fmt.Sprintf("write it as a section, %s", s.title()))
		}
	}
	t.sections[key] = s
	return s
}

// Tables are the sections [key.<id>], in the order of their ids.
func (t *Table) Tables(key string) iter.Seq2[string, *Table] {
	t.ask(key)
	if t.named == nil {
		t.named = map[string]map[string]*Table{}
	}
	if t.named[key] == nil {
		t.named[key] = t.collect(key)
	}
	all := t.named[key]
	return func(yield func(string, *Table) bool) {
		for _, id := range sortedKeys(all) {
			if !yield(id, all[id]) {
				return
			}
		}
	}
}

func (t *Table) collect(key string) map[string]*Table {
	all := map[string]*Table{}
	group := t.child(key)
	for _, layer := range t.layers {
		n := layer.table[key]
		if n == nil {
			continue
		}
		hint := fmt.Sprintf("write a section for each, as in [%s.NAME]", quoteKey(key))
		group.add(n, hint)
		for _, id := range n.names() {
			one := all[id]
			if one == nil {
				one = group.child(id)
			}
			if one.add(n.table[id], hint) {
				all[id] = one
			}
		}
	}
	return all
}

func (t *Table) child(key string) *Table {
	return &Table{doc: t.doc, path: append(slices.Clone(t.path), key)}
}

// add takes one file's part of a section, and reports whether it is one.
func (t *Table) add(n *node, hint string) bool {
	if n.kind == isTable {
		t.layers = append(t.layers, n)
		return true
	}
	name := strings.Trim(t.title(), "[]")
	if n.kind == isText && secretName(t.path[len(t.path)-1]) {
		hint = "a secret must not stand in this file; " + hint
	}
	t.doc.problem(n.at, "%s is %s: %s", name, n.kind, hint)
	return false
}

// read converts a key's value in each file; the last one is in force.
func read[T any](t *Table, key, want string, convert func(*node) (T, bool)) (T, bool) {
	t.ask(key)
	var got T
	found := false
	for _, layer := range t.layers {
		n := layer.table[key]
		if n == nil {
			continue
		}
		v, ok := convert(n)
		if !ok {
			t.doc.problem(n.at, "%s %s: give %s; this is %s", t.title(), key, want, n.kind)
		}
		got, found = v, ok
	}
	return got, found
}

func scalar[T any](n *node) (T, bool) {
	v, ok := n.value.(T)
	return v, ok
}

// String reads a text that is not empty.
func (t *Table) String(key string, to *string) bool {
	v, ok := read(t, key, "a text in quotes", scalar[string])
	if ok && strings.TrimSpace(v) == "" {
		t.Problem(key, "it is empty: give a text, or leave the key out")
		return false
	}
	return set(to, v, ok)
}

// Bool reads true or false.
func (t *Table) Bool(key string, to *bool) bool {
	v, ok := read(t, key, "true or false", scalar[bool])
	return set(to, v, ok)
}

// Int reads a whole number from low to high.
func (t *Table) Int(key string, low, high int64, to *int64) bool {
	v, ok := read(t, key, fmt.Sprintf("a whole number from %d to %d", low, high), scalar[int64])
	if ok && (v < low || v > high) {
		t.Problem(key, "%d is out of range: give %d to %d", v, low, high)
		return false
	}
	return set(to, v, ok)
}

// Strings reads a list of texts.
func (t *Table) Strings(key string, to *[]string) bool {
	v, ok := read(t, key, `a list of texts, such as ["a", "b"]`, texts)
	return set(to, v, ok)
}

func texts(n *node) ([]string, bool) {
	all := []string{} // an empty list is set, too
	for _, e := range n.list {
		v, ok := e.value.(string)
		if !ok {
			return nil, false
		}
		all = append(all, v)
	}
	return all, n.kind == isList
}

// Path reads a path; a relative one is relative to the file that it stands in.
func (t *Table) Path(key string, to *string) bool {
	var v string
	if !t.String(key, &v) {
		return false
	}
	*to = resolve(t.At(key), v)
	return true
}

// Paths reads a list of paths, each as [Table.Path] does.
func (t *Table) Paths(key string, to *[]string) bool {
	var v []string
	if !t.Strings(key, &v) {
		return false
	}
	for i := range v {
		v[i] = resolve(t.At(key), v[i])
	}
	*to = v
	return true
}

func resolve(at Position, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(at.File), path)
}

// Choice reads one of the given words.
func (t *Table) Choice(key string, to *string, words ...string) bool {
	var v string
	if !t.String(key, &v) {
		return false
	}
	if !slices.Contains(words, v) {
		t.Problem(key, "%q is none of %s%s", v, strings.Join(words, ", "), meant(v, words))
		return false
	}
	*to = v
	return true
}

func set[T any](to *T, v T, ok bool) bool {
	if ok {
		*to = v
	}
	return ok
}
