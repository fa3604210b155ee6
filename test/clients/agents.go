package main

import (
	"fmt"
	"path/filepath"
	"strings"
)

// agent is a program that people run in a terminal, and how it is pointed at a
// server. What a version needs is its own documentation's word.
type agent struct {
	name    string // of the row
	pkg     string // on npm
	version string
	bin     string // the program's name in the package
	speaks  string // the dialect
	route   string // where its turns arrive
	socket  bool   // by a WebSocket on that route
	by      string // how the skill is selected for it: byKey or byHeader
	shell   string // its own tool that runs a command
	// argument is the member of the tool's arguments that holds the command.
	argument string
	// more are further members of the arguments, each with a comma before it.
	more string
	// point writes what the program reads, and says how it is started.
	point func(s seat) start
}

// How a skill is selected for a client that can add no member to its requests.
const (
	byKey    = "its key"
	byHeader = "X-Metier-Skills"
)

// seat is what an agent has to itself.
type seat struct {
	url    string // of the server, without a path
	key    string // the server's own, which the agent presents
	model  string // the scenario's name
	skills string // for the header; empty when the key selects
	home   string // the agent's home folder
	prompt string
}

// start is a command line, its environment and the files that must be there.
type start struct {
	args  []string
	env   []string
	files map[string]string // below the home folder
}

// agents are those of the issue. All of them run on Node 22, which comes from npm too.
func agents() []agent {
	copilot := agent{
		pkg: "@github/copilot", version: "1.0.102", bin: "copilot", by: byKey,
		shell: "bash", argument: "command", more: `,"description":"say so"`,
	}
	overHTTP := agent{
		name: "codex", pkg: "@openai/codex", version: "0.171.0", bin: "codex", speaks: responsesDialect, route: responsesRoute,
		by: byHeader, shell: "exec_command", argument: "cmd", point: codexBy(""),
	}
	bySocket := overHTTP
	bySocket.name, bySocket.socket, bySocket.speaks = "codex-websocket", true, responsesDialect+" by WebSocket"
	bySocket.point = codexBy("supports_websockets = true\n")
	completions, responses, messages := copilot, copilot, copilot
	completions.name, completions.speaks, completions.route, completions.point = "copilot-completions", chatDialect, chatRoute, copilotAs("openai", "completions", "/v1")
	responses.name, responses.speaks, responses.route, responses.point = "copilot-responses", responsesDialect, responsesRoute, copilotAs("openai", "responses", "/v1")
	messages.name, messages.speaks, messages.route, messages.point = "copilot-messages", messagesDialect, messagesRoute, copilotAs("anthropic", "", "")
	return []agent{
		overHTTP, bySocket,
		{
			name: "claude-code", pkg: "@anthropic-ai/claude-code", version: "2.1.332", bin: "claude", speaks: messagesDialect, route: messagesRoute,
			by: byHeader, shell: "Bash", argument: "command", more: `,"description":"say so"`, point: claudeCode,
		},
		completions, responses, messages,
		{
			name: "qwen-code", pkg: "@qwen-code/qwen-code", version: "0.24.4", bin: "qwen", speaks: chatDialect, route: chatRoute,
			by: byKey, shell: "run_shell_command", argument: "command", more: `,"is_background":false`, point: qwenCode,
		},
		{
			name: "opencode", pkg: "opencode-ai", version: "1.18.33", bin: "opencode", speaks: chatDialect, route: chatRoute,
			by: byHeader, shell: "bash", argument: "command", more: `,"description":"say so"`, point: openCode,
		},
		{
			name: "pi", pkg: "@mariozechner/pi-coding-agent", version: "0.73.1", bin: "pi", speaks: chatDialect, route: chatRoute,
			by: byHeader, shell: "bash", argument: "command", point: pi,
		},
	}
}

// The dialects, as the page names them, and their routes.
const (
	chatDialect      = "Chat Completions"
	responsesDialect = "Responses"
	messagesDialect  = "Messages"

	chatRoute      = "/v1/chat/completions"
	responsesRoute = "/v1/responses"
	messagesRoute  = "/v1/messages"
)

// codexBy is the program with more lines about its provider.
func codexBy(more string) func(seat) start {
	return func(s seat) start {
		var file strings.Builder
		fmt.Fprintf(&file, "model = %q\nmodel_provider = \"metier\"\nsandbox_mode = \"danger-full-access\"\napproval_policy = \"never\"\n", s.model)
		fmt.Fprintf(&file, "[model_providers.metier]\nname = \"metier\"\nbase_url = \"%s/v1\"\nwire_api = \"responses\"\nenv_key = \"CLIENTS_KEY\"\n", s.url)
		if s.skills != "" {
			fmt.Fprintf(&file, "http_headers = { \"X-Metier-Skills\" = %q }\n", s.skills)
		}
		file.WriteString(more)
		return start{
			args:  []string{"exec", "--skip-git-repo-check", s.prompt},
			env:   []string{"CODEX_HOME=" + filepath.Join(s.home, ".codex"), "CLIENTS_KEY=" + s.key},
			files: map[string]string{".codex/config.toml": file.String()},
		}
	}
}

func claudeCode(s seat) start {
	env := []string{
		"ANTHROPIC_BASE_URL=" + s.url, "ANTHROPIC_AUTH_TOKEN=" + s.key,
		"ANTHROPIC_MODEL=" + s.model, "ANTHROPIC_SMALL_FAST_MODEL=" + s.model, "ANTHROPIC_DEFAULT_HAIKU_MODEL=" + s.model,
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
	}
	if s.skills != "" {
		env = append(env, "ANTHROPIC_CUSTOM_HEADERS=X-Metier-Skills: "+s.skills)
	}
	return start{args: []string{"-p", s.prompt, "--allowedTools", "Bash"}, env: env}
}

// copilotAs is one of the three ways in which the program speaks to a provider. It can
// add no header.
func copilotAs(kind, wire, base string) func(seat) start {
	return func(s seat) start {
		env := []string{
			"COPILOT_PROVIDER_TYPE=" + kind, "COPILOT_PROVIDER_BASE_URL=" + s.url + base, "COPILOT_PROVIDER_API_KEY=" + s.key,
			"COPILOT_MODEL=" + s.model, "COPILOT_OFFLINE=true",
		}
		if wire != "" {
			env = append(env, "COPILOT_PROVIDER_WIRE_API="+wire)
		}
		return start{args: []string{"-p", s.prompt, "--allow-all-tools"}, env: env}
	}
}

func qwenCode(s seat) start {
	return start{
		args: []string{"--auth-type", "openai", "-y", "-p", s.prompt},
		env:  []string{"OPENAI_BASE_URL=" + s.url + "/v1", "OPENAI_API_KEY=" + s.key, "OPENAI_MODEL=" + s.model},
	}
}

func openCode(s seat) start {
	headers := ""
	if s.skills != "" {
		headers = fmt.Sprintf(`,"headers":{"X-Metier-Skills":%q}`, s.skills)
	}
	file := fmt.Sprintf(`{"provider":{"metier":{"npm":"@ai-sdk/openai-compatible","name":"metier",`+
		`"options":{"baseURL":"%s/v1","apiKey":%q%s},"models":{%q:{"name":%q}}}},"permission":"allow"}`,
		s.url, s.key, headers, s.model, s.model)
	return start{
		args: []string{"run", "--model", "metier/" + s.model, s.prompt},
		env:  []string{"OPENCODE_CONFIG=" + filepath.Join(s.home, "opencode.json"), "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1"},
		files: map[string]string{
			"opencode.json": file,
		},
	}
}

func pi(s seat) start {
	headers := ""
	if s.skills != "" {
		headers = fmt.Sprintf(`,"headers":{"X-Metier-Skills":%q}`, s.skills)
	}
	file := fmt.Sprintf(`{"providers":{"metier":{"baseUrl":"%s/v1","api":"openai-completions","apiKey":%q%s,"models":[{"id":%q}]}}}`,
		s.url, s.key, headers, s.model)
	return start{
		args:  []string{"--provider", "metier", "--model", s.model, "-p", s.prompt},
		env:   []string{"PI_OFFLINE=1"},
		files: map[string]string{".pi/agent/models.json": file},
	}
}
