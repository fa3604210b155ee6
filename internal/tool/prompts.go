package tool

import (
	"fmt"
	"slices"
	"strings"

	"github.com/metier-run/metier/internal/journal"
)

// Unknown answers a call to a tool that nobody declared: that nothing ran, and
// what there is instead (B1 6.2).
func Unknown(name string, e Env) journal.Result {
	names := slices.Clone(e.Caller)
	for _, d := range e.Offer.Declared {
		names = append(names, d.Name)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) == 0 {
		return journal.Result{Text: fmt.Sprintf("Error: no tool is called %q, so nothing ran. There are no tools here: answer without.", name)}
	}
	return journal.Result{Text: fmt.Sprintf("Error: no tool is called %q, so nothing ran. The tools are: %s. Call one of them, or answer without.",
		name, strings.Join(names, ", "))}
}
