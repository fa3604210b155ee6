package journal

import "github.com/go-json-experiment/json/jsontext"

// Versions is the fold of what was set for a session, its configuration and its state:
// every version, with the node that it belongs to. It is a value.
type Versions struct {
	config, state *version
}

// version is one of a chain, newest first.
type version struct {
	anchor NodeID
	value  jsontext.Value
	before *version
}

// Apply folds one event.
func (v Versions) Apply(e Event) Versions {
	switch d := e.Data.(type) {
	case ConfigSet:
		v.config = &version{e.Anchor, d.Value, v.config}
	case StateSet:
		v.state = &version{e.Anchor, d.Value, v.state}
	}
	return v
}

// Config is the configuration on a path: the newest version whose anchor lies on it. A
// fork has that of the point where it left (B2 1.11).
func (v Versions) Config(p Path) (value jsontext.Value, ok bool) { return v.config.on(p) }

// State is the state on a path, found as [Versions.Config] is.
func (v Versions) State(p Path) (value jsontext.Value, ok bool) { return v.state.on(p) }

func (v *version) on(p Path) (jsontext.Value, bool) {
	if v == nil {
		return nil, false
	}
	var on map[NodeID]bool
	for ; v != nil; v = v.before {
		if v.anchor == "" || v.anchor == p.Tip() {
			return v.value, true
		}
		if on == nil {
			on = p.ids()
		}
		if on[v.anchor] {
			return v.value, true
		}
	}
	return nil, false
}

func (p Path) ids() map[NodeID]bool {
	ids := make(map[NodeID]bool, p.Len())
	for n := p.tip; n != nil; n = n.Parent {
		ids[n.ID] = true
	}
	return ids
}
