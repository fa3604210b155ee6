package openai

import (
	"errors"
	"net/http"

	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/llm/openai"
	"github.com/metier-run/metier/internal/server"
)

// Refuse writes an error as this dialect has it. What an upstream of the same
// dialect answered keeps its body, and its status if that is one of an error.
func (d *Door) Refuse(w http.ResponseWriter, _ *http.Request, err error) {
	if e, ok := errors.AsType[*llm.StatusError](err); ok {
		refuseUpstream(w, e)
		return
	}
	e := faultOf(err)
	server.TellRetry(w, e)
	server.WriteBody(w, e.Code.Status(), openai.ErrorBody(e))
}

func refuseUpstream(w http.ResponseWriter, e *llm.StatusError) {
	for name, values := range e.Header {
		w.Header()[name] = values
	}
	body := e.Body
	if e.Dialect != llm.OpenAIChat {
		body = openai.ErrorBody(faultOf(e))
	}
	server.WriteBody(w, server.StatusOf(e), body)
}

// faultOf is an error as this door tells it.
func faultOf(err error) *fault.Error { return openai.Refusal(err, server.FaultOf(err)) }

// streamError is the body of an error inside a stream: the upstream's own event
// where there is one of this dialect.
func streamError(err error, own bool) []byte {
	if e, ok := errors.AsType[*llm.StreamError](err); ok && own && len(e.Raw) > 0 {
		return e.Raw
	}
	if e, ok := errors.AsType[*llm.StatusError](err); ok && e.Dialect == llm.OpenAIChat {
		return e.Body
	}
	return openai.ErrorBody(faultOf(err))
}
