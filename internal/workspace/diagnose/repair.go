package diagnose

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// around is how many lines are shown before and after a place (B1 10.12).
const around = 3

// Hint is where in the model's own files an error comes from.
type Hint struct {
	// Path is the file as the output names it, cleaned; Line counts from 1.
	Path string
	Line int
	// Shown are the numbers of the lines that the sentence holds whole, for the record
	// of what the model has seen.
	Shown []int

	text string
}

// Sentence shows the place with the lines around it and says how to go on.
func (h Hint) Sentence() string { return h.text }

// Repair finds the place in the workspace that an error comes from: the deepest frame
// of Python, the topmost of JavaScript, the first error of a compiler (B1 10.12). read
// gives a file of the workspace by the path that the output has for it, and nothing
// for any other path.
func Repair(output string, read func(path string) ([]byte, bool)) (Hint, bool) {
	if read == nil {
		return Hint{}, false
	}
	tried := map[string][]string{}
	for p := range places(clean(output)) {
		name := path.Clean(strings.ReplaceAll(p.File, `\`, "/"))
		if len(tried) > mostFiles || packageFile(name) || strings.HasPrefix(name, "<") {
			continue
		}
		lines, seen := tried[name]
		if !seen {
			if data, _ := read(name); !binary(data) {
				lines = splitLines(data)
			}
			tried[name] = lines
		}
		if p.Line <= len(lines) {
			return hint(name, p.Line, lines), true
		}
	}
	return Hint{}, false
}

// mostFiles is how many files of one output are looked into.
const mostFiles = 32

// hint shows the lines around a place.
func hint(name string, line int, lines []string) Hint {
	h := Hint{Path: name, Line: line}
	first, last := max(1, line-around), min(len(lines), line+around)
	var b strings.Builder
	fmt.Fprintf(&b, repairAt, plain(name, longestQuote), line)
	for n := first; n <= last; n++ {
		shown, whole := sourceLine(lines[n-1])
		if whole {
			h.Shown = append(h.Shown, n)
		}
		b.WriteString(numbered(n, last, shown))
	}
	if isTest(name) {
		b.WriteString(repairTest)
	} else {
		b.WriteString(repairHow)
	}
	h.text = b.String()
	return h
}

// isTest reports whether a file is a test by its name, as the test runners of the
// languages here find them. A failure there is seldom the test's own.
func isTest(name string) bool {
	stem, _, _ := strings.Cut(path.Base(name), ".")
	rest := strings.TrimPrefix(path.Base(name), stem)
	if strings.HasPrefix(stem, "test_") || strings.HasSuffix(stem, "_test") || strings.HasPrefix(rest, ".test.") || strings.HasPrefix(rest, ".spec.") {
		return true
	}
	return slices.ContainsFunc(strings.Split(path.Dir(name), "/"), func(folder string) bool {
		return folder == "test" || folder == "tests" || folder == "__tests__"
	})
}

// numbered is a line as read_file shows it (B1 11.3): its number, right-aligned to the
// widest, " | ", its text.
func numbered(n, widest int, text string) string {
	return fmt.Sprintf("%*d | %s\n", len(fmt.Sprint(widest)), n, text)
}
