package patch

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
)

// mutations are the ways in which models spoil patches that were seen or that
// the brief for this room lists.
func mutations() []mutation {
	return append(append(envelopeMutations(), lineMutations()...), otherForms()...)
}

func envelopeMutations() []mutation {
	return []mutation{
		whole("as it should be", func(t string) string { return t }),
		whole("CRLF line ends", func(t string) string { return strings.ReplaceAll(t, "\n", "\r\n") }),
		whole("fence", func(t string) string { return "```diff\n" + t + "```\n" }),
		whole("prose and fence", func(t string) string {
			return "Here is the patch:\n\n```patch\n" + t + "```\n\n- It changes the code.\nDone.\n"
		}),
		whole("here-document", func(t string) string { return "apply_patch <<'EOF'\n" + t + "EOF\n" }),
		whole("no Begin line", func(t string) string { return strings.TrimPrefix(t, "*** Begin Patch\n") }),
		whole("no End line", func(t string) string { return strings.TrimSuffix(t, "*** End Patch\n") }),
		whole("Begin twice", func(t string) string { return "*** Begin Patch\n" + t }),
		whole("End twice", func(t string) string { return t + "*** End Patch\n" }),
		whole("all indented", func(t string) string {
			return "    " + strings.ReplaceAll(strings.TrimSuffix(t, "\n"), "\n", "\n    ")
		}),
		whole("End indented", func(t string) string { return strings.Replace(t, "*** End Patch", "  *** End Patch", 1) }),
		whole("cut off", func(t string) string { return t[:len(t)*2/3] }),
		whole("ended early", func(t string) string {
			at := strings.LastIndex(strings.TrimSuffix(t, "\n*** End Patch\n"), "\n")
			return t[:at] + "\n*** End Patch" + t[at:strings.LastIndex(t, "***")]
		}),
		whole("twice in one text", func(t string) string { return t + t }),
		lines("lower-case headers", func(l string) []string {
			if isHeader(l) {
				at := strings.Index(l, ":")
				l = strings.ToLower(l[:at]) + l[at:]
			}
			return []string{l}
		}),
		lines("headers closed with stars", func(l string) []string {
			if isHeader(l) {
				l += " ***"
			}
			return []string{l}
		}),
		lines("other verbs", func(l string) []string {
			return []string{strings.NewReplacer("*** Update File", "*** Modify File", "*** Add File", "*** Create File").Replace(l)}
		}),
		lines("air between sections", func(l string) []string {
			if strings.HasPrefix(l, "***") {
				return []string{"", l, ""}
			}
			return []string{l}
		}),
		paths("backslashes", func(p string) string { return strings.ReplaceAll(p, "/", `\`) }),
		paths("dot in front", func(p string) string { return "./" + p }),
		paths("a/ in front", func(p string) string { return "a/" + p }),
		paths("absolute", func(p string) string { return "/workspace/" + p }),
		paths("back quotes", func(p string) string { return "`" + p + "`" }),
		paths("leaves the folder", func(p string) string { return "../" + p }),
	}
}

func paths(name string, do func(path string) string) mutation {
	return lines("path: "+name, func(l string) []string {
		if at := strings.Index(l, ": "); at > 0 && strings.HasPrefix(l, "***") {
			l = l[:at+2] + do(l[at+2:])
		}
		return []string{l}
	})
}

func lineMutations() []mutation {
	removed := func(l string) bool { return l[0] != ' ' }
	return []mutation{
		lines("no @@ lines", func(l string) []string {
			if strings.HasPrefix(l, "@@") {
				return nil
			}
			return []string{l}
		}),
		lines("bare @@ lines", func(l string) []string {
			if strings.HasPrefix(l, "@@") {
				l = "@@"
			}
			return []string{l}
		}),
		lines("closed @@ lines", func(l string) []string {
			if strings.HasPrefix(l, "@@ ") {
				l += " @@"
			}
			return []string{l}
		}),
		lines("headers of a unified diff, wrong numbers", func(l string) []string {
			if strings.HasPrefix(l, "@@") {
				l = "@@ -1,3 +1,4 @@" + l[2:]
			}
			return []string{l}
		}),
		lines("made-up @@ lines", func(l string) []string {
			if strings.HasPrefix(l, "@@") {
				l = "@@ def something_else():"
			}
			return []string{l}
		}),
		lines("--- and +++ lines", func(l string) []string {
			if p, ok := strings.CutPrefix(l, "*** Update File: "); ok {
				return []string{l, "--- a/" + p, "+++ b/" + p}
			}
			if p, ok := strings.CutPrefix(l, "*** Add File: "); ok {
				return []string{l, "--- /dev/null", "+++ b/" + p, "@@ -0,0 +1,5 @@"}
			}
			return []string{l}
		}),
		lines("kept lines without their space", func(l string) []string {
			if isKept(l) {
				l = l[1:]
			}
			return []string{l}
		}),
		lines("empty lines without their prefix", func(l string) []string {
			if l == " " || l == "+" {
				l = ""
			}
			return []string{l}
		}),
		lines("removed lines without their minus", func(l string) []string { return []string{strings.TrimPrefix(l, "-")} }),
		lines("a space behind every prefix", func(l string) []string {
			if isBody(l) && l[1:] != "" {
				l = l[:1] + " " + l[1:]
			}
			return []string{l}
		}),
		body("a space behind every prefix but in new files", anyLine, func(t string) string {
			if t == "" {
				return t
			}
			return " " + t
		}),
		lines("an empty hunk at the end of each section", func(l string) []string {
			if strings.HasPrefix(l, "*** Update") {
				return []string{l, "@@"}
			}
			return []string{l}
		}),
		lines("End of File below every kept last line", func(l string) []string {
			if l == " }" || strings.HasPrefix(l, "         return") {
				return []string{l, "*** End of File"}
			}
			return []string{l}
		}),
		lines("no-newline marks", func(l string) []string {
			if l == " }" || strings.HasPrefix(l, "         return") || l == "     ports:" {
				return []string{l, `\ No newline at end of file`}
			}
			return []string{l}
		}),
		lines("late Move line", func(l string) []string {
			switch {
			case strings.HasPrefix(l, "*** Move"):
				return nil
			case l == "+\tfmt.Println(\"stopped\")":
				return []string{l, "*** Move to: src/server.go"}
			}
			return []string{l}
		}),
		lines("added files without plus", func(l string) []string { return []string{unplussed(l, true)} }),
		lines("added files with some plus missing", func(l string) []string { return []string{unplussed(l, false)} }),
		lines("removed files with their lines", func(l string) []string {
			if strings.HasPrefix(l, "*** Delete") {
				return []string{l, "-one", "-two"}
			}
			return []string{l}
		}),
		body("kept lines two spaces less", isKept, func(t string) string { return strings.TrimPrefix(t, "  ") }),
		body("kept lines one space more", isKept, func(t string) string {
			if t == "" {
				return t
			}
			return " " + t
		}),
		body("all lines one level less", anyLine, func(t string) string {
			return strings.TrimPrefix(strings.TrimPrefix(t, "\t"), "    ")
		}),
		body("no indentation at all", anyLine, func(t string) string { return strings.TrimLeft(t, " \t") }),
		body("spaces for tabs", anyLine, func(t string) string { return strings.ReplaceAll(t, "\t", "    ") }),
		body("tabs for four spaces", anyLine, func(t string) string { return strings.ReplaceAll(t, "    ", "\t") }),
		body("two spaces for four", anyLine, func(t string) string { return strings.ReplaceAll(t, "    ", "  ") }),
		replacing(body("changed lines without indentation", removed, func(t string) string { return strings.TrimLeft(t, " \t") })),
		body("white space at the end lost", anyLine, func(t string) string { return strings.TrimRight(t, " ") }),
		body("white space at the end of kept lines", isKept, func(t string) string { return t + "  " }),
		body("typographic quotes", anyLine, func(t string) string {
			return strings.NewReplacer(`"`, "\u201d", "'", "\u2019", "--", "\u2014").Replace(t)
		}),
		body("kept lines drifted", isKept, func(t string) string {
			return strings.NewReplacer("item", "entry", "image", "img", "make", "cmake", "first", "one", "fmt", "log").Replace(t)
		}),
		numbers("line numbers as read_file shows them", "%3d | %s"),
		numbers("line numbers as grep shows them", "%d:%s"),
		numbers("line numbers as nl shows them", "%6d\t%s"),
		elided("kept lines elided", " ..."),
		elided("kept lines elided by a comment", " # ... existing code ..."),
	}
}

// replacing keeps a mutation for patches that remove lines: where lines are only
// added, nobody can tell that theirs is not the indentation that was meant.
func replacing(m mutation) mutation {
	return mutation{m.name, func(s scenario) string {
		if !strings.Contains(s.patch, "\n-") {
			return ""
		}
		return m.do(s)
	}}
}

// unplussed is a line of the added file of the scenarios without its plus; not
// all of them keep it if some is false.
func unplussed(l string, all bool) string {
	switch l {
	case "+import os", "+def fresh():":
		return l[1:]
	case "+    return os.name", "+":
		if all {
			return l[1:]
		}
	}
	return l
}

// numbers puts line numbers before the lines that a hunk keeps or removes.
func numbers(name, format string) mutation {
	return mutation{name, func(s scenario) string {
		var out []string
		n := 10
		for l := range strings.SplitSeq(s.patch, "\n") {
			if isKept(l) || strings.HasPrefix(l, "-") {
				l = l[:1] + fmt.Sprintf(format, n, l[1:])
				n++
			}
			out = append(out, l)
		}
		return env(out...)
	}}
}

// elided puts a line for others in place of the first one that is kept.
func elided(name, dots string) mutation {
	return mutation{name, func(s scenario) string {
		var out []string
		done := false
		for l := range strings.SplitSeq(s.patch, "\n") {
			if isKept(l) && !done {
				l, done = dots, true
			}
			out = append(out, l)
		}
		return env(out...)
	}}
}

func otherForms() []mutation {
	return []mutation{
		whole("JSON string", func(t string) string { return string(quote(t)) }),
		whole("JSON arguments", func(t string) string { return `{"patch": ` + string(quote(t)) + "}" }),
		whole("JSON command", func(t string) string { return `{"command": ["apply_patch", ` + string(quote(t)) + "]}" }),
		whole("escaped twice", func(t string) string { return strings.Trim(string(quote(t)), `"`) }),
		whole("line breaks escaped", func(t string) string { return strings.ReplaceAll(strings.TrimSuffix(t, "\n"), "\n", `\n`) }),
		{"JSON operations", func(s scenario) string {
			return `{"operations":[` + strings.Join(asJSON(s, "diff", "_file"), ",") + "]}"
		}},
		{"JSON array, short types", func(s scenario) string { return "[" + strings.Join(asJSON(s, "diff", ""), ",\n") + "]" }},
		{"JSON, diff as content", func(s scenario) string { return "[" + strings.Join(asJSON(s, "content", "_file"), ",") + "]" }},
		{"JSON in a fence", func(s scenario) string {
			return "```json\n[" + strings.Join(asJSON(s, "diff", "_file"), ",") + "]\n```"
		}},
		{"JSON cut off", func(s scenario) string { return "[" + strings.Join(asJSON(s, "diff", "_file"), ",") }},
		{"unified diff", func(s scenario) string {
			var out []string
			for l := range strings.SplitSeq(s.patch, "\n") {
				if _, p, ok := strings.Cut(l, " File: "); ok && isHeader(l) {
					out = append(out, "diff --git a/"+p+" b/"+p, "--- a/"+p, "+++ b/"+p)
					continue
				}
				out = append(out, l)
			}
			return strings.Join(out, "\n") + "\n"
		}},
		{"hunks in the wrong order", func(s scenario) string {
			at := strings.LastIndex(s.patch, "\n@@")
			first := strings.Index(s.patch, "\n@@")
			if at == first || strings.Count(s.patch, " File: ") > 1 {
				return ""
			}
			return env(s.patch[:first] + s.patch[at:] + s.patch[first:at])
		}},
		{"last hunk twice", func(s scenario) string { return env(s.patch + s.patch[strings.LastIndex(s.patch, "\n@@"):]) }},
		{"a section for each hunk", func(s scenario) string {
			at := strings.LastIndex(s.patch, "\n@@")
			if at == strings.Index(s.patch, "\n@@") || strings.Count(s.patch, " File: ") > 1 {
				return ""
			}
			head, _, _ := strings.Cut(s.patch, "\n")
			return env(s.patch[:at], head+s.patch[at:])
		}},
		lines("a stand-in for lines not written", func(l string) []string {
			if strings.HasPrefix(l, "+import os") || strings.HasPrefix(l, "+            result") {
				return []string{l, "+# ... rest of the code unchanged ..."}
			}
			return []string{l}
		}),
	}
}

func quote(text string) []byte {
	data, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return data
}

// asJSON are the sections of a scenario as operations.
func asJSON(s scenario, field, suffix string) []string {
	var out []string
	for i, part := range strings.Split("\n"+s.patch, "\n*** ") {
		head, rest, _ := strings.Cut(part, "\n")
		verb, path, ok := strings.Cut(head, ": ")
		switch {
		case i == 0 || !ok:
			if i > 0 && len(out) > 0 { // End of File belongs to the diff before
				out[len(out)-1] = strings.Replace(out[len(out)-1], `"}`, `\n*** `+head+`"}`, 1)
			}
			continue
		case verb == "Move to":
			out[len(out)-1] = fmt.Sprintf(`{"type":"update%s","path":%q,"move_to":%q,"%s":%s}`, suffix, "server.go", path, field, quote(rest))
			continue
		}
		kind := map[string]string{"Add File": "create", "Update File": "update", "Delete File": "delete"}[verb]
		if kind == "delete" {
			out = append(out, fmt.Sprintf(`{"type":%q,"path":%q}`, kind+suffix, path))
			continue
		}
		out = append(out, fmt.Sprintf(`{"type":%q,"path":%q,"%s":%s}`, kind+suffix, path, field, quote(rest)))
	}
	return out
}
