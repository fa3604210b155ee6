package config

import (
	"fmt"
	"net/url"
	"strings"
)

// LLM is [llm.<id>]: a model endpoint.
type LLM struct {
	ID string
	// Type is the dialect: openai, anthropic or ollama.
	Type string
	// BaseURL is what the dialect's routes hang on; empty means the vendor's own, and for
	// Ollama this machine's.
	BaseURL string
	// KeyEnv names the variable that holds the key; empty means the vendor's own
	// variable for the vendor's own URL, and no key for any other.
	KeyEnv string
	// From names the section and its place, for errors.
	From string
}

// LLMs are the endpoints of the files, in the order of their ids.
type LLMs []LLM

// builtIn is the name of the stand-in, which no section may take.
const builtIn = "demo"

// ReadLLMs reads each [llm.<id>].
func ReadLLMs(d *Document) LLMs {
	var all LLMs
	for id, t := range d.Top().Tables("llm") {
		one := LLM{ID: id, From: t.At("").String() + ": " + t.title()}
		if id == builtIn {
			t.Problem("", "%s is the built-in stand-in: choose another name", builtIn)
		}
		if !t.Has("type") {
			t.Problem("type", `it is missing: give type = "openai", "anthropic" or "ollama"`)
		}
		t.Choice("type", &one.Type, "openai", "anthropic", "ollama")
		t.URL("base_url", &one.BaseURL)
		t.Variable("api_key_env", &one.KeyEnv)
		all = append(all, one)
	}
	return all
}

// Upstream is the endpoint that an upstream's name or URL stands for: the section
// of that name, or the only one when nothing is named. It is false when the files
// decide nothing. The error lists the sections among which one must be picked.
func (l LLMs) Upstream(named string) (LLM, bool, error) {
	var ids []string
	for _, one := range l {
		if one.ID == named {
			return one, true, nil
		}
		ids = append(ids, one.ID)
	}
	switch {
	case named != "" || len(l) == 0:
		return LLM{}, false, nil
	case len(l) > 1:
		return LLM{}, false, fmt.Errorf("%s: there are %d of them, %s: pick one with upstream = %q in [serve], or with --upstream %s",
			l[0].From, len(l), strings.Join(ids, ", "), ids[0], ids[0])
	}
	return l[0], true, nil
}

// URL reads the address of a server.
func (t *Table) URL(key string, to *string) bool {
	var v string
	if !t.String(key, &v) {
		return false
	}
	u, err := url.Parse(v)
	switch {
	case err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "":
		t.Problem(key, "give a URL such as http://127.0.0.1:8080/v1")
	case u.User != nil:
		t.Problem(key, "a URL must not hold a password: name a variable that holds the key")
	default:
		*to = v
		return true
	}
	return false
}

// Variable reads the name of an environment variable. What is none is not
// repeated: it may be the secret itself.
func (t *Table) Variable(key string, to *string) bool {
	var v string
	if !t.String(key, &v) {
		return false
	}
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
	if strings.Trim(v, letters+"0123456789") != "" || !strings.Contains(letters, v[:1]) {
		t.Problem(key, "give the name of an environment variable, such as MY_KEY, never the secret itself")
		return false
	}
	*to = v
	return true
}
