package file

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/llm"
)

// Declarations are the tools as a model is told of them, always with the same bytes.
func Declarations(limits config.Values) []llm.Declaration {
	lines := limits.Int(config.FileLines)
	return []llm.Declaration{
		{Name: ReadName, Description: fmt.Sprintf(readDescription, lines), Parameters: jsontext.Value(fmt.Sprintf(readParameters, lines))},
		{Name: PatchName, Description: patchDescription, Parameters: jsontext.Value(patchParameters)},
		{Name: WriteName, Description: writeDescription, Parameters: jsontext.Value(writeParameters)},
	}
}
