package diagnose

import (
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Paths rewrites paths of this host to what they are called where a command ran (seed
// 1, the table of recoveries; B1 10.10). All its paths are absolute and clean, in the
// host's own spelling.
type Paths struct {
	// Root holds all of a workspace. Dir is where the command ran, below Root: what lies
	// in Root is named relative to Dir.
	Root, Dir string
	// Places are directories outside of Root that have names of their own.
	Places []Named
	// Wrapper is the script that the command was written into, behind Marker lines of
	// the host's own (B1 9.5).
	Wrapper string
	Marker  int
}

// Named is a directory and what takes its place in a text: "$TMPDIR".
type Named struct{ Path, Name string }

// Rewrite is a text with this host's paths rewritten: of an output, or of a message of
// the operating system.
func (p Paths) Rewrite(text string) string {
	if p.Wrapper != "" {
		text = p.lines(text)
	}
	for _, n := range p.names() {
		for _, form := range forms(n.Path) {
			text = replacePath(text, form, n.Name)
		}
	}
	return text
}

// names are the prefixes and what they become, the longest first, so that none is
// taken for a part of another.
func (p Paths) names() []Named {
	all := slices.Clone(p.Places)
	if root := slashed(p.Root); root != "" && strings.HasPrefix(slashed(p.Dir)+"/", root+"/") {
		up := ""
		for at := slashed(p.Dir); len(at) >= len(root); at = path.Dir(at) {
			all = append(all, Named{Path: at, Name: up})
			up += "../"
		}
	}
	all = slices.DeleteFunc(all, func(n Named) bool { return len(strings.Trim(slashed(n.Path), "/")) < 2 })
	slices.SortStableFunc(all, func(a, b Named) int { return len(b.Path) - len(a.Path) })
	return all
}

// hasDrive reports whether a directory begins with a drive: "C:".
func hasDrive(dir string) bool { return len(dir) > 1 && dir[1] == ':' }

func slashed(name string) string { return strings.ReplaceAll(name, `\`, "/") }

// forms are the spellings of a directory in texts: as a URL, as it is, and where the
// host's separator is a backslash with that, plain and doubled as in a string literal.
func forms(dir string) []string {
	dir = slashed(dir)
	escaped := (&url.URL{Path: dir}).EscapedPath()
	found := []string{"file://" + escaped, "file://" + dir, dir}
	if hasDrive(dir) {
		found = append([]string{"file:///" + escaped, "file:///" + dir}, found...)
		found = append(found, strings.ReplaceAll(dir, "/", `\\`), strings.ReplaceAll(dir, "/", `\`))
	}
	return slices.Compact(found)
}

// replacePath puts a name in the place of a directory wherever a path begins with it.
// An empty name makes paths below it relative, and the directory itself ".".
func replacePath(text, dir, name string) string {
	if dir == "" || !strings.Contains(text, dir) {
		return text
	}
	var b strings.Builder
	for from := 0; ; {
		i := strings.Index(text[from:], dir)
		if i < 0 {
			b.WriteString(text[from:])
			return b.String()
		}
		at, end := from+i, from+i+len(dir)
		b.WriteString(text[from:at])
		sep, ends := separator(text[end:], !strings.Contains(dir, "/") || hasDrive(dir))
		switch {
		case insidePath(text[:at]) || !ends:
			b.WriteString(dir)
		case sep == "":
			b.WriteString(bareName(name, text[end:]))
		case name == "" || strings.HasSuffix(name, "../"):
			end += len(sep)
			if name == "" && (end == len(text) || text[end] < 0x80 && !isPathByte(text[end]) && text[end] != '.') {
				b.WriteByte('.')
				b.WriteString(sep)
			}
			b.WriteString(name)
		default:
			b.WriteString(name)
		}
		from = end
	}
}

// bareName is a name with nothing below it. Before a full stop it keeps a slash: ".." is
// another directory than ".".
func bareName(name, rest string) string {
	if name == "" {
		name = "./"
	}
	if strings.HasPrefix(rest, ".") {
		return name
	}
	return strings.TrimSuffix(name, "/")
}

// separator is what separates a directory from what follows in it, empty when nothing
// does; ends is false when the directory's own name goes on. A backslash separates only
// where the directory is spelled with a drive: elsewhere it begins an escape.
func separator(rest string, drive bool) (sep string, ends bool) {
	seps := []string{"/"}
	if drive {
		seps = append(seps, `\\`, `\`)
	}
	for _, s := range seps {
		if strings.HasPrefix(rest, s) {
			return s, true
		}
	}
	if rest == "" || rest[0] < 0x80 && !isPathByte(rest[0]) && rest[0] != '.' {
		return "", true
	}
	// A full stop may end a sentence.
	return "", rest[0] == '.' && (len(rest) == 1 || strings.IndexByte(" \n\r\t'\")", rest[1]) >= 0)
}

func isPathByte(b byte) bool {
	return b == '_' || b == '-' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
}

// longestPath is how far back the beginning of a path is looked for, in bytes.
const longestPath = 4096

// insidePath reports whether a text ends inside of a path, so that what follows is
// not its beginning.
func insidePath(before string) bool {
	for i := len(before) - 1; i >= max(0, len(before)-longestPath); i-- {
		switch before[i] {
		case '/', '\\':
			return true
		case ' ', '\t', '\n', '\r', '\'', '"', '`', '=', ':', ';', ',', '(', '<', '>', '[', '{', '|':
			return false
		case 0x98, 0x9c: // the last bytes of opening quotes
			if strings.HasSuffix(before[:i], "\xe2\x80") {
				return false
			}
		}
	}
	return false
}

var (
	atLine   = regexp.MustCompile(`\b(?:at|from) line (\d{1,9})`)
	lineTail = regexp.MustCompile(`^(?:: line (\d{1,9})|\[(\d{1,9})\]|: (\d{1,9})|:(\d{1,9})(?: char:\d+)?|: syntax error at line (\d{1,9}))(: ?|$|\s)`)
)

// lines puts the model's own line numbers in the place of the wrapper's. Whatever
// follows the wrapper's name is a shell's message.
func (p Paths) lines(text string) string {
	names := []string{p.Wrapper}
	if s := slashed(p.Wrapper); s != p.Wrapper {
		names = append(names, s)
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		for _, name := range names {
			if i := strings.Index(line, name); i >= 0 {
				line = line[:i] + p.tail(line[i+len(name):])
				break
			}
		}
		b.WriteString(line)
	}
	return b.String()
}

// tail rewrites what follows the wrapper's name in a line.
func (p Paths) tail(rest string) string {
	m := lineTail.FindStringSubmatch(rest)
	if m == nil {
		return theCommand + rest
	}
	number := ""
	for _, g := range m[1:6] {
		if g != "" {
			number = g
		}
	}
	after := rest[len(m[0]):]
	after = atLine.ReplaceAllStringFunc(after, func(s string) string {
		digits := atLine.FindStringSubmatch(s)[1]
		return strings.TrimSuffix(s, digits) + strconv.Itoa(p.own(digits))
	})
	if m[5] != "" {
		after = "syntax error: " + after
	}
	if strings.TrimSpace(after) == "" {
		return theLine(p.own(number)) + strings.TrimLeft(m[6], ": ") + after
	}
	return theLine(p.own(number)) + ": " + strings.TrimLeft(after, " ")
}

// own is the model's line of a line of the wrapper. What the wrapper itself does
// counts as the first.
func (p Paths) own(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 1
	}
	return max(1, n-p.Marker)
}

func theLine(n int) string { return "line " + strconv.Itoa(n) + " of the command" }
