package openai

import (
	"bytes"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/wire"
)

// Attachments are the files of a message, in the order of its parts: "file", "image_url"
// and "input_audio" (B1 6.4). One that is only pointed at, by a URL or an id, is not
// fetched, and says so in its Problem, as does one whose data is broken.
func Attachments(m llm.Message) []llm.Attachment {
	// Most messages have none: that is seen without reading them.
	if !m.Raw.Is(llm.OpenAIChat) || !mayAttach(m.Raw.Bytes) {
		return nil
	}
	content := wire.Member(m.Raw.Bytes, "content")
	if len(content) == 0 || content[0] != '[' {
		return nil
	}
	var found []llm.Attachment
	for c := wire.Array(content); c.Next(); {
		if a, ok := attachment(c.Value); ok {
			found = append(found, a)
		}
	}
	return found
}

func mayAttach(b []byte) bool {
	for _, word := range []string{"file", "image_url", "input_audio"} {
		if bytes.Contains(b, []byte(word)) {
			return true
		}
	}
	return false
}

// longestScheme is how far into a text the colon of a URL's scheme is looked for.
const longestScheme = 32

func attachment(part jsontext.Value) (llm.Attachment, bool) {
	kind, _ := wire.String(wire.Member(part, "type"))
	body := wire.Member(part, kind)
	if wire.IsNull(body) {
		return llm.Attachment{}, false
	}
	switch kind {
	case "file":
		name, _ := wire.String(wire.Member(body, "filename"))
		data := wire.Member(body, "file_data")
		if id, _ := wire.String(wire.Member(body, "file_id")); id != "" && wire.IsNull(data) {
			return llm.Attachment{Name: name, Problem: llm.OnlyID}, true
		}
		return encoded(name, "", data), true
	case "image_url":
		if body[0] != '"' { // some clients leave the object out
			body = wire.Member(body, "url")
		}
		return unlessEmpty(encoded("", "image", body)), true
	case "input_audio":
		format, _ := wire.String(wire.Member(body, "format"))
		return unlessEmpty(encoded("", "audio/"+format, wire.Member(body, "data"))), true
	}
	return llm.Attachment{}, false
}

// unlessEmpty is a file that is nothing when it is empty: a picture or a sound is none
// then, where a text may be.
func unlessEmpty(a llm.Attachment) llm.Attachment {
	if a.Problem == "" && a.Size == 0 {
		return llm.Attachment{MediaType: a.MediaType, Problem: llm.NoData}
	}
	return a
}

// encoded is a file of a JSON string that holds a data URL, or base64 alone.
func encoded(name, media string, v jsontext.Value) llm.Attachment {
	a := llm.Attachment{Name: name, MediaType: media}
	data, _ := wire.String(v)
	isBase64, whole := true, true
	switch rest, isData := cutFold(data, "data:"); {
	case data == "":
		a.Problem = llm.NoData
		return a
	case isData:
		var head string
		head, data, whole = strings.Cut(rest, ",")
		media, _, _ = strings.Cut(head, ";")
		a.MediaType = strings.ToLower(strings.TrimSpace(media))
		isBase64 = strings.HasSuffix(strings.ToLower(head), ";base64")
	case isLink(data):
		a.Problem = llm.OnlyLink
		return a
	}
	good := false
	if isBase64 {
		a.Size, good = llm.ScanBase64(data)
		a.Data = func() ([]byte, error) { return llm.DecodeBase64(data) }
	} else {
		a.Size, good = int64(len(data)), goodEscapes(data)
		a.Data = func() ([]byte, error) {
			text, err := url.PathUnescape(data)
			return []byte(text), err
		}
	}
	if !good || !whole {
		return llm.Attachment{Name: a.Name, MediaType: a.MediaType, Problem: llm.BrokenData}
	}
	return a
}

// isLink reports whether a text that is no data URL points at a file instead of holding
// it: it has a scheme, and base64 has no colon.
func isLink(text string) bool { return strings.Contains(text[:min(len(text), longestScheme)], ":") }

// goodEscapes reports whether each % of a data URL stands before two digits.
func goodEscapes(text string) bool {
	for {
		_, after, found := strings.Cut(text, "%")
		if !found {
			return true
		}
		if len(after) < 2 || !isHex(after[0]) || !isHex(after[1]) {
			return false
		}
		text = after[2:]
	}
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

func cutFold(s, prefix string) (string, bool) {
	if len(s) < len(prefix) || !strings.EqualFold(s[:len(prefix)], prefix) {
		return s, false
	}
	return s[len(prefix):], true
}
