package skill

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"unicode/utf8"
)

// LinkKind says how a text names a path.
type LinkKind string

// The kinds.
const (
	LinkMarkdown LinkKind = "link" // [text](path), ![text](path) or [label]: path
	LinkCode     LinkKind = "code" // a word in a code span or a code block
	LinkText     LinkKind = "text" // a word of the prose
)

// Link is a path that the text of a skill names.
type Link struct {
	// Path is the path alone: without fragment, query and title, with escapes
	// resolved, and without the punctuation of the sentence around it.
	Path string
	Kind LinkKind
	// Line and Column, from 1, are where it stands; columns count code points.
	Line, Column int
	// Err is why [Skill.Read] would not read the path, a [*ReadError]; nil when
	// it would, or when the path names a folder of the skill.
	Err error
}

// Links finds the paths that a Markdown text names: the targets of links, unless
// they are URLs or lead to a place in the text itself, and words that look like
// paths into the folders scripts, references, reference and assets. Err is nil.
//
// A word with a placeholder in it, such as references/<topic>.md, names nothing.
func Links(text string) []Link {
	return findLinks(text, func(folder string) bool { return false })
}

// Links finds the paths that the skill's SKILL.md names below its front matter
// and judges each by the guard and the list of files. Besides what [Links] finds
// these are words that look like paths into any folder of the skill. A word is
// only a guess: one that the guard refuses, because it starts elsewhere, is left
// out.
func (s Skill) Links(ctx context.Context) ([]Link, error) {
	data, head, err := s.manifest(ctx)
	if err != nil {
		return nil, err
	}
	if head.body >= len(data) {
		return nil, nil
	}
	folders := map[string]bool{}
	for _, f := range s.Files {
		if folder, _, nested := strings.Cut(f.Path, "/"); nested {
			folders[folder] = true
		}
	}
	above, _ := place(data, head.body)
	found := findLinks(strings.ToValidUTF8(string(data[head.body:]), "\ufffd"), func(folder string) bool { return folders[folder] })
	kept := found[:0]
	for _, l := range found {
		l.Line += above - 1
		if _, err := s.Lookup(l.Path); err != nil && !errors.Is(err, ErrFolder) {
			l.Err = err
		}
		if l.Kind == LinkMarkdown || !errors.Is(l.Err, ErrPath) {
			kept = append(kept, l)
		}
	}
	return kept, nil
}

// findLinks reads a text line by line. folder tells further names of folders
// that start a path.
func findLinks(text string, folder func(string) bool) []Link {
	f := finder{folder: folder}
	data := []byte(text)
	for at := 0; at < len(data); {
		line, next := lineAt(data, at)
		f.next(string(line))
		at = next
	}
	return f.links
}

type finder struct {
	folder func(string) bool
	fence  string // what closes the code block that is open
	links  []Link

	text string // the line, of which number counts from 1
	line int
	// column is that of the byte at offset: links come in order, so that no line
	// is counted twice.
	offset, column int
}

// next reads the next line.
func (f *finder) next(line string) {
	f.text, f.offset, f.column = line, 0, 1
	f.line++
	trimmed := strings.TrimLeft(line, " >")
	switch mark := fenceMark(trimmed); {
	case f.fence != "" && strings.HasPrefix(mark, f.fence) && strings.TrimSpace(trimmed) == mark:
		f.fence = ""
	case f.fence != "":
		f.words(0, len(line), LinkCode)
	case mark != "":
		f.fence = mark
	default:
		f.inline()
	}
}

// fenceMark is the run of backquotes or tildes that opens or closes a code block.
func fenceMark(line string) string {
	for _, c := range []string{"`", "~"} {
		if mark := line[:len(line)-len(strings.TrimLeft(line, c))]; len(mark) >= 3 && !strings.Contains(line[len(mark):], "`") {
			return mark
		}
	}
	return ""
}

// inline takes a line of prose apart into code spans, links and words.
func (f *finder) inline() {
	if label, target, ok := strings.Cut(f.text, "]:"); ok && strings.HasPrefix(strings.TrimLeft(label, " "), "[") && !strings.Contains(label, "](") {
		f.target(len(f.text)-len(target), len(f.text))
		return
	}
	at := 0
	for at < len(f.text) {
		i := strings.IndexAny(f.text[at:], "`]")
		if i < 0 {
			break
		}
		f.words(at, at+i, LinkText)
		at += i
		if f.text[at] == '`' {
			at = f.span(at)
			continue
		}
		at++
		if end := targetEnd(f.text, at); end > 0 {
			f.target(at+1, end)
			at = end + 1
		}
	}
	f.words(at, len(f.text), LinkText)
}

// span reads the code span that starts at an offset and gives back its end.
func (f *finder) span(at int) int {
	rest := f.text[at:]
	mark := rest[:len(rest)-len(strings.TrimLeft(rest, "`"))]
	start := at + len(mark)
	length := strings.Index(f.text[start:], mark)
	if length < 0 {
		return start
	}
	f.words(start, start+length, LinkCode)
	return start + length + len(mark)
}

// Bounds of a link's target, so that no line is read again and again: more bytes
// than a path that the guard lets pass has with its title, and as many nested
// parentheses as Markdown readers take.
const (
	longestTarget = 8192
	deepestTarget = 32
)

// targetEnd is the offset of the parenthesis that closes the one at an offset, or
// 0; parentheses inside count.
func targetEnd(text string, at int) int {
	depth := 0
	for i := at; i < min(len(text), at+longestTarget); i++ {
		switch {
		case text[i] == '(' && depth == deepestTarget:
			return 0
		case text[i] == '(':
			depth++
		case depth == 0:
			return 0
		case text[i] == ')':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return 0
}

// target takes the target of a Markdown link, which may have a title.
func (f *finder) target(start, end int) {
	for start < end && (f.text[start] == ' ' || f.text[start] == '\t') {
		start++
	}
	name, angle := strings.CutPrefix(f.text[start:end], "<")
	if angle {
		name, _, _ = strings.Cut(name, ">")
	} else if i := strings.IndexAny(name, " \t"); i >= 0 {
		name = name[:i]
	}
	path, _, _ := strings.Cut(name, "#")
	path, _, _ = strings.Cut(path, "?")
	if path == "" || placeholder(path) || hasScheme(path) || strings.HasPrefix(path, "//") {
		return
	}
	if plain, err := url.PathUnescape(path); err == nil {
		path = plain
	}
	if path = strings.TrimPrefix(path, "./"); path != "" {
		f.add(start, path, LinkMarkdown)
	}
}

// words takes the words of a part of the line that look like paths of the skill.
func (f *finder) words(start, end int, kind LinkKind) {
	for start < end {
		length := strings.IndexAny(f.text[start:end], " \t,;\"'()[]=|")
		if length < 0 {
			length = end - start
		}
		f.word(start, f.text[start:start+length], kind)
		start += length + 1
	}
}

func (f *finder) word(start int, word string, kind LinkKind) {
	rest := strings.TrimLeft(word, "*_")
	start += len(word) - len(rest)
	path, _, _ := strings.Cut(strings.TrimPrefix(rest, "./"), "#")
	path = strings.TrimRight(path, ".:!?*_\u2026")
	first, below, nested := strings.Cut(path, "/")
	if nested && below != "" && !placeholder(path) && f.starts(first, below) {
		f.add(start, path, kind)
	}
}

// starts says whether a path into a folder is one of the skill's. In folders of
// the convention it must look like a file, so that "scripts/tools" may be prose.
func (f *finder) starts(first, below string) bool {
	switch first {
	case "scripts", "references", "reference", "assets":
		name := below[strings.LastIndexByte(below, '/')+1:]
		dot := strings.LastIndexByte(name, '.')
		return dot > 0 && dot < len(name)-1
	}
	return f.folder(first)
}

func (f *finder) add(offset int, path string, kind LinkKind) {
	f.column += utf8.RuneCountInString(f.text[f.offset:offset])
	f.offset = offset
	f.links = append(f.links, Link{Path: path, Kind: kind, Line: f.line, Column: f.column})
}

func placeholder(path string) bool {
	return strings.ContainsAny(path, "<>{}$*|`\u2026") || strings.Contains(path, "...")
}

// hasScheme says whether a link starts like a URL: letters and a colon.
func hasScheme(link string) bool {
	scheme, _, ok := strings.Cut(link, ":")
	return ok && len(scheme) > 1 && !strings.ContainsFunc(scheme, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '+' && r != '-' && r != '.'
	})
}
