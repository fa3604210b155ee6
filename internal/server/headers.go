package server

import (
	"net/http"
	"strings"
)

// Headers of our own on chat routes.
const (
	// SkillsHeader selects skills, separated by commas, for clients that cannot add a
	// field.
	SkillsHeader = "X-Metier-Skills"
	// WarningHeader names what was left out or refused.
	WarningHeader = "X-Metier-Warning"
)

// SkillsIn are the skills that a request's header selects.
func SkillsIn(h http.Header) []string {
	var names []string
	for _, line := range h.Values(SkillsHeader) {
		for name := range strings.SplitSeq(line, ",") {
			if name = strings.TrimSpace(name); name != "" {
				names = append(names, name)
			}
		}
	}
	return names
}
