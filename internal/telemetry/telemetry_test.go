package telemetry_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/metier-run/metier/internal/telemetry"
)

func TestLoggerAddsRequestID(t *testing.T) {
	for _, asJSON := range []bool{false, true} {
		var b bytes.Buffer
		l := telemetry.NewLogger(&b, telemetry.Options{Level: slog.LevelInfo, JSON: asJSON})
		ctx := telemetry.WithRequestID(t.Context(), "req_7")
		l.With("a", 1).InfoContext(ctx, "hello")
		l.InfoContext(t.Context(), "without")
		l.DebugContext(ctx, "too quiet")
		lines := strings.Split(strings.TrimSpace(b.String()), "\n")
		if len(lines) != 2 || !strings.Contains(lines[0], "req_7") || strings.Contains(lines[1], "request") {
			t.Errorf("JSON %v: %q, want two lines, the first with the id", asJSON, lines)
		}
	}
	if got := telemetry.RequestID(t.Context()); got != "" {
		t.Errorf("RequestID of a bare context = %q", got)
	}
}
