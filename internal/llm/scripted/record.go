package scripted

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Recording is a turn as it went over the wire. Whoever fills it has taken the
// secrets out: [Write] drops only headers that belong to a connection.
type Recording struct {
	// Note is prose for the head of the file.
	Note string
	// Client is the body that the client sent; nil leaves it out.
	Client []byte
	Rounds []Round
}

// Round is one exchange with the upstream.
type Round struct {
	// Request is the body that went to the upstream. What the replay asks of a
	// request is taken from it.
	Request []byte
	Status  int
	Header  http.Header
	// Body is the answer as it came, events and all.
	Body []byte
	// Cut: the connection broke off at the end of Body, or, with a Status of 0,
	// before any answer.
	Cut bool
}

// Write writes a recording as a scenario that a [Handler] plays: the answers in
// their order, to requests that stream as the recorded ones did and bring as
// many tool results. Where these numbers don't grow from round to round, the
// order of the requests decides.
func Write(w io.Writer, r Recording) error {
	if len(r.Rounds) == 0 {
		return errors.New("write recording: no rounds: record at least one")
	}
	var b bytes.Buffer
	for line := range strings.Lines(r.Note) {
		b.WriteString(strings.TrimLeft(strings.TrimRight(line, "\r\n"), "- ") + "\n") // never a marker
	}
	if r.Client != nil {
		b.WriteString("-- client.request --\n")
		writeLines(&b, r.Client)
	}
	counts, err := resultCounts(r.Rounds)
	if err != nil {
		return err
	}
	for i, round := range r.Rounds {
		unanswered := round.Status == 0 && round.Cut
		if !unanswered && (round.Status < 200 || round.Status > 599) {
			return fmt.Errorf("write recording: round %d: status %d: give the one that was answered", i+1, round.Status)
		}
		writeRound(&b, i+1, round, counts[i])
	}
	if _, err := Parse("recording"+Ext, b.Bytes()); err != nil {
		return fmt.Errorf("write recording: it would not load: %w", err)
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("write recording: %w", err)
	}
	return nil
}

// resultCounts is the condition that tells each round from the others.
func resultCounts(rounds []Round) ([]string, error) {
	conditions := make([]string, len(rounds))
	last, growing := -1, true
	for i, r := range rounds {
		f, err := readFacts(r.Request)
		if err != nil {
			return nil, fmt.Errorf("write recording: round %d: request: %w", i+1, err)
		}
		growing = growing && f.results > last
		last = f.results
		conditions[i] = fmt.Sprintf("stream: %t\nresults: %d\n", f.stream, f.results)
	}
	for i := range conditions {
		if !growing {
			conditions[i] = fmt.Sprintf("nth: %d\n", i+1)
		}
	}
	return conditions, nil
}

func writeRound(b *bytes.Buffer, n int, r Round, when string) {
	fmt.Fprintf(b, "-- %d.request --\n", n)
	writeLines(b, r.Request)
	fmt.Fprintf(b, "-- %d.when --\n%s", n, when)
	if r.Status == 0 {
		fmt.Fprintf(b, "-- %d.answer --\n@cut\n", n)
		return
	}
	fmt.Fprintf(b, "-- %d.answer --\n%d\n", n, r.Status)
	typed := false
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		if ofConnection(name) {
			continue
		}
		for _, v := range r.Header[name] {
			if v == "" {
				continue
			}
			typed = typed || http.CanonicalHeaderKey(name) == "Content-Type"
			fmt.Fprintf(b, "%s: %s\n", name, strings.NewReplacer("\r", " ", "\n", " ").Replace(v))
		}
	}
	if len(r.Body) == 0 && !r.Cut {
		return
	}
	if !typed {
		b.WriteString("Content-Type: application/octet-stream\n")
	}
	fmt.Fprintf(b, "-- %d.body --\n", n)
	writeLines(b, r.Body)
	if r.Cut {
		b.WriteString("@cut\n")
	}
}

// ofConnection names headers that a replay's own server writes, and the one
// that may hold a session.
func ofConnection(name string) bool {
	switch http.CanonicalHeaderKey(name) {
	case "Connection", "Content-Length", "Date", "Keep-Alive", "Set-Cookie", "Trailer", "Transfer-Encoding", "Upgrade":
		return true
	}
	return false
}

// writeLines writes bytes so that the parser reads the same ones.
func writeLines(b *bytes.Buffer, data []byte) {
	for len(data) > 0 {
		line, rest, whole := bytes.Cut(data, []byte("\n"))
		data = rest
		switch {
		case !plainLine(line):
			if whole {
				line = append(bytes.Clone(line), '\n')
			}
			b.WriteString("@raw " + strconv.Quote(string(line)) + "\n")
		default:
			if bytes.HasPrefix(line, []byte("@")) {
				b.WriteByte('@')
			}
			b.Write(line)
			b.WriteByte('\n')
			if !whole {
				b.WriteString("@chomp\n")
			}
		}
	}
}

// plainLine reports whether the archive and the parser leave a line as it is.
func plainLine(line []byte) bool {
	return utf8.Valid(line) && !bytes.ContainsRune(line, '\r') && !bytes.HasPrefix(line, []byte("-- ")) &&
		!bytes.Contains(line, []byte(placeResults))
}
