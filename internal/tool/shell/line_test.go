package shell

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// envelopeText is a patch as a model writes it.
const envelopeText = "*** Begin Patch\n*** Update File: a.py\n@@\n-cost = \"$5\"\n+cost = \"${HOME}\" + `x` + \\n\n*** End Patch\n"

// TestPatchLines are the shapes of B1 12.15: what is nothing but a patch is applied, and
// nothing of it reaches the shell.
func TestPatchLines(t *testing.T) {
	tabbed := strings.ReplaceAll("\t"+strings.TrimSuffix(envelopeText, "\n"), "\n", "\n\t") + "\n"
	for name, c := range map[string]struct{ line, want string }{
		"quoted tag":         {"apply_patch <<'EOF'\n" + envelopeText + "EOF", envelopeText},
		"newline behind":     {"apply_patch <<'EOF'\n" + envelopeText + "EOF\n\n", envelopeText},
		"double quotes":      {"apply_patch <<\"PATCH\"\n" + envelopeText + "PATCH\n", envelopeText},
		"bare tag":           {"apply_patch <<EOF\n" + envelopeText + "EOF\n", envelopeText},
		"escaped tag":        {"apply_patch << \\EOF\n" + envelopeText + "EOF\n", envelopeText},
		"tabs":               {"apply_patch <<-'EOF'\n" + tabbed + "\tEOF\n", envelopeText},
		"tabs, bare":         {"apply_patch <<-EOF\n" + tabbed + "EOF\n", envelopeText},
		"single quotes":      {"apply_patch '*** Begin Patch\n*** Delete File: $a\n*** End Patch'", "*** Begin Patch\n*** Delete File: $a\n*** End Patch"},
		"quotes, backslash":  {"apply_patch \"*** Begin Patch\n*** Delete File: \\$a\\\"\n*** End Patch\"", "*** Begin Patch\n*** Delete File: $a\"\n*** End Patch"},
		"apply-patch":        {"apply-patch <<'E'\n" + envelopeText + "E", envelopeText},
		"applypatch":         {"ApplyPatch <<'E'\n" + envelopeText + "E", envelopeText},
		"name in quotes":     {"'apply_patch' <<'E'\n" + envelopeText + "E", envelopeText},
		"a comment before":   {"# repair\napply_patch <<'E'\n" + envelopeText + "E", envelopeText},
		"end forgotten":      {"apply_patch <<'EOF'\n" + envelopeText, envelopeText},
		"end forgotten, 2":   {"apply_patch <<-\"A B\"\n" + strings.TrimSuffix(envelopeText, "\n"), envelopeText},
		"in a shell":         {"bash -lc 'apply_patch <<E\n*** Begin Patch\n*** Delete File: a\n*** End Patch\nE'", "*** Begin Patch\n*** Delete File: a\n*** End Patch\n"},
		"all dollars hidden": {"apply_patch <<E\n*** Begin Patch\n*** Add File: a\n+\\$x \\\\ \\`\n*** End Patch\nE", "*** Begin Patch\n*** Add File: a\n+$x \\ `\n*** End Patch\n"},
		"some hidden":        {"apply_patch <<E\n*** Begin Patch\n*** Add File: a\n+\\$x $y\n*** End Patch\nE", "*** Begin Patch\n*** Add File: a\n+\\$x $y\n*** End Patch\n"},
		"hidden, quoted tag": {"apply_patch <<'E'\n*** Begin Patch\n*** Add File: a\n+\\$x\n*** End Patch\nE", "*** Begin Patch\n*** Add File: a\n+\\$x\n*** End Patch\n"},
		"backslashes":        {"apply_patch <<E\n*** Begin Patch\n*** Add File: a\n+\\\\d \\n\n*** End Patch\nE", "*** Begin Patch\n*** Add File: a\n+\\\\d \\n\n*** End Patch\n"},
		"carriage returns":   {strings.ReplaceAll("apply_patch <<'EOF'\n"+envelopeText, "\n", "\r\n") + "EOF", strings.ReplaceAll(envelopeText, "\n", "\r\n")},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil)
			r := b.run(c.line)
			if len(b.session.ran) != 0 {
				t.Fatalf("it ran: %q", b.lines())
			}
			b.want(r, true, "Patched.")
			if len(b.patches) != 1 || b.patches[0] != c.want {
				t.Errorf("%q\nand not\n%q", b.patches, c.want)
			}
		})
	}
}

// TestOtherPatchLines: in any other shape it is refused, with the one that is taken.
func TestOtherPatchLines(t *testing.T) {
	patch := "apply_patch <<'EOF'\n" + envelopeText + "EOF\n"
	for name, line := range map[string]string{
		"cd before":           "cd src && " + patch,
		"another line before": "echo a\n" + patch,
		"text behind":         patch + "echo done",
		"chained behind":      "apply_patch <<'EOF' && echo done\n" + envelopeText + "EOF\n",
		"a pipe behind":       "apply_patch <<'EOF' | tail -1\n" + envelopeText + "EOF\n",
		"a pipe before":       "cat <<'EOF' | apply_patch\n" + envelopeText + "EOF\n",
		"a redirection":       "apply_patch <<'EOF' > out\n" + envelopeText + "EOF\n",
		"two redirections":    "apply_patch <<'EOF' 2>&1\n" + envelopeText + "EOF\n",
		"two heredocs":        "apply_patch <<'A' <<'B'\n" + envelopeText + "A\n" + envelopeText + "B\n",
		"a file":              "apply_patch < my.patch",
		"a file as argument":  "apply_patch my.patch x",
		"no argument":         "apply_patch",
		"an option":           "apply_patch -p1 <<'EOF'\n" + envelopeText + "EOF\n",
		"an expansion":        "apply_patch \"$(cat my.patch)\"",
		"an assignment":       "A=b " + patch,
		"negated":             "! " + patch,
		"a subshell":          "(" + strings.TrimSuffix(patch, "\n") + "\n)",
		"a function":          "f() { apply_patch x; }; f",
		"a condition":         "if apply_patch x; then echo; fi",
		"a substitution":      "echo $(apply_patch x y)",
		"sudo":                "sudo apply_patch x",
		"env":                 "env A=b apply_patch x",
		"xargs":               "echo a | xargs apply_patch",
		"eval":                "eval 'apply_patch x y'",
		"a shell's text":      "cd a; bash -c 'apply_patch x'",
		"a shell's expansion": "bash -c \"apply_patch $x\"",
		"quotes in quotes":    "apply_patch '" + strings.ReplaceAll(envelopeText, "cost", "it's") + "'",
		"split name":          "apply\\_patch x y",
		"not a line":          "apply_patch <<'EOF'\n" + envelopeText + "EOF\n)",
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil)
			b.want(b.run(line), false, patchShape)
			if len(b.session.ran) != 0 || len(b.patches) != 0 {
				t.Errorf("it ran: %q, %q", b.lines(), b.patches)
			}
		})
	}
}

// TestNoPatchLines: what only has the word in it is run.
func TestNoPatchLines(t *testing.T) {
	for _, line := range []string{
		"echo apply_patch", "grep -rn apply_patch .", "command -v apply_patch", "cat > notes.md <<'E'\napply_patch <<'EOF'\nE", "python3 apply_patch.py",
		"./apply_patch x", "echo '; apply_patch'", "man apply_patch # apply_patch", "bash -c 'echo apply_patch'", "ls # apply_patch",
	} {
		b := newBench(t, nil)
		if b.run(line); len(b.session.ran) != 1 || b.session.ran[0].Line != line {
			t.Errorf("%s did not run: %q", line, b.lines())
		}
	}
}

// TestPatchElsewhere: a patch has its paths from where the shell is, so a workdir is
// taken only if that is there; without file tools there is no patch at all.
func TestPatchElsewhere(t *testing.T) {
	line := "apply_patch <<'EOF'\n" + envelopeText + "EOF\n"
	b := newBench(t, nil)
	b.write("src/a.py", "")
	b.want(b.run(line, "workdir", "src"), false, patchShape)
	b.want(b.run(line, "workdir", "."), true, "Patched.")
	b.want(b.run(line, "workdir", b.w.Work()), true, "Patched.")
	if len(b.session.ran) != 0 || len(b.patches) != 2 {
		t.Error(b.lines())
	}
	b = newBench(t, func(o *Options) { o.Facts.Files, o.Patch = false, nil })
	b.want(b.run(line), false, patchNone)
	if len(b.session.ran) != 0 {
		t.Error(b.lines())
	}
}

// TestNoPatchReachesTheShell: however a line is put together around the command, the
// shell never gets it.
func TestNoPatchReachesTheShell(t *testing.T) {
	b := newBench(t, nil)
	before := rapid.SampledFrom([]string{
		"", "cd src && ", "echo a; ", "a | ", "! ", "(", "{ ", "if ", "while ", "time ", "\n", "# c\n", "x=$(", "f() { ", "echo `", "cat <<'Q'\nq\nQ\n", "bash -c '", "eval \"", "case a in a) ", "a &\n", "\\\n", "\"unclosed ; ", "$((1)); ",
	})
	wrap := rapid.SampledFrom([]string{"A=b ", "sudo ", "env -i ", "nohup ", "timeout 5 ", "command ", "exec "})
	name := rapid.SampledFrom([]string{"apply_patch", "apply-patch", "applypatch", "APPLY_PATCH", "'apply_patch'", "\"apply_patch\"", "apply\\_patch", "apply_'patch'", "apply_pat\\\nch"})
	after := rapid.SampledFrom([]string{"", " x", " 'x y' z", " <<'EOF'\n" + envelopeText + "EOF\n", " <<EOF\nx\nEOF\n", " <<EOF\nx", " | tail", " && echo", " > f", ")", "; }", "; then x; fi", "'", "\"", " &", " ;;esac", "`", " 2>&1", "\n)"})
	rapid.Check(t, func(t *rapid.T) {
		line := strings.Join(rapid.SliceOfN(before, 0, 3).Draw(t, "before"), "")
		if strings.Contains(line, "# c") && !strings.HasSuffix(line, "\n") || strings.Contains(line, "unclosed") || strings.Contains(line, "<<'Q'") ||
			strings.Count(line, "'") > 1 || strings.Count(line, `"`) > 1 {
			return // the name would be in a comment, a text or an argument
		}
		open := line
		line += strings.Join(rapid.SliceOfN(wrap, 0, 2).Draw(t, "wrap"), "") + name.Draw(t, "name")
		rest := strings.Join(rapid.SliceOfN(after, 0, 3).Draw(t, "after"), "")
		if rest != "" && strings.ContainsAny(rest[:1], "'\"") && !strings.Contains(open, rest[:1]) || strings.Count(line+rest, "`") > 1 {
			return // it would be a part of another name, or of an argument
		}
		line += rest
		b.session.ran = nil
		if b.run(line); len(b.session.ran) != 0 {
			t.Fatalf("it ran: %q, %+v", line, lookAtLine(line))
		}
	})
}

// TestAmpersand is B1 9.2.5: what the end of the call would stop is not started.
func TestAmpersand(t *testing.T) {
	for line, refused := range map[string]bool{
		"python3 -m http.server &": true, "a & b &": true, "a && b &": true, "nohup a > log 2>&1 &": true, "a & # to the background": true, "a &\n": true,
		"a && b": false, "a & b": false, "a &\nwait": false, "echo 'a &'": false, "echo a \\&": false, "(a &)": false, "a 2>&1": false, "[ a ] &&": false,
		"if ( a &": true,
	} {
		b := newBench(t, nil)
		r := b.run(line)
		if got := r.Text == ampersand; got != refused || refused == (len(b.session.ran) > 0) {
			t.Errorf("%q: %s", line, r.Text)
		}
	}
	b := newBench(t, func(o *Options) { o.Facts.Files = false })
	b.want(b.run("a &"), false, ampersandAlone)
}

// TestDeepLine: what is nested too deep is left to the shell, which has a bound.
func TestDeepLine(t *testing.T) {
	b := newBench(t, nil)
	line := strings.Repeat("(", 100_000)
	if b.run(line); len(b.session.ran) != 1 {
		t.Error(b.lines())
	}
	b.want(b.run(line+"; apply_patch x"), false, patchShape)
}
