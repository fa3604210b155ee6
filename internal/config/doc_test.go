package config

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const documentation = "../../docs/configuration.md"

var (
	blocks   = regexp.MustCompile("(?s)```toml\n(.*?)```")
	limitRow = regexp.MustCompile(`(?s)(<!-- limits: [^\n]*-->\n)(.*?)(<!-- end -->)`)
)

// TestDocumentation: what the documentation shows can be read, each key that
// the reader knows is in it, and its table of limits is the table.
func TestDocumentation(t *testing.T) {
	raw, err := os.ReadFile(documentation)
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	examples := blocks.FindAllStringSubmatch(text, -1)
	if len(examples) == 0 {
		t.Error("there is no example")
	}
	want := limitRow.ReplaceAllString(text, "${1}"+strings.ReplaceAll(limitsTable(), "$", "$$")+"${3}")
	known := map[string][]string{}
	for _, e := range examples {
		d, err := ParseFiles(Source{Name: documentation, Text: []byte(e[1])})
		if err != nil {
			t.Fatal(err)
		}
		ReadTop(d)
		ReadServe(d)
		ReadSkills(d)
		ReadCode(d)
		ReadLLMs(d)
		ReadKeys(d)
		ReadModels(d)
		if err := d.Check(); err != nil {
			t.Error(err)
		}
		for _, s := range d.Top().below() {
			known[s.path[0]] = append(known[s.path[0]], s.known...)
		}
	}
	for _, section := range []string{"serve", "skills", "code", "llm", "key", "model"} {
		if len(known[section]) == 0 {
			t.Errorf("no example shows [%s]", section)
		}
		for _, key := range known[section] {
			if !strings.Contains(want, "`"+key+"`") {
				t.Errorf("[%s] %s is not documented", section, key)
			}
		}
	}
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(documentation, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want != text {
		t.Error("the limits of the documentation are not those of the table: run go test ./internal/config -update")
	}
}

func limitsTable() string {
	var b strings.Builder
	b.WriteString("| limit | default | flag and key | from, to | error | what |\n| --- | --- | --- | --- | --- | --- |\n")
	code := func(s string) string {
		if s == "" {
			return ""
		}
		return "`" + s + "`"
	}
	for _, l := range Limits() {
		fmt.Fprintf(&b, "| `%s` | %d %s | %s | %d, %d | %s | %s |\n", l.Name, l.Default, l.Unit, code(l.Flag), l.Min, l.Max, code(l.Code), l.Help)
	}
	return b.String()
}

// TestEdits compares distances with those that one can count.
func TestEdits(t *testing.T) {
	for pair, want := range map[[2]string]int{
		{"", ""}: 0, {"a", ""}: 1, {"", "ab"}: 2, {"port", "prot"}: 1, {"port", "port"}: 0,
		{"kitten", "sitting"}: 3, {"ab", "ba"}: 1, {"héllo", "hello"}: 1,
	} {
		if got := edits(pair[0], pair[1]); got != want {
			t.Errorf("edits(%q, %q) = %d, want %d", pair[0], pair[1], got, want)
		}
	}
	if !slices.Contains(later(), "skill") {
		t.Error("a hint for [skills.x] needs skill")
	}
}
