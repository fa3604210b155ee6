package packages

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/sandbox/registry"
)

// ended is a result with words on stderr.
func ended(how sandbox.Ended, words string) sandbox.Result {
	return sandbox.Result{Ended: how, Exit: 1, Stderr: sandbox.Output{Head: []byte(words), Total: int64(len(words))}}
}

func trouble(reason registry.Reason) registry.Report {
	return registry.Report{Troubles: []registry.Trouble{{Reason: reason, Host: "host.test", What: "demo"}}}
}

func none(name string) string {
	return "Looking in indexes: http://127.0.0.1:3128/tok/pip/0/\nERROR: Could not find a version that satisfies the requirement " + name + " (from versions: none)\nERROR: No matching distribution found for " + name + "\n"
}

// TestExplain: what the front saw and what an installer said become one sentence.
func TestExplain(t *testing.T) {
	project := func(p registry.Project) registry.Report {
		return registry.Report{Projects: map[string]registry.Project{"demo-app": p}}
	}
	nothing := registry.Report{}
	tests := []struct {
		name   string
		kind   registry.Kind
		result sandbox.Result
		report registry.Report
	}{
		{"pip: no package", registry.Pip, ended(sandbox.Exited, none("demo.app")), project(registry.Project{})},
		{"pip: only source", registry.Pip, ended(sandbox.Exited, none("Demo_App")), project(registry.Project{Found: true, Sources: 3})},
		{"pip: no wheel", registry.Pip, ended(sandbox.Exited, "ERROR: Ignored the following versions that require a different python version: 2.0 Requires-Python >=3.13\n"+none("demo-app>=2 (from other)")), project(registry.Project{Found: true, Wheels: 3})},
		{"pip: no version", registry.Pip, ended(sandbox.Exited, "ERROR: Could not find a version that satisfies the requirement demo-app==9 (from versions: 0.1, 0.2, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5rc1)\n"), project(registry.Project{Found: true, Wheels: 3})},
		{"pip: conflict", registry.Pip, ended(sandbox.Exited, "ERROR: Cannot install a==1.0 and b==1.0 because these package versions have conflicting dependencies.\n\nThe conflict is caused by:\n    The user requested a==1.0\n    b 1.0 depends on a>=2\n\nTo fix this you could try to:\n1. loosen\n"), nothing},
		{"pip: denied", registry.Pip, ended(sandbox.Exited, none("demo-app")), trouble(registry.Denied)},
		{"pip: denied, a page", registry.Pip, ended(sandbox.Exited, none("demo-app")), registry.Report{Troubles: []registry.Trouble{{Reason: registry.Denied, Host: "host.test", What: "demo-app", Page: true}}}},
		{"pip: untrusted", registry.Pip, ended(sandbox.Exited, none("demo-app")), trouble(registry.Untrusted)},
		{"pip: failing", registry.Pip, ended(sandbox.Exited, none("demo-app")), trouble(registry.Failing)},
		{"pip: unreachable", registry.Pip, ended(sandbox.Exited, none("demo-app")), trouble(registry.Unreachable)},
		{"pip: broken", registry.Pip, ended(sandbox.Exited, none("demo-app")), trouble(registry.Broken)},
		{"pip: wrong hash", registry.Pip, ended(sandbox.Exited, "ERROR: x"), trouble(registry.Mismatch)},
		{"pip: cut", registry.Pip, ended(sandbox.Exited, "ERROR: x"), trouble(registry.Cut)},
		{"pip: large", registry.Pip, ended(sandbox.Exited, "ERROR: x"), trouble(registry.TooLarge)},
		{"pip: not allowed", registry.Pip, ended(sandbox.Exited, "ERROR: x"), trouble(registry.NotAllowed)},
		{"pip: no pip", registry.Pip, ended(sandbox.Exited, "/usr/bin/python3: No module named pip\n"), nothing},
		{"pip: something else", registry.Pip, ended(sandbox.Exited, "WARNING: a\nERROR: Invalid thing in /root/.metier/packages/x and 'C:\\Users\\me' at http://u:pw@h/p\x1b[31m\n"), nothing},
		{"pip: a crash", registry.Pip, ended(sandbox.Exited, "Traceback (most recent call last):\nValueError: no\n"), nothing},
		{"pip: slow", registry.Pip, ended(sandbox.TimedOut, ""), trouble(registry.Late)},
		{"pip: long", registry.Pip, ended(sandbox.TimedOut, ""), nothing},
		{"pip: disk", registry.Pip, ended(sandbox.OutOfRoom, ""), nothing},
		{"pip: memory", registry.Pip, ended(sandbox.OutOfMem, ""), nothing},
		{"pip: killed", registry.Pip, ended(sandbox.Signalled, ""), nothing},
		{"npm: no package", registry.Npm, ended(sandbox.Exited, "npm error code E404\nnpm error 404 Not Found - GET http://127.0.0.1:3128/tok/npm/demo - there is no such page here\nnpm error 404  The requested resource 'demo@*' could not be found\n"), registry.Report{Projects: map[string]registry.Project{"demo": {}, "a": {Found: true}}}},
		{"npm: no version", registry.Npm, ended(sandbox.Exited, "npm ERR! code ETARGET\nnpm ERR! notarget No matching version found for @corp/demo@9.9.9.\n"), nothing},
		{"npm: conflict", registry.Npm, ended(sandbox.Exited, "npm error code ERESOLVE\nnpm error ERESOLVE unable to resolve dependency tree\nnpm error\nnpm error While resolving: undefined@undefined\nnpm error Found: react@18.2.0\nnpm error node_modules/react\nnpm error   react@\"18\" from the root project\nnpm error\nnpm error Could not resolve dependency:\nnpm error peer react@\"^17\" from old@1.0.0\nnpm error Fix the upstream dependency conflict\n"), nothing},
		{"npm: wrong hash", registry.Npm, ended(sandbox.Exited, "npm error code EINTEGRITY\nnpm error sha512-x\n"), nothing},
		{"npm: disk", registry.Npm, ended(sandbox.Exited, "npm error code ENOSPC\n"), nothing},
		{"npm: something else", registry.Npm, ended(sandbox.Exited, "npm error code EBAD\nnpm error Something in /root/x/y broke\nnpm error more\n"), nothing},
		{"npm: nothing said", registry.Npm, ended(sandbox.Exited, ""), nothing},
	}
	var all []string
	for _, tt := range tests {
		err := explain(plan{kind: tt.kind, use: python()}, tt.result, tt.report, 2*time.Minute)
		f, ok := errors.AsType[*Failure](err)
		if !ok {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("## %s (%s)%s\n%s\n", tt.name, f.Reason, strings.TrimRight(" "+f.Package, " "), f.Text))
		for _, bad := range []string{"/root", "Users", "://", "pw@", "\x1b", "127.0.0.1"} {
			if strings.Contains(f.Text, bad) {
				t.Errorf("%s: the text has %q: %s", tt.name, bad, f.Text)
			}
		}
	}
	for _, text := range []string{noInterpreter(registry.Pip), noInterpreter(registry.Npm), noNpm, busySentence, tooLarge(10), noRoom(10), (&treeError{path: "a/b", why: "is a link that leads out"}).sentence(), (&treeError{full: true}).sentence()} {
		all = append(all, text+"\n")
	}
	golden(t, "sentences.txt", strings.Join(all, "\n"))
}

// FuzzExplain: whatever an installer prints, the sentence is short, plain, and names no
// place.
func FuzzExplain(f *testing.F) {
	f.Add("ERROR: Could not find a version that satisfies the requirement a (from versions: 1, 2)", "npm error code E404")
	f.Add("The conflict is caused by:\n    a\n", "npm ERR! code ERESOLVE\nnpm ERR! peer x http://a/b")
	f.Fuzz(func(t *testing.T, pip, npm string) {
		for kind, words := range map[registry.Kind]string{registry.Pip: pip, registry.Npm: npm} {
			text := explain(plan{kind: kind}, ended(sandbox.Exited, words), registry.Report{}, time.Second).Error()
			if len(text) > 10*clipped || strings.Contains(text, "://") || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\n' }) {
				t.Errorf("%q became %q", words, text)
			}
		}
	})
}
