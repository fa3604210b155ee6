package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/go-json-experiment/json"

	"github.com/metier-run/metier/internal/gateway"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/turn"
)

// ask sends one request as any client of the OpenAI dialect does. Its workspace is gone
// when the answer is here.
func (b *bench) ask(ctx context.Context, model, prompt string) error {
	body, err := json.Marshal(map[string]any{
		"model": model, "messages": []any{map[string]any{"role": "user", "content": prompt}},
	})
	if err != nil {
		return fmt.Errorf("ask: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.url+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("ask: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("ask: %w", err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	switch {
	case err != nil:
		return fmt.Errorf("ask: %w", err)
	case res.StatusCode != http.StatusOK:
		return fmt.Errorf("ask: %s: %s", res.Status, answer)
	}
	return nil
}

// turns is how often somebody who chats asks the model to go on, at most.
const turns = 4

// count is what a conversation took.
type count struct{ rounds, calls int }

// chat asks as metier chat does: the workspace stays while somebody asks the model to
// go on, which they do while unfinished says so.
func (b *bench) chat(ctx context.Context, model, prompt string, unfinished func(turn.Outcome) bool) (c count, err error) {
	work := b.app.OpenCode()
	defer func() {
		if closed := work.Close(context.WithoutCancel(ctx)); err == nil {
			err = closed
		}
	}()
	messages := []llm.Message{llm.TextMessage(llm.User, prompt)}
	for range turns {
		t, err := b.app.Gateway.Prepare(ctx, gateway.Request{
			Request: &llm.Request{Model: model, Messages: messages}, Conversation: work,
		})
		if err != nil {
			return c, fmt.Errorf("chat: %w", err)
		}
		out, err := t.Run(ctx, func(s turn.Signal) error {
			if s.Kind == turn.CallEnded {
				c.calls++
			}
			return nil
		})
		if err != nil {
			return c, fmt.Errorf("chat: %w", err)
		}
		c.rounds += out.Rounds
		if !unfinished(out) {
			return c, nil
		}
		messages = append(t.Messages(), llm.TextMessage(llm.User, "Go on."))
	}
	return c, nil
}
