package syntax

import (
	"strings"
	"testing"

	"github.com/metier-run/metier/internal/config"
)

// native are files that are parsed without a launch, good and bad.
func native() []File {
	texts := []struct{ path, data string }{
		{"a.json", `{"a": [1, 2, {"b": null}]}` + "\n"},
		{"twice.json", `{"a": 1, "a": 2}`},
		{"comma.json", "{\n  \"a\": 1,\n  \"b\": 2,\n}\n"},
		{"quote.json", "{\n  'a': 1\n}\n"},
		{"open.json", "{\n  \"a\": [1, 2\n"},
		{"bare.json", "{\n  \"é\": nope\n}\n"},
		{"two.json", "{}\n{}\n"},
		{"empty.json", "\n"},
		{"bom.json", "\xef\xbb\xbf{}"},
		{"latin.json", "{\"a\": \"\xe9\"}"},
		{"nan.json", "[NaN]"},
		{"comment.json", "{\n  // why\n  \"a\": 1\n}\n"},
		{"book.ipynb", `{"cells": []}`},
		{"rows.jsonl", "{\"a\":1}\n\n{\"a\":2}\n"},
		{"rows.ndjson", "{\"a\":1}\n{\"a\":}\n{\"a\":3}\n"},
		{"main.go", "package main\n\nfunc main() {}\n"},
		{"bad.go", "package main\n\nfunc main() {\n\tx := \n}\n"},
		{"end.go", "package main\n\nfunc main() {\n"},
		{"run.sh", "#!/bin/bash\nset -e\nfor f in *; do\n  echo \"$f\"\ndone\n[[ a == b ]] && x=(1 2)\n"},
		{"fi.sh", "if true; then\n  echo hi\n"},
		{"quote.sh", "echo 'one\ntwo\n"},
		{"done.sh", "echo one\ndone\n"},
		{"script", "#!/usr/bin/env bash\necho )\n"},
		{"pyproject.toml", "[tool]\nname = \"x\"\n"},
		{"bad.toml", "[tool]\nname = x\n"},
		{"twice.toml", "a = 1\na = 2\n"},
		{"c.yaml", "a:\n  - b\n  - !Ref c\n---\nd: 1\n"},
		{"tab.yaml", "a:\n\tb: 1\n"},
		{"open.yml", "a: [1, 2\nb: 3\n"},
		{"colon.yml", "a: b: c\n"},
		{"escape.json", "{\n  \"a\": \x1b[31m1\n}\n"},
		{"long.json", "{\"a\": " + strings.Repeat("\"x\", ", 100) + "}\n"},
	}
	var files []File
	for _, t := range texts {
		files = append(files, File{Path: t.path, Data: []byte(t.data)})
	}
	return files
}

// TestNative: each file has a verdict, with the place, and each sentence is free of
// control characters.
func TestNative(t *testing.T) {
	verdicts := checkAll(t, New(Options{}), native()...)
	if len(verdicts) != len(native()) {
		t.Errorf("verdicts on %v", paths(verdicts))
	}
	text := told(verdicts)
	if strings.ContainsAny(text, "\x1b\x00\ufeff") {
		t.Error("a control character is quoted")
	}
	golden(t, "native.txt", text)
}

// TestSilent: where there is nothing to say, nothing is said.
func TestSilent(t *testing.T) {
	files := []File{
		{Path: "notes.txt", Data: []byte("if (")},
		{Path: "page.html", Data: []byte("<p")},
		{Path: "page.jsx", Data: []byte("<p>")},
		{Path: "Makefile", Data: []byte("a:")},
		{Path: "tsconfig.json", Data: []byte("{\n// a\n}")},
		{Path: ".vscode/settings.json", Data: []byte("{\n// a\n}")},
		{Path: "data.jsonc", Data: []byte("{,")},
		{Path: "film.ts", Data: []byte("\x47\x00\x01")},
		{Path: "z.sh", Data: []byte("#!/bin/zsh\necho )\n")},
		{Path: "perl", Data: []byte("#!/usr/bin/perl\n)")},
		{Path: "none", Data: []byte("#!\n)")},
		{Path: "null.sh", Data: []byte("echo \x00 )")},
		{Path: "deep.sh", Data: []byte(strings.Repeat("(", 100000))},
		{Path: "deep2.sh", Data: []byte(strings.Repeat("if ", 80000))},
		{Path: "long.sh", Data: []byte(strings.Repeat("# \n", 100000) + ")")},
		{Path: "deep.json", Data: []byte(strings.Repeat("[", 100000))},
		{Path: "chart/values.yaml", Data: []byte("a: {{ .Values.a }}: b\n")},
		{Path: "big.toml", Data: []byte(strings.Repeat("# \n", 300000) + "=")},
		// no launches without a runner
		{Path: "a.py", Data: []byte("def f(:")},
		{Path: "a.js", Data: []byte("let = ;")},
	}
	if found := checkAll(t, New(Options{}), files...); len(found) > 0 {
		t.Errorf("verdicts on %v", paths(found))
	}
}

// TestTooLarge: a file over the limit is not looked at.
func TestTooLarge(t *testing.T) {
	limits, err := config.Values{}.Set(config.FileSize, 1<<10)
	if err != nil {
		t.Fatal(err)
	}
	c := New(Options{Limits: limits})
	if found := checkAll(t, c, File{"a.json", []byte(strings.Repeat("x", 1<<10+1))}); len(found) > 0 {
		t.Error("a file over the limit has a verdict")
	}
	if found := checkAll(t, c, File{"a.json", []byte(strings.Repeat("x", 1<<10))}); len(found) != 1 || found[0].OK {
		t.Error("a file at the limit has none")
	}
}

// TestShown: the lines that a sentence holds whole are named, and no others.
func TestShown(t *testing.T) {
	long := strings.Repeat("1", 300)
	data := "{\n\"a\": [" + long + "],\n\"b\": \x011,\n\"c\": 2\n\"d\": 3\n}\n"
	v := checkAll(t, New(Options{}), File{"a.json", []byte(data)})
	if len(v) != 1 || v[0].Line != 3 || len(v[0].Shown) != 4 {
		t.Fatalf("%+v", v)
	}
	for _, n := range v[0].Shown {
		if n == 2 || n == 3 {
			t.Errorf("line %d is cut and counted as shown", n)
		}
	}
}

// TestReport: files that parse share a line.
func TestReport(t *testing.T) {
	got := Report([]Verdict{
		{Path: "a.py", Language: "Python 3.11", OK: true},
		{Path: "b.json", Language: "JSON", Message: "broken"},
		{Path: "c.py", Language: "Python 3.11", OK: true},
		{Path: "d.js", Language: "Node 20", OK: true},
	})
	golden(t, "report.txt", got+"\n")
}

func FuzzNative(f *testing.F) {
	for _, file := range native() {
		f.Add(file.Path, file.Data)
	}
	c := New(Options{})
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		found, err := c.Check(t.Context(), Place{}, []File{{name, data}})
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range found {
			text := v.Sentence()
			if strings.ContainsAny(text, "\x00\x1b\r\u202e\u200b") || len(text) > 8000 || v.Line < 0 || v.Column < 0 {
				t.Errorf("%+v: %q", v, text)
			}
			if !v.OK && v.Message == "" {
				t.Errorf("no message: %+v", v)
			}
		}
	})
}
