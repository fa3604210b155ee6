//go:build !linux

package oci

import (
	"context"
	"errors"

	"github.com/metier-run/metier/internal/sandbox"
)

// Find says that these runtimes are there for Linux only.
func Find(_ context.Context, name string, _ Options) sandbox.Finding {
	return sandbox.Finding{Name: name, Problem: of(name).unavailable("look for the program", errors.New("it runs on Linux only"), "")}
}
