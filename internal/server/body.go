package server

import (
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/fault"
)

// ReadBody reads a request's body, up to the limit that the server set.
func ReadBody(r *http.Request) ([]byte, error) {
	if enc := r.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		return nil, fault.New(fault.Unsupported, "a body with Content-Encoding %q cannot be read: send it plain", enc)
	}
	body, err := readAll(r)
	if err != nil {
		return nil, BodyError(err)
	}
	return body, nil
}

// BodyError is what a failure to read a request's body means for its client: a
// [*fault.Error].
func BodyError(err error) error {
	if tooBig, ok := errors.AsType[*http.MaxBytesError](err); ok {
		e := fault.New(fault.TooLarge, "the body is larger than %d bytes (limit %s): send less, or raise --max-body", tooBig.Limit, config.RequestBody)
		e.Detail = "request_too_large"
		return e
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		e := fault.Wrap(err, fault.Invalid, "the body did not come in time (limit %s): send it at once", config.RequestTime)
		e.Detail = "request_timeout"
		return e
	}
	return fault.Wrap(err, fault.Invalid, "the body broke off while it was read")
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

// timedBody lifts the deadline of the connection when the body has ended: what is
// read behind it only shows whether the client is still there.
type timedBody struct {
	io.ReadCloser
	control *http.ResponseController
}

// Read reads the body.
func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}
