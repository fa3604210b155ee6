package responses

import (
	"strings"
)

// This file holds every text of the door that a model reads. Changing one changes prompts.

// linkedFile tells a model of a file that is only pointed at.
func linkedFile(name, address string) string {
	if name == "" {
		name = "file"
	}
	return "[" + name + ": " + address + "]"
}

// filesOfResult introduces files that a tool returned, where its result has no place for
// them.
func filesOfResult(callID string) string {
	return "[files of the result of call " + callID + ":]"
}

// filesFollow is the text of a result that is nothing but files.
const filesFollow = "[the files of this result follow]"

// customInput describes the one parameter of a tool that takes text.
const customInput = "The tool's input, as plain text."

// customDescription describes a tool that takes text, where the model may have to be told
// what form the text has.
func customDescription(description, syntax, definition string) string {
	if definition == "" {
		return description
	}
	told := "The input must match this grammar"
	if syntax != "" {
		told += " (" + syntax + ")"
	}
	return strings.TrimSpace(description+"\n\n"+told+":\n"+definition) + "\n"
}

// namespaced describes a tool of a group.
func namespaced(group, description string) string {
	if group == "" {
		return description
	}
	return strings.TrimSpace("[" + group + "] " + description)
}

// leadGap stands between the instructions and the system messages at the beginning, which
// the upstream gets as one.
const leadGap = "\n\n"
