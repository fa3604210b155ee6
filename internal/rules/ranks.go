package rules

import (
	"path"
	"strings"
)

// exempt is the rank of rooms that no room of the program imports and that may
// import any.
const exempt = -1

// room is a row of the table of ranks.
type room struct {
	// dir is a folder, or a folder and "/*" for all below it.
	dir  string
	rank int
}

// rooms is the table of ranks, lowest first, as the design draws it. A room is
// added at the lowest rank that works.
func rooms() []room {
	return []room{
		{"internal/fault", 0},
		{"internal/wire", 0},
		{"internal/guard", 0},
		{"internal/patch", 0},
		{"internal/config", 0},
		{"internal/bash", 0},
		{"client", 0},
		{"web", 0},

		{"skill", 1},
		{"skill/validate", 1},
		{"skill/watch", 1},
		{"internal/search", 1},
		{"internal/llm", 1},
		{"internal/llm/llmtest", 1},
		{"internal/llm/codec", 1},
		{"internal/llm/upstream", 1},
		{"internal/sandbox/seccomp", 0},
		{"internal/interpreter", 1},
		{"internal/sandbox", 1},
		{"internal/sandbox/*", 1},
		{"internal/sandbox/bwrap", 2},
		{"internal/sandbox/oci", 2},
		{"internal/telemetry", 1},

		{"internal/journal", 2},
		{"internal/journal/journaltest", 2},
		{"internal/continuity", 2},
		{"internal/continuity/continuitytest", 2},
		{"internal/disclosure", 2},
		{"internal/launch", 3},
		{"internal/workspace", 2},
		{"internal/workspace/*", 2},
		{"internal/access", 2},
		{"internal/rescue", 2},
		{"internal/admission", 2},
		{"internal/llm/*", 2},

		{"internal/tool", 3},
		{"internal/tool/*", 3},
		{"internal/store", 3},
		{"internal/store/storetest", exempt},

		{"internal/turn", 4},
		{"internal/code", 4},

		{"internal/gateway", 5},
		{"internal/engine", 5},
		{"internal/plugin", 5},
		{"internal/mcp", 5},

		{"internal/server", 6},
		{"internal/server/*", 6},

		{"internal/app", 7},
		{"internal/eval", 7},
		{"client/local", 7},

		{"internal/cli", 8},

		{"cmd/metier", 9},

		{"internal/rules", exempt},
		{"test/*", exempt},
	}
}

// rankOf is a folder's rank: its own row's, else that of the row that holds all
// below a parent.
func rankOf(dir string) (int, bool) {
	for _, r := range rooms() {
		if r.dir == dir {
			return r.rank, true
		}
	}
	for _, r := range rooms() {
		if above, all := strings.CutSuffix(r.dir, "*"); all && strings.HasPrefix(dir, above) {
			return r.rank, true
		}
	}
	return 0, false
}

// checkRanks: a package imports lower ranks only, and a child its parents. Tests
// may import what they like.
func checkRanks(t *Tree) []Problem {
	var found []Problem
	for _, p := range t.Packages {
		rank, known := rankOf(p.Dir)
		if !known {
			found = append(found, in(p.Dir, "the room has no rank: add it to rooms in internal/rules/ranks.go at the lowest rank that works"))
			continue
		}
		if rank == exempt {
			continue
		}
		for _, f := range p.Files {
			found = append(found, t.checkRank(p.Dir, rank, f)...)
		}
	}
	return found
}

func (t *Tree) checkRank(dir string, rank int, f *File) []Problem {
	var found []Problem
	for importPath, spec := range importsOf(f) {
		to, ours := t.dirOf(importPath)
		if !ours || isAbove(to, dir) {
			continue
		}
		other, known := rankOf(to)
		switch {
		case !known: // said once, of that room itself
		case other == exempt:
			found = append(found, t.at(spec.Pos(), "%s imports %s, which only tests may import", dir, to))
		case other >= rank:
			found = append(found, t.at(spec.Pos(), "%s (rank %d) imports %s (rank %d): a room imports lower ranks and its parents only; declare what it needs as a small interface, or move what both need to a lower room", dir, rank, to, other))
		}
	}
	return found
}

// isAbove says whether to is a parent folder of dir.
func isAbove(to, dir string) bool {
	for at := path.Dir(dir); at != "."; at = path.Dir(at) {
		if at == to {
			return true
		}
	}
	return false
}
