package codec_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/internal/llm/codec"
)

// TestName: a member that the host reads has one spelling, however it is escaped.
func TestName(t *testing.T) {
	known := []string{"model", "max_tokens"}
	for raw, want := range map[string]string{
		"model": "model", `\u006dodel`: "model", "other": "other", "Other": "Other",
		"Model": "!write \"model\"", `MAX_\u0054okens`: "!write \"max_tokens\"", "ſkills": "ſkills", `\ud800x`: "\uFFFDx", `\x`: "!not valid JSON",
	} {
		got, err := codec.Name([]byte(raw), known)
		if text, fails := strings.CutPrefix(want, "!"); fails {
			if err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %v, want %q", raw, err, text)
			}
			continue
		}
		if err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", raw, got, err, want)
		}
	}
}

// TestErrors: each error is the client's, and says which limit it breaks.
func TestErrors(t *testing.T) {
	b := codec.NewBounds(config.Values{})
	_, long := b.ModelName(jsontext.Value(`"` + strings.Repeat("m", b.Model+1) + `"`))
	_, none := b.ModelName(jsontext.Value("1"))
	_, odd := codec.Boolean("stream", jsontext.Value("1"), true)
	for detail, err := range map[string]error{
		"model_name_too_long": long, "": none, "too_many_messages": b.TooManyMessages(), "too_many_tools": b.TooManyTools(),
	} {
		var own interface{ Fault() *fault.Error }
		if !errors.As(err, &own) || own.Fault().Code != fault.Invalid || own.Fault().Detail != detail || own.Fault().Param == "" {
			t.Errorf("%s: %v", detail, err)
		}
	}
	if odd == nil || !strings.Contains(odd.Error(), `"stream" must be true or false`) {
		t.Errorf("boolean: %v", odd)
	}
	if name, err := b.ModelName(jsontext.Value(`"m"`)); name != "m" || err != nil {
		t.Errorf("%q, %v", name, err)
	}
	for v, want := range map[string]bool{"true": true, "false": false, "null": true, "": true} {
		if got, err := codec.Boolean("x", jsontext.Value(v), true); got != want || err != nil {
			t.Errorf("%q: %t, %v", v, got, err)
		}
	}
}
