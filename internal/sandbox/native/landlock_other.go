//go:build !linux

package native

import (
	"context"
	"errors"

	"github.com/metier-run/metier/internal/sandbox"
)

// FindLandlock says that there is no such backend here.
func FindLandlock(context.Context, Options) sandbox.Finding {
	return sandbox.Finding{Name: LandlockName, Problem: landlockUnavailable("look at this system", errors.New("it is not Linux"), "")}
}
