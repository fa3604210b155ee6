package rescue

import "testing"

// shape is a reply as it was reported, with names and values of our own.
type shape struct {
	name string
	from string // where such a reply was reported
	text string
	show string
	want []string
}

const (
	github = "https://github.com/"
	oslo   = `get_weather {"city":"Oslo"}`
	clock  = `get_time {}`
)

func TestShapes(t *testing.T) {
	shapes := []shape{}
	for _, list := range [][]shape{hermesShapes(), jsonShapes(), elementShapes(), mistralShapes(), deepseekShapes(), harmonyShapes(), gemmaShapes(), otherShapes()} {
		shapes = append(shapes, list...)
	}
	if len(shapes) < 80 {
		t.Errorf("%d shapes are tested, want at least 80", len(shapes))
	}
	for _, s := range shapes {
		t.Run(s.name, func(t *testing.T) {
			if s.from == "" {
				t.Error("the shape has no source")
			}
			everyWay(t, s.text, testHold, outcome{s.show, s.want})
		})
	}
}

func hermesShapes() []shape {
	return []shape{
		{"hermes", github + "nugget/thane-ai-agent/pull/21", "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\":\"Oslo\"}}\n</tool_call>", "", []string{oslo}},
		{"hermes behind prose", github + "vllm-project/vllm/pull/22769", "Let me look that up.\n<tool_call>{\"name\": \"get_weather\", \"arguments\": {\"city\":\"Oslo\"}}</tool_call>", "Let me look that up.\n", []string{oslo}},
		{"hermes before prose", github + "sgl-project/sglang/pull/10995", "<tool_call>{\"name\": \"get_time\", \"arguments\": {}}</tool_call>\n\nI asked the clock.", "\n\nI asked the clock.", []string{clock}},
		{"hermes several", github + "sgl-project/sglang/pull/10995", "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\":\"Oslo\"}}\n</tool_call>\n<tool_call>\n{\"name\": \"get_time\", \"arguments\": {}}\n</tool_call>", "", []string{oslo, clock}},
		{"hermes two objects", github + "ollama/ollama/issues/11621", "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\":\"Oslo\"}}\n{\"name\": \"get_time\", \"arguments\": {}}\n</tool_call>", "", []string{oslo, clock}},
		{"hermes after think", github + "lmstudio-ai/lmstudio-bug-tracker/issues/827", "<think>\nThe user wants <tool_call> weather.\n</think>\n\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\":\"Oslo\"}}\n</tool_call>", "<think>\nThe user wants <tool_call> weather.\n</think>", []string{oslo}},
		{"hermes think and prose", github + "aaif-goose/goose/issues/3748", "<think>Fine.</think>I will check.<tool_call>{\"name\":\"get_time\",\"arguments\":{}}</tool_call>", "<think>Fine.</think>I will check.", []string{clock}},
		{"hermes arguments encoded", github + "vllm-project/vllm/pull/35948", `<tool_call>{"name": "get_weather", "arguments": "{\"city\":\"Oslo\"}"}</tool_call>`, "", []string{oslo}},
		{"hermes trailing comma", github + "ml-explore/mlx-lm/pull/1071", `<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo",},}</tool_call>`, "", []string{oslo}},
		{"hermes single quotes", github + "ml-explore/mlx-lm/pull/1071", `<tool_call>{'name': 'get_weather', 'arguments': {'city': 'Oslo', 'metric': True}}</tool_call>`, "", []string{`get_weather {"city":"Oslo","metric":true}`}},
		{"hermes raw line breaks", github + "microsoft/debug-gym/pull/271", "<tool_call>{\"name\": \"write_file\", \"arguments\": {\"path\": \"a.txt\", \"content\": \"one\ntwo\n\"}}</tool_call>", "", []string{`write_file {"path":"a.txt","content":"one\ntwo\n"}`}},
		{"hermes bracket missing", github + "BerriAI/litellm/pull/22503", `<tool_call>{"name": "shell", "arguments": {"command": ["ls", "-l"]}</tool_call>`, "", []string{`shell {"command":["ls","-l"]}`}},
		{"hermes bracket too many", github + "NousResearch/hermes-agent/pull/68612", `<tool_call>{"name": "get_weather", "arguments": {"city":"Oslo"}}}</tool_call>`, "", []string{oslo}},
		{"hermes square marks", github + "QwenLM/Qwen3-Coder/issues/180", "[tool_call]\n{\"name\": \"get_weather\", \"arguments\": {\"city\":\"Oslo\"}}\n[/tool_call]", "", []string{oslo}},
		{"tools tag", github + "vllm-project/vllm/pull/32931", "<tools>\n{\"name\": \"get_weather\", \"arguments\": {\"city\":\"Oslo\"}}\n</tools>", "", []string{oslo}},
		{"tools tag list", github + "vllm-project/vllm/pull/33083", "<tools>\n[{\"name\": \"get_weather\", \"arguments\": {\"city\":\"Oslo\"}}, {\"name\": \"get_time\", \"arguments\": {}}]\n</tools>", "", []string{oslo, clock}},
		{"jamba list", github + "vllm-project/vllm/pull/9154", "<tool_calls>[\n    {\"name\": \"get_weather\", \"arguments\": {\"city\":\"Oslo\"}}\n]</tool_calls>", "", []string{oslo}},
		{"minimax old form", github + "MiniMax-AI/MiniMax-M2/issues/14", "<tool_calls>\n{\"name\": \"get_weather\", \"arguments\": {\"city\":\"Oslo\"}}\n{\"name\": \"get_time\", \"arguments\": {}}\n</tool_calls>", "", []string{oslo, clock}},
		{"granite list with type", github + "waybarrios/vllm-mlx/pull/28", `<|tool_call|>[{"arguments": {"expression": "25 * 17"}, "type": "calculate"}]`, "", []string{`Calculate {"expression": "25 * 17"}`}},
		{"granite 3", github + "ibm-granite/granite-io/issues/49", `<tool_call>[{"name": "get_weather", "arguments": {"city":"Oslo"}}]`, "", []string{oslo}},
		{"granite 3.0 mark", github + "waybarrios/vllm-mlx/pull/28", `<|tool_call|>[{"name": "get_weather", "arguments": {"city":"Oslo"}}]`, "", []string{oslo}},
		{"stop token left", github + "mastra-ai/mastra/pull/12823", `<tool_call>{"name": "get_time", "arguments": {}}</tool_call><|im_end|>`, "", []string{clock}},
		{"in a fence", github + "vllm-project/vllm/pull/17148", "```xml\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\":\"Oslo\"}}\n</tool_call>\n```", "", []string{oslo}},
	}
}

func jsonShapes() []shape {
	return []shape{
		{"bare object", github + "ollama/ollama/issues/12174", `{"name": "get_weather", "arguments": {"city":"Oslo"}}`, "", []string{oslo}},
		{"bare object, ollama-vscode", github + "ollama/ollama-vscode/pull/20", "{\"name\":\"read_file\",\"arguments\":{\"path\":\"go.mod\"}}\n", "", []string{`read_file {"path":"go.mod"}`}},
		{"bare object with list", github + "openai/codex/issues/2229", `{"name": "shell", "arguments": {"command": ["ls"]}}`, "", []string{`shell {"command": ["ls"]}`}},
		{"bare object behind line breaks", github + "mark3labs/mcphost/issues/12", "\n\n  {\"name\": \"fs__list-directory\", \"arguments\": {\"path\": \".\"}}   \n", "", []string{`fs__list-directory {"path": "."}`}},
		{"bare object, pretty", github + "selfagency/opilot/issues/149", "{\n  \"name\": \"read_file\",\n  \"arguments\": {\n    \"path\": \"AGENTS.md\"\n  }\n}", "", []string{"read_file {\n    \"path\": \"AGENTS.md\"\n  }"}},
		{"bare objects in lines", github + "selfagency/opilot/issues/149", "{\"name\": \"get_weather\", \"arguments\": {\"city\":\"Oslo\"}}\n{\"name\": \"get_time\", \"arguments\": {}}", "", []string{oslo, clock}},
		{"bare object with escapes", github + "anomalyco/opencode/issues/10402", `{"name": "write_file", "arguments": {"content": "hello\n", "path": "/C:/Code/todo.md"}}`, "", []string{`write_file {"content": "hello\n", "path": "/C:/Code/todo.md"}`}},
		{"bare object in another script", github + "ollama/ollama/issues/11185", `{"name": "search", "arguments": {"query": "météo à Besançon"}}`, "", []string{`search {"query": "météo à Besançon"}`}},
		{"bare object, omlx", github + "jundot/omlx/issues/2565", `{"name": "read_file", "arguments": {"path": "test.txt"}}`, "", []string{`read_file {"path": "test.txt"}`}},
		{"bare list", github + "vllm-project/vllm/pull/17148", `[{"name": "get_weather", "arguments": {"city":"Oslo"}}, {"name": "get_time", "arguments": {}}]`, "", []string{oslo, clock}},
		{"list after think", github + "vllm-project/vllm/pull/17148", `<think>I need both.</think>[{"name": "get_time", "arguments": {}}]`, "<think>I need both.</think>", []string{clock}},
		{"list in a fence", github + "vllm-project/vllm/pull/17148", "```json\n[{\"name\": \"get_time\", \"arguments\": {}}]\n```", "", []string{clock}},
		{"list behind a mark", github + "vllm-project/vllm/pull/17148", "[TOOL_CALLS][{\"name\": \"get_time\", \"arguments\": {}}]", "", []string{clock}},
		{"llama parameters", github + "jundot/omlx/pull/1153", `{"name": "get_weather", "parameters": {"city":"Oslo"}}`, "", []string{oslo}},
		{"llama in a fence", github + "ollama/ollama/issues/13519", "```json\n{\"name\": \"search\", \"parameters\": {\"query\": \"fjord ferries\"}}\n```", "", []string{`search {"query": "fjord ferries"}`}},
		{"llama with type", github + "vllm-project/vllm/issues/46863", `{"type": "function", "name": "get_weather", "parameters": {"city":"Oslo"}}`, "", []string{oslo}},
		{"llama nested, bracket missing", github + "vllm-project/vllm/issues/11786", `{"type": "function", "function": {"name": "get_weather", "parameters": {"city": "Oslo"}}`, "", []string{oslo}},
		{"llama semicolons", github + "atwmarshall/dead-reckoning/issues/30", `{"name": "get_time", "parameters": {}}; {"name": "get_weather", "parameters": {"city":"Oslo"}}`, "", []string{clock, oslo}},
		{"llama 4 python marks", github + "vllm-project/vllm/issues/16214", `<|python_start|>{"name": "search", "parameters": {"query": "latest news"}}<|python_end|>`, "", []string{`search {"query": "latest news"}`}},
		{"llama python tag", github + "raullenchai/Rapid-MLX/pull/703", `<|python_tag|>{"name": "get_weather", "parameters": {"city":"Oslo"}}<|eom_id|>`, "", []string{oslo}},
		{"llama python tag, several", github + "unslothai/unsloth/pull/5620", `<|python_tag|>{"name": "get_weather", "parameters": {"city":"Oslo"}}; {"name": "get_time", "parameters": {}}`, "", []string{oslo, clock}},
		{"llama built-in form", github + "unslothai/unsloth/pull/5620", `<|python_tag|>search.call(query="fjords")`, "", []string{`search {"query":"fjords"}`}},
		{"llama bare, arguments", github + "raullenchai/Rapid-MLX/pull/703", `{"name": "get_time", "arguments": {}}<|eot_id|>`, "", []string{clock}},
		{"wrapped in tool_calls", github + "FANATFANATA/DanyAPI/pull/3", `{"tool_calls": [{"name": "read_file", "arguments": {"path": "/file.py"}}]}`, "", []string{`read_file {"path": "/file.py"}`}},
		{"wrapped, bracket missing among the last", github + "FANATFANATA/DanyAPI/pull/3", `{"tool_calls": [{"name": "read_file", "arguments": {"path": "/file.py"}]}`, "", []string{`read_file {"path":"/file.py"}`}},
		{"tool_calls in a fence", github + "Extra-Chill/data-machine/pull/2316", "```json\n{\"tool_calls\": [{\"id\": \"c1\", \"type\": \"function\", \"function\": {\"name\": \"get_weather\", \"arguments\": \"{\\\"city\\\":\\\"Oslo\\\"}\"}}]}\n```", "", []string{oslo}},
		{"fence named tool_call", github + "Sophomoresty/gemini-web2api/issues/42", "```tool_call\n{\"name\": \"get_weather\", \"arguments\": {\"city\":\"Oslo\"}}\n```", "", []string{oslo}},
		{"fences, two", github + "Sophomoresty/gemini-web2api/issues/42", "```tool_call\n{\"name\": \"get_weather\", \"arguments\": {\"city\":\"Oslo\"}}\n```\n```tool_call\n{\"name\": \"get_time\", \"arguments\": {}}\n```", "", []string{oslo, clock}},
		{"relaxed keys in braces", github + "tinyhumansai/tinyagents/pull/68", `<tool_call>{tool:"get_weather",arguments:{city:"Oslo"}}</tool_call>`, "", []string{oslo}},
		{"jinja ignored", github + "CambrianTech/continuum/pull/1922", `{"name":"get_weather","arguments":{"city":"Oslo"}}`, "", []string{oslo}},
	}
}

func elementShapes() []shape {
	return []shape{
		{"qwen3 coder", github + "InternLM/lmdeploy/issues/3840", "<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n<parameter=days>\n3\n</parameter>\n</function>\n</tool_call>", "", []string{`get_weather {"city":"Oslo","days":3}`}},
		{"qwen3 coder compact", github + "ai-dynamo/dynamo/pull/4415", "<tool_call><function=get_weather><parameter=city>Oslo</parameter></function></tool_call>", "", []string{oslo}},
		{"qwen3 coder, lines kept", github + "ggml-org/llama.cpp/issues/27107", "<tool_call>\n<function=write_file>\n<parameter=path>\na.txt\n</parameter>\n<parameter=content>\none\n\n  two <b>\n</parameter>\n</function>\n</tool_call>", "", []string{`write_file {"path":"a.txt","content":"one\n\n  two <b>"}`}},
		{"qwen3 coder naked", github + "jundot/omlx/pull/844", "I'll check.\n\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n</function>\n</tool_call>\n", "I'll check.\n\n", []string{oslo}},
		{"qwen3 coder naked, alone", github + "ggml-org/llama.cpp/issues/15012", "<function=get_time>\n</function>", "", []string{clock}},
		{"parameter not closed", github + "vllm-project/vllm/pull/23099", "<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n<parameter=metric>\nTrue\n</parameter>\n</function>\n</tool_call>", "", []string{`get_weather {"city":"Oslo","metric":true}`}},
		{"last parameter not closed", github + "vllm-project/vllm/pull/23099", "<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</function>\n</tool_call>", "", []string{oslo}},
		{"parameter types", github + "vllm-project/vllm/pull/23099", "<tool_call>\n<function=search>\n<parameter=query>\n42\n</parameter>\n<parameter=limit>\n2.5\n</parameter>\n<parameter=filter>\n{\"lang\": \"no\"}\n</parameter>\n</function>\n</tool_call>", "", []string{`search {"query":"42","limit":2.5,"filter":{"lang": "no"}}`}},
		{"parameter as a Python list", github + "QwenLM/Qwen3-Coder/issues/480", "<tool_call>\n<function=search>\n<parameter=sources>\n[{'kind': 'web', 'deep': False}]\n</parameter>\n</function>\n</tool_call>", "", []string{`search {"sources":[{"kind":"web","deep":false}]}`}},
		{"parameter fused", github + "QwenLM/Qwen3-Coder/issues/457", "<function=get_weather>\n<parameter=city=Oslo</parameter>\n</function>", "", []string{oslo}},
		{"openhands form", github + "QwenLM/Qwen3-Coder/issues/457", "<function=get_weather>\n<parameter=city>Oslo</parameter>\n<parameter=days>2</parameter>\n</function>", "", []string{`get_weather {"city":"Oslo","days":2}`}},
		{"llama 3.1 function tag", github + "mudler/LocalAI/pull/3010", `<function=get_weather>{"city":"Oslo"}</function>`, "", []string{oslo}},
		{"llama 3.1 function tag, double brackets", github + "mudler/LocalAI/pull/3010", `<function=get_weather>{{"city":"Oslo"}}</function>`, "", []string{oslo}},
		{"seed oss", github + "vllm-project/vllm/pull/24263", "<seed:tool_call>\n<function=get_weather>\n<parameter=city>Oslo</parameter>\n</function>\n</seed:tool_call>", "", []string{oslo}},
		{"seed oss after reasoning", github + "ggml-org/llama.cpp/pull/15552", "<seed:think>One call.</seed:think>\n<seed:tool_call>\n<function=get_time>\n</function>\n</seed:tool_call>", "<seed:think>One call.</seed:think>", []string{clock}},
		{"minimax m2", github + "MiniMax-AI/MiniMax-M2.5/issues/10", "<minimax:tool_call>\n  <invoke name=\"get_weather\">\n    <parameter name=\"city\">Oslo</parameter>\n  </invoke>\n</minimax:tool_call>", "", []string{oslo}},
		{"minimax m2, two", github + "MiniMax-AI/MiniMax-M2.5/issues/10", "<minimax:tool_call>\n<invoke name=\"get_weather\">\n<parameter name=\"city\">Oslo</parameter>\n</invoke>\n<invoke name=\"get_time\">\n</invoke>\n</minimax:tool_call>", "", []string{oslo, clock}},
		{"dsml", github + "ochafik/minja/pull/11", "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"search\">\n<｜DSML｜parameter name=\"query\" string=\"true\">10</｜DSML｜parameter>\n<｜DSML｜parameter name=\"limit\" string=\"false\">10</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>", "", []string{`search {"query":"10","limit":10}`}},
		{"dsml v4, two", github + "TokenRhythm/opensquilla/issues/985", "<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"read_file\">\n<｜DSML｜parameter name=\"path\" string=\"true\">D:\\notes\\_a.txt</｜DSML｜parameter>\n</｜DSML｜invoke>\n<｜DSML｜invoke name=\"get_time\">\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>", "", []string{`read_file {"path":"D:\\notes\\_a.txt"}`, clock}},
		{"dsml bare invoke", github + "sgl-project/sglang/issues/40236", "Now.\n<｜DSML｜invoke name=\"get_weather\">\n<｜DSML｜parameter name=\"city\" string=\"true\">Oslo</｜DSML｜parameter>\n</｜DSML｜invoke>", "Now.\n", []string{oslo}},
		{"dsml unterminated", github + "sgl-project/sglang/issues/40236", "<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"get_weather\">\n<｜DSML｜parameter name=\"city\" string=\"true\">Oslo</｜DSML｜parameter>\n</｜DSML｜invoke>\n", "", []string{oslo}},
		{"dsml double bars", github + "lsdefine/GenericAgent/issues/804", "<｜｜DSML｜｜tool_calls><｜｜DSML｜｜invoke name=\"get_weather\"><｜｜DSML｜｜parameter name=\"city\">Oslo</｜｜DSML｜｜parameter></｜｜DSML｜｜invoke></｜｜DSML｜｜tool_calls>", "", []string{oslo}},
		{"dsml other bars", github + "lsdefine/GenericAgent/issues/804", "hello<‖DSML‖tool_calls><‖DSML‖invoke name=\"get_time\"></‖DSML‖invoke></‖DSML‖tool_calls>", "hello", []string{clock}},
		{"dsml spaced", github + "AgentFlocks/flocks/pull/687", "< | DSML | tool_use>\n< | DSML | invoke name=\"get_time\">\n</ | DSML | invoke>\n</ | DSML | tool_use>", "", []string{clock}},
		{"dsml with a fence", github + "vllm-project/vllm-ascend/issues/13794", "First the table.\n\n<｜DSML｜toolcall>read_file\n\n```json\n{\"path\":\"/tmp/report.js\"}\n```", "First the table.\n\n", []string{`read_file {"path":"/tmp/report.js"}`}},
		{"glm", github + "ROCm/ATOM/pull/1747", "<tool_call>get_weather\n<arg_key>city</arg_key><arg_value>Oslo</arg_value>\n<arg_key>days</arg_key><arg_value>3</arg_value>\n</tool_call>", "", []string{`get_weather {"city":"Oslo","days":3}`}},
		{"glm lines", github + "ggml-org/llama.cpp/pull/15186", "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>\n</tool_call>", "", []string{oslo}},
		{"glm without arguments", github + "vllm-project/vllm/issues/32213", "<tool_call>get_time\n</tool_call>", "", []string{clock}},
		{"glm without line break", github + "vllm-project/vllm/issues/48095", "<tool_call>get_weather<arg_key>city</arg_key><arg_value>Oslo</arg_value></tool_call>", "", []string{oslo}},
		{"glm two", github + "vllm-project/vllm/issues/32436", "<tool_call>get_time</tool_call><tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>\n</tool_call>", "", []string{clock, oslo}},
	}
}

func mistralShapes() []shape {
	return []shape{
		{"mistral list", github + "ml-explore/mlx-lm/issues/1374", `[TOOL_CALLS] [{"name": "get_weather", "arguments": {"city":"Oslo"}}]`, "", []string{oslo}},
		{"mistral list, two", github + "vllm-project/vllm/pull/10333", `[TOOL_CALLS][{"name": "get_weather", "arguments": {"city":"Oslo"}}, {"name": "get_time", "arguments": {}}]</s>`, "", []string{oslo, clock}},
		{"mistral single quotes", github + "ollama/ollama/pull/5284", `[TOOL_CALLS] [{'name': 'get_weather', 'arguments': {'city': 'Oslo'}}]`, "", []string{oslo}},
		{"mistral name and arguments", github + "ml-explore/mlx-lm/pull/1448", `[TOOL_CALLS]get_weather[ARGS]{"city":"Oslo"}`, "", []string{oslo}},
		{"mistral two", github + "ml-explore/mlx-lm/pull/1448", `[TOOL_CALLS]get_weather[ARGS]{"city":"Oslo"}[TOOL_CALLS]get_time[ARGS]{}`, "", []string{oslo, clock}},
		{"mistral and prose behind", github + "ml-explore/mlx-lm/pull/1448", "[TOOL_CALLS]search[ARGS]{\"query\": \"fjords\"}\n\nLet me search for that.", "\n\nLet me search for that.", []string{`search {"query": "fjords"}`}},
		{"mistral, LM Studio", github + "lmstudio-ai/lmstudio-bug-tracker/issues/797", `[TOOL_CALLS][{"name":"get_time","arguments":{}}]`, "", []string{clock}},
		{"mistral name and object", github + "raullenchai/Rapid-MLX/issues/1071", `[TOOL_CALLS]get_weather{"city":"Oslo"}`, "", []string{oslo}},
		{"mistral mark lost", github + "ml-explore/mlx-lm/pull/1448", `get_weather[ARGS]{"city":"Oslo"}`, "", []string{oslo}},
	}
}

func deepseekShapes() []shape {
	return []shape{
		{"deepseek v3", github + "vllm-project/vllm/pull/23454", "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{\"city\":\"Oslo\"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>", "", []string{oslo}},
		{"deepseek v3, two", github + "vllm-project/vllm/pull/17784", "Both.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{\"city\":\"Oslo\"}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>get_time\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜>", "Both.", []string{oslo, clock}},
		{"deepseek v3.1", github + "sgl-project/sglang/pull/9446", "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{\"city\":\"Oslo\"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>", "", []string{oslo}},
		{"deepseek v3.1 after think", github + "xorbitsai/inference/pull/4619", "Need both.</think><｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{\"city\":\"Oslo\"}<｜tool▁call▁end｜><｜tool▁call▁begin｜>get_time<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>", "Need both.</think>", []string{oslo, clock}},
		{"kimi", github + "vllm-project/vllm/pull/32216", `<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>{"city":"Oslo"}<|tool_call_end|><|tool_calls_section_end|>`, "", []string{oslo}},
		{"kimi arguments as a string", github + "MoonshotAI/Kimi-K2/issues/26", `<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:1<|tool_call_argument_begin|>"{\"city\":\"Oslo\"}"<|tool_call_end|><|tool_calls_section_end|>`, "", []string{oslo}},
		{"kimi singular section", github + "ggml-org/llama.cpp/pull/17376", `<|tool_call_section_begin|><|tool_call_begin|>functions.get_time:0<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_call_section_end|>`, "", []string{clock}},
		{"kimi without section", github + "vllm-project/vllm/pull/32216", `Checking. <|tool_call_begin|>functions.get_time:2<|tool_call_argument_begin|>{}<|tool_call_end|>`, "Checking. ", []string{clock}},
		{"kimi two", github + "vllm-project/vllm/issues/24478", `<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>{"city":"Oslo"}<|tool_call_end|><|tool_call_begin|>functions.get_time:1<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>`, "", []string{oslo, clock}},
	}
}

func harmonyShapes() []shape {
	return []shape{
		{"harmony", github + "lablup/mlxcel/issues/654", `<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city":"Oslo"}<|call|>`, "", []string{oslo}},
		{"harmony after analysis", github + "lablup/mlxcel/pull/658", `<|channel|>analysis<|message|>They ask <tool_call>.<|end|><|start|>assistant<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city":"Oslo"}`, "<|channel|>analysis<|message|>They ask <tool_call>.<|end|>", []string{oslo}},
		{"harmony without constraint", github + "odysseus-dev/odysseus/issues/4522", `<|channel|>commentary to=functions.search<|message|>{"query":"fjords"}<|call|>`, "", []string{`search {"query":"fjords"}`}},
		{"harmony recipient first", github + "ggml-org/llama.cpp/pull/15181", `<|start|>assistant to=functions.get_weather<|channel|>commentary json<|message|>{"city":"Oslo"}<|call|>`, "", []string{oslo}},
		{"harmony marks lost", github + "NousResearch/hermes-agent/pull/84231", `to=functions.get_weather {"city":"Oslo"}`, "", []string{oslo}},
		{"harmony marks lost, commentary", github + "livekit/agents-js/issues/1632", `commentary to=functions.get_weather json{"city":"Oslo"}`, "", []string{oslo}},
		{"harmony marks lost, analysis", github + "sgl-project/sglang/pull/9043", `analysisThey ask about Oslo.assistantcommentary to=functions.get_weather json{"city":"Oslo"}`, "analysisThey ask about Oslo.", []string{oslo}},
		{"harmony two", github + "ai-dynamo/dynamo/pull/9593", `<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city":"Oslo"}<|call|><|start|>assistant<|channel|>commentary to=functions.get_time <|constrain|>json<|message|>{}<|call|>`, "", []string{oslo, clock}},
	}
}

func gemmaShapes() []shape {
	return []shape{
		{"gemma 4", github + "ml-explore/mlx-lm/pull/1105", `<|tool_call>call:get_weather{city:<|"|>Oslo<|"|>,days:3}<tool_call|>`, "", []string{`get_weather {"city":"Oslo","days":3}`}},
		{"gemma 4 nested", github + "qualcomm/GenieX/pull/1345", `<|tool_call>call:search{query:<|"|>a, {b}<|"|>,filter:{lang:<|"|>no<|"|>,new:true},sources:[<|"|>web<|"|>,1]}<tool_call|>`, "", []string{`search {"query":"a, {b}","filter":{"lang":"no","new":true},"sources":["web",1]}`}},
		{"gemma 4 quoted keys", github + "waybarrios/vllm-mlx/pull/267", `<|tool_call>call:get_weather{<|"|>city<|"|>:<|"|>Oslo<|"|>}<tool_call|>`, "", []string{oslo}},
		{"gemma 4 after thought", github + "waybarrios/vllm-mlx/pull/274", "<|channel>thought\nWeather, then.<channel|><|tool_call>call:get_weather{city:<|\"|>Oslo<|\"|>}<tool_call|>", "<|channel>thought\nWeather, then.<channel|>", []string{oslo}},
		{"gemma 4 two and response mark", github + "abetlen/llama-cpp-python/issues/2227", `<|tool_call>call:get_weather{city:<|"|>Oslo<|"|>}<tool_call|><|tool_call>call:get_time{}<tool_call|><|tool_response>`, "", []string{oslo, clock}},
		{"gemma 4 round brackets", github + "NousResearch/hermes-agent/pull/7449", `<|tool_call>call:write_file(path: "a.txt", content: 'hi')<tool_call|>`, "", []string{`write_file {"path":"a.txt","content":"hi"}`}},
		{"gemma 4 marks lost", github + "Gitlawb/openclaude/pull/380", `call:write_file{content:hello,path:a.txt}`, "", []string{`write_file {"content":"hello","path":"a.txt"}`}},
		{"gemma 4 number for a string", github + "vllm-project/vllm/issues/47906", `<|tool_call>call:get_weather{zip:0150,days:2,metric:true}<tool_call|>`, "", []string{`get_weather {"zip":"0150","days":2,"metric":true}`}},
		{"function gemma", github + "vllm-project/vllm/pull/31218", `<start_function_call>call:get_weather{city:<escape>Oslo<escape>}<end_function_call>`, "", []string{oslo}},
		{"function gemma, json", github + "google-gemini/cookbook/pull/1099", `<start_function_call>call:get_weather{"city": "Oslo"}<end_function_call>`, "", []string{oslo}},
	}
}

func otherShapes() []shape {
	return []shape{
		{"lfm2", github + "theroyallab/tabbyAPI/pull/464", `<|tool_call_start|>[get_weather(city='Oslo')]<|tool_call_end|>`, "", []string{oslo}},
		{"lfm2 space before the end", github + "vllm-project/vllm/pull/39243", `<|tool_call_start|>[get_weather(city="Oslo")] <|tool_call_end|>`, "", []string{oslo}},
		{"lfm2 nested", github + "ml-explore/mlx-lm/pull/1246", `<|tool_call_start|>[search(query="a (b)", filter={'lang': 'no', 'tags': ['x', None]}), get_time()]<|tool_call_end|>`, "", []string{`search {"query":"a (b)","filter":{"lang":"no","tags":["x",null]}}`, clock}},
		{"lfm2 marks lost", github + "raullenchai/Rapid-MLX/pull/1076", `[get_weather(city="Oslo")]`, "", []string{oslo}},
		{"llama 3.2 list of calls", github + "vllm-project/vllm/issues/9991", `[get_weather(city="Oslo", days=2), get_time()]`, "", []string{`get_weather {"city":"Oslo","days":2}`, clock}},
		{"granite pythonic", github + "vllm-project/vllm/issues/43104", `get_weather(city="Oslo")`, "", []string{oslo}},
		{"granite pythonic, lines", github + "vllm-project/vllm/issues/43116", "get_weather(city=\"Oslo\", metric=True)\nsearch(query=\"release notes\")", "", []string{`get_weather {"city":"Oslo","metric":true}`, `search {"query":"release notes"}`}},
		{"granite pythonic in a fence", github + "vllm-project/vllm/issues/43104", "```python\nget_weather(city=\"Oslo\")\n```", "", []string{oslo}},
		{"phi functools", github + "sgl-project/sglang/pull/17132", `functools[{"name": "get_weather", "arguments": {"city":"Oslo"}}]`, "", []string{oslo}},
		{"phi functools, two", github + "vllm-project/vllm/pull/14880", `functools[{"name": "get_weather", "arguments": {"city":"Oslo"}},{"name": "get_time", "arguments": {}}]`, "", []string{oslo, clock}},
		{"cohere", github + "smg-project/smg/issues/305", "<|START_ACTION|>\n{\"tool_name\": \"get_weather\", \"parameters\": {\"city\":\"Oslo\"}}\n<|END_ACTION|>", "", []string{oslo}},
		{"cohere list behind a response", github + "smg-project/smg/pull/315", "<|START_RESPONSE|>Let me help.<|END_RESPONSE|>\n<|START_ACTION|>\n[{\"tool_call_id\": \"0\", \"tool_name\": \"get_weather\", \"parameters\": {\"city\":\"Oslo\"}}]\n<|END_ACTION|>", "<|START_RESPONSE|>Let me help.<|END_RESPONSE|>\n", []string{oslo}},
		{"command-r", github + "ollama/ollama/pull/14970", "Action: ```json\n[\n    {\n        \"tool_name\": \"get_weather\",\n        \"parameters\": {\"city\":\"Oslo\"}\n    }\n]\n```", "", []string{oslo}},
		{"functionary", github + "ggml-org/llama.cpp/pull/9639", "get_weather\n{\"city\":\"Oslo\"}", "", []string{oslo}},
		{"functionary, marks", github + "ggml-org/llama.cpp/pull/9639", ">>>get_weather\n{\"city\":\"Oslo\"}>>>get_time\n{}", "", []string{oslo, clock}},
		{"glm 4 name and object", github + "ml-explore/mlx-swift-lm/issues/491", "get_weather\n{\"city\":\"Oslo\"}", "", []string{oslo}},
		{"internlm 2", github + "vllm-project/vllm/pull/8405", `<|action_start|><|plugin|>{"name": "get_weather", "parameters": {"city":"Oslo"}}<|action_end|>`, "", []string{oslo}},
	}
}
