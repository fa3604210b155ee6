package ollama

import (
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/server"
	"github.com/metier-run/metier/internal/wire"
)

// generate answers a prompt: a conversation of the system's words and one message of the
// user. What is said in the model's own template cannot be said to another upstream.
func (d *Door) generate(w http.ResponseWriter, r *http.Request) {
	body, err := server.ReadBody(r)
	if err != nil {
		d.Refuse(w, r, err)
		return
	}
	chat, warnings, err := asChat(body)
	if err != nil {
		d.Refuse(w, r, err)
		return
	}
	d.answer(w, r, chat, warnings, true)
}

// asChat is a request of /api/generate as one of /api/chat.
func asChat(body []byte) (chat []byte, warnings []string, err error) {
	if err := wire.Check(body); err != nil {
		return nil, nil, invalid("", "the body is not valid JSON: "+err.Error())
	}
	if jsontext.Value(body).Kind() != '{' {
		return nil, nil, invalid("", "the body must be a JSON object with the members model and prompt")
	}
	var prompt, system, images jsontext.Value
	out := []byte{'{'}
	for c := wire.Object(body); c.Next(); {
		switch {
		case wire.IsNull(c.Value):
			continue
		case c.Is("prompt"):
			prompt = c.Value
		case c.Is("system"):
			system = c.Value
		case c.Is("images"):
			images = c.Value
		case c.Is("raw"):
			if string(c.Value) == "true" {
				return nil, nil, invalid("raw", `"raw" cannot be carried: the upstream writes its model's template itself`)
			}
		case c.Is("suffix"):
			if text, _ := wire.String(c.Value); text != "" {
				return nil, nil, invalid("suffix", `"suffix" cannot be carried: the upstream answers conversations`)
			}
		case c.Is("context"):
			warnings = append(warnings, `"context" is left out: send the conversation to /api/chat`)
		case c.Is("template"):
			warnings = append(warnings, `"template" is left out: the upstream writes its model's own`)
		case c.Is("messages"):
		default:
			if len(out) > 1 {
				out = append(out, ',')
			}
			out = append(append(append(append(out, '"'), c.Name...), '"', ':'), c.Value...)
		}
	}
	for name, v := range map[string]jsontext.Value{"prompt": prompt, "system": system} {
		if v != nil && v.Kind() != '"' {
			return nil, nil, invalid(name, `"`+name+`" must be a string`)
		}
	}
	if images != nil && images.Kind() != '[' {
		return nil, nil, invalid("images", `"images" must be an array of pictures in base64`)
	}
	if len(out) > 1 {
		out = append(out, ',')
	}
	return append(append(out, `"messages":`...), append(messagesOf(system, prompt, images), '}')...), warnings, nil
}

// messagesOf is the conversation; none without a prompt, which loads the model.
func messagesOf(system, prompt, images jsontext.Value) []byte {
	if text, _ := wire.Contents(prompt); len(text) == 0 && images == nil {
		return []byte("[]")
	}
	out := []byte{'['}
	if text, _ := wire.Contents(system); len(text) > 0 {
		out = append(append(append(out, `{"role":"system","content":`...), system...), "},"...)
	}
	if prompt == nil {
		prompt = jsontext.Value(`""`)
	}
	out = append(append(out, `{"role":"user","content":`...), prompt...)
	if images != nil {
		out = append(append(out, `,"images":`...), images...)
	}
	return append(out, "}]"...)
}
