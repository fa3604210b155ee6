package watch

import (
	"context"
	"log/slog"
	"slices"
	"strings"

	"github.com/metier-run/metier/skill"
)

// report logs what a scan has changed, and tells it.
func (w *watcher) report(ctx context.Context, before, after *skill.Snapshot) {
	was, now := rows(before), rows(after)
	failed := failures(before)
	var fresh []*skill.LoadError
	for _, e := range after.Errors() {
		if !slices.Contains(failed, e.Error()) {
			fresh = append(fresh, e)
		}
	}
	if slices.EqualFunc(was, now, row.equal) && slices.Equal(failed, failures(after)) {
		return
	}
	w.o.Logger.InfoContext(ctx, "skills have changed", slog.Int("skills", len(now)),
		slog.String("new", without(now, was)), slog.String("gone", without(was, now)), slog.String("changed", changed(was, now)))
	for _, e := range fresh {
		w.o.Logger.WarnContext(ctx, "a skill is not loaded", slog.String("dir", e.Dir), slog.Any("error", e.Err))
	}
	if w.o.Changed != nil {
		w.o.Changed(after)
	}
}

// row is what tells one skill from another.
type row struct {
	name, dir, origin, digest string
	warnings                  []string
}

func (r row) equal(other row) bool {
	return r.name == other.name && r.dir == other.dir && r.origin == other.origin && r.digest == other.digest && slices.Equal(r.warnings, other.warnings)
}

func rows(s *skill.Snapshot) []row {
	var all []row
	for _, k := range s.Skills() {
		r := row{name: k.Name, dir: k.Dir(), origin: string(k.Origin), digest: k.Digest()}
		for _, warning := range k.Warnings {
			r.warnings = append(r.warnings, warning.String())
		}
		all = append(all, r)
	}
	return all
}

func failures(s *skill.Snapshot) []string {
	var all []string
	for _, e := range s.Errors() {
		all = append(all, e.Error())
	}
	return all
}

// without names the skills of a that b has not.
func without(a, b []row) string {
	var names []string
	for _, r := range a {
		if !slices.ContainsFunc(b, func(o row) bool { return o.name == r.name }) {
			names = append(names, r.name)
		}
	}
	return strings.Join(names, ",")
}

func changed(was, now []row) string {
	var names []string
	for _, r := range now {
		if slices.ContainsFunc(was, func(o row) bool { return o.name == r.name && !o.equal(r) }) {
			names = append(names, r.name)
		}
	}
	return strings.Join(names, ",")
}
