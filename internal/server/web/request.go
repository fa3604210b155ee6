package web

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/gateway"
	"github.com/metier-run/metier/internal/llm/codec"
	"github.com/metier-run/metier/internal/llm/openai"
	"github.com/metier-run/metier/internal/server"
	"github.com/metier-run/metier/internal/wire"
)

// request is the body of /api/chat (B1 17.1, 17.3). Values are slices of the body.
type request struct {
	messages, tools jsontext.Value
	model           string // empty: the upstream's first
	maxTokens       int    // 0: as the upstream has it
	session         string // empty: the caller's own
	newChat         bool
	skills          []string
	discovery       *bool
	// effort is how much the model thinks, as [llm.Options] has it; empty: as the upstream
	// has it.
	effort string
	// left are the members that are not for this door.
	left []string
}

// decode reads a body. The error is the client's.
func decode(body []byte) (*request, error) {
	if err := wire.Check(body); err != nil {
		return nil, invalid("", "the body is not valid JSON: %v", err)
	}
	if jsontext.Value(body).Kind() != '{' {
		return nil, invalid("", `the body must be a JSON object with the member "messages"`)
	}
	r := &request{}
	for c := wire.Object(body); c.Next(); {
		name, ok := wire.Unquote(c.Name)
		if !ok {
			return nil, invalid("", "the member %q has a name that is not valid JSON", c.Name)
		}
		if err := r.member(name, c.Value); err != nil {
			return nil, err
		}
	}
	if wire.IsNull(r.messages) {
		return nil, invalid("messages", `"messages" is missing: give at least one message`)
	}
	return r, nil
}

func (r *request) member(name string, v jsontext.Value) (err error) {
	if wire.IsNull(v) {
		return nil
	}
	switch name {
	case "messages":
		r.messages = v
	case "tools":
		r.tools = v
	case "model":
		return invalid(name, `"model" is for Ollama's door, which is not here: name the model by "use_model", or leave it out for the first that GET /api/models lists`)
	case "use_model":
		r.model, err = text(name, v)
	case "sessionId":
		r.session, err = text(name, v)
	case "maxTokens":
		r.maxTokens, err = count(name, v)
	case "newChat":
		r.newChat, err = boolean(name, v)
	case "skills":
		if json.Unmarshal(v, &r.skills) != nil {
			err = invalid(name, `"skills" must be an array of skill names, for example ["pdf"]`)
		}
	case "skills_discovery":
		var on bool
		on, err = boolean(name, v)
		r.discovery = &on
	case "multi_agent":
		// Delegation comes with children; narrowing it to nothing is already true.
		_, err = boolean(name, v)
	case "think":
		r.effort, err = effort(v)
	default:
		r.left = append(r.left, name)
	}
	return err
}

func text(name string, v jsontext.Value) (string, error) {
	s, ok := wire.String(v)
	if !ok {
		return "", invalid(name, "%q must be a string", name)
	}
	return s, nil
}

func boolean(name string, v jsontext.Value) (bool, error) {
	on := string(v) == "true"
	if !on && string(v) != "false" {
		return false, invalid(name, "%q must be true or false", name)
	}
	return on, nil
}

func count(name string, v jsontext.Value) (int, error) {
	n, err := strconv.Atoi(string(v))
	if err != nil || n < 1 {
		return 0, invalid(name, "%q must be a whole number from 1 on", name)
	}
	return n, nil
}

// effort reads think: true or false, or how much (B1 17.3).
func effort(v jsontext.Value) (string, error) {
	switch level, _ := wire.String(v); {
	case string(v) == "true":
		return "medium", nil
	case string(v) == "false":
		return "none", nil
	case slices.Contains([]string{"none", "minimal", "low", "medium", "high", "xhigh"}, level):
		return level, nil
	}
	return "", invalid("think", `"think" must be true or false, or how much: "minimal", "low", "medium", "high"`)
}

// namesShown is how many of the members that were left out a warning names.
const namesShown = 8

// nameSize is how much of a name it shows.
const nameSize = 40

// warnings say what of the request is not carried.
func (r *request) warnings() []string {
	if len(r.left) == 0 {
		return nil
	}
	var names []string
	for _, name := range r.left[:min(len(r.left), namesShown)] {
		names = append(names, strconv.QuoteToASCII(name[:min(len(name), nameSize)]))
	}
	more := ""
	if n := len(r.left) - len(names); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return []string{"members that this door does not know are left out: " + strings.Join(names, ", ") + more}
}

// compose makes the request for the gateway: the client's own bytes of messages and
// tools, as a Chat Completions request has them. With full, messages are decoded for a
// provider of another dialect.
func (r *request) compose(model string, header http.Header, bounds codec.Bounds, full bool) (gateway.Request, error) {
	messages, err := withImages(r.messages)
	if err != nil {
		return gateway.Request{}, err
	}
	body := make([]byte, 0, len(messages)+len(r.tools)+len(model)+128)
	body = wire.AppendString(append(body, `{"model":`...), model)
	body = append(append(body, `,"messages":`...), messages...)
	if r.tools != nil {
		body = append(append(body, `,"tools":`...), r.tools...)
	}
	if r.maxTokens > 0 {
		body = strconv.AppendInt(append(body, `,"max_tokens":`...), int64(r.maxTokens), 10)
	}
	if r.effort != "" {
		body = wire.AppendString(append(body, `,"reasoning_effort":`...), r.effort)
	}
	decoded, err := openai.DecodeRequest(append(body, '}'), bounds, full)
	if err != nil {
		return gateway.Request{}, err
	}
	return gateway.Request{
		Request: decoded.Request, Header: server.Passing(openai.PassHeader(header), header), Expand: openai.Expand,
		Skills: append(r.skills, server.SkillsIn(header)...), Discovery: r.discovery, Progress: true,
	}, nil
}
