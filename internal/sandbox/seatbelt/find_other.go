//go:build !darwin

package seatbelt

import (
	"context"
	"errors"

	"github.com/metier-run/metier/internal/sandbox"
)

// Find says that this is not macOS.
func Find(context.Context) sandbox.Finding {
	return sandbox.Finding{Name: Name, Problem: &sandbox.Unavailable{
		Backend: Name, Step: "find sandbox-exec", Err: errors.New("this is not macOS"),
	}}
}
