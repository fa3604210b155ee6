package openai

import (
	"bytes"
	"encoding/base64"
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

// Why a file cannot be had.
const (
	onlyID     = "only its id was sent, and not the file"
	onlyLink   = "only a link was sent, and not the file"
	brokenData = "what was sent of it cannot be decoded"
	noData     = "nothing was sent of it"
)

func attachment(part jsontext.Value) (llm.Attachment, bool) {
	kind, _ := wire.String(wire.Member(part, "type"))
	body := wire.Member(part, kind)
	switch kind {
	case "file":
		name, _ := wire.String(wire.Member(body, "filename"))
		if id, _ := wire.String(wire.Member(body, "file_id")); id != "" && wire.IsNull(wire.Member(body, "file_data")) {
			return llm.Attachment{Name: name, Problem: onlyID}, true
		}
		return encoded(name, "", wire.Member(body, "file_data"), true)
	case "image_url":
		if len(body) > 0 && body[0] != '"' { // some clients leave the object out
			body = wire.Member(body, "url")
		}
		if a, ok := encoded("", "", body, false); ok {
			return a, true
		}
		link, _ := wire.String(body)
		return llm.Attachment{MediaType: "image", Problem: onlyLink}, link != ""
	case "input_audio":
		format, _ := wire.String(wire.Member(body, "format"))
		return encoded("", "audio/"+format, wire.Member(body, "data"), true)
	}
	return llm.Attachment{}, false
}

// encoded is a file of a JSON string that holds a data URL, or base64 alone where
// that is allowed.
func encoded(name, media string, v jsontext.Value, plain bool) (llm.Attachment, bool) {
	text, ok := wire.String(v)
	switch {
	case !ok:
		return llm.Attachment{}, false
	case text == "":
		return llm.Attachment{Name: name, MediaType: media, Problem: noData}, true
	}
	head, data, isURL := strings.Cut(text, ",")
	rest, isData := cutFold(head, "data:")
	switch {
	case isURL && isData:
		media, _, _ = strings.Cut(rest, ";")
	case !plain:
		return llm.Attachment{}, false
	default:
		head, data = ";base64", text
	}
	a := llm.Attachment{Name: name, MediaType: strings.ToLower(strings.TrimSpace(media))}
	good := false
	if strings.HasSuffix(strings.ToLower(head), ";base64") {
		a.Size, good = scanBase64(data)
		a.Data = func() ([]byte, error) { return decodeBase64(data) }
	} else {
		a.Size, good = int64(len(data)), goodEscapes(data)
		a.Data = func() ([]byte, error) {
			text, err := url.PathUnescape(data)
			return []byte(text), err
		}
	}
	if !good {
		return llm.Attachment{Name: a.Name, MediaType: a.MediaType, Problem: brokenData}, true
	}
	return a, true
}

// scanBase64 is how many bytes [decodeBase64] gives, and whether it can, without making
// them.
func scanBase64(text string) (size int64, ok bool) {
	n, padding := int64(0), int64(0)
	for i := range len(text) {
		switch c := text[i]; {
		case c == '\r', c == '\n', c == ' ':
		case c == '=':
			padding++
		case padding > 0:
			return 0, false
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '+', c == '/', c == '-', c == '_':
			n++
		default:
			return 0, false
		}
	}
	return n * 3 / 4, n%4 != 1 && (padding == 0 || padding < 3 && (n+padding)%4 == 0)
}

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

// decodeBase64 reads base64 as clients write it: with the alphabet of URLs as well,
// with line ends, and without padding. Padding that is there must be the one that is
// missing: with another one, something was cut off.
func decodeBase64(text string) ([]byte, error) {
	text = strings.NewReplacer("-", "+", "_", "/", "\r", "", "\n", "", " ", "").Replace(text)
	if strings.HasSuffix(text, "=") {
		return base64.StdEncoding.DecodeString(text)
	}
	return base64.RawStdEncoding.DecodeString(text)
}
