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
		if d := tool.Edits(name, tool.Key(k.Name), least); d < least {
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
		d := min(tool.Edits(name, whole, least), tool.Edits(path.Base(name), path.Base(whole), least))
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
