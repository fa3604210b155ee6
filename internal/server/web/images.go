package web

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/wire"
)

// withImages is an array of messages in which pictures beside the text, as Ollama's clients
// write them ("images", in base64), are parts of it, as Chat Completions has them. All
// other bytes stay as they are.
func withImages(messages jsontext.Value) (jsontext.Value, error) {
	if messages.Kind() != '[' || !bytes.Contains(messages, []byte(`"images"`)) {
		return messages, nil
	}
	out, last, n := make([]byte, 0, len(messages)+1024), 0, 0
	for c := wire.Array(messages); c.Next(); n++ {
		images := wire.Member(c.Value, "images")
		if wire.IsNull(images) {
			continue
		}
		message, err := withParts(c.Value, images, "messages["+strconv.Itoa(n)+"].images")
		if err != nil {
			return nil, err
		}
		out = append(append(out, messages[last:c.Offset()]...), message...)
		last = c.Offset() + len(c.Value)
	}
	return append(out, messages[last:]...), nil
}

// withParts is a message with its images among its parts.
func withParts(message, images jsontext.Value, param string) (jsontext.Value, error) {
	if images.Kind() != '[' {
		return nil, invalid(param, "%s must be an array of pictures in base64", param)
	}
	bare := wire.Remove(message, "images")
	if c := wire.Array(images); !c.Next() {
		return bare, nil
	}
	parts := []byte{'['}
	part := func(pieces ...[]byte) {
		if len(parts) > 1 {
			parts = append(parts, ',')
		}
		parts = append(parts, bytes.Join(pieces, nil)...)
	}
	content := wire.Member(message, "content")
	if text, _ := wire.Contents(content); len(text) > 0 {
		part([]byte(`{"type":"text","text":`), content, []byte("}"))
	}
	for c := wire.Array(content); c.Next(); {
		part(c.Value)
	}
	for c := wire.Array(images); c.Next(); {
		image, _ := wire.String(c.Value)
		address, ok := addressOf(image)
		if !ok {
			return nil, invalid(param, "%s holds what is no picture in base64", param)
		}
		part([]byte(`{"type":"image_url","image_url":{"url":`), wire.AppendString(nil, address), []byte("}}"))
	}
	return wire.Set(bare, "content", append(parts, ']')), nil
}

// addressOf is a picture as a data URL, which some clients write themselves. Its kind is told
// by its first bytes; what an upstream cannot read it refuses itself.
func addressOf(image string) (string, bool) {
	if strings.HasPrefix(image, "data:") {
		return image, true
	}
	b, err := llm.DecodeBase64(image)
	if err != nil || len(b) == 0 {
		return "", false
	}
	media := llm.Media{Type: http.DetectContentType(b), Data: image}
	if !strings.HasPrefix(media.Type, "image/") {
		media.Type = "image/png"
	}
	return media.DataURL(), true
}
