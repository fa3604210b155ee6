package main

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"

	"go.uber.org/goleak"

	"github.com/metier-run/metier/internal/llm/scripted"
	"github.com/metier-run/metier/test/sdk/built"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// setUp builds the program and gives it an empty home.
func setUp(t *testing.T) options {
	t.Helper()
	if testing.Short() {
		t.Skip("builds the program")
	}
	o := options{binary: built.Metier(t), skills: filepath.Join(built.Root(t), "examples", "skills"), question: question}
	built.DependOn(t, o.skills)
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("GORACE", "atexit_sleep_ms=0") // a second at each exit, for nothing here
	t.Setenv("METIER_HOME", filepath.Join(home, "metier"))
	return o
}

// tell runs the story and returns what a person sees.
func tell(t *testing.T, o options) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := run(t.Context(), o, newPrinter(&out, false))
	return out.String(), err
}

// wantStory checks what every good run shows.
func wantStory(t *testing.T, out string) {
	t.Helper()
	for _, want := range []string{
		"> " + question,
		"more than 20 % of requests failed for more than 11 minutes", // the skill's own words
		"[round 2] the model called skills_read incident-report/SKILL.md",
		"3 rounds with the model and 2 calls that the server answered",
		"listening on http://127.0.0.1:",
		"upstream: demo",
		" serve --skills-dir ",
		`base_url="http://127.0.0.1:8484/v1"`,
	} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not show %q:\n%s", want, out)
		}
	}
	if n := strings.Count(out, "\n"); n > 41 {
		t.Errorf("%d lines are too many for a first look", n)
	}
}

func TestStory(t *testing.T) {
	o := setUp(t)
	o.upstream = "demo"
	out, err := tell(t, o)
	if err != nil {
		t.Fatal(err)
	}
	wantStory(t, out)
	if strings.Contains(out, "\x1b") {
		t.Error("colours go to something that is no terminal")
	}
}

// TestStandIn stands a program before the real one that finds no model, whatever
// runs on this machine.
func TestStandIn(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the program in front is a shell script")
	}
	o := setUp(t)
	o.binary = inFront(t, fmt.Sprintf(`case "$*" in
*--upstream*) exec '%s' "$@" ;;
esac
printf 'No model.\n\nFound Ollama at http://127.0.0.1:11434/v1, without a model.\n' >&2
exit 1
`, o.binary))
	out, err := tell(t, o)
	if err != nil {
		t.Fatal(err)
	}
	wantStory(t, out)
	for _, want := range []string{"No model answers on this machine", "Found Ollama", "serve --skills-dir " + o.skills + " --upstream demo"} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not show %q:\n%s", want, out)
		}
	}
}

func inFront(t *testing.T, script string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "metier")
	if err := os.WriteFile(name, []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	return name
}

// upstream plays one scenario, which is the only model.
func upstream(t *testing.T, scenario string) string {
	t.Helper()
	data, err := fs.ReadFile(scripted.Embedded(), scenario+scripted.Ext)
	if err != nil {
		t.Fatal(err)
	}
	h, err := scripted.New(scripted.Options{FS: fstest.MapFS{scenario + scripted.Ext: {Data: data}}})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func TestErrorsSayWhatToDo(t *testing.T) {
	good := setUp(t)
	for _, c := range []struct {
		name   string
		change func(*options)
		want   []string
	}{
		{"no program", func(o *options) { o.binary = filepath.Join(t.TempDir(), "metier") }, []string{"make run"}},
		{"no skills", func(o *options) { o.skills = filepath.Join(t.TempDir(), "skills") }, []string{"project's folder"}},
		{"bad upstream", func(o *options) { o.upstream = "ftp://nowhere" }, []string{"did not start", "--upstream ftp://nowhere"}},
		{"refused", func(o *options) { o.upstream = upstream(t, "unauthorized") }, []string{"401", "opens nothing here", "-upstream demo"}},
		{"error in the stream", func(o *options) { o.upstream = upstream(t, "error-in-stream") }, []string{"ran out of memory", "-upstream demo"}},
		{"broken stream", func(o *options) { o.upstream = upstream(t, "cut") }, []string{"broke", "-upstream demo"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := good
			c.change(&o)
			out, err := tell(t, o)
			if err == nil {
				t.Fatalf("it should have failed:\n%s", out)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
		})
	}
}

// TestInterrupt leaves in the middle of an answer that would never end; the
// server must go with it, which goleak and the wait for its output hold.
func TestInterrupt(t *testing.T) {
	o := setUp(t)
	o.upstream = upstream(t, "hang")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err := run(ctx, o, newPrinter(writer(func(b []byte) {
		if strings.Contains(string(b), "One moment") {
			cancel()
		}
	}), false))
	if err == nil || ctx.Err() == nil {
		t.Errorf("got %v", err)
	}
}

type writer func([]byte)

func (w writer) Write(b []byte) (int, error) {
	w(b)
	return len(b), nil
}
