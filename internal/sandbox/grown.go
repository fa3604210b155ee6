package sandbox

import "context"

// Grown looks at directories every now and then until they hold more than limit
// bytes, or ctx ends.
func Grown(ctx context.Context, dirs []string, limit int64) bool { return grown(ctx, dirs, limit) }
