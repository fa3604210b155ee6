package rescue

import (
	"strings"
	"testing"
)

// answer is a reply that is none of a model's calls, however much it looks like one.
type answer struct{ name, text string }

func TestAnswers(t *testing.T) {
	list := append(jsonAnswers(), proseAnswers()...)
	if len(list) < 40 {
		t.Errorf("%d answers are tested, want at least 40", len(list))
	}
	for _, a := range list {
		t.Run(a.name, func(t *testing.T) {
			everyWay(t, a.text, testHold, outcome{Show: a.text})
		})
	}
}

func jsonAnswers() []answer {
	return []answer{
		{"object", `{"city": "Oslo", "population": 709037}`},
		{"undeclared tool", `{"name": "launch_rocket", "arguments": {"to": "moon"}}`},
		{"undeclared tool in a list", `[{"name": "get_time", "arguments": {}}, {"name": "launch_rocket", "arguments": {}}]`},
		{"person", `{"name": "search", "age": 31}`},
		{"a tool's name alone", `{"name": "get_weather"}`},
		{"tool and description", `{"name": "get_weather", "description": "Tells the weather.", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}`},
		{"declaration", `{"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}`},
		{"declaration, wrapped", `{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {}}}}`},
		{"call and a word", `{"name": "get_weather", "arguments": {"city": "Oslo"}} is what I would send.`},
		{"word and call", `I would send {"name": "get_weather", "arguments": {"city": "Oslo"}}`},
		{"call and a reply", "{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Oslo\"}}\n\nThat is the call."},
		{"fence and a word", "```json\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Oslo\"}}\n```\nRun it yourself."},
		{"word and fence", "The body is:\n```json\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Oslo\"}}\n```"},
		{"fence of another language", "```go\nget_weather(city=\"Oslo\")\n```"},
		{"list of numbers", `[1, 2, 3]`},
		{"list of words", `["get_weather", "get_time"]`},
		{"list of lists", `[["name", "get_weather"]]`},
		{"arguments in plain words", `{"name": "get_weather", "arguments": "somewhere warm"}`},
		{"arguments that are a list", `{"name": "get_weather", "arguments": ["Oslo"]}`},
		{"empty object", `{}`},
		{"empty list", `[]`},
		{"broken object", `{"name": "get_weather", "arguments": {"city": "Os"lo"}}`},
		{"extra member", `{"name": "get_weather", "arguments": {"city": "Oslo"}, "result": "rain"}`},
		{"log line", `{"level":"info","msg":"get_weather","function":"main.run"}`},
		{"only white space", " \n\t "},
		{"two names alike", `{"name": "GET-WEATHER2", "arguments": {}}`},
	}
}

func proseAnswers() []answer {
	call := `{"name": "get_weather", "arguments": {"city": "Oslo"}}`
	return []answer{
		{"prose", "The weather in Oslo is fine today: 12 °C, wind from the west."},
		{"less than", "If a < b and b<c then a<c; <b>bold</b> and <table><tr><td>1</td></tr></table>."},
		{"brackets", "An interval [0, 1) or [T] and a set {x | x > 0}."},
		{"tool's name first", "search results are ranked by date. get_weather is not."},
		{"signature", "get_weather(city) takes a city's name."},
		{"call in prose", "Use get_weather(city=\"Oslo\") for that."},
		{"call at the start of prose", "get_weather(city=\"Oslo\") is how you call it."},
		{"mark in prose", "A Hermes model writes <tool_call> and then JSON."},
		{"marks in prose", "It stands between <tool_call> and </tool_call> tags."},
		{"mark at the end", "The opening tag is <tool_call>"},
		{"half a mark at the end", "The opening tag begins with <tool_c"},
		{"inline code", "The model answers `<tool_call>" + call + "</tool_call>` then."},
		{"inline code, two backticks", "Write ``<function=get_time></function>`` there."},
		{"fence that explains", "A model that calls a tool writes:\n\n```\n<tool_call>\n" + call + "\n</tool_call>\n```\n\nThe server parses it."},
		{"fence of XML", "Like so:\n```xml\n<invoke name=\"get_time\">\n</invoke>\n```\n"},
		{"fence left open", "Like so:\n```\n[TOOL_CALLS]get_time[ARGS]{}"},
		{"document", "# Formats\n\nHermes: `<tool_call>{json}</tool_call>`. Mistral: `[TOOL_CALLS]`.\n\n| model | mark |\n|---|---|\n| Qwen | <tool_call> |\n| Mistral | [TOOL_CALLS] |\n"},
		{"undeclared between marks", `<tool_call>{"name": "launch_rocket", "arguments": {}}</tool_call>`},
		{"undeclared element", "<function=launch_rocket>\n<parameter=to>\nmoon\n</parameter>\n</function>"},
		{"undeclared invoke", `<function_calls><invoke name="launch_rocket"><parameter name="to">moon</parameter></invoke></function_calls>`},
		{"undeclared mistral", `[TOOL_CALLS]launch_rocket[ARGS]{"to":"moon"}`},
		{"undeclared deepseek", "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>launch_rocket\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>"},
		{"undeclared kimi", `<|tool_call_begin|>functions.launch_rocket:0<|tool_call_argument_begin|>{}<|tool_call_end|>`},
		{"undeclared harmony", `<|channel|>commentary to=functions.launch_rocket <|constrain|>json<|message|>{}<|call|>`},
		{"undeclared gemma", `<|tool_call>call:launch_rocket{}<tool_call|>`},
		{"undeclared glm", "<tool_call>launch_rocket\n<arg_key>to</arg_key><arg_value>moon</arg_value>\n</tool_call>"},
		{"one of two undeclared", `<tool_call>[{"name": "get_time", "arguments": {}}, {"name": "launch_rocket", "arguments": {}}]</tool_call>`},
		{"harmony final", "<|channel|>final<|message|>It rains in Oslo."},
		{"harmony preamble", "<|channel|>commentary<|message|>I will look at the weather.<|end|>"},
		{"python tag with code", "<|python_tag|>import math\nprint(math.pi)"},
		{"call inside reasoning", "<think>\n<tool_call>" + call + "</tool_call>\n</think>\nIt rains."},
		{"call inside reasoning without end", "<think>\n<tool_call>" + call + "</tool_call>\n"},
		{"call inside harmony analysis", "<|channel|>analysis<|message|>I could <tool_call>" + call + "</tool_call><|end|><|start|>assistant<|channel|>final<|message|>It rains."},
		{"call inside a cut call", `<|python_tag|>launch.call(payload={"name":"get_time","parameters":{}}`},
		{"element and prose", "<function=get_weather> is the opening tag of a call."},
		{"tag and prose, JSON elsewhere", "<tool_call> wraps " + call + " in a reply."},
		{"JSON between marks, then prose", "<tool_call>" + call + " and more words"},
		{"unreadable value", `<tool_call>{"name": "write_file", "arguments": {"content": "say "hi" now"}}</tool_call>`},
		{"HTML", "<!DOCTYPE html>\n<html><body><tools>none</tools></body></html>"},
		{"shell", "Run `cat < in.txt > out.txt` or:\n\n```sh\nwhile [ -f x ]; do :; done\n```\n"},
		{"action in prose", "Action: none is needed today."},
		{"analysis in prose", "analysis of the numbers shows growth; analysisX is no word."},
		{"commentary", "commentary to=nobody in particular"},
		{"print", "print(get_time()) prints the time."},
		{"marks of closing only", "</tool_call></function>"},
		{"think mark in prose", "Models think between <think> and </think> tags: " + strings.Repeat("so ", 3)},
		{"cut rune", "a < \xef\xbd"},
	}
}
