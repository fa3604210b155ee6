package config

import "math"

// Model is [model."<name>"]: what is true of one model, by the name that requests
// use.
type Model struct {
	// Skills are selected for each request to the model.
	Skills []string
	// Discovery replaces that of [skills]; empty leaves it.
	Discovery Discovery
	// Inline writes the selected bodies into the prompt although the model has
	// tools, for one that is known not to make the call that loads them.
	Inline bool
	// NoRescue leaves text that looks like a call as text.
	NoRescue bool
	// Declares, Parsed and Results say what the model can carry; nil leaves it to
	// the upstream's own word.
	Declares, Parsed, Results *bool
	// Context is the number of tokens of its window; 0 leaves it to the upstream.
	Context int
}

// ReadModels reads each [model."<name>"].
func ReadModels(d *Document) map[string]Model {
	models := map[string]Model{}
	for name, t := range d.Top().Tables("model") {
		m := Model{Skills: readSkillNames(t, "skills"), Discovery: readDiscovery(t)}
		m.Declares, m.Parsed, m.Results = readSwitch(t, "declares"), readSwitch(t, "parsed"), readSwitch(t, "results")
		t.Bool("inline", &m.Inline)
		if rescue := readSwitch(t, "rescue"); rescue != nil {
			m.NoRescue = !*rescue
		}
		var context int64
		t.Int("context", 1, math.MaxInt32, &context)
		m.Context = int(context)
		models[name] = m
	}
	return models
}

func readSwitch(t *Table, key string) *bool {
	var v bool
	if !t.Bool(key, &v) {
		return nil
	}
	return &v
}
