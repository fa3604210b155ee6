package detect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// prober sends probes.
type prober struct {
	http *http.Client
	body int64
}

// reply is an answer to a probe.
type reply struct {
	status int
	server string // the header of that name
	body   []byte
}

// errTooLong is an answer that is longer than a list of models can be.
var errTooLong = errors.New("the answer is too long for a list of models")

func (p prober) get(ctx context.Context, to string) (reply, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, to, nil)
	if err != nil {
		return reply{}, fmt.Errorf("make a request: %w", err)
	}
	req.Header.Set("Accept", "application/json")
	res, err := p.http.Do(req)
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err // the rest repeats the address
	}
	if err != nil {
		return reply{}, fmt.Errorf("%w: start the server there, or check the address", err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, p.body+1))
	if err != nil {
		return reply{}, fmt.Errorf("read the answer of %s: %w", to, err)
	}
	if int64(len(body)) > p.body {
		return reply{}, errTooLong
	}
	return reply{status: res.StatusCode, server: res.Header.Get("Server"), body: body}, nil
}

// listed is a list of models; the servers differ in what they put beside it.
type listed struct {
	Object string `json:"object"`
	Data   []struct {
		ID      string `json:"id"`
		OwnedBy string `json:"owned_by"`
	} `json:"data"`
}

// identify tries the possible bases in turn, and asks the first that has models
// what it is.
func (p prober) identify(ctx context.Context, a address) (Found, error) {
	var closed *Found
	var failed error // of the likeliest base
	for _, base := range a.bases() {
		r, err := p.get(ctx, base+"/models")
		if err != nil {
			return Found{}, err
		}
		wrong := fmt.Errorf("GET %s/models answered %d: check the address, or name the kind of server", base, r.status)
		switch {
		case r.status == http.StatusOK:
			var list listed
			// Ollama without a model lists null.
			if json.Unmarshal(r.body, &list) == nil && (list.Data != nil || list.Object == "list") {
				return p.found(ctx, a, base, list), nil
			}
			wrong = fmt.Errorf("GET %s/models answered 200, but no list of models: check the address", base)
		case loading(r):
			return Found{Kind: LlamaCPP, URL: base, Loading: true}, nil
		case r.status == http.StatusUnauthorized || r.status == http.StatusForbidden:
			if closed == nil {
				closed = &Found{Kind: OpenAI, URL: base, NeedsKey: true}
			}
		case r.status >= 300 && r.status < 400:
			wrong = fmt.Errorf("GET %s/models redirects, which is not followed: give the address that it leads to", base)
		}
		if failed == nil {
			failed = wrong
		}
	}
	if closed != nil {
		return *closed, nil
	}
	return Found{}, failed
}

// loading recognises llama-server before it has loaded its model.
func loading(r reply) bool {
	var v struct {
		Error struct {
			Type string `json:"type"`
		} `json:"error"`
	}
	return r.status == http.StatusServiceUnavailable && json.Unmarshal(r.body, &v) == nil && v.Error.Type == "unavailable_error"
}

func (p prober) found(ctx context.Context, a address, base string, list listed) Found {
	f := Found{URL: base}
	owner := ""
	for _, m := range list.Data {
		if m.ID == "" {
			continue
		}
		if owner == "" {
			owner = m.OwnedBy
		}
		f.Models = append(f.Models, m.ID)
		if f.Model == "" && !embedding(m.ID) {
			f.Model = m.ID
		}
	}
	if f.Model == "" && len(f.Models) > 0 {
		f.Model = f.Models[0]
	}
	f.Kind = p.kind(ctx, a.root(), owner)
	return f
}

// kind tells the server by the owner of its models where that says it, and else
// by routes that only one kind has. What each route answers must be of the right
// shape: some servers say 200 to everything.
func (p prober) kind(ctx context.Context, root, owner string) Kind {
	switch owner {
	case "llamacpp":
		return LlamaCPP
	case "vllm":
		return VLLM
	case "organization_owner":
		return LMStudio
	}
	for _, mark := range []struct {
		kind   Kind
		path   string
		member string
		of     jsontext.Kind
	}{
		{Ollama, "/api/version", "version", '"'},
		{LlamaCPP, "/props", "default_generation_settings", '{'},
		{LMStudio, "/api/v0/models", "data", '['},
		{VLLM, "/version", "version", '"'},
	} {
		if p.has(ctx, root+mark.path, mark.member, mark.of) {
			return mark.kind
		}
	}
	return OpenAI
}

func (p prober) has(ctx context.Context, route, member string, of jsontext.Kind) bool {
	r, err := p.get(ctx, route)
	if err != nil || r.status != http.StatusOK {
		return false
	}
	var object map[string]jsontext.Value
	if json.Unmarshal(r.body, &object) != nil {
		return false
	}
	v := object[member]
	return len(v) > 0 && v.Kind() == of
}
