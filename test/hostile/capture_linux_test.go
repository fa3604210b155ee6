package hostile

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"github.com/metier-run/metier/internal/workspace/artifact"
)

// leaveForHost has a launch leave what is made to trip whoever keeps its files, and
// keeps them as the host does.
func leaveForHost(x *trial) *outcome {
	secret := x.outside(x.home, x.name)
	store, err := artifact.Open(artifact.Options{Dir: filepath.Join(x.far, x.name+"-kept")})
	if err != nil {
		x.Fatal(err)
	}
	x.Cleanup(func() { remove(x.T, filepath.Join(x.far, x.name+"-kept")) })
	ctx, stop := context.WithTimeout(x.Context(), 10*time.Second)
	defer stop()
	before, err := artifact.Take(ctx, x.work, artifact.Scope{})
	if err != nil {
		x.Fatal(err)
	}
	_, left := x.send(x.l, "names", x.work, secret)
	if len(left.escaped) == 0 { // all could be made
		return &outcome{broken: append(left.broken, "names")}
	}
	kept, err := store.Capture(ctx, "tester", x.work, before)
	if err != nil {
		return &outcome{broken: []string{err.Error()}}
	}
	o := &outcome{}
	o.sees("nothing-kept", len(kept.Files) == 0)
	for _, f := range kept.Files {
		file, _, err := store.Open("tester", kept.RunID, f.Path)
		if err != nil {
			o.broken = append(o.broken, err.Error())
			continue
		}
		info, statErr := file.Stat()
		text, readErr := os.ReadFile(file.Name())
		_ = file.Close()
		o.sees("special-file", statErr != nil || !info.Mode().IsRegular())
		o.sees("secret", readErr != nil || strings.Contains(string(text), x.secret))
	}
	for _, s := range kept.Skipped {
		o.sees("raw-text", strings.ContainsFunc(s.Path+s.Reason, unicode.IsControl))
	}
	o.sees("none-skipped", len(kept.Skipped) == 0)
	return o
}
