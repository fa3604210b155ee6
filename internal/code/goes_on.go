package code

import (
	"crypto/rand"
	"errors"
)

// ID names the conversation's workspace: it is another one after [Conversation.Reset],
// and no two conversations have the same.
func (c *Conversation) ID() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.id == "" {
		c.id = rand.Text()
	}
	return c.id
}

// Attached are the names under which files were taken in, in the order in which they
// came.
func (c *Conversation) Attached() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.files.Names()
}

// Settle puts the files that were taken in into the workspace now, so that none is held
// in memory until a tool is called. An error is of the host; a file that could not be
// put there is an error, too, and the model is told of it by itself.
func (c *Conversation) Settle() error {
	c.mu.Lock()
	told := 0
	if c.room != nil {
		told = len(c.room.problems)
	}
	c.mu.Unlock()
	r, err := c.open()
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(r.problems) > told {
		return errors.New(r.problems[len(r.problems)-1])
	}
	return nil
}
