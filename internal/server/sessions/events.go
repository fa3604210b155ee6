package sessions

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/access"
	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/server"
	"github.com/metier-run/metier/internal/store"
)

// Frame is an event as it goes out (B2 17.1).
type Frame struct {
	SessionID  string         `json:"session_id"`
	Seq        int64          `json:"seq"`
	Type       journal.Kind   `json:"type"`
	OccurredAt time.Time      `json:"occurred_at"`
	TurnID     string         `json:"turn_id,omitzero"`
	Anchor     journal.NodeID `json:"anchor,omitzero"`
	Payload    jsontext.Value `json:"payload"`
}

// FrameOf is the frame of a session's event.
func FrameOf(id string, e journal.Event) (Frame, error) {
	payload, err := journal.EncodeData(e.Data)
	return Frame{
		SessionID: id, Seq: e.Seq, Type: e.Data.Kind(), OccurredAt: e.At, TurnID: e.TurnID, Anchor: e.Anchor, Payload: payload,
	}, err
}

// Encode is the frame as one line of JSON.
func (f Frame) Encode() ([]byte, error) {
	b, err := json.Marshal(f, json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("sessions: write event %d: %w", f.Seq, err)
	}
	return b, nil
}

// eventsPage is a page of events.
type eventsPage struct {
	Events []Frame `json:"events"`
	// Next is the after_seq of the next page; absent when there is none.
	Next int64 `json:"next_after_seq,omitzero"`
}

func (d *Door) events(w http.ResponseWriter, r *http.Request) error {
	after, err := afterSeq(r)
	if err != nil {
		return err
	}
	limit, err := d.limit(r)
	if err != nil {
		return err
	}
	id := r.PathValue("id")
	page := eventsPage{Events: []Frame{}}
	for e, err := range d.log(r).Read(r.Context(), after) {
		if err != nil {
			return notFound(err)
		}
		if len(page.Events) == limit {
			page.Next = page.Events[limit-1].Seq
			break
		}
		f, err := FrameOf(id, e)
		if err != nil {
			return err
		}
		page.Events = append(page.Events, f)
	}
	server.WriteJSON(w, http.StatusOK, page)
	return nil
}

func (d *Door) log(r *http.Request) *store.Log {
	return d.options.Store.Log(access.FromContext(r.Context()).Tenant, r.PathValue("id"))
}

// afterSeq is where a reader is. The header, which browsers send when they connect again,
// wins (B2 17.1).
func afterSeq(r *http.Request) (int64, error) {
	name, text := "Last-Event-ID", r.Header.Get("Last-Event-ID")
	if text == "" {
		name, text = "after_seq", r.URL.Query().Get("after_seq")
	}
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, badQuery(name, text, "give the seq of the last event that you have")
	}
	return n, nil
}

// stream sends the events after a sequence number and those that come, until the client
// leaves.
func (d *Door) stream(w http.ResponseWriter, r *http.Request) error {
	after, err := afterSeq(r)
	if err != nil {
		return err
	}
	// One that is not there is an error with a status of its own.
	if _, err := d.options.Store.Session(r.Context(), access.FromContext(r.Context()).Tenant, r.PathValue("id")); err != nil {
		return notFound(err)
	}
	s := server.NewStream(w, d.keepAlive, server.Form{})
	defer s.Close() // whatever happens: a keep-alive must not write when the handler has returned
	ctx, stop := server.Watching(r)
	defer stop()
	err = d.follow(ctx, s, r.PathValue("id"), d.log(r), after)
	if ctx.Err() != nil && r.Context().Err() == nil || errors.Is(err, store.ErrNoSession) {
		err = nil // the server stops, or the session was removed: the stream ends here
	}
	if closeErr := s.Close(); err != nil || closeErr != nil {
		// The client must not take a part for the whole.
		panic(http.ErrAbortHandler)
	}
	return nil
}

func (d *Door) follow(ctx context.Context, s *server.Stream, id string, l *store.Log, after int64) error {
	if err := s.Write([]byte(":\n\n"), true); err != nil { // the client learns that it is heard
		return err
	}
	for e, err := range l.Follow(ctx, after) {
		if err != nil {
			return err
		}
		b, err := sse(id, e)
		if err != nil {
			return err
		}
		if err := s.Write(b, true); err != nil {
			return err
		}
	}
	return nil
}

// sse is an event as a frame of a stream.
func sse(id string, e journal.Event) ([]byte, error) {
	f, err := FrameOf(id, e)
	if err != nil {
		return nil, err
	}
	data, err := f.Encode()
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "id: %d\nevent: %s\ndata: %s\n\n", f.Seq, f.Type, data)
	return []byte(b.String()), nil
}
