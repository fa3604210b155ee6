package anthropic_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/llm/anthropic"
	"github.com/metier-run/metier/internal/llm/llmtest"
	"github.com/metier-run/metier/internal/wire"
)

// play answers the suite's scenarios in the dialect. The round is told by the assistant's
// messages of the request.
type play struct {
	scenario string
	asked    atomic.Int64
}

func (p *play) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		_, _ = io.WriteString(w, `{"data":[{"type":"model","id":"m","display_name":"M","created_at":"2026-01-01T00:00:00Z"}],"has_more":false,"last_id":"m"}`)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	rounds := 0
	for c := wire.Array(wire.Member(body, "messages")); c.Next(); {
		if role, _ := wire.String(wire.Member(c.Value, "role")); role == "assistant" {
			rounds++
		}
	}
	if p.fails(w, r) {
		return
	}
	answer := p.answer(rounds)
	if p.scenario == llmtest.JSONAnswer {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answer)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, answer)
	if p.scenario == llmtest.Hang {
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
	if strings.HasPrefix(p.scenario, "cut") && p.scenario != llmtest.CutCall {
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

// fails answers the scenarios of upstreams that refuse.
func (p *play) fails(w http.ResponseWriter, r *http.Request) bool {
	refuse := func(status int, kind, message string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"type":"error","error":{"type":%q,"message":%q}}`, kind, message)
	}
	switch p.scenario {
	case llmtest.RateLimited:
		w.Header().Set("Retry-After", "7")
		refuse(429, "rate_limit_error", "Slow down: 0 of 60 requests are left in this minute.")
	case llmtest.Unauthorized:
		refuse(401, "authentication_error", "This key opens nothing here.")
	case llmtest.Overflow:
		refuse(400, "invalid_request_error", "the request has 9000 tokens and the window holds 4096")
	case llmtest.ServerError:
		w.WriteHeader(502)
		_, _ = io.WriteString(w, "<html>Bad gateway</html>")
	case llmtest.SlowLoad:
		if p.asked.Add(1) > 1 {
			return false
		}
		refuse(503, "overloaded_error", "the model is still loading")
	case llmtest.HangHeaders:
		<-r.Context().Done()
	case llmtest.CutHeaders:
		panic(http.ErrAbortHandler)
	default:
		return false
	}
	return true
}

func counted(in, out int) (start, end string) {
	return fmt.Sprintf(`{"input_tokens":%d,"output_tokens":1}`, in), fmt.Sprintf(`{"output_tokens":%d}`, out)
}

func text(in, out int, texts ...string) string {
	start, end := counted(in, out)
	return begin(start) + words(0, texts...) + stop("end_turn", end)
}

func calls(in, out int, blocks ...string) string {
	start, end := counted(in, out)
	return begin(start) + strings.Join(blocks, "") + stop("tool_use", end)
}

const readSkill = `{"skill":%q,"path":"SKILL.md"}`

func read(index int, id, skill string) string {
	return use(index, id, "skills_read", fmt.Sprintf(readSkill, skill))
}

func weather(index int, id, city string) string {
	return use(index, id, "get_weather", fmt.Sprintf(`{"city":%q}`, city))
}

// answer is a round of a scenario.
func (p *play) answer(round int) string {
	second := round > 0
	switch p.scenario {
	case llmtest.SlowLoad:
		return text(12, 6, "Loaded and ready.")
	case llmtest.Hello:
		return text(12, 6, "Good morning,", " and welcome.")
	case llmtest.CallerTool:
		if second {
			return text(90, 7, "It is clear in Oslo.")
		}
		return calls(60, 16, weather(0, "call_weather_1", "Oslo"))
	case llmtest.TwoReads:
		if second {
			return text(700, 9, "Both skills ask for dates.")
		}
		return calls(190, 48, read(0, "call_two_a", "release-notes"), read(1, "call_two_b", "meeting-minutes"))
	case llmtest.ManyCalls:
		if second {
			return text(1, 1, "I asked for too much at once.")
		}
		var ten []string
		for i := range 10 {
			ten = append(ten, use(i, fmt.Sprint("call_many_", i), "skills_read", fmt.Sprintf(`{"skill":"release-notes","path":"references/part-%d.md"}`, i)))
		}
		return calls(1, 1, ten...)
	case llmtest.Mixed:
		if second {
			return text(1, 1, "It rains in Bergen, and the notes say so.")
		}
		return calls(1, 1, words(0, "Let me look. "), read(1, "call_mixed_skill", "release-notes"), weather(2, "call_mixed_weather", "Bergen"))
	case llmtest.NoIDs:
		if second {
			return text(1, 1, "Both were read.")
		}
		return calls(1, 1, read(0, "", "release-notes"), read(1, "", "meeting-minutes"))
	case llmtest.CutCall:
		start, end := counted(1, 1)
		return begin(start) + use(0, "call_cut_1", "skills_read", `{"skill":"relea`) + stop("max_tokens", end)
	case llmtest.UsageCached:
		if second {
			return begin(`{"input_tokens":116,"cache_read_input_tokens":384,"output_tokens":1}`) + words(0, "Read from the cache.") + stop("end_turn", `{"output_tokens":6}`)
		}
		return begin(`{"input_tokens":72,"cache_read_input_tokens":128,"output_tokens":1}`) + read(0, "call_usage_1", "release-notes") + stop("tool_use", `{"output_tokens":20}`)
	case llmtest.SplitUTF8:
		return text(10, 9, "Grüße, 世", "界 und 🦉.")
	case llmtest.CRLF:
		return strings.ReplaceAll(text(8, 3, "Carriage returned."), "\n", "\r\n")
	case llmtest.MultiLine:
		return strings.ReplaceAll(text(8, 6, "Two lines, one event."), `,"index"`, ",\ndata: \"index\"")
	case llmtest.NoDone:
		return strings.TrimSuffix(text(8, 4, "Complete, if curt."), said(`{"type":"message_stop"}`))
	case llmtest.JSONAnswer:
		return `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"All at once."}],"stop_reason":"end_turn","usage":{"input_tokens":9,"output_tokens":4}}`
	case llmtest.Long:
		var long []string
		for i := range 2000 {
			long = append(long, fmt.Sprintf("w%d ", i+1))
		}
		return text(8, 2000, long...)
	case llmtest.Cut:
		return begin(`{}`) + strings.TrimSuffix(words(0, "This will not be"), said(`{"type":"content_block_stop","index":0}`))
	case llmtest.CutEvent:
		return begin(`{}`) + strings.TrimSuffix(words(0, "Half "), said(`{"type":"content_block_stop","index":0}`)) + `data: {"type":"content_blo`
	case llmtest.EarlyEnd:
		return begin(`{}`) + words(0, "And then ")
	case llmtest.Malformed:
		return begin(`{}`) + words(0, "Fine so far. ") + "data: {nonsense\n\n"
	case llmtest.ErrorInside:
		return begin(`{}`) + words(0, "I was ") + said(`{"type":"error","error":{"type":"api_error","message":"The worker ran out of memory."}}`)
	case llmtest.Hang:
		return begin(`{}`) + strings.TrimSuffix(words(0, "Wait "), said(`{"type":"content_block_stop","index":0}`))
	}
	return ""
}

// TestConformance: of the suite only what the dialect cannot say is left out: two answers
// to one request, and how many of the tokens were thoughts.
func TestConformance(t *testing.T) {
	llmtest.Run(t, func(t *testing.T, scenario string) (llm.Provider, string) {
		if scenario == llmtest.TwoChoices || scenario == llmtest.Reasoning {
			t.Skip("the dialect has no form for it")
		}
		return connect(t, &play{scenario: scenario}, anthropic.Options{}), "m"
	})
}
