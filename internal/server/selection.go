package server

import (
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/llm/codec"
	"github.com/metier-run/metier/internal/wire"
)

// Selection is what a request says of skills: the members that every chat door takes out of
// its body, and the header (B1 17.1).
type Selection struct {
	Skills []string
	// Discovery is nil when the request does not say.
	Discovery *bool
}

// Select reads them. take gives a member of the body away.
func Select(take func(name string) jsontext.Value, header http.Header) (Selection, error) {
	var s Selection
	if v := take("skills"); !wire.IsNull(v) && json.Unmarshal(v, &s.Skills) != nil {
		return s, &codec.Error{Param: "skills", Message: `"skills" must be an array of skill names, for example ["pdf"]`}
	}
	s.Skills = append(s.Skills, SkillsIn(header)...)
	if v := take("skills_discovery"); !wire.IsNull(v) {
		on, err := codec.Boolean("skills_discovery", v, true)
		if err != nil {
			return s, err
		}
		s.Discovery = &on
	}
	// Delegation comes with children; narrowing it to nothing is already true.
	_, err := codec.Boolean("multi_agent", take("multi_agent"), true)
	return s, err
}
