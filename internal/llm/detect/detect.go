// Package detect finds out what kind of server an upstream's address leads to,
// and which servers of models run on this machine.
//
// It only ever sends GET requests, to routes that list or describe, and never a
// key, a cookie or a body: finding a server costs nobody anything. Redirects are
// not followed, answers are read up to a bound. It chooses nothing: what was
// found is returned in a fixed order, and a vendor's endpoint is found only when
// its address is given.
//
// Start at [Prober].
package detect

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/metier-run/metier/internal/config"
)

// Kind is a kind of server.
type Kind string

// The kinds. OpenAI is every endpoint that speaks Chat Completions and is none
// of the others.
const (
	Ollama   Kind = "ollama"
	LlamaCPP Kind = "llamacpp"
	LMStudio Kind = "lmstudio"
	VLLM     Kind = "vllm"
	OpenAI   Kind = "openai"
)

// Name is what people call the kind.
func (k Kind) Name() string {
	switch k {
	case Ollama:
		return "Ollama"
	case LlamaCPP:
		return "llama.cpp"
	case LMStudio:
		return "LM Studio"
	case VLLM:
		return "vLLM"
	}
	return "an OpenAI-compatible endpoint"
}

// Found is a server.
type Found struct {
	Kind Kind
	// URL is the base to which /chat/completions is added; it has no slash at the
	// end.
	URL string
	// Models are the ids that the server lists, in its order.
	Models []string
	// Model is the first of them that is no embedding model by its name, or the
	// first of all; empty when none is listed.
	Model string
	// NeedsKey: the server lists its models to holders of a key only.
	NeedsKey bool
	// Loading: the server is there and still loads its model.
	Loading bool
}

// String says what was found in one phrase.
func (f Found) String() string {
	s := f.Kind.Name() + " at " + f.URL
	switch {
	case f.Loading:
		return s + ", still loading its model"
	case f.NeedsKey:
		return s + ", which needs a key"
	case f.Model == "":
		return s + ", without a model"
	}
	if n := len(f.Models); n > 1 {
		return fmt.Sprintf("%s, %d models, %s among them", s, n, f.Model)
	}
	return s + ", model " + f.Model
}

// Usable reports whether the server can answer now without a key.
func (f Found) Usable() bool { return f.Model != "" && !f.NeedsKey && !f.Loading }

// Place is a loopback port at which a kind usually listens.
type Place struct {
	Kind Kind
	Port int
}

// Places lists the usual ports, in the order of precedence.
func Places() []Place {
	return []Place{{Ollama, 11434}, {LlamaCPP, 8080}, {LlamaCPP, 9931}, {LMStudio, 1234}, {VLLM, 8000}}
}

// Prober looks for servers. The zero value is ready; it is safe for concurrent
// use.
type Prober struct {
	// Client carries the requests; nil uses one of the prober's own. Its redirects
	// and cookies are left out.
	Client *http.Client
	// Places replaces [Places].
	Places []Place
	// Connect is how long a loopback port may take to accept; 0 means 300 ms.
	Connect time.Duration
	// Answer is how long one server may take to answer all probes; 0 means the
	// default of [config.UpstreamDial] for an address that was given, and 2 s for a
	// loopback port.
	Answer time.Duration
	// Body is how many bytes of one answer are read; 0 means the default of
	// [config.UpstreamEvent]. A longer answer is taken for none.
	Body int64
}

// What a port of this machine gets is long for it and short for a person who
// waits.
const (
	defaultConnect = 300 * time.Millisecond
	defaultKnock   = 2 * time.Second
)

func (p Prober) withDefaults(answer time.Duration) Prober {
	if p.Places == nil {
		p.Places = Places()
	}
	if p.Connect == 0 {
		p.Connect = defaultConnect
	}
	if p.Answer == 0 {
		p.Answer = answer
	}
	if p.Body == 0 {
		p.Body = config.Values{}.Get(config.UpstreamEvent)
	}
	return p
}

// Guess is [Prober.Guess] with the given client.
func Guess(ctx context.Context, client *http.Client, url string) (Found, error) {
	return Prober{Client: client}.Guess(ctx, url)
}

// Loopback is [Prober.Loopback] with the given client.
func Loopback(ctx context.Context, client *http.Client) []Found {
	return Prober{Client: client}.Loopback(ctx)
}

// Guess finds out what an address leads to. The address may be a server's root,
// its base for chat completions, or the whole route; without a scheme it is
// taken for http on this machine. The error says what is wrong with the address,
// or what the server answered.
func (p Prober) Guess(ctx context.Context, url string) (Found, error) {
	p = p.withDefaults(config.Values{}.Duration(config.UpstreamDial))
	a, err := parseAddress(url)
	if err != nil {
		return Found{}, err
	}
	if a.vendor() {
		// A vendor tells nothing without a key, and its routes are known.
		return Found{Kind: OpenAI, URL: a.bases()[0], NeedsKey: true}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, p.Answer)
	defer cancel()
	client, done := p.client()
	defer done()
	found, err := client.identify(ctx, a)
	if err != nil {
		return Found{}, fmt.Errorf("look at upstream %s: %w", a.shown(), err)
	}
	return found, nil
}

// Loopback tries all places at once, and lists what is one of the kinds that the
// places stand for, in their order. A port that answers in some other way is not
// listed: it was meant for something else.
func (p Prober) Loopback(ctx context.Context) []Found {
	p = p.withDefaults(defaultKnock)
	client, done := p.client()
	defer done()
	results := make([]*Found, len(p.Places))
	var wg sync.WaitGroup
	for i, place := range p.Places {
		wg.Go(func() { results[i] = p.knock(ctx, client, place) })
	}
	wg.Wait()
	var found []Found
	for _, f := range results {
		if f != nil {
			found = append(found, *f)
		}
	}
	return found
}

// knock looks at one port; nil when there is nothing to use.
func (p Prober) knock(ctx context.Context, c prober, place Place) *Found {
	ctx, cancel := context.WithTimeout(ctx, p.Answer)
	defer cancel()
	host := net.JoinHostPort("127.0.0.1", strconv.Itoa(place.Port))
	conn, err := (&net.Dialer{Timeout: p.Connect}).DialContext(ctx, "tcp", host)
	if err != nil {
		return nil
	}
	_ = conn.Close() // it has told that somebody listens
	found, err := c.identify(ctx, address{scheme: "http", host: host})
	if err != nil || found.Kind == OpenAI { // one that wants a key is of that kind too
		return nil
	}
	return &found
}

// client is the prober's own view of the client, and what to do when it is done
// with.
func (p Prober) client() (prober, func()) {
	if p.Client == nil {
		t := &http.Transport{Proxy: http.ProxyFromEnvironment}
		return prober{http: &http.Client{Transport: t, CheckRedirect: stay}, body: p.Body}, t.CloseIdleConnections
	}
	c := *p.Client
	c.CheckRedirect, c.Jar = stay, nil
	return prober{http: &c, body: p.Body}, func() {}
}

// stay keeps a client where it was sent.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// embedding reports whether a name is that of a model that cannot chat.
func embedding(model string) bool {
	model = strings.ToLower(model)
	return strings.Contains(model, "embed") || strings.Contains(model, "rerank")
}
