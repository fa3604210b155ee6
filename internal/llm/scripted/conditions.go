package scripted

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// condition is one line of a step's "when".
type condition struct {
	text string // as the file has it
	// misfit says why the request does not fit; empty when it does.
	misfit func(f *facts) string
}

// pick is the first step that fits, or why each one does not.
func (s *Scenario) pick(f *facts) (*Step, []string) {
	var misfits []string
	for i := range s.Steps {
		why := s.Steps[i].misfit(f)
		if why == "" {
			return &s.Steps[i], nil
		}
		misfits = append(misfits, fmt.Sprintf("step %d: %s", s.Steps[i].Number, why))
	}
	return nil, misfits
}

func (s *Step) misfit(f *facts) string {
	for _, c := range s.when {
		if why := c.misfit(f); why != "" {
			return fmt.Sprintf("wants %s, but %s", c.text, why)
		}
	}
	return ""
}

func (p *parser) when(data []byte) error {
	for i, line := range lines(data) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		key, value, ok := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		if !ok || value == "" {
			return p.fail(p.line+1+i, fmt.Sprintf("condition %q: write it as KEY: VALUE", line))
		}
		misfit, err := newCondition(key, value)
		if err != nil {
			return p.fail(p.line+1+i, err.Error())
		}
		p.step.when = append(p.step.when, condition{text: key + ": " + value, misfit: misfit})
	}
	return nil
}

func newCondition(key, value string) (func(*facts) string, error) {
	switch key {
	case "has":
		return func(f *facts) string { return because(f.contains(value), "it is not there") }, nil
	case "lacks":
		return func(f *facts) string { return because(!f.contains(value), "it is there") }, nil
	case "tool":
		return func(f *facts) string {
			return because(slices.Contains(f.tools, value), fmt.Sprintf("the tools are %v", f.tools))
		}, nil
	case "stream":
		return flag(key, value, func(f *facts) bool { return f.stream })
	case "usage":
		return flag(key, value, func(f *facts) bool { return f.usage })
	case "choice":
		return choice(value)
	case "results":
		return results(value)
	case "nth":
		return nth(value)
	}
	return nil, fmt.Errorf("condition %q: use has, lacks, stream, usage, tool, choice, results or nth", key)
}

func because(fits bool, why string) string {
	if fits {
		return ""
	}
	return why
}

func flag(key, value string, get func(*facts) bool) (func(*facts) string, error) {
	if value != "true" && value != "false" {
		return nil, fmt.Errorf("condition %s: %s: give true or false", key, value)
	}
	return func(f *facts) string {
		return because(get(f) == (value == "true"), fmt.Sprintf("it is %t", get(f)))
	}, nil
}

func choice(value string) (func(*facts) string, error) {
	if !slices.Contains([]string{choiceUnset, "none", "auto", "required", choiceNamed}, value) {
		return nil, fmt.Errorf("condition choice: %s: give unset, none, auto, required or named", value)
	}
	return func(f *facts) string {
		return because(f.choice == value, "tool_choice is "+f.choice)
	}, nil
}

func results(value string) (func(*facts) string, error) {
	digits, open := strings.CutSuffix(value, "+")
	k, err := strconv.Atoi(digits)
	if err != nil || k < 0 {
		return nil, fmt.Errorf("condition results: %s: give a number, or a number and + for that many or more", value)
	}
	return func(f *facts) string {
		return because(f.results == k || open && f.results > k, fmt.Sprintf("there are %d", f.results))
	}, nil
}

func nth(value string) (func(*facts) string, error) {
	k, err := strconv.ParseInt(value, 10, 64)
	if err != nil || k < 1 {
		return nil, fmt.Errorf("condition nth: %s: give a number from 1", value)
	}
	return func(f *facts) string {
		return because(f.nth == k, fmt.Sprintf("this is request %d", f.nth))
	}, nil
}
