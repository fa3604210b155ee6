package file

import (
	"context"
	"fmt"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/tool"
)

// passed reports whether a folder is none of the model's own files: what tools keep
// there (B1 8.9).
func passed(name string) bool {
	switch name {
	case "node_modules", "__pycache__", ".venv", ".git", ".npm", ".cargo", ".gradle", ".m2", ".config", ".cache",
		".local", ".fontconfig", ".pytest_cache", ".ruff_cache", ".mypy_cache":
		return true
	}
	return false
}

// longestName is the length in bytes from which on a text is no misspelt name.
const longestName = 256

// missing is the answer to a file that is not there: the one that was probably meant,
// and what is there (B1 11.3).
func (v visit) missing(ctx context.Context, rel string) journal.Result {
	text := fmt.Sprintf(missingFile, v.name(rel))
	if near := v.nearest(ctx, rel); near != "" {
		text += fmt.Sprintf(didYouMean, v.name(near))
	}
	return failure(rel, "%s", text+" "+v.around(rel))
}

// nearest is the file that was probably meant, or empty: one of the same name in
// another folder or in another case, else the one whose name is spelled most alike.
func (v visit) nearest(ctx context.Context, rel string) string {
	want := path.Base(rel)
	if len(want) > longestName {
		return ""
	}
	length := utf8.RuneCountInString(want)
	best, least := "", min(max(2, length/3), length-1)+1
	left := v.entries
	for e, err := range v.root.Walk(ctx, passed) {
		if left--; left < 0 || ctx.Err() != nil {
			break
		}
		if err != nil || !e.Info.Mode().IsRegular() {
			continue
		}
		name := path.Base(e.Path)
		switch {
		case name == want:
			return e.Path
		case strings.EqualFold(name, want) && least > 0:
			best, least = e.Path, 0
		case len(name) <= longestName:
			if d := tool.Edits(strings.ToLower(want), strings.ToLower(name), least); d < least {
				best, least = e.Path, d
			}
		}
	}
	return best
}
