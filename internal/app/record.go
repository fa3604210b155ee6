package app

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/llm/scripted"
)

// recorder writes each turn's requests and rounds to a file that the scripted
// upstream can play again. Credentials are taken out: headers of requests are
// not written at all, and what looks like a key in a body is blotted out.
type recorder struct {
	dir    string
	next   http.RoundTripper
	logger *slog.Logger
	key    config.Secret
}

func newRecorder(dir string, next http.RoundTripper, logger *slog.Logger) (*recorder, error) {
	// A recording holds what people wrote: it is for its owner only.
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("--record %s: %w", dir, err)
	}
	return &recorder{dir: dir, next: next, logger: logger}, nil
}

// secret names a text that must not be written.
func (r *recorder) secret(key config.Secret) { r.key = key }

type tapeKey struct{}

// tape is the recording of one turn while it runs.
type tape struct {
	mu     sync.Mutex
	rounds []*exchange
}

type exchange struct {
	request []byte
	status  int
	header  http.Header
	body    bytes.Buffer
	cut     bool
}

// Begin starts the recording of a turn; the function it returns writes it.
func (r *recorder) Begin(ctx context.Context, turnID string) (context.Context, func()) {
	t := &tape{}
	return context.WithValue(ctx, tapeKey{}, t), func() {
		if err := r.write(t, turnID); err != nil {
			r.logger.WarnContext(ctx, "recording not written", "turn", turnID, "error", err)
		}
	}
}

// RoundTrip passes a request on and keeps what goes both ways.
func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	t, ok := req.Context().Value(tapeKey{}).(*tape)
	if !ok || req.Body == nil {
		return r.next.RoundTrip(req)
	}
	sent, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	_ = req.Body.Close() // it was read to its end
	again := req.Clone(req.Context())
	again.Body = io.NopCloser(bytes.NewReader(sent))
	res, err := r.next.RoundTrip(again)
	if err != nil {
		return nil, err
	}
	x := &exchange{request: sent, status: res.StatusCode, header: res.Header.Clone(), cut: true}
	t.mu.Lock()
	t.rounds = append(t.rounds, x)
	t.mu.Unlock()
	res.Body = &copied{ReadCloser: res.Body, tape: t, to: x}
	return res, nil
}

// copied keeps what is read of a body.
type copied struct {
	io.ReadCloser
	tape *tape
	to   *exchange
}

func (c *copied) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.tape.mu.Lock()
	defer c.tape.mu.Unlock()
	c.to.body.Write(p[:n])
	if err == io.EOF {
		c.to.cut = false
	}
	return n, err
}

// doneMark ends a stream: what follows it is not waited for.
const doneMark = "data: [DONE]"

func (r *recorder) write(t *tape, turnID string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.rounds) == 0 {
		return nil
	}
	rec := scripted.Recording{Note: "Turn " + turnID + ", recorded " + time.Now().UTC().Format(time.RFC3339) + ".\n"}
	for _, x := range t.rounds {
		rec.Rounds = append(rec.Rounds, scripted.Round{
			Request: r.scrub(x.request), Status: x.status, Header: x.header, Body: r.scrub(x.body.Bytes()),
			Cut: x.cut && !bytes.Contains(x.body.Bytes(), []byte(doneMark)),
		})
	}
	f, err := os.OpenFile(filepath.Join(r.dir, turnID+".txtar"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := scripted.Write(f, rec); err != nil {
		_ = f.Close() // the first error is the one to tell
		return err
	}
	return f.Close()
}

// keyShape is what the keys of known vendors look like.
var keyShape = regexp.MustCompile(`\b(sk|pk|rk|gsk|xai|hf|ghp|gho|glpat|AKIA)[-_][A-Za-z0-9_-]{12,}|\b[Bb]earer\s+[A-Za-z0-9._~+/=-]{12,}|\bAKIA[A-Z0-9]{16}\b|\bAIza[A-Za-z0-9_-]{30,}`)

func (r *recorder) scrub(b []byte) []byte {
	return keyShape.ReplaceAll(r.key.Scrub(b), []byte("***"))
}
