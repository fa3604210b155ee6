package openai

import "github.com/metier-run/metier/internal/llm"

// linkedFile tells a model of a file that its dialect cannot point at.
func linkedFile(f llm.Media) string {
	name := f.Name
	if name == "" {
		name = "file"
	}
	return "[" + name + ": " + f.URL + "]"
}

// filesOfResult introduces files that a tool returned, where its result could not hold
// them.
func filesOfResult(callID string) string {
	return "[files of the result of call " + callID + ":]"
}
