package registry

import (
	"html"
	"iter"
	"strings"
)

// tags yields the links of a page ("a") and what they are relative to ("base"), with
// their attributes. It reads as much of HTML as the pages of indexes use, and finds
// no link in a comment.
func tags(text string) iter.Seq2[string, map[string]string] {
	return func(yield func(string, map[string]string) bool) {
		for {
			at := strings.IndexByte(text, '<')
			if at < 0 {
				return
			}
			text = text[at+1:]
			if rest, found := strings.CutPrefix(text, "!--"); found {
				_, after, closed := strings.Cut(rest, "-->")
				if !closed {
					return
				}
				text = after
				continue
			}
			name := tagName(text)
			if name != "a" && name != "base" {
				continue
			}
			attributes, rest := attributesOf(text[len(name):])
			text = rest
			if !yield(name, attributes) {
				return
			}
		}
	}
}

// tagName is the name at the beginning of a tag, if it is one that matters.
func tagName(text string) string {
	for _, name := range []string{"a", "base"} {
		if len(text) > len(name) && strings.EqualFold(text[:len(name)], name) && (isSpace(text[len(name)]) || text[len(name)] == '/') {
			return name
		}
	}
	return ""
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' }

// attributesOf reads attributes up to the end of a tag. Of two with one name the first
// counts, as in browsers.
func attributesOf(text string) (map[string]string, string) {
	found := map[string]string{}
	for {
		text = strings.TrimLeft(text, " \t\n\r\f/")
		if text == "" {
			return found, ""
		}
		if text[0] == '>' {
			return found, text[1:]
		}
		end := strings.IndexAny(text, " \t\n\r\f/>=")
		if end < 0 {
			return found, ""
		}
		if end == 0 { // a stray "="
			text = text[1:]
			continue
		}
		name := strings.ToLower(text[:end])
		var value string
		text = strings.TrimLeft(text[end:], " \t\n\r\f")
		if rest, is := strings.CutPrefix(text, "="); is {
			value, text = valueOf(strings.TrimLeft(rest, " \t\n\r\f"))
		}
		if _, twice := found[name]; !twice {
			found[name] = html.UnescapeString(value)
		}
	}
}

// valueOf reads the value of an attribute.
func valueOf(text string) (value, rest string) {
	if text == "" {
		return "", ""
	}
	if quote := text[0]; quote == '"' || quote == '\'' {
		value, rest, _ = strings.Cut(text[1:], string(quote))
		return value, rest
	}
	end := strings.IndexAny(text, " \t\n\r\f>")
	if end < 0 {
		return text, ""
	}
	return text[:end], text[end:]
}
