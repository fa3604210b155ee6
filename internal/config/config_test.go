package config_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/metier-run/metier/internal/config"
)

func TestValues(t *testing.T) {
	var zero config.Values
	if got := zero.Int(config.MaxRounds); got != 8 {
		t.Errorf("default rounds %d, want 8", got)
	}
	set, err := zero.Set(config.MaxRounds, 3)
	if err != nil {
		t.Fatal(err)
	}
	both, err := set.Set(config.KeepAlive, 5)
	if err != nil {
		t.Fatal(err)
	}
	if zero.Int(config.MaxRounds) != 8 || both.Int(config.MaxRounds) != 3 || both.Duration(config.KeepAlive) != 5*time.Second {
		t.Error("Set changed another value, or lost one")
	}
	for _, c := range []struct {
		name  config.Name
		value int64
		want  string
	}{
		{config.MaxRounds, 0, "give 1 to 64"},
		{config.MaxRounds, 65, "give 1 to 64"},
		{"nonsense", 1, "no such limit"},
	} {
		if _, err := zero.Set(c.name, c.value); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Set(%s, %d): %v, want %q", c.name, c.value, err, c.want)
		}
	}
}

// TestSecret: no way of printing gives a secret away.
func TestSecret(t *testing.T) {
	s := config.NewSecret("hunter2")
	b, err := json.Marshal(map[string]any{"k": s})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		fmt.Sprint(s), fmt.Sprintf("%v %+v %#v %s %q", s, s, s, s, s), fmt.Sprintf("%+v", struct{ K config.Secret }{s}),
		s.LogValue().String(), string(b),
	} {
		if strings.Contains(text, "hunter2") || !strings.Contains(text, "***") {
			t.Errorf("a secret printed as %s", text)
		}
	}
	if got := string(config.NewSecret("long-enough").Scrub([]byte("a long-enough key"))); got != "a *** key" {
		t.Errorf("Scrub gave %q", got)
	}
	if got := string(s.Scrub([]byte("hunter2 was here"))); got != "hunter2 was here" {
		t.Errorf("a short secret took words out: %q", got)
	}
	if s.Reveal() != "hunter2" || s.IsZero() || !(config.Secret{}).IsZero() {
		t.Error("the secret itself is lost")
	}
}
