// Package skill reads Agent Skills: folders with a SKILL.md whose front matter
// says what the skill is for and whose body says how to do it.
//
// [Load] scans directories and gives an immutable [Snapshot]; [Parse] reads one
// manifest; a [Registry] holds the snapshot in force and replaces it by
// [Registry.Rescan], or by package skill/watch whenever something changes. The
// package is strict about little (a skill needs front matter that is valid YAML,
// a description, and a name) and forgiving about the rest: what is out of order
// loads with a [Warning], and a skill that cannot be loaded is listed in
// [Snapshot.Errors] and never takes another down.
//
// It never runs anything that a skill ships, never writes, reads no directory
// that it was not given, and never opens a path outside a skill's folder,
// whatever a link or a caller names.
//
//	s, err := skill.Load(ctx, skill.Options{Roots: []skill.Root{{Dir: "skills"}}})
//	if err != nil { ... }
//	pdf, ok := s.Find("pdf")
//	body, err := pdf.Body(ctx)
//
// Sizes (a manifest, a skill, offsets and pages of [Skill.Read]) count bytes.
// The lengths of name, description and compatibility, and all columns, count
// Unicode code points. Lines, columns and their places count from 1, offsets
// from 0.
//
// Snapshots, skills and registries are safe for concurrent use.
//
// Start at [Load], then [Skill], then [Open].
package skill
