package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/metier-run/metier/internal/wire"
)

// client asks as an OpenAI client does. It knows nothing of Metier.
type client struct{ base string }

func (c client) do(ctx context.Context, method, path string, body any) (*http.Response, error) {
	var content io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, content)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer none")
	req.Header.Set("Content-Type", "application/json")
	req.Close = true // the server is to stop soon
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode == http.StatusOK {
		return res, nil
	}
	defer res.Body.Close()
	var refusal struct {
		Error fault `json:"error"`
	}
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	if json.Unmarshal(answer, &refusal) == nil && refusal.Error.Message != "" {
		return nil, fmt.Errorf("%s: %s", res.Status, refusal.Error.Message)
	}
	return nil, fmt.Errorf("%s: %s", res.Status, answer)
}

type fault struct {
	Message string `json:"message"`
}

// model is the first that can chat.
func (c client) model(ctx context.Context) (string, error) {
	res, err := c.do(ctx, http.MethodGet, "/models", nil)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.UnmarshalRead(res.Body, &list); err != nil {
		return "", err
	}
	for _, m := range list.Data {
		if !strings.Contains(strings.ToLower(m.ID), "embed") {
			return m.ID, nil
		}
	}
	return "", errors.New("the upstream lists no model that can chat: load one there")
}

// chunk is what is shown of an event.
type chunk struct {
	Choices []struct {
		Delta struct {
			Content string `json:"content"`
		} `json:"delta"`
	} `json:"choices"`
	Error *fault `json:"error"`
}

// longestEvent is more than any event of an answer in text.
const longestEvent = 1 << 20

// ask streams an answer and shows it as it comes.
func (c client) ask(ctx context.Context, model, question string, show func(string)) error {
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	res, err := c.do(ctx, http.MethodPost, "/chat/completions", struct {
		Model    string    `json:"model"`
		Messages []message `json:"messages"`
		Stream   bool      `json:"stream"`
	}{model, []message{{"user", question}}, true})
	if err != nil {
		return err
	}
	defer res.Body.Close()
	events := wire.NewEventReader(res.Body, longestEvent, nil)
	for {
		e, err := events.Next()
		if err != nil {
			return fmt.Errorf("the answer broke off: %w", err)
		}
		if string(e.Data) == "[DONE]" {
			return nil
		}
		var got chunk
		if err := json.Unmarshal(e.Data, &got); err != nil {
			return fmt.Errorf("read an event: %w", err)
		}
		if got.Error != nil {
			return errors.New(got.Error.Message)
		}
		for _, choice := range got.Choices {
			show(choice.Delta.Content)
		}
	}
}
