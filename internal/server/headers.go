package server

import (
	"net/http"
	"strings"

	"github.com/metier-run/metier/internal/llm"
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

// Passing is the part of a client's header that an upstream may see: pass, and the client's
// credential.
func Passing(pass, client http.Header) http.Header {
	if c := Credential(client); c != "" {
		pass.Set(llm.Authorization, c)
	}
	return pass
}

// Credential is what a client presents to an upstream, as [llm.Request] has it: some SDKs
// send a key in a header of their own. It is empty where there is none, as it is where the
// server has keys: those end there.
func Credential(h http.Header) string {
	if v := h.Get(llm.Authorization); v != "" {
		return v
	}
	if v := strings.TrimSpace(h.Get("X-Api-Key")); v != "" {
		return "Bearer " + v
	}
	return ""
}
