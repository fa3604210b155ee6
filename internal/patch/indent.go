package patch

import (
	"slices"
	"strings"
)

// indentPair is a line's indentation in the hunk and in the file.
type indentPair struct{ hunk, file string }

// indenter gives a new line the indentation of the file; false if that cannot be
// told.
type indenter func(line string) (string, bool)

// indentation is the white space before a line.
func indentation(s string) string {
	return s[:len(s)-len(strings.TrimLeftFunc(s, space))]
}

// asIs leaves new lines as they were sent.
func asIs(line string) (string, bool) { return line, true }

// learnIndent finds out how a hunk whose lines match only without their
// indentation was indented, so that its new lines come out as the file is. The
// lines that are removed tell most: who copied them right has written the new
// ones right, and who did not has made the same slip in both. Without any, only
// spaces in place of tabs are evident, because the new lines show which they
// have. It is certain or it says no; verbatim reports that new lines stay as they
// are.
func learnIndent(kept, removed []indentPair) (fit indenter, verbatim bool) {
	if same(removed) && (same(kept) || indented(removed)) {
		return asIs, true
	}
	told := removed
	if !same(kept) {
		told = append(slices.Clone(kept), removed...)
	}
	known := map[string]string{}
	for _, p := range told {
		if f, ok := known[p.hunk]; ok && f != p.file {
			return nil, false
		}
		known[p.hunk] = p.file
	}
	if same(removed) {
		return indentBy(nil, units(known)), false
	}
	return indentBy(known, shift(known), unshift(known), units(known)), false
}

// indentBy indents a line as another one of the hunk is, else by the first rule
// that tells; nil if there is nothing to go by.
func indentBy(known map[string]string, rules ...indenter) indenter {
	rules = slices.DeleteFunc(rules, func(r indenter) bool { return r == nil })
	if len(known) == 0 && len(rules) == 0 {
		return nil
	}
	return func(line string) (string, bool) {
		in := indentation(line)
		rest := line[len(in):]
		if rest == "" {
			return line, true
		}
		if f, ok := known[in]; ok {
			return f + rest, true
		}
		for _, rule := range rules {
			if f, ok := rule(in); ok {
				return f + rest, true
			}
		}
		return "", false
	}
}

func same(pairs []indentPair) bool {
	for _, p := range pairs {
		if p.hunk != p.file {
			return false
		}
	}
	return true
}

// indented says whether a line has any indentation: only such a line shows that
// it was copied right.
func indented(pairs []indentPair) bool {
	return slices.ContainsFunc(pairs, func(p indentPair) bool { return p.hunk != "" })
}

// evident says whether more than one step of indentation is known, or one that
// is none at either side: from a single step one cannot tell a shift from
// another width of steps.
func evident(known map[string]string) bool {
	for h, f := range known {
		if h == "" || f == "" {
			return true
		}
	}
	return len(known) > 1
}

// shift is the rule of a hunk that stands too far left by the same in all lines.
func shift(known map[string]string) indenter {
	by, ok := difference(known, func(h, f string) (string, bool) { return strings.CutSuffix(f, h) })
	if !ok {
		return nil
	}
	return func(in string) (string, bool) { return by + in, true }
}

// unshift is the rule of a hunk that stands too far right by the same in all
// lines.
func unshift(known map[string]string) indenter {
	by, ok := difference(known, func(h, f string) (string, bool) { return strings.CutSuffix(h, f) })
	if !ok {
		return nil
	}
	return func(in string) (string, bool) { return strings.CutPrefix(in, by) }
}

func difference(known map[string]string, cut func(h, f string) (string, bool)) (string, bool) {
	if !evident(known) {
		return "", false
	}
	by, first := "", true
	for h, f := range known {
		d, ok := cut(h, f)
		if !ok || !first && d != by {
			return "", false
		}
		by, first = d, false
	}
	return by, true
}

// units is the rule of a hunk that has spaces where the file has tabs, or tabs
// where it has spaces, always as many for one.
func units(known map[string]string) indenter {
	width, toTabs := 0, false
	for h, f := range known {
		if h == "" && f == "" {
			continue
		}
		spaces, tabs, to := len(h), len(f), true
		if strings.Trim(h, "\t") == "" {
			spaces, tabs, to = len(f), len(h), false
		}
		if !pure(h) || !pure(f) || tabs == 0 || spaces%tabs != 0 || strings.Contains(h, "\t") == strings.Contains(f, "\t") {
			return nil
		}
		if width != 0 && (width != spaces/tabs || to != toTabs) {
			return nil
		}
		width, toTabs = spaces/tabs, to
	}
	if width < 2 { // one space for a tab is a slip, no width
		return nil
	}
	return func(in string) (string, bool) {
		spaces, tabs := strings.Trim(in, " ") == "", strings.Trim(in, "\t") == ""
		switch {
		case toTabs && tabs, !toTabs && spaces:
			return in, true // as the file has it already, or nothing
		case toTabs:
			return strings.Repeat("\t", len(in)/width), spaces && len(in)%width == 0
		}
		return strings.Repeat(" ", len(in)*width), tabs
	}
}

// pure says whether an indentation is all spaces or all tabs.
func pure(in string) bool { return strings.Trim(in, " ") == "" || strings.Trim(in, "\t") == "" }
