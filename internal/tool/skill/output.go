package skill

import (
	"path/filepath"
	"slices"
	"strings"
)

// hostPath is a directory of this host, and what stands for it where a model reads.
type hostPath struct{ dir, name string }

// hostPaths are the directories that mean nothing to a model: the working directory,
// which paths become relative to, the skill's, and the interpreters' (seed 1, "recovers
// instead of reporting"). The longest come first.
func (c script) hostPaths(scratch string) []hostPath {
	paths := []hostPath{{scratch, ""}, {c.dir, c.skill.Name}}
	if dir := c.skill.Dir(); filepath.IsAbs(dir) {
		paths = append(paths, hostPath{dir, c.skill.Name})
	}
	for _, i := range c.interpreters() {
		for _, dir := range i.Read {
			paths = append(paths, hostPath{dir, "<" + string(i.Kind) + ">"})
		}
	}
	slices.SortStableFunc(paths, func(a, b hostPath) int { return len(b.dir) - len(a.dir) })
	return paths
}

// shorten puts names for the host's paths in a text. It leaves alone what only begins
// or ends like one of them.
func shorten(text string, paths []hostPath) string {
	for _, p := range paths {
		text = p.replace(text)
	}
	return text
}

func (p hostPath) replace(text string) string {
	var b strings.Builder
	for {
		at := strings.Index(text, p.dir)
		if at < 0 {
			b.WriteString(text)
			return b.String()
		}
		rest := text[at+len(p.dir):]
		switch {
		case at > 0 && inPath(text[at-1]) || goesOn(rest):
			b.WriteString(text[:at] + p.dir)
		case p.name != "":
			b.WriteString(text[:at] + p.name)
		case len(rest) > 1 && rest[0] == filepath.Separator && inPath(rest[1]):
			b.WriteString(text[:at])
			rest = rest[1:]
		default:
			b.WriteString(text[:at] + ".")
		}
		text = rest
	}
}

// goesOn reports whether the last name of a path goes on in what follows it. A full
// stop that ends a sentence is no part of it.
func goesOn(rest string) bool {
	rest = strings.TrimPrefix(rest, ".")
	return rest != "" && inPath(rest[0]) && rest[0] != filepath.Separator
}

// inPath reports whether a byte next to a path would make it another path.
func inPath(c byte) bool {
	return isLetter(c) || '0' <= c && c <= '9' || c >= 0x80 || strings.IndexByte("._-"+string(filepath.Separator), c) >= 0
}
