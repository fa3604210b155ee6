package rules

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/metier-run/metier/internal/config"
)

// limitName is a name as a key of a file and as a flag.
var limitName = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)

// checkLimits lists what is wrong with a table of limits: a name or a flag that
// two rows have, a default out of range, a row that cannot be documented.
func checkLimits(rows []config.Limit) []Problem {
	var found []Problem
	names, flags := map[config.Name]bool{}, map[string]bool{}
	for _, l := range rows {
		for _, wrong := range limitFaults(l) {
			found = append(found, in("internal/config", "limit %s: %s", l.Name, wrong))
		}
		if names[l.Name] {
			found = append(found, in("internal/config", "limit %s: two rows have the name: give each its own", l.Name))
		}
		if l.Flag != "" && flags[l.Flag] {
			found = append(found, in("internal/config", "limit %s: two rows have the flag %s: give each its own", l.Name, l.Flag))
		}
		names[l.Name], flags[l.Flag] = true, true
	}
	return found
}

func limitFaults(l config.Limit) []string {
	var wrong []string
	if !limitName.MatchString(string(l.Name)) {
		wrong = append(wrong, "the name is not small words joined by dashes")
	}
	if l.Flag != "" && !limitName.MatchString(l.Flag) {
		wrong = append(wrong, fmt.Sprintf("the flag %q is not small words joined by dashes, without the first two", l.Flag))
	}
	if l.Min > l.Default || l.Default > l.Max {
		wrong = append(wrong, fmt.Sprintf("the default %d is not from %d to %d", l.Default, l.Min, l.Max))
	}
	if !slices.Contains([]config.Unit{config.Bytes, config.Count, config.Seconds}, l.Unit) {
		wrong = append(wrong, fmt.Sprintf("the unit %q is none of config's", l.Unit))
	}
	if strings.TrimSpace(l.Help) == "" {
		wrong = append(wrong, "it has no help: say what is limited, in a few words")
	}
	return wrong
}
