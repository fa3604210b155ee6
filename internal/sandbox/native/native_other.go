//go:build !linux

package native

import (
	"context"
	"errors"

	"github.com/metier-run/metier/internal/sandbox"
)

// Find says that there is no such backend here.
func Find(context.Context, Options) sandbox.Finding {
	return sandbox.Finding{Name: Name, Problem: unavailable("look at this system", errors.New("it is not Linux"), "")}
}
