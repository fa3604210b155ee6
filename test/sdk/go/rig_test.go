// Package client holds what an application that uses the official clients for Go of
// OpenAI, Anthropic and Ollama may rely on: tests that speak to a running server.
// They start nothing and know no code of the program; go test in the folder above
// starts what they need and tells them where it is.
//
// Start at rig_test.go for the surroundings, at chat_test.go for answers of chat
// completions, at faults_test.go for errors and requests that are left, at
// talk_test.go for conversations, and at responses_test.go, messages_test.go and
// ollama_test.go for the other APIs.
package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/shared"
)

// key is the caller's own: nobody here checks it, and the upstream must get it.
const key = "caller-key-of-the-go-tests"

// address is the server's; without the surroundings the test is skipped.
func address(t *testing.T) string {
	t.Helper()
	server := os.Getenv("METIER_URL")
	if server == "" {
		t.Skip("METIER_URL is not set: run go test in the folder above, which starts what is needed")
	}
	return server
}

// connect makes a client of OpenAI.
func connect(t *testing.T, options ...option.RequestOption) openai.Client {
	t.Helper()
	defaults := []option.RequestOption{option.WithBaseURL(address(t) + "/v1"), option.WithAPIKey(key), option.WithMaxRetries(0)}
	return openai.NewClient(append(defaults, options...)...)
}

// tagged gives a request an id of its own, by which its turn is found in the
// server's log.
func tagged(t *testing.T, label string) (string, option.RequestOption) {
	id := tag(t, label)
	return id, option.WithHeader("X-Request-Id", id)
}

func tag(t *testing.T, label string) string {
	return "go-" + strings.NewReplacer("/", "-").Replace(t.Name()) + "-" + label
}

// turnLine is the server's log line about a turn.
type turnLine struct {
	Level       string `json:"level"`
	Outcome     string `json:"outcome"`
	Rounds      int    `json:"rounds"`
	HostCalls   int    `json:"host_calls"`
	CallerCalls int    `json:"caller_calls"`
	Selected    string `json:"selected"`
	Advertised  int    `json:"advertised"`
	Reads       string `json:"reads"`
}

// upstreamRequest is what reached the upstream.
type upstreamRequest struct {
	Step   int            `json:"step"`
	Header http.Header    `json:"header"`
	Body   jsontext.Value `json:"body"`
}

// ask looks through the window on the far side: see routes in ../rig_test.go.
func ask(t *testing.T, path string, query url.Values, into any) {
	t.Helper()
	target := fmt.Sprintf("%s/%s?%s", os.Getenv("METIER_CONTROL"), path, query.Encode())
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK {
		t.Fatalf("%s", body)
	}
	if err := json.Unmarshal(body, into); err != nil {
		t.Fatalf("%s: %v", target, err)
	}
}

func turnOf(t *testing.T, request string) turnLine {
	t.Helper()
	var l turnLine
	ask(t, "turn", url.Values{"request": {request}}, &l)
	return l
}

func requestsFor(t *testing.T, model string) []upstreamRequest {
	t.Helper()
	var all []upstreamRequest
	ask(t, "requests", url.Values{"model": {model}}, &all)
	return all
}

// said is a request of one conversation, as the upstream got it: see said in
// ../talk_test.go.
type said struct {
	Step    int      `json:"step"`
	Lost    int      `json:"lost"`
	Answers []spoken `json:"answers"`
	Calls   []call   `json:"calls"`
	Results []string `json:"results"`
}

type spoken struct {
	Text      string `json:"text"`
	Reasoning string `json:"reasoning"`
}

type call struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// talkOf is the conversation with a model in which a message says something.
func talkOf(t *testing.T, model, says string) []said {
	t.Helper()
	var all []said
	ask(t, "talk", url.Values{"model": {model}, "says": {says}}, &all)
	return all
}

// begun returns when the upstream has read a request for a model, gone when it
// has seen the connection of one go.
func begun(t *testing.T, model string) { t.Helper(); wait(t, "begun", model) }
func gone(t *testing.T, model string)  { t.Helper(); wait(t, "gone", model) }

func wait(t *testing.T, path, model string) {
	t.Helper()
	var n any
	ask(t, path, url.Values{"model": {model}}, &n)
}

// question asks a model one thing.
func question(model, text string) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{Model: model, Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(text)}}
}

func withUsage(p openai.ChatCompletionNewParams) openai.ChatCompletionNewParams {
	p.StreamOptions.IncludeUsage = openai.Bool(true)
	return p
}

func withWeather(p openai.ChatCompletionNewParams) openai.ChatCompletionNewParams {
	p.Tools = []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
		Name:        "get_weather",
		Description: openai.String("The weather of a city."),
		Parameters: shared.FunctionParameters{
			"type":       "object",
			"properties": map[string]any{"city": map[string]string{"type": "string"}, "days": map[string]string{"type": "number"}},
			"required":   []string{"city"},
		},
	})}
	return p
}

// gathered is a stream that was read to its end.
type gathered struct {
	openai.ChatCompletion
	chunks []openai.ChatCompletionChunk
	err    error
}

// gather reads a stream with the client's own accumulator, which refuses a chunk
// that belongs to another completion.
func gather(t *testing.T, stream *ssestream.Stream[openai.ChatCompletionChunk]) gathered {
	t.Helper()
	var acc openai.ChatCompletionAccumulator
	var g gathered
	for stream.Next() {
		chunk := stream.Current()
		g.chunks = append(g.chunks, chunk)
		if !acc.AddChunk(chunk) {
			t.Errorf("the accumulator refuses a chunk: %s", chunk.RawJSON())
		}
	}
	g.ChatCompletion, g.err = acc.ChatCompletion, stream.Err()
	return g
}

func (g gathered) text() string {
	if len(g.Choices) == 0 {
		return ""
	}
	return g.Choices[0].Message.Content
}

func streaming(t *testing.T, c openai.Client, p openai.ChatCompletionNewParams) *ssestream.Stream[openai.ChatCompletionChunk] {
	return c.Chat.Completions.NewStreaming(t.Context(), p)
}

// answer asks in one of both ways and wants no error.
func answer(t *testing.T, c openai.Client, streamed bool, p openai.ChatCompletionNewParams, o ...option.RequestOption) openai.ChatCompletion {
	t.Helper()
	if streamed {
		g := gather(t, c.Chat.Completions.NewStreaming(t.Context(), p, o...))
		if g.err != nil {
			t.Fatalf("stream: %v", g.err)
		}
		wellFormed(t, g)
		return g.ChatCompletion
	}
	whole, err := c.Chat.Completions.New(t.Context(), p, o...)
	if err != nil {
		t.Fatal(err)
	}
	return *whole
}

// bothWays runs a test buffered and streamed.
func bothWays(t *testing.T, test func(t *testing.T, streamed bool)) {
	t.Run("buffered", func(t *testing.T) { test(t, false) })
	t.Run("streamed", func(t *testing.T) { test(t, true) })
}

// failure asks in one of both ways and wants an error.
func failure(ctx context.Context, t *testing.T, c openai.Client, streamed bool, p openai.ChatCompletionNewParams, o ...option.RequestOption) error {
	t.Helper()
	var err error
	if streamed {
		err = gather(t, c.Chat.Completions.NewStreaming(ctx, p, o...)).err
	} else {
		_, err = c.Chat.Completions.New(ctx, p, o...)
	}
	if err == nil {
		t.Fatal("it should have failed")
	}
	return err
}
