package server

import (
	"errors"
	"io"
	"net/http"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/fault"
)

// ReadBody reads a request's body, up to the limit that the server set.
func ReadBody(r *http.Request) ([]byte, error) {
	if enc := r.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		return nil, fault.New(fault.Unsupported, "a body with Content-Encoding %q cannot be read: send it plain", enc)
	}
	body, err := readAll(r)
	if tooBig, ok := errors.AsType[*http.MaxBytesError](err); ok {
		e := fault.New(fault.TooLarge, "the body is larger than %d bytes (limit %s): send less, or raise --max-body", tooBig.Limit, config.RequestBody)
		e.Detail = "request_too_large"
		return nil, e
	}
	if err != nil {
		return nil, fault.Wrap(err, fault.Invalid, "the body broke off while it was read")
	}
	return body, nil
}

// readAll reads a body of known length into one allocation.
func readAll(r *http.Request) ([]byte, error) {
	if r.ContentLength <= 0 || r.ContentLength > presized {
		return io.ReadAll(r.Body)
	}
	body := make([]byte, r.ContentLength)
	_, err := io.ReadFull(r.Body, body)
	return body, err
}

// presized is the longest length that is believed before the bytes are there.
const presized = 1 << 20
