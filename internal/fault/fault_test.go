package fault_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/metier-run/metier/internal/fault"
)

func TestFrom(t *testing.T) {
	own := fault.New(fault.NotFound, "no such %s", "thing")
	for _, c := range []struct {
		err    error
		code   fault.Code
		status int
	}{
		{own, fault.NotFound, 404},
		{fmt.Errorf("deep: %w", own), fault.NotFound, 404},
		{fault.New(fault.Conflict, "busy"), fault.Conflict, 409},
		{context.Canceled, fault.Cancelled, 499},
		{fmt.Errorf("x: %w", context.DeadlineExceeded), fault.Timeout, 504},
		{errors.New("open /etc/secret: denied"), fault.Internal, 500},
	} {
		e := fault.From(c.err)
		if e.Code != c.code || e.Code.Status() != c.status {
			t.Errorf("From(%v) = %s %d, want %s %d", c.err, e.Code, e.Code.Status(), c.code, c.status)
		}
		if c.code == fault.Internal && strings.Contains(e.Message, "secret") {
			t.Errorf("an internal error gave its cause away: %s", e.Message)
		}
		if !errors.Is(e, c.err) && !errors.Is(c.err, e) {
			t.Errorf("From(%v) lost its cause", c.err)
		}
	}
}

func TestExitCode(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("x"), 1},
		{fault.Usage("bad %w", errors.New("flag")), 2},
		{fmt.Errorf("run: %w", fault.Usage("bad")), 2},
	} {
		if got := fault.ExitCode(c.err); got != c.want {
			t.Errorf("ExitCode(%v) = %d, want %d", c.err, got, c.want)
		}
	}
}
