package journal_test

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/journal"
)

var update = flag.Bool("update", false, "write the golden files that are missing; those that are there stay as they are")

// facts are journals that earlier builds wrote, and beside each what its facts hold, field
// by field, by the names of this package's own types. Neither is ever written again: there
// are databases full of such facts. A field that is added gets a journal of its own, and a
// new version of the facts a folder of its own. What journals fold to stands with the
// tests of turn.
const facts = "testdata/journals"

// newest names the journal that holds every field as the types have them now. Give it a
// new name when a field is added.
const newest = "dialects"

// TestFactsAreReadForEver: no member of a stored fact was renamed, given up, or read as
// another one. A round trip would not show that.
func TestFactsAreReadForEver(t *testing.T) {
	if *update {
		writeNew(t, filepath.Join(facts, "v1", newest+".jsonl"), everyField(t))
	}
	files, err := filepath.Glob(filepath.Join(facts, "v*", "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d journals, %v", len(files), err)
	}
	set := map[string]bool{}
	for _, file := range files {
		got := strings.Join(read(t, file, set), "\n") + "\n"
		golden := strings.TrimSuffix(file, ".jsonl") + ".facts"
		if *update {
			writeNew(t, golden, []byte(got))
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
			t.Errorf("%s is read as something else than it was (-then +now):\n%s", file, diff)
		}
	}
	for _, d := range every() {
		for _, field := range fields(string(d.Kind()), reflect.TypeOf(d)) {
			if !set[field] {
				t.Errorf("no journal sets %s: add a journal that does, and change none", field)
			}
		}
	}
}

// writeNew writes a file that is not there.
func writeNew(t *testing.T, file string, b []byte) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(b); err != nil {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// everyField is a journal of one fact of each kind, with every field set.
func everyField(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	for i, d := range every() {
		line, err := journal.Encode(journal.Event{
			Seq: int64(i + 1), Schema: journal.Schema, At: time.Date(2026, 12, 1, 9, 0, i, 5, time.UTC), TurnID: "t1", Anchor: "a", Data: d,
		})
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(line, '\n'))
	}
	return b.Bytes()
}

// read lists what the facts of a journal hold, and notes which fields they set.
func read(t *testing.T, file string, set map[string]bool) []string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []string
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		e, err := journal.Decode(lines.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprintf("%d %s: schema %d, %s, turn %s, anchor %s",
			e.Seq, e.Data.Kind(), e.Schema, e.At.Format(time.RFC3339Nano), e.TurnID, e.Anchor))
		out = append(out, values(string(e.Data.Kind()), "", reflect.ValueOf(e.Data), set)...)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// isBytes reports whether a type is text to people though a list to Go.
func isBytes(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8
}

// values lists the leaves of a value that are not zero, and notes their fields.
func values(kind, name string, v reflect.Value, set map[string]bool) []string {
	var out []string
	switch {
	case v.IsZero():
	case v.Kind() == reflect.Pointer:
		return values(kind, name, v.Elem(), set)
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			out = append(out, values(kind, name+"."+v.Type().Field(i).Name, v.Field(i), set)...)
		}
	case v.Kind() == reflect.Slice && !isBytes(v.Type()):
		for i := range v.Len() {
			out = append(out, values(kind, fmt.Sprintf("%s[%d]", name, i), v.Index(i), set)...)
		}
	default:
		set[kind+withoutIndexes(name)] = true
		text := fmt.Sprintf("%v", v)
		if v.Kind() == reflect.String || isBytes(v.Type()) {
			text = fmt.Sprintf("%q", v)
		}
		out = append(out, "  "+strings.TrimPrefix(name, ".")+" = "+text)
	}
	return out
}

func withoutIndexes(name string) string {
	var b strings.Builder
	for _, r := range name {
		if r < '0' || r > '9' {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// fields lists the leaves that values of a type can have.
func fields(name string, t reflect.Type) []string {
	switch {
	case t.Kind() == reflect.Pointer:
		return fields(name, t.Elem())
	case t.Kind() == reflect.Struct:
		var all []string
		for i := range t.NumField() {
			all = slices.Concat(all, fields(name+"."+t.Field(i).Name, t.Field(i).Type))
		}
		return all
	case t.Kind() == reflect.Slice && !isBytes(t):
		return fields(name+"[]", t.Elem())
	}
	return []string{name}
}
