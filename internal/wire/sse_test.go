package wire_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/wire"
)

func events(r io.Reader, limit int) (got []string, err error) {
	e := wire.NewEventReader(r, limit, nil)
	for {
		ev, err := e.Next()
		if err != nil {
			return got, err
		}
		got = append(got, fmt.Sprintf("%s|%s", ev.Name, ev.Data))
	}
}

func TestEventReader(t *testing.T) {
	long := strings.Repeat("x", 20_000)
	for _, c := range []struct {
		name, in string
		want     []string
	}{
		{"empty", "", nil},
		{"one", "data: a\n\n", []string{"|a"}},
		{"no space", "data:a\n\n", []string{"|a"}},
		{"two spaces", "data:  a\n\n", []string{"| a"}},
		{"named", "event: x\ndata: a\n\ndata: b\n\n", []string{"x|a", "|b"}},
		{"several lines", "data: a\ndata: b\ndata\n\n", []string{"|a\nb\n"}},
		{"CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", []string{"|a", "|b"}},
		{"CR", "data: a\r\rdata: b\r\r", []string{"|a", "|b"}},
		{"mixed", "data: a\r\n\ndata: b\n\r\n", []string{"|a", "|b"}},
		{"comments and unknown fields", ": hi\nid: 3\nretry: 9\nwhat\ndata: a\n\n", []string{"|a"}},
		{"no data is no event", "event: x\n\ndata: a\n\n", []string{"|a"}},
		{"byte order mark", "\xef\xbb\xbfdata: a\n\n", []string{"|a"}},
		{"cut in an event", "data: a\n\ndata: b\n", []string{"|a"}},
		{"longer than the buffer", "data: " + long + "\n\ndata: b\n\n", []string{"|" + long, "|b"}},
		{"empty data", "data:\n\n", []string{"|"}},
	} {
		for split, r := range map[string]io.Reader{
			"whole": strings.NewReader(c.in), "byte by byte": iotest.OneByteReader(strings.NewReader(c.in)),
		} {
			got, err := events(r, 1<<20)
			if !errors.Is(err, io.EOF) {
				t.Errorf("%s, %s: %v", c.name, split, err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", c.name, split, diff)
			}
		}
	}
}

func TestEventReaderBound(t *testing.T) {
	for _, in := range []string{
		"data: " + strings.Repeat("x", 200) + "\n\n",
		strings.Repeat("data: xxxxxxxxxxxxxxxx\n", 20) + "\n",
		strings.Repeat("y", 10_000),
	} {
		if _, err := events(strings.NewReader(in), 100); !errors.Is(err, wire.ErrEventTooLarge) {
			t.Errorf("%.30s…: %v, want ErrEventTooLarge", in, err)
		}
	}
}

func TestPending(t *testing.T) {
	e := wire.NewEventReader(strings.NewReader("data: a\n\ndata: b\n\n"), 100, nil)
	for i, want := range []bool{true, false} {
		if _, err := e.Next(); err != nil {
			t.Fatal(err)
		}
		if got := e.Pending(); got != want {
			t.Errorf("after event %d: Pending = %v, want %v", i+1, got, want)
		}
	}
}

// FuzzEvents: however a stream is cut into reads, its events are the same.
func FuzzEvents(f *testing.F) {
	for _, s := range []string{"data: a\n\n", "data: a\r\rdata: b\r\n\r\n", "event: e\ndata: 1\ndata: 2\n\n", "\xef\xbb\xbf:x\ndata\n\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		whole, err := events(strings.NewReader(in), 1<<16)
		bytes, err2 := events(iotest.OneByteReader(strings.NewReader(in)), 1<<16)
		if (err == io.EOF) != (err2 == io.EOF) {
			t.Errorf("whole ended with %v, byte by byte with %v", err, err2)
		}
		if diff := cmp.Diff(whole, bytes); diff != "" && err == io.EOF {
			t.Errorf("events differ (-whole +bytes):\n%s", diff)
		}
	})
}
