//go:build !linux

package oci

import (
	"context"
	"errors"

	"github.com/metier-run/metier/internal/sandbox"
)

// FindOne says that these runtimes are there for Linux only.
func FindOne(_ context.Context, name string, _ Options) sandbox.Finding {
	return sandbox.Finding{Name: name, Problem: of(name).unavailable("look for the program", errors.New("it runs on Linux only"), "")}
}
