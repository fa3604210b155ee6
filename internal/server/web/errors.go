package web

import (
	"log/slog"
	"net/http"
	"strings"

	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/internal/server"
)

func refuse(w http.ResponseWriter, r *http.Request, err error, logger *slog.Logger) {
	e := server.FaultOf(err)
	if e.Code == fault.Internal {
		logger.ErrorContext(r.Context(), "web request failed", "path", r.URL.Path, "error", err)
	}
	server.TellRetry(w, e)
	server.WriteJSON(w, server.StatusOf(err), map[string]string{"error": strings.ToValidUTF8(e.Message, "\uFFFD")})
}

// invalid is a 400 about one member of the body.
func invalid(param, format string, args ...any) error {
	e := fault.New(fault.Invalid, format, args...)
	e.Param = param
	return e
}
