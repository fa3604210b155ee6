package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/llm/upstream"
)

// proxyCommand is the argument that makes this program the reverse proxy.
const proxyCommand = "proxy"

// proxy is the least that can stand between a client and an upstream: the
// standard library's reverse proxy, told to flush what it reads at once, on the
// transport that Metier uses. It serves until ctx ends.
func proxy(ctx context.Context, to string, stdout io.Writer) error {
	target, err := url.Parse(to)
	if err != nil {
		return fmt.Errorf("proxy: %w", err)
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("proxy: listen: %w", err)
	}
	bare := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     upstream.NewTransport(config.Values{}),
		FlushInterval: -1,
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Without this the server takes the request's body away when the answer
		// begins, while the transport may still look for the body's end: one
		// stream in some thousands is cut then.
		if err := http.NewResponseController(w).EnableFullDuplex(); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		bare.ServeHTTP(w, r)
	})}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // what is open is cut
	defer stop()
	fmt.Fprintf(stdout, "listening on http://%s\n", l.Addr())
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("proxy: serve: %w", err)
	}
	return nil
}
