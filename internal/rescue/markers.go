package rescue

// kind says how what follows an opening mark is read.
type kind uint8

const (
	// tagged: calls, and then a closing mark, another opening mark, or the end.
	tagged kind = iota
	// loose: calls with nothing behind them that says that they end.
	loose
	// element: the mark is itself the beginning of a call.
	element
	// harmony: the header of a Harmony message.
	harmony
	// decorated: a mark of DeepSeek's DSML, before any tag.
	decorated
	// restart: reasoning ends; what follows is a reply's beginning.
	restart
)

// markers are the marks that a filter looks for. They are made once a wrapped
// provider and never change, so that looking costs a request nothing.
type markers struct {
	open      []string
	kinds     []kind
	first     [256]bool // the bytes that marks begin with
	second    [256]bool // those that stand second in one
	closers   []string
	reasoning [][2]string
}

func newMarkers() *markers {
	m := &markers{closers: closers(), reasoning: reasonings()}
	for _, g := range openers() {
		for _, s := range g.marks {
			m.open = append(m.open, s)
			m.kinds = append(m.kinds, g.kind)
			m.first[s[0]], m.second[s[1]] = true, true
		}
	}
	return m
}

type group struct {
	kind  kind
	marks []string
}

func openers() []group {
	return []group{
		{tagged, []string{
			"<tool_call>", "<tool_calls>", "<function_call>", "<function_calls>", "<functioncall>",
			"<tools>", "<TOOLCALL>", "<tool_code>", "<minimax:tool_call>", "<seed:tool_call>", "<longcat_tool_call>",
			"<antml:function_calls>", "[TOOL_REQUEST]", "[tool_call]",
			"<|tool_call|>", "<|tool_call>", "<|tool_calls|>",
			"<|tool_calls_section_begin|>", "<|tool_call_section_begin|>", "<|tool_call_begin|>", "<|tool_calls_begin|>",
			"<|tool_call_start|>", "<|START_ACTION|>", "<|action_start|>", "<|plugin|>", "<|python_start|>",
			"<start_function_call>",
			"<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>", "<｜tool_calls_begin｜>", "<｜tool_call_begin｜>",
			"<｜tool calls begin｜>", "<｜tool call begin｜>",
		}},
		{loose, []string{"[TOOL_CALLS]", "[TOOL_CALL]", "<|python_tag|>"}},
		{element, []string{"<function=", "<function name=", "<invoke name=", "<antml:invoke name="}},
		{harmony, []string{"<|channel|>", "<|start|>assistant"}},
		{decorated, []string{"<｜DSML｜", "<|DSML|", "<‖DSML‖", "<｜｜DSML｜｜", "<||DSML||", "< | DSML | ", "<DSML "}},
		{restart, []string{"</think>", "</thinking>", "</thought>", "[/THINK]", "</seed:think>", "<channel|>", "◁/think▷"}},
	}
}

// closers are the marks that end a call or a list of calls, and those that end a
// model's turn. They are left out behind a call.
func closers() []string {
	return []string{
		"</tool_call>", "</tool_calls>", "</function_call>", "</function_calls>", "</functioncall>",
		"</tools>", "</TOOLCALL>", "</tool_code>", "</minimax:tool_call>", "</seed:tool_call>", "</longcat_tool_call>",
		"</antml:function_calls>", "</function>", "</invoke>", "</antml:invoke>", "[END_TOOL_REQUEST]", "[/TOOL_CALLS]", "[/tool_call]",
		"<|/tool_call|>", "<tool_call|>", "<|tool_call_end|>", "<|tool_calls_end|>",
		"<|tool_calls_section_end|>", "<|tool_call_section_end|>",
		"<|END_ACTION|>", "<|action_end|>", "<|python_end|>", "<end_function_call>", "<start_function_response>",
		"<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>", "<｜tool_call_end｜>", "<｜tool_calls_end｜>",
		"<｜tool call end｜>", "<｜tool calls end｜>",
		"</｜DSML｜", "</|DSML|", "</‖DSML‖", "</｜｜DSML｜｜", "</||DSML||", "</ | DSML | ", "</DSML ",
		"<|call|>", "<|end|>", "<|return|>", "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|endoftext|>",
		"<|end_of_text|>", "<end_of_turn>", "<turn|>", "<|tool_response>", "<｜end▁of▁sentence｜>", "</s>",
		"<|END_OF_TURN_TOKEN|>", "<|user|>", "<|observation|>",
	}
}

// reasonings are the marks around a model's reasoning where the server left it
// in the text. They count at the beginning of a reply only.
func reasonings() [][2]string {
	return [][2]string{
		{"<think>", "</think>"},
		{"<thinking>", "</thinking>"},
		{"<thought>", "</thought>"},
		{"<reasoning>", "</reasoning>"},
		{"[THINK]", "[/THINK]"},
		{"<seed:think>", "</seed:think>"},
		{"<|START_THINKING|>", "<|END_THINKING|>"},
		{"<|channel>thought", "<channel|>"},
		{"◁think▷", "◁/think▷"},
	}
}

// startPrint and startCall stand before a call's name where a mark says that a
// call is meant.
const (
	startPrint = "print("
	startCall  = "call:"
)

// startFunctionary stands before each call of the Functionary models.
const startFunctionary = ">>>"
