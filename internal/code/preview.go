package code

import (
	"bytes"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/metier-run/metier/internal/interpreter"
	"github.com/metier-run/metier/internal/tool"
	"github.com/metier-run/metier/internal/workspace/diagnose"
)

// preview gives on what a running call says, with this host's paths called as in its
// result (B1 10.10): in whole lines, because a path comes in pieces. It is safe for
// concurrent use, and keeps no more than a line.
type preview struct {
	to      func(p []byte)
	rewrite func(text string) string

	mu   sync.Mutex
	rest []byte // what has no end yet
}

// longestHeld is how many bytes of a line are waited for.
const longestHeld = 4096

// add takes in what comes.
func (v *preview) add(p []byte) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.rest = append(v.rest, p...)
	end := bytes.LastIndexAny(v.rest, "\r\n") + 1
	if len(v.rest)-end > longestHeld {
		end = len(v.rest)
	}
	v.give(end)
}

// flush gives on what is left.
func (v *preview) flush() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.give(len(v.rest))
}

// give gives on the first n bytes that wait. v.mu is held.
func (v *preview) give(n int) {
	if n == 0 {
		return
	}
	v.to([]byte(v.rewrite(string(v.rest[:n]))))
	v.rest = append(v.rest[:0], v.rest[n:]...)
}

// previewed is what a call is invoked with, and what is done when it has ended: its
// watcher, if it has one, is given a preview of what the call says.
func (r *room) previewed(e tool.Env) (tool.Env, func()) {
	if e.Progress == nil {
		return e, func() {}
	}
	v := &preview{to: e.Progress, rewrite: r.calledAsInResults()}
	e.Progress = v.add
	return e, v.flush
}

// wrapper is the name of a script that the host writes a command into, with the line of
// it that a shell's message names, which is not the model's own (B1 9.5).
const wrapper = `command-\d+\.(?:sh|ps1)(?:: line \d+|\[\d+\]|: ?\d+)?`

// calledAsInResults rewrites paths of this host.
func (r *room) calledAsInResults() func(text string) string {
	w := r.workspace
	base := filepath.Dir(w.Work())
	paths := diagnose.Paths{Root: base, Dir: filepath.Join(w.Work(), filepath.FromSlash(w.Current())), Places: []diagnose.Named{{Path: w.Temp(), Name: "$TMPDIR"}}}
	signs := []string{filepath.Base(base)}
	for _, kind := range []interpreter.Kind{interpreter.Python, interpreter.Node} {
		if set, ok := w.Packages(kind); ok {
			paths.Places = append(paths.Places, diagnose.Named{Path: set.Dir, Name: "(packages)"})
			signs = append(signs, filepath.Base(set.Dir))
		}
	}
	own := regexp.MustCompile(regexp.QuoteMeta(w.State()+string(filepath.Separator)) + wrapper)
	return func(text string) string {
		if !slices.ContainsFunc(signs, func(sign string) bool { return strings.Contains(text, sign) }) {
			return text // most of what commands say
		}
		return paths.Rewrite(own.ReplaceAllLiteralString(text, theCommand))
	}
}
