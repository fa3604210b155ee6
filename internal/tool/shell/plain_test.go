package shell

import (
	"path/filepath"
	"testing"
)

// TestNoRecovery: without recovery a line runs as it is, whatever is in it, and shows
// what it says as it is. With it, none of these do.
func TestNoRecovery(t *testing.T) {
	for name, c := range map[string]struct {
		line string
		step step
		with bool // it runs with recovery, too
		want string
	}{
		"a job":                        {"sleep 9 &", exits(0, "", ""), false, "exit 0 (1.2 s, sandbox: native)\n\n(no output)"},
		"a patch":                      {"apply_patch <<'E'\n*** Begin Patch\n*** End Patch\nE", exits(127, "", "bash: line 1: apply_patch: command not found\n"), false, "exit 127 (1.2 s, sandbox: native)\n\nbash: line 1: apply_patch: command not found"},
		"an install that is refused":   {"uv pip install aa", exits(127, "", "uv: command not found\n"), false, "exit 127 (1.2 s, sandbox: native)\n\nuv: command not found"},
		"a status that is an answer":   {"grep x a.txt", exits(1, "", ""), true, "exit 1 (1.2 s, sandbox: native)\n\n(no output)"},
		"an install that is performed": {"pip install aa", exits(0, "", ""), false, "Installed with pip: aa 1.0."},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, func(o *Options) { o.NoRecovery = true }, c.step)
			if r := b.run(c.line); r.Text != c.want {
				t.Errorf("without recovery: %q", r.Text)
			}
			b = newBench(t, nil, c.step)
			r := b.run(c.line)
			if ran := len(b.lines()) > 0; ran != c.with || c.with && r.Text == c.want {
				t.Errorf("with recovery: ran is %v: %q", ran, r.Text)
			}
		})
	}
}

// TestNoRecoveryPaths: the host's paths are shown as they are.
func TestNoRecoveryPaths(t *testing.T) {
	b := newBench(t, func(o *Options) { o.NoRecovery = true })
	path := filepath.Join(b.w.Work(), "a.py")
	b.session.steps = []step{exits(1, "", path+"\n")}
	b.want(b.run("python3 a.py"), false, path)
	b = newBench(t, nil)
	path = filepath.Join(b.w.Work(), "a.py")
	b.session.steps = []step{exits(1, "", path+"\n")}
	b.never(b.run("python3 a.py"), path)
}
