package capable

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/metier-run/metier/internal/config"
)

// Server is an upstream that can be asked. Each of its methods that gives a [Word]
// is a [Probe] for one kind of server, and reads only what that kind is known to
// tell.
type Server struct {
	// Base is what /chat/completions hangs on, and Root where the server's own
	// routes begin; neither has a slash at its end.
	Base, Root string
	// Key is sent as a bearer token, if there is one.
	Key config.Secret
	// Client carries the questions; a redirect is not followed, it could carry the
	// key elsewhere.
	Client *http.Client
	// Bytes is how much of one answer is read.
	Bytes int64
}

// LlamaCPP reads what llama-server says of the model that it runs: what its chat
// template can express, and the window of one slot, which is smaller than the
// window that the server was started with.
func (s Server) LlamaCPP(ctx context.Context, _ string) (Word, error) {
	var props struct {
		Caps struct {
			Tools     *bool `json:"supports_tools"`
			Calls     *bool `json:"supports_tool_calls"`
			Responses *bool `json:"supports_tool_responses"`
		} `json:"chat_template_caps"`
		Settings struct {
			Context int      `json:"n_ctx"`
			Penalty *float64 `json:"repeat_penalty"` // older servers
			Params  struct {
				Penalty *float64 `json:"repeat_penalty"`
			} `json:"params"`
		} `json:"default_generation_settings"`
	}
	if err := s.get(ctx, s.Root+"/props", &props); err != nil {
		return Word{}, err
	}
	w := Word{Declares: props.Caps.Tools, Parsed: props.Caps.Calls, Results: props.Caps.Responses, Context: props.Settings.Context}
	for _, penalty := range []*float64{props.Settings.Penalty, props.Settings.Params.Penalty} {
		if penalty != nil && *penalty != 1 {
			w.Penalty = penaltyMember
		}
	}
	if w.Results == nil {
		// A template that can show a call can show what came of it.
		w.Results = w.Parsed
	}
	return w, nil
}

// Ollama reads a model's card, and the window that it has now if it is loaded:
// the card knows only how long it could be at most.
func (s Server) Ollama(ctx context.Context, model string) (Word, error) {
	var card struct {
		Capabilities []string       `json:"capabilities"`
		Parameters   string         `json:"parameters"`
		Info         map[string]any `json:"model_info"`
	}
	question, err := json.Marshal(map[string]string{"model": model})
	if err != nil {
		return Word{}, fmt.Errorf("ask about %q: %w", model, err)
	}
	if err := s.do(ctx, http.MethodPost, s.Root+"/api/show", question, &card); err != nil {
		return Word{}, err
	}
	var w Word
	if card.Capabilities != nil {
		tools := slices.Contains(card.Capabilities, "tools")
		w.Declares, w.Parsed, w.Results = &tools, &tools, &tools
	}
	for name, v := range card.Info {
		if n, ok := v.(float64); ok && strings.HasSuffix(name, ".context_length") {
			w.Context = int(n)
		}
	}
	if n := numCtx(card.Parameters); n > 0 {
		w.Context = n
	}
	n, there := s.loaded(ctx, model)
	if n > 0 {
		w.Context = n
	}
	w.Passing = !there
	return w, nil
}

// numCtx is the window that a model's file asks for.
func numCtx(parameters string) int {
	for line := range strings.Lines(parameters) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == "num_ctx" {
			n, err := strconv.Atoi(f[1])
			if err == nil {
				return n
			}
		}
	}
	return 0
}

// loaded says whether a model is in memory, and with which window; older servers
// do not tell the window.
func (s Server) loaded(ctx context.Context, model string) (window int, there bool) {
	var list struct {
		Models []struct {
			Name    string `json:"name"`
			Context int    `json:"context_length"`
		} `json:"models"`
	}
	if err := s.get(ctx, s.Root+"/api/ps", &list); err != nil {
		return 0, false // the card is worth something without it
	}
	for _, m := range list.Models {
		if m.Name == model || m.Name == model+":latest" {
			return m.Context, true
		}
	}
	return 0, false
}

// LMStudio reads the window of a model from LM Studio's own list. Calls of every
// model are parsed there, so it has no say in that.
func (s Server) LMStudio(ctx context.Context, model string) (Word, error) {
	w, err := s.list(ctx, s.Root+"/api/v0/models", model)
	if err == nil {
		// Its presets come with a penalty, and it does not tell which one is in use.
		w.Penalty = penaltyMember
	}
	return w, err
}

// penaltyMember is how llama.cpp and LM Studio call their penalty on tokens that come
// again.
const penaltyMember = "repeat_penalty"

// Listed reads what many servers put beside a model's name in the list of models
// (vLLM and what is built on it, routers of several vendors).
func (s Server) Listed(ctx context.Context, model string) (Word, error) {
	return s.list(ctx, s.Base+"/models", model)
}

func (s Server) list(ctx context.Context, route, model string) (Word, error) {
	var list struct {
		Data []struct {
			ID         string   `json:"id"`
			State      string   `json:"state"`
			Loaded     int      `json:"loaded_context_length"` // LM Studio
			MaxLen     int      `json:"max_model_len"`         // vLLM
			Length     int      `json:"context_length"`        // OpenRouter
			Most       int      `json:"max_context_length"`    // LM Studio, before it is loaded
			Parameters []string `json:"supported_parameters"`  // OpenRouter
		} `json:"data"`
	}
	if err := s.get(ctx, route, &list); err != nil {
		return Word{}, err
	}
	for _, m := range list.Data {
		if m.ID != model {
			continue
		}
		w := Word{Passing: m.State == "not-loaded"}
		for _, n := range []int{m.Loaded, m.MaxLen, m.Length, m.Most} {
			if w.Context == 0 {
				w.Context = n
			}
		}
		if m.Parameters != nil {
			tools := slices.Contains(m.Parameters, "tools")
			w.Declares, w.Parsed = &tools, &tools
		}
		return w, nil
	}
	return Word{}, fmt.Errorf("ask about %q: %s does not list it", model, route)
}

func (s Server) get(ctx context.Context, route string, into any) error {
	return s.do(ctx, http.MethodGet, route, nil, into)
}

func (s Server) do(ctx context.Context, method, route string, question []byte, into any) error {
	req, err := http.NewRequestWithContext(ctx, method, route, bytes.NewReader(question))
	if err != nil {
		return fmt.Errorf("ask %s: %w", route, err)
	}
	req.Header.Set("Accept", "application/json")
	if question != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if !s.Key.IsZero() {
		req.Header.Set("Authorization", "Bearer "+s.Key.Reveal())
	}
	client := *s.Client
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	res, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("ask %s: %w", route, err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, s.Bytes))
	if err != nil {
		return fmt.Errorf("ask %s: %w", route, err)
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("ask %s: it answered %d", route, res.StatusCode)
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("ask %s: %w", route, err)
	}
	return nil
}
