package openai

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/wire"
)

// Attachments are the files whose bytes a message holds, in the order of its parts:
// "file" with file_data, "image_url" with a data URL, and "input_audio" (B1 6.4). What
// a part only points at, by a URL or an id, is not fetched and is none.
func Attachments(m llm.Message) []llm.Attachment {
	// Most messages have none: that is seen without reading them.
	if !m.Raw.Is(llm.OpenAIChat) || !bytes.Contains(m.Raw.Bytes, []byte("data")) && !bytes.Contains(m.Raw.Bytes, []byte("DATA")) {
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

func attachment(part jsontext.Value) (llm.Attachment, bool) {
	kind, _ := wire.String(wire.Member(part, "type"))
	body := wire.Member(part, kind)
	switch kind {
	case "file":
		name, _ := wire.String(wire.Member(body, "filename"))
		return encoded(name, "", wire.Member(body, "file_data"), true)
	case "image_url":
		if len(body) > 0 && body[0] == '"' { // some clients leave the object out
			return encoded("", "", body, false)
		}
		return encoded("", "", wire.Member(body, "url"), false)
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
	if !ok || text == "" {
		return llm.Attachment{}, false
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
	a := llm.Attachment{Name: name, MediaType: strings.ToLower(strings.TrimSpace(media)), Size: int64(len(data))}
	if strings.HasSuffix(strings.ToLower(head), ";base64") {
		a.Size = int64(base64.RawStdEncoding.DecodedLen(len(strings.TrimRight(data, "="))))
		a.Data = func() ([]byte, error) { return decodeBase64(data) }
		return a, true
	}
	a.Data = func() ([]byte, error) {
		plain, err := url.PathUnescape(data)
		if err != nil {
			return nil, errors.New("its data URL is broken")
		}
		return []byte(plain), nil
	}
	return a, true
}

func cutFold(s, prefix string) (string, bool) {
	if len(s) < len(prefix) || !strings.EqualFold(s[:len(prefix)], prefix) {
		return s, false
	}
	return s[len(prefix):], true
}

// decodeBase64 reads base64 as clients write it: with the alphabet of URLs as well,
// with line ends, and without padding.
func decodeBase64(text string) ([]byte, error) {
	text = strings.NewReplacer("-", "+", "_", "/", "\r", "", "\n", "", " ", "").Replace(text)
	data, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "="))
	if err != nil {
		return nil, fmt.Errorf("its base64 is broken: %w", err)
	}
	return data, nil
}
