package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/llm/anthropic"
	"github.com/metier-run/metier/internal/llm/capable"
	"github.com/metier-run/metier/internal/llm/demo"
	"github.com/metier-run/metier/internal/llm/detect"
	"github.com/metier-run/metier/internal/llm/ollama"
	"github.com/metier-run/metier/internal/llm/openai"
)

// Upstream is the model endpoint that an operator named.
type Upstream struct {
	// URL is the endpoint, "demo" for the built-in stand-in, or empty to look on
	// this machine.
	URL string
	// Type overrides what a probe would find.
	Type string
	Key  config.Secret
}

// The dialects of upstreams, as --upstream-type has them.
const (
	typeOpenAI    = "openai"
	typeAnthropic = "anthropic"
	typeOllama    = "ollama"
)

// anthropicHost is the vendor's own.
const anthropicHost = "api.anthropic.com"

// DefaultURL is where a dialect's own models are.
func DefaultURL(kind string) string {
	switch kind {
	case typeAnthropic:
		return "https://" + anthropicHost
	case typeOllama:
		return "http://127.0.0.1:11434"
	}
	return "https://api.openai.com/v1"
}

// Demo is the name of the stand-in, in place of a URL.
const Demo = "demo"

const demoChosen = "demo, the built-in stand-in: it is no language model"

// probeTime bounds all probes of one start.
const probeTime = 3 * time.Second

// connected is an upstream that was found.
type connected struct {
	llm.Provider
	// ask is the question about its models; nil when there is nobody to ask.
	ask capable.Probe
	// slots tells how many slots it has; nil when there are none.
	slots func(context.Context) (int, bool)
	// chosen says in one line which it is and why.
	chosen string
}

// connect makes the provider and says which it is. A vendor's key is spent only
// on a URL that the operator named, and the stand-in is never a fallback.
func connect(ctx context.Context, s Settings, transport http.RoundTripper, newID func() string) (connected, error) {
	if s.Upstream.URL == Demo {
		return connected{Provider: demo.Provider{}, chosen: demoChosen}, nil
	}
	found, chosen, err := locate(ctx, s.Upstream, transport)
	if err != nil {
		return connected{}, err
	}
	base, err := url.Parse(found.URL)
	if err != nil {
		return connected{}, fault.Usage("--upstream %s: %w", s.Upstream.URL, err)
	}
	switch dialectOf(s.Upstream.Type, base) {
	case typeAnthropic:
		p := anthropic.New(anthropic.Options{Base: base, Key: s.Upstream.Key, Transport: transport, Limits: s.Limits, NewID: newID})
		return connected{Provider: p, chosen: chosen}, nil
	case typeOllama:
		p := ollama.New(ollama.Options{Base: base, Key: s.Upstream.Key, Transport: transport, Limits: s.Limits, NewID: newID})
		return connected{Provider: p, ask: newAsker(found, s, transport).ask, chosen: chosen}, nil
	}
	p := openai.New(openai.Options{
		Base: base, Key: s.Upstream.Key, Transport: transport, Limits: s.Limits, NewID: newID,
	})
	asked := newAsker(found, s, transport)
	return connected{Provider: p, ask: asked.ask, slots: asked.slots, chosen: chosen}, nil
}

// dialectOf is what the upstream speaks: what the operator says, or what the vendor's own
// address means.
func dialectOf(kind string, base *url.URL) string {
	if kind == "" && strings.EqualFold(base.Hostname(), anthropicHost) {
		return typeAnthropic
	}
	return kind
}

// locate finds the base URL for chat completions, and the kind of server when it
// could be asked.
func locate(ctx context.Context, u Upstream, transport http.RoundTripper) (found detect.Found, chosen string, err error) {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	client := &http.Client{Transport: transport}
	if u.URL == "" {
		return choose(detect.Loopback(ctx, client))
	}
	if err := checkURL(u.URL); err != nil {
		return found, "", err
	}
	switch base, _ := url.Parse(u.URL); dialectOf(u.Type, base) { // it was checked
	case "":
	case typeOpenAI:
		return detect.Found{URL: u.URL}, u.URL, nil
	case typeAnthropic:
		return detect.Found{URL: u.URL}, u.URL + ", in Anthropic's dialect", nil
	case typeOllama:
		return detect.Found{URL: u.URL, Kind: detect.Ollama}, u.URL + ", in Ollama's own dialect", nil
	default:
		return found, "", fault.Usage("--upstream-type %s: it is openai, anthropic or ollama; llama.cpp, LM Studio and vLLM speak openai", u.Type)
	}
	found, err = detect.Guess(ctx, client, u.URL)
	if err != nil {
		// It may be started after us, so this is no reason not to start.
		base := supposed(u.URL)
		return detect.Found{URL: base}, fmt.Sprintf("%s, which could not be looked at (%v)", base, err), nil
	}
	return found, found.String(), nil
}

// choose takes the first server of this machine that can answer now.
func choose(found []detect.Found) (one detect.Found, chosen string, err error) {
	for _, f := range found {
		if f.Usable() {
			return f, "found on this machine: " + f.String(), nil
		}
	}
	return one, "", errors.New(strings.TrimSpace(detect.Help(found)))
}

// supposed is the base of a server that cannot be asked: an address without a
// path is taken to have it at the usual place.
func supposed(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || strings.Trim(u.Path, "/") != "" {
		return raw
	}
	return u.JoinPath("v1").String()
}

// checkURL refuses what is no endpoint before anything is sent.
func checkURL(raw string) error {
	u, err := url.Parse(raw)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return fault.Usage("--upstream %s: give a URL such as http://127.0.0.1:11434, the name of an [llm.NAME] section of the file, or demo", raw)
	}
	if u.User != nil {
		return fault.Usage("--upstream: a URL must not hold a password: name a variable with --upstream-key-env")
	}
	return nil
}

// UpstreamKey reads the key for an upstream from the environment: from the
// variable that the operator named, or from the vendor's own when the operator
// named the vendor's URL.
func UpstreamKey(rawURL, variable string) (config.Secret, error) {
	if variable != "" {
		key := os.Getenv(variable)
		if key == "" {
			return config.Secret{}, fault.Usage("--upstream-key-env %s: the variable is not set", variable)
		}
		return config.NewSecret(key), nil
	}
	u, err := url.Parse(rawURL)
	if err != nil {
		return config.Secret{}, nil // said by whoever needs the URL
	}
	switch host := strings.ToLower(u.Hostname()); host {
	case "api.openai.com":
		return config.NewSecret(os.Getenv("OPENAI_API_KEY")), nil
	case anthropicHost:
		return config.NewSecret(os.Getenv("ANTHROPIC_API_KEY")), nil
	case "openrouter.ai":
		return config.NewSecret(os.Getenv("OPENROUTER_API_KEY")), nil
	}
	return config.Secret{}, nil
}
