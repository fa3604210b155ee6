package validate

import (
	"fmt"
	"regexp"

	"github.com/metier-run/metier/skill"
)

// portable is a name that every target takes, but for reserved words.
var portable = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// PortableName fails when some target would refuse the name, and says which one
// to take instead if that is plain.
func PortableName(name string) error {
	if word := reserved.FindString(name); word != "" {
		return fmt.Errorf("the name %q holds %q, which Anthropic reserves: choose another", name, word)
	}
	if portable.MatchString(name) && len(name) <= maxName {
		return nil
	}
	problem := fmt.Sprintf("the name %q is not lower-case letters a to z, digits and single hyphens, at most %d", name, maxName)
	// What the loader would make of a folder of this name.
	m, _, err := skill.Parse([]byte("---\ndescription: x\n---\n"), name)
	if err != nil {
		return fmt.Errorf("%s: choose one like pdf-forms", problem)
	}
	return fmt.Errorf("%s: take %q", problem, m.Name)
}
