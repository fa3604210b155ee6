//go:build !linux

package bwrap

import (
	"context"
	"errors"

	"github.com/metier-run/metier/internal/sandbox"
)

// Find says that bubblewrap is there for Linux only.
func Find(context.Context, Options) sandbox.Finding {
	return sandbox.Finding{Name: Name, Problem: unavailable("look for the program", errors.New("bubblewrap runs on Linux only"), "")}
}
