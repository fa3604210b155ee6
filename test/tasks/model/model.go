// Package model is a scripted model that makes mistakes: an upstream of the OpenAI
// dialect that walks through a task's right rounds, spoils some of them as small
// models do, and reads the answers as small models do. With it the rounds that a
// host's recovery saves can be counted, again and again the same.
//
// It holds no language model, and it knows nothing of the host's sentences but what
// the rules in faults.toml read in them: an answer that tells nothing helps nothing.
// It never looks at the workspace.
//
// A conversation is one model name: [Run.ID] says which task it is, which faults are
// made in it, and how chance falls. A [Handler] may serve any number of them at once;
// the requests of one come one after the other.
//
// Start at [New] for the server, at faults.toml for the policy, and at [NewPlan] for
// how a right trajectory is spoiled.
package model

import (
	"fmt"
	"strconv"
	"strings"
)

// Run names one conversation.
type Run struct {
	Task string
	// Faults are made, each once, in this order where they meet.
	Faults []string
	// Plain leaves the faults out and keeps the detours that they need, so that the
	// two can be compared.
	Plain bool
	// Seed decides where a fault is made that could be made in several places.
	Seed uint64
	// Tag tells conversations apart that are otherwise the same.
	Tag string
}

// ID is the model name of the conversation: the task, the faults with + before them
// (~ when they are left out), @ and the seed, and # and the tag if there is one.
func (r Run) ID() string {
	sign := "+"
	if r.Plain {
		sign = "~"
	}
	var id strings.Builder
	id.WriteString(r.Task)
	for _, f := range r.Faults {
		id.WriteString(sign + f)
	}
	fmt.Fprintf(&id, "@%d", r.Seed)
	if r.Tag != "" {
		id.WriteString("#" + r.Tag)
	}
	return id.String()
}

// ParseRun reads a model name that [Run.ID] made.
func ParseRun(id string) (Run, error) {
	rest, tag, _ := strings.Cut(id, "#")
	name, seed, ok := strings.Cut(rest, "@")
	r := Run{Tag: tag, Plain: strings.Contains(name, "~")}
	n, err := strconv.ParseUint(seed, 10, 64)
	if !ok || err != nil {
		return Run{}, fmt.Errorf("parse model name %q: it needs @ and a seed, as in 09-crlf-settings+fenced-patch@1", id)
	}
	r.Seed = n
	parts := strings.FieldsFunc(name, func(c rune) bool { return c == '+' || c == '~' })
	if len(parts) == 0 {
		return Run{}, fmt.Errorf("parse model name %q: it names no task", id)
	}
	r.Task = parts[0]
	if len(parts) > 1 {
		r.Faults = parts[1:]
	}
	return r, nil
}
