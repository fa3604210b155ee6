package model

import (
	"regexp"
	"strings"

	"github.com/metier-run/metier/test/tasks/task"
)

var (
	interpreters = regexp.MustCompile(`\b(python3|node) `)
	plainWords   = regexp.MustCompile(`^[\w./=-]+( [\w./=-]+)*$`)
)

func pythonSpelling(v view, i, j int) (injection, bool) {
	c := v.call(i, j)
	m := interpreters.FindStringSubmatch(c.Text("command"))
	if c.Tool != task.Shell || m == nil {
		return injection{}, false
	}
	wrong := map[string]string{"python3": "python", "node": "nodejs"}[m[1]]
	text := regexp.MustCompile(`\b`+m[1]+` `).ReplaceAllString(c.Text("command"), wrong+" ")
	in := v.swap(i, j, c.With("command", text))
	in.words = map[string]string{"bad": wrong, "right": m[1]}
	return in, true
}

func trailingAmpersand(v view, i, j int) (injection, bool) {
	c := v.call(i, j)
	if background, _ := c.Args["run_in_background"].(bool); !background {
		return injection{}, false
	}
	return v.swap(i, j, command(c.Text("command")+" &")), true
}

// repeatedFailure sends a command that fails, which is right, and then cannot leave
// it alone.
func repeatedFailure(v view, i, j int) (injection, bool) {
	if !v.alone(i, task.Shell) || !v.call(i, j).Fails {
		return injection{}, false
	}
	return v.stuck(i, j), true
}

func misreadExit(v view, i, j int) (injection, bool) {
	if !v.alone(i, task.Shell) || !v.call(i, j).Benign {
		return injection{}, false
	}
	return v.stuck(i, j), true
}

// stuck sends the right call; the mistake is what the model makes of the answer, so
// there is nothing to put right.
func (v view) stuck(i, j int) injection {
	in := v.swap(i, j, v.call(i, j))
	in.faulty, in.fix = v.steps[i], nil
	return in
}

func otherArguments(v view, i, j int) (injection, bool) {
	c := v.call(i, j)
	names := map[string][2]string{
		task.Shell: {"command", "cmd"}, task.ReadFile: {"path", "file_path"},
		task.WriteFile: {"content", "text"}, task.ApplyPatch: {"patch", "input"},
	}[c.Tool]
	other := task.Call{Tool: c.Tool, Args: map[string]any{}}
	for name, value := range c.Args {
		switch {
		case name == names[0]:
			name = names[1]
		case name == "timeout_ms":
			name, value = "timeout", value.(float64)/1000
		case name == "run_in_background":
			name, value = "background", "true"
		}
		other.Args[name] = value
	}
	in := v.swap(i, j, other)
	in.words = map[string]string{"argument": names[0]}
	return in, true
}

func commandAsList(v view, i, j int) (injection, bool) {
	c := v.call(i, j)
	text := c.Text("command")
	if c.Tool != task.Shell || !plainWords.MatchString(text) || strings.HasPrefix(text, "cd ") || strings.HasPrefix(text, "export ") {
		return injection{}, false
	}
	var words []any
	for _, w := range strings.Fields(text) {
		words = append(words, w)
	}
	return v.swap(i, j, c.With("command", words)), true
}

func unknownTool(v view, i, j int) (injection, bool) {
	c := v.call(i, j)
	if c.Tool != task.Shell {
		return injection{}, false
	}
	c.Tool = "run_terminal_command"
	return v.swap(i, j, c), true
}
