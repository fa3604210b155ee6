package anthropic

import (
	"cmp"
	"fmt"

	"github.com/metier-run/metier/internal/llm"
)

// nothing stands where a message of another dialect is empty, which the API refuses.
const nothing = "(nothing)"

// unshown tells a model of a file that its dialect has no form for.
func unshown(m llm.Media) string {
	return fmt.Sprintf("[a file that cannot be shown: %s, %s]", cmp.Or(m.Name, "without a name"), cmp.Or(m.Type, "of an unknown type"))
}
