package cli

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/app"
	"github.com/metier-run/metier/internal/interpreter"
	"github.com/metier-run/metier/internal/launch"
	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/sandbox/native"
)

// scriptedBackend answers every launch with a text.
type scriptedBackend struct {
	able sandbox.Capabilities
	says string
}

func (b *scriptedBackend) Name() string                       { return b.able.Backend }
func (b *scriptedBackend) Capabilities() sandbox.Capabilities { return b.able }
func (b *scriptedBackend) Close() error                       { return nil }
func (b *scriptedBackend) Stop()                              {}

func (b *scriptedBackend) Start(context.Context, sandbox.Launch) (sandbox.Job, error) { return b, nil }

func (b *scriptedBackend) Wait() sandbox.Result {
	return sandbox.Result{Ended: sandbox.Exited, Stdout: sandbox.Output{Head: []byte(b.says), Total: int64(len(b.says))}}
}

// finder finds a backend of a tier that holds everything but some aspects.
func finder(name string, tier sandbox.Tier, says string, but ...sandbox.Aspect) launch.Finder {
	able := sandbox.Capabilities{Backend: name, Version: "1.2", Tier: tier}
	for _, a := range sandbox.Aspects() {
		c := sandbox.Capability{Aspect: a, Held: true, Note: "by some means"}
		for _, open := range but {
			if a == open {
				c.Held, c.Note = false, "no means"
			}
		}
		able.All = append(able.All, c)
	}
	return launch.Finder{Name: name, Tier: tier, Find: func(context.Context, launch.Options) sandbox.Finding {
		return sandbox.Finding{Name: name, Backend: &scriptedBackend{able, says}}
	}}
}

func missing(name string, err error) launch.Finder {
	return launch.Finder{Name: name, Tier: sandbox.TierFull, Find: func(context.Context, launch.Options) sandbox.Finding {
		return sandbox.Finding{Name: name, Problem: err}
	}}
}

func surveys() map[string]app.Scripts {
	held := native.CanaryDone + "\n"
	noNamespaces := missing("native", &sandbox.Unavailable{
		Backend: "native", Step: "make namespaces", Err: errors.New("operation not permitted"),
		Fix: "allow user namespaces: sysctl -w kernel.unprivileged_userns_clone=1",
	})
	bare := finder("bare", sandbox.TierNone, held, sandbox.Aspects()...)
	return map[string]app.Scripts{
		"full": {Allowed: true, Finders: []launch.Finder{
			finder("native", sandbox.TierFull, held, sandbox.Memory), missing("bwrap", errors.New("bwrap 0.8.0 is too old")), bare,
		}},
		"none": {Finders: []launch.Finder{noNamespaces, finder("landlock", sandbox.TierWeak, held, sandbox.Hidden, sandbox.Domains), bare}},
		"leaky": {Finders: []launch.Finder{
			finder("native", sandbox.TierFull, native.CanaryRead+"a secret\n"+held), bare,
		}},
		"named": {Policy: sandbox.Policy{Backend: "landlock"}, Network: launch.Network{Domains: []string{"a.example"}}, Finders: []launch.Finder{
			noNamespaces, finder("bwrap", sandbox.TierFull, held), finder("runc", sandbox.TierFull, held, sandbox.Domains),
			finder("landlock", sandbox.TierWeak, held), bare,
		}},
		"preferred": {
			Allowed: true, Policy: sandbox.Policy{Mode: sandbox.Preferred}, Network: launch.Network{Open: true},
			Finders: []launch.Finder{noNamespaces, bare},
		},
	}
}

// codes are what is said of code on the hosts of surveys: off on one.
func codes() map[string]app.Code {
	return map[string]app.Code{
		"full": {
			Allowed: true, Install: true, Packages: []string{"requests", "@scope/tool"}, Index: "https://user:hunter2@packages.example/simple",
			Network: launch.Network{Domains: []string{"a.example"}},
		},
		"none":      {Allowed: true, Install: true, Domains: []string{"packages.example"}},
		"preferred": {Allowed: true, Unconfined: true, Install: true, Domains: []string{}, Network: launch.Network{Open: true}},
	}
}

// measured is what each host says otherwise.
var measured = regexp.MustCompile(`, on \w+|with \d+ MiB free`)

// TestDoctor compares what doctor says of some hosts with golden files.
func TestDoctor(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a sandbox is tried with the program true, which this system has not")
	}
	for name, scripts := range surveys() {
		t.Run(name, func(t *testing.T) {
			base, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			bin := filepath.Join(base, "python", "3.12", "bin")
			if err := os.MkdirAll(bin, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(bin, "python3.12"), []byte("\x7fELF"), 0o755); err != nil {
				t.Fatal(err)
			}
			scripts.Interpreters = interpreter.Options{Path: bin, System: []string{"/usr"}}
			settings := app.Settings{
				Home: filepath.Join(base, "home"), Scripts: scripts, Code: codes()[name], Upstream: app.Upstream{URL: app.Demo},
			}
			d, err := examine(t.Context(), settings, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			d.System = "linux/amd64"
			if want := name == "full" || name == "preferred"; d.OK() != want {
				t.Errorf("OK is %v: %v", d.OK(), d.Problem)
			}
			var out bytes.Buffer
			sayDiagnosis(&out, d, []string{"metier.toml"})
			got := measured.ReplaceAllString(strings.ReplaceAll(out.String(), base, "/base"), "...")
			golden(t, filepath.Join("testdata", "doctor", name+".txt"), got)
			r := diagnosis(d, nil)
			if r.OK != (d.unmet() == nil) || len(r.Backends) != len(d.Backends) || r.Scripts.Chosen != d.Chosen || r.Code.Allowed != d.Code.Allowed || r.Code.Chosen != d.Confinement.Capabilities.Backend {
				t.Errorf("the JSON says otherwise: %+v", r)
			}
			if text := got + fmt.Sprintf("%+v", r); strings.Contains(text, "hunter2") {
				t.Errorf("the password is told: %s", text)
			}
		})
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Error(d)
	}
}

// TestOpens: what a file that was only found may not say.
func TestOpens(t *testing.T) {
	for _, c := range []struct {
		flag  string
		value string
		opens bool
	}{
		{"insecure", "true", true},
		{"insecure", "false", false},
		{flagAllowExec, "true", true},
		{flagAllowExec, "false", false},
		{flagAllowNetwork, "true", true},
		{flagAllowNetwork, "false", false},
		{flagDomains, "a.example", true},
		{flagSandbox, "required", false},
		{flagSandbox, "preferred", true},
		{flagSandbox, "off", true},
		{flagMinimum, "strong", false},
		{flagMinimum, "full", false},
		{flagMinimum, "partial", true},
		{flagMinimum, "weak", true},
		{flagMinimum, "none", true},
		{flagMinimum, "nonsense", true},
		{flagBackend, "native", true},
		{"skills-dir", "x", false},
		{"skills-run-time", "3", false},
		{"skills-run-time", "61", true},
		{"sandbox-memory", "1099511627776", true},
		{"sandbox-memory", "104857600", false},
		{"sandbox-launches", "17", true},
		{"artifacts", "1099511627776", false},
		{flagCode, "true", true},
		{flagCode, "false", false},
		{flagUnconfined, "true", true},
		{flagUnconfined, "false", false},
		{flagInstall, "true", true},
		{flagInstall, "false", false},
		{flagPackages, "requests", false},
		{flagIndex, "https://packages.example/simple", true},
		{flagInstallDomains, "packages.example", true},
		{flagInstallDomains, "", true},
		{flagCodeNetwork, "true", true},
		{flagCodeNetwork, "false", false},
		{flagCodeDomains, "a.example", true},
		{flagTemperature, "2", false},
		{flagShell, "/bin/sh", true},
		{"code-exec-timeout", "120", false},
		{"code-exec-timeout", "121", true},
		{"code-exec-timeout", "x", true},
		{"code-exec-max-output", "32768", false},
		{"code-exec-max-output", "32769", true},
		{"workspace", "1073741825", true},
		{"workspace", "1048576", false},
	} {
		if got := opens(c.flag, []string{c.value}) != ""; got != c.opens {
			t.Errorf("%s = %q opens something: %v", c.flag, c.value, got)
		}
	}
	for _, flag := range []string{flagDomains, flagCodeDomains} {
		if opens(flag, nil) != "" {
			t.Errorf("an empty list of %s opens something", flag)
		}
	}
	harmless := []string{flagPackages, flagTemperature, "packages"}
	for _, flag := range family() {
		if opens(flag, []string{"true"}) == "" && opens(flag, []string{"99999999999999"}) == "" && !slices.Contains(harmless, flag) {
			t.Errorf("a file that was only found may say anything of %s", flag)
		}
	}
}
