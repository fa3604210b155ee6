package responses

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/llm/openai"
	"github.com/metier-run/metier/internal/server"
	"github.com/metier-run/metier/internal/wire"
)

// Refuse writes an error as the vendor does. What an upstream of the vendor's other dialect
// answered keeps its body if it has the same shape; that a conversation is too long is said
// in the vendor's words, which clients look for.
func (d *Door) Refuse(w http.ResponseWriter, r *http.Request, err error) {
	f := faultOf(err)
	if f.Code == fault.Internal {
		d.options.Logger.ErrorContext(r.Context(), "response failed", "path", r.URL.Path, "error", err)
	}
	if e, ok := errors.AsType[*llm.StatusError](err); ok {
		for name, values := range e.Header {
			w.Header()[name] = values
		}
		if e.Dialect == llm.OpenAIChat && e.Overflow == nil && isError(e.Body) {
			server.WriteBody(w, server.StatusOf(e), e.Body)
			return
		}
	}
	server.TellRetry(w, f)
	server.WriteBody(w, server.StatusOf(err), openai.ErrorBody(f))
}

// isError reports whether a body has all of the vendor's error object.
func isError(body []byte) bool {
	e := wire.Member(body, "error")
	for _, name := range []string{"message", "type", "param", "code"} {
		if wire.Member(e, name) == nil {
			return false
		}
	}
	return true
}

// faultOf is an error as this door tells it.
func faultOf(err error) *fault.Error { return openai.Refusal(err, server.FaultOf(err)) }

// invalid is a 400 about one member of the request.
func invalid(param, format string, args ...any) *fault.Error {
	e := fault.New(fault.Invalid, format, args...)
	e.Param = param
	return e
}

// noResponse does not tell one that is gone from one of somebody else.
func noResponse(id string) error {
	e := fault.New(fault.NotFound, "there is no response %.80q: it may have been removed, or be too old, or was made with store set to false", id)
	e.Detail, e.Param = "response_not_found", "response_id"
	return e
}

// noPrevious is what the vendor's clients know a conversation by that they have to send
// again.
func noPrevious(format string, args ...any) error {
	e := invalid("previous_response_id", format, args...)
	e.Detail = "previous_response_not_found"
	return e
}

func stopping() *fault.Error {
	e := fault.New(fault.Unavailable, "the server is stopping")
	e.Detail = "server_stopping"
	return e
}

// failure is the code of the error of a response that failed: one of the vendor's, which its
// clients tell apart.
func failure(f *fault.Error) string {
	switch {
	case f.Detail == openai.DetailOverflow:
		return f.Detail
	case f.Code == fault.Busy:
		return "rate_limit_exceeded"
	case f.Code == fault.Invalid:
		return "invalid_prompt"
	}
	return "server_error"
}

// nameSize is how much is shown of a name that a client chose.
const nameSize = 40

func quoted(name string) string { return strconv.QuoteToASCII(name[:min(len(name), nameSize)]) }
