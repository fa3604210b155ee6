package app

import (
	"net/http"

	"github.com/metier-run/metier/internal/access"
	"github.com/metier-run/metier/internal/server"
)

// behindKeys puts doors behind the keys: every route of every door asks for one
// when there are any, and refuses in the door's own dialect.
func (a *App) behindKeys(doors ...server.Door) []server.Door {
	var all []server.Door
	for _, d := range doors {
		all = append(all, locked{Door: d, keys: a.keys})
	}
	return all
}

// locked is a door that opens to holders of a key.
type locked struct {
	server.Door
	keys *access.Keys
}

// Routes are the door's, each of which asks for a key.
func (l locked) Routes() map[string]http.Handler {
	routes := map[string]http.Handler{}
	for pattern, h := range l.Door.Routes() {
		routes[pattern] = access.Require(l.keys, h, l.Refuse)
	}
	return routes
}

// warnOfSkills tells the operator of names in the file that no skill has. That is
// no reason not to start: the skill may be installed later.
func (a *App) warnOfSkills() {
	snapshot := a.Skills()
	if snapshot == nil {
		return
	}
	warn := func(from, id string, names []string) {
		for _, name := range names {
			if _, ok := snapshot.Find(name); !ok {
				a.logger.Warn("no such skill", from, id, "skill", name)
			}
		}
	}
	for _, k := range a.Settings.Keys {
		warn("key", k.ID, k.Skills)
	}
	for name, m := range a.Settings.Models {
		warn("model", name, m.Skills)
	}
}
