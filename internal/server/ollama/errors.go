package ollama

import (
	"errors"
	"net/http"

	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/server"
	"github.com/metier-run/metier/internal/wire"
)

// Refuse writes an error as this dialect has it: a text. What an upstream of the same
// dialect answered keeps its body, and its status if that is one of an error.
func (d *Door) Refuse(w http.ResponseWriter, _ *http.Request, err error) {
	if e, ok := errors.AsType[*llm.StatusError](err); ok {
		for name, values := range e.Header {
			w.Header()[name] = values
		}
	} else {
		server.TellRetry(w, server.FaultOf(err))
	}
	server.WriteBody(w, server.StatusOf(err), streamError(err))
}

// streamError is an error's object: the upstream's own where it is one of this dialect.
func streamError(err error) []byte {
	if e, ok := errors.AsType[*llm.StatusError](err); ok && e.Dialect == llm.Ollama {
		return e.Body
	}
	out := wire.AppendString([]byte(`{"error":`), server.FaultOf(err).Message)
	return append(out, '}')
}
