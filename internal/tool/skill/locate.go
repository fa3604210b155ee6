package skill

import (
	"errors"
	"net/url"
	"path"
	"strings"

	"github.com/metier-run/metier/internal/tool"
	"github.com/metier-run/metier/skill"
)

// find looks a reachable skill up as people and models write names: in any
// case, with "$" in front, with other joints between the words. A spelling that
// fits two skills equally well means none.
func (s *Set) find(name string) (skill.Skill, bool) {
	name = plain(name)
	if k, ok := s.only(func(k skill.Skill) bool { return k.Name == name }); ok {
		return k, true
	}
	if k, ok := s.only(func(k skill.Skill) bool { return strings.EqualFold(k.Name, name) }); ok {
		return k, true
	}
	key := tool.Key(name)
	return s.only(func(k skill.Skill) bool { return key != "" && tool.Key(k.Name) == key })
}

func (s *Set) only(match func(skill.Skill) bool) (skill.Skill, bool) {
	found := -1
	for i := range s.skills {
		if !match(s.skills[i]) {
			continue
		}
		if found >= 0 {
			return skill.Skill{}, false
		}
		found = i
	}
	if found < 0 {
		return skill.Skill{}, false
	}
	return s.skills[found], true
}

// locate finds the skill that a target means, and the path in it. A name may
// hold a path as well, and a path the name.
func (s *Set) locate(t target) (skill.Skill, string, bool) {
	switch {
	case t.skill != "":
		if k, ok := s.find(t.skill); ok {
			return k, cleanPath(k, t.path), true
		}
		if k, ok := s.lead(t.skill); ok {
			return k, joined(k, t), true
		}
		return skill.Skill{}, "", false
	case t.path != "":
		if k, ok := s.lead(t.path); ok {
			return k, cleanPath(k, t.path), true
		}
	}
	// Nobody was named, and only one can have been meant.
	if len(s.skills) == 1 {
		return s.skills[0], cleanPath(s.skills[0], t.path), true
	}
	return skill.Skill{}, "", false
}

// lead finds the skill whose name a text begins with: "pdf", "pdf/forms.md" or
// "pdf:forms.md".
func (s *Set) lead(text string) (skill.Skill, bool) {
	text = belowRoot(spelled(text))
	for _, joint := range []string{"/", ":"} {
		name, _, _ := strings.Cut(text, joint)
		if k, ok := s.find(name); ok {
			return k, true
		}
	}
	return skill.Skill{}, false
}

// joined is the path of a target whose skill holds a path too. The two parts
// belong together if that names something, or if one is for the guard to refuse.
func joined(k skill.Skill, t target) string {
	inner := cleanPath(k, t.skill)
	if t.path == "" {
		return inner
	}
	if both := inner + "/" + spelled(t.path); has(k, both) || strings.Contains(inner, "..") {
		return both
	}
	return cleanPath(k, t.path)
}

// has reports whether a path names a file or a folder of a skill as it stands.
func has(k skill.Skill, name string) bool {
	_, err := k.Lookup(name)
	return err == nil || errors.Is(err, skill.ErrFolder)
}

// plain is a value without the quotes, the scheme and the sign that models put
// around a name.
func plain(text string) string {
	text = strings.Trim(text, " \t\r\n`\"'")
	if rest, ok := cutFold(text, "skill://"); ok {
		text = strings.TrimLeft(rest, "/")
	} else if rest, ok := cutFold(text, "file://"); ok {
		text = rest
	}
	return strings.TrimSpace(strings.TrimPrefix(text, "$"))
}

func cutFold(text, prefix string) (string, bool) {
	if len(text) < len(prefix) || !strings.EqualFold(text[:len(prefix)], prefix) {
		return text, false
	}
	return text[len(prefix):], true
}

// spelled is a path as the guard reads paths: plain, with "/" between folders,
// without "./" in front, and with the bytes that "%" stands for.
func spelled(text string) string {
	text = plain(text)
	if decoded, err := url.PathUnescape(text); err == nil {
		text = decoded
	}
	text = strings.ReplaceAll(text, `\`, "/")
	if text == "./" {
		return "."
	}
	for strings.HasPrefix(text, "./") {
		text = strings.TrimLeft(text[len("./"):], "/")
	}
	return text
}

// belowRoot drops the folder that skills lie in.
func belowRoot(text string) string {
	rest, _ := cutFold(text, "skills/")
	return rest
}

// cleanPath is the path that a model means by text: as it stands if it names
// something, else without what models add. A ".." stays for the guard to refuse by
// name, and so does an absolute path. Nothing at all is the manifest, "." and "/" are
// the folder.
func cleanPath(k skill.Skill, text string) string {
	text = strings.TrimSpace(text)
	if text == "" {
		return mainFile
	}
	if has(k, text) && path.Clean(text) == text {
		return text
	}
	switch text = spelled(text); {
	case text == "/":
		return "."
	case has(k, text):
		return text
	}
	text = withoutName(k, text)
	if before, _, cut := strings.Cut(text, "#"); cut && !has(k, text) && has(k, before) {
		text = before
	}
	switch {
	case text == "":
		return mainFile
	case has(k, text):
		return text
	case strings.EqualFold(text, "SKILL") || strings.EqualFold(text, mainFile):
		return mainFile
	}
	return inAnyCase(k, text)
}

// withoutName drops the skill's own name from the front of a path that names
// nothing with it.
func withoutName(k skill.Skill, text string) string {
	for _, t := range []string{text, belowRoot(text)} {
		rest, ok := cutFold(t, k.Name)
		if ok && (rest == "" || rest[0] == '/' || rest[0] == ':') {
			return strings.TrimLeft(rest, "/:")
		}
	}
	return text
}

// inAnyCase is the one file whose path differs from text in case only, or text.
func inAnyCase(k skill.Skill, text string) string {
	found := ""
	for _, f := range k.Files {
		if !strings.EqualFold(f.Path, text) {
			continue
		}
		if found != "" {
			return text
		}
		found = f.Path
	}
	if found == "" {
		return text
	}
	return found
}
