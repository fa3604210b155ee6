package matrix

import "github.com/metier-run/metier/internal/llm"

// question is what a client asks.
type question struct {
	text  string
	image bool // a picture goes with it
	tool  bool // the client brings its tool
	think bool // the client wants to see how the model thinks
	odd   bool // the client says what only its own dialect has a word for
	// answers are what the client's tool returns, by the name of the tool.
	answers map[string]string
}

// round is one generation of the upstream.
type round struct {
	reasoning string
	text      []string // as it comes, piece by piece
	calls     []llm.Call
}

// failure is an upstream that fails.
type failure struct {
	status int  // of a refusal before anything was said
	mid    bool // after the first piece of text
}

// scenario is a conversation and what has to come of it.
type scenario struct {
	name     string
	question question
	rounds   []round
	failure  *failure
	// shown is the text that the client sees in each of its requests.
	shown []string
	// reaches are texts that the upstream must have been told, in this order, in its last
	// request.
	reaches []string
}

const (
	// mark stands in the body of the skill alone.
	mark = "MARK-7319"
	// pixel is a picture in base64.
	pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
	// weather is the client's tool.
	weather = "weather"
	rain    = "rain until nine"
	refused = "the model is on holiday"
)

func scenarios() []scenario {
	read := llm.Call{ID: "call_read", Name: "skills_read", Arguments: `{"skill":"tides"}`}
	ask := llm.Call{ID: "call_weather", Name: weather, Arguments: `{"city":"Bergen"}`}
	answers := map[string]string{weather: rain}
	return []scenario{
		{
			name: "plain", question: question{text: "Good morning"},
			rounds: []round{{text: []string{"Good ", "morning."}}},
			shown:  []string{"Good morning."}, reaches: []string{"Good morning"},
		},
		{
			name: "skill read", question: question{text: "When is high tide?"},
			rounds: []round{
				{text: []string{"One ", "moment. "}, calls: []llm.Call{read}},
				{text: []string{"At ", "18:40."}},
			},
			shown: []string{"One moment. At 18:40."}, reaches: []string{"When is high tide?", mark},
		},
		{
			name: "caller's tool", question: question{text: "Does it rain?", tool: true, answers: answers},
			rounds: []round{
				{text: []string{"Let me ", "see."}, calls: []llm.Call{ask}},
				{text: []string{"Until ", "nine."}},
			},
			shown: []string{"Let me see.", "Until nine."}, reaches: []string{"Does it rain?", rain},
		},
		{
			name: "mixed", question: question{text: "Tide and rain?", tool: true, answers: answers},
			rounds: []round{
				{calls: []llm.Call{read, ask}},
				{text: []string{"18:40, ", "wet."}},
			},
			shown: []string{"", "18:40, wet."}, reaches: []string{"Tide and rain?", mark, rain},
		},
		{
			name: "reasoning", question: question{text: "Why?", think: true},
			rounds: []round{{reasoning: "It must be so.", text: []string{"Because."}}},
			shown:  []string{"Because."}, reaches: []string{"Why?"},
		},
		{
			name: "image", question: question{text: "What is this?", image: true},
			rounds: []round{{text: []string{"A dot."}}},
			shown:  []string{"A dot."}, reaches: []string{"What is this?", pixel},
		},
		{
			name: "odd members", question: question{text: "Well?", odd: true},
			rounds: []round{{text: []string{"Well."}}},
			shown:  []string{"Well."}, reaches: []string{"Well?"},
		},
		{
			name: "refused", question: question{text: "Now?"},
			failure: &failure{status: 400},
		},
		{
			name: "broken off", question: question{text: "Still there?"},
			rounds:  []round{{text: []string{"Ye", "s"}}},
			failure: &failure{mid: true},
		},
	}
}

// The tokens of each round.
const (
	inputTokens  = 10
	outputTokens = 4
)
