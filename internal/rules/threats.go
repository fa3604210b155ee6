package rules

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

const (
	threatsPage = "docs/threats.md"
	// heldBy heads the column that names tests, the last of its table.
	heldBy = "held by"
	// notBuilt stands where a later issue will bring the test.
	notBuilt = "not built yet"
)

// testName is a test as the page names it: `internal/guard.TestClean`.
var testName = regexp.MustCompile("`([a-z0-9/]+)\\.((?:Test|Fuzz|Example)[A-Za-z0-9_]*)`")

// checkThreats: each row of a table that ends in "held by" names the tests that hold it,
// or says that nothing does yet, and the tests that it names are there.
func checkThreats(t *Tree) []Problem {
	data, err := os.ReadFile(filepath.Join(t.Root, filepath.FromSlash(threatsPage)))
	if err != nil {
		return []Problem{in(threatsPage, "cannot be read: %v", err)}
	}
	var found []Problem
	line, held := 0, false
	for text := range strings.Lines(string(data)) {
		line++
		cell, isRow := lastCell(text)
		switch {
		case !isRow, cell == heldBy:
			held = isRow
		case held && (cell == "" || strings.Trim(cell, "-:") != ""):
			for _, wrong := range t.threatFaults(cell) {
				found = append(found, Problem{File: threatsPage, Line: line, Text: wrong})
			}
		}
	}
	return found
}

// lastCell is the last cell of a row of a table, which ends with a bar.
func lastCell(text string) (string, bool) {
	text, isRow := strings.CutSuffix(strings.TrimSpace(text), "|")
	if !isRow {
		return "", false
	}
	return strings.TrimSpace(text[strings.LastIndexByte(text, '|')+1:]), true
}

func (t *Tree) threatFaults(cell string) []string {
	named := testName.FindAllStringSubmatch(cell, -1)
	if len(named) == 0 && !strings.Contains(cell, notBuilt) {
		return []string{"no test holds this line: name one, as `room.TestName`, or write \"" + notBuilt + "\""}
	}
	var wrong []string
	for _, m := range named {
		if !t.hasTest(m[1], m[2]) {
			wrong = append(wrong, "names the test "+m[2]+" of "+m[1]+", which is not there: name the one that holds the line, or write \""+notBuilt+"\"")
		}
	}
	return wrong
}

func (t *Tree) hasTest(dir, name string) bool {
	p := t.byDir(dir)
	if p == nil {
		return false
	}
	for _, f := range p.Tests {
		for _, fn := range functions(f) {
			if fn.Recv == nil && fn.Name.Name == name {
				return true
			}
		}
	}
	return false
}
