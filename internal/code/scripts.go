package code

import (
	"context"
	"path/filepath"
	"slices"

	toolskill "github.com/metier-run/metier/internal/tool/skill"
	"github.com/metier-run/metier/skill"
)

// Scripts has the scripts of skills run in the conversation's workspace, as s says
// otherwise (B1 15.3). Commands there see the folders of the skills that a request can
// reach, and no others (B1 8.4). It is called for each request, before its tools.
func (c *Conversation) Scripts(s toolskill.Scripts, reachable []skill.Skill) toolskill.Scripts {
	c.mayRead(folders(reachable))
	s.Place = func(ctx context.Context) (toolskill.Place, error) {
		r, err := c.enter(ctx)
		if err != nil {
			return toolskill.Place{}, err
		}
		return c.scripts(r), nil
	}
	return s
}

// mayRead says which folders of skills later commands see.
func (c *Conversation) mayRead(dirs []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.readable = dirs
}

// folders are those of skills as a launch is given them: whole paths, free of links.
func folders(skills []skill.Skill) []string {
	var dirs []string
	for _, k := range skills {
		real, err := filepath.EvalSymlinks(k.Dir())
		if err != nil {
			continue // gone since the skills were loaded
		}
		if real, err = filepath.Abs(real); err == nil {
			dirs = append(dirs, real)
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// enter opens the room, and shows its commands the skills of the request.
func (c *Conversation) enter(ctx context.Context) (*room, error) {
	r, err := c.open()
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	dirs, same := c.readable, slices.Equal(c.readable, r.readable)
	c.mu.Unlock()
	if same {
		return r, nil
	}
	unlock, err := r.workspace.Lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	r.shell.Show(dirs)
	c.mu.Lock()
	defer c.mu.Unlock()
	r.readable = dirs
	return r, nil
}

// scripts is the room as scripts work in it.
func (c *Conversation) scripts(r *room) toolskill.Place {
	o := c.s.o
	p := toolskill.Place{
		Workspace: r.workspace, Applied: r.applied, Packages: r.shell.Packages(), Network: o.Facts.Network, Domains: o.Facts.Domains,
		Files: o.Facts.Files, NoRecovery: o.NoRecovery,
		Notes: func() []string {
			if told := c.told(r); told != "" {
				return []string{told}
			}
			return nil
		},
	}
	if o.Artifacts != nil {
		p.Artifacts = keeper{c, r}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	p.Attached = c.files.Names()
	return p
}
