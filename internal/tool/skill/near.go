package skill

import (
	"path"
	"strings"
	"unicode/utf8"

	"github.com/metier-run/metier/internal/tool"
	"github.com/metier-run/metier/skill"
)

// longestName is the length in bytes from which on a text is no misspelt name.
const longestName = 256

// nearestSkill is the name that was probably meant, or empty.
func nearestSkill(skills []skill.Skill, name string) string {
	if name = tool.Key(plain(name)); len(name) > longestName {
		return ""
	}
	best, least := "", utf8.RuneCountInString(name)/3+1
	for _, k := range skills {
		if d := edits(name, tool.Key(k.Name), least); d < least {
			best, least = k.Name, d
		}
	}
	return best
}

// nearestFile is the file that was probably meant, or empty: the only one of the
// same base name, with or without its extension, or else the one that is spelled
// most alike.
func nearestFile(k skill.Skill, name string) string {
	for _, same := range []func(a, b string) bool{
		strings.EqualFold,
		func(a, b string) bool { return strings.EqualFold(stem(a), stem(b)) },
	} {
		if found := onlyFile(k, func(f string) bool { return same(path.Base(f), path.Base(name)) }); found != "" {
			return found
		}
	}
	if name = strings.ToLower(name); len(name) > longestName {
		return ""
	}
	best, least := "", utf8.RuneCountInString(path.Base(name))/3+1
	for _, f := range k.Files {
		whole := strings.ToLower(f.Path)
		d := min(edits(name, whole, least), edits(path.Base(name), path.Base(whole), least))
		if d < least {
			best, least = f.Path, d
		}
	}
	return best
}

func stem(name string) string { return strings.TrimSuffix(name, path.Ext(name)) }

func onlyFile(k skill.Skill, match func(string) bool) string {
	found := ""
	for _, f := range k.Files {
		if !match(f.Path) {
			continue
		}
		if found != "" {
			return ""
		}
		found = f.Path
	}
	return found
}

// edits counts the letters to change, add, drop or swap between two words, as
// far as it stays below most.
func edits(a, b string, most int) int {
	x, y := []rune(a), []rune(b)
	if d := len(x) - len(y); max(d, -d) >= most {
		return most
	}
	before, last, now := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range last {
		last[j] = j
	}
	for i := range x {
		now[0] = i + 1
		for j := range y {
			cost := 1
			if x[i] == y[j] {
				cost = 0
			}
			now[j+1] = min(last[j+1]+1, now[j]+1, last[j]+cost)
			if i > 0 && j > 0 && x[i] == y[j-1] && x[i-1] == y[j] {
				now[j+1] = min(now[j+1], before[j-1]+1)
			}
		}
		before, last, now = last, now, before
	}
	return min(last[len(y)], most)
}
