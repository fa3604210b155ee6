package server_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"

	"github.com/metier-run/metier/internal/server"
)

// watchers is a door whose one route watches until there is nothing to see.
type watchers struct{ ended chan error }

func (d watchers) Routes() map[string]http.Handler {
	return map[string]http.Handler{"GET /watch": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, stop := server.Watching(r)
		defer stop()
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush() // the client waits for it
		<-ctx.Done()
		d.ended <- r.Context().Err()
	})}
}

func (watchers) Refuse(http.ResponseWriter, *http.Request, error) {}
func (watchers) Owns(*http.Request) bool                          { return false }

// TestWatching: who only watches is let go of when the server begins to stop, by an end
// and not by a cut, and the server does not wait for the time that open turns get.
func TestWatching(t *testing.T) {
	door := watchers{make(chan error, 1)}
	s := server.New(server.Options{Doors: []server.Door{door}, Logger: slog.New(slog.DiscardHandler), NewID: func() string { return "id" }})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	response, err := http.Get("http://" + l.Addr().String() + "/watch")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	stop()
	if err := <-door.ended; err != nil {
		t.Errorf("the request itself was ended: %v", err)
	}
	if _, err := io.ReadAll(response.Body); err != nil {
		t.Errorf("the answer was cut: %v", err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	http.DefaultClient.CloseIdleConnections()
}
