package config_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/metier-run/metier/internal/config"
)

var update = flag.Bool("update", false, "write the golden files anew")

// all is every section that this version has.
type all struct {
	Serve  []config.Setting
	Skills config.Skills
	Code   []config.Setting
	LLMs   config.LLMs
	Keys   []config.Key
	Models map[string]config.Model
}

func read(sources ...config.Source) (all, error) {
	d, err := config.ParseFiles(sources...)
	if err != nil {
		return all{}, err
	}
	a := all{config.ReadServe(d), config.ReadSkills(d), config.ReadCode(d), config.ReadLLMs(d), config.ReadKeys(d), config.ReadModels(d)}
	return a, d.Check()
}

func source(text string) config.Source { return config.Source{Name: "metier.toml", Text: []byte(text)} }

// TestMistakes compares what is said of files with mistakes with the golden
// files: *.txtar with the files and, last, the file "want".
func TestMistakes(t *testing.T) {
	names, err := filepath.Glob("testdata/file/*.txtar")
	if err != nil || len(names) < 8 {
		t.Fatalf("%d golden files, %v", len(names), err)
	}
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			var sources []config.Source
			want := ""
			for _, f := range archive.Files {
				if f.Name == "want" {
					want = string(f.Data)
					continue
				}
				sources = append(sources, config.Source{Name: f.Name, Text: f.Data})
			}
			_, err = read(sources...)
			if _, ok := errors.AsType[*config.FileError](err); !ok {
				t.Fatalf("read: %v, want a FileError", err)
			}
			got := err.Error() + "\n"
			if strings.Contains(got, "hunter2") {
				t.Errorf("the secret is repeated: %s", got)
			}
			if *update {
				archive.Files = slices.DeleteFunc(archive.Files, func(f txtar.File) bool { return f.Name == "want" })
				archive.Files = append(archive.Files, txtar.File{Name: "want", Data: []byte(got)})
				if err := os.WriteFile(name, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestWhole reads a file that has everything.
func TestWhole(t *testing.T) {
	yes, no := true, false
	got, err := read(config.Source{Name: "conf/metier.toml", Text: []byte(whole)})
	if err != nil {
		t.Fatal(err)
	}
	want := all{
		Serve: []config.Setting{
			{Flag: "host", Values: []string{"0.0.0.0"}, From: "conf/metier.toml:2:1: [serve] host"},
			{Flag: "port", Values: []string{"9000"}, From: "conf/metier.toml:3:1: [serve] port"},
			{Flag: "record", Values: []string{"conf/tapes"}, From: "conf/metier.toml:4:1: [serve] record"},
			{Flag: "upstream", Values: []string{"local"}, From: "conf/metier.toml:5:1: [serve] upstream"},
			{Flag: "log-json", Values: []string{"true"}, From: "conf/metier.toml:6:1: [serve] log-json"},
			{Flag: "upstream-stall", Values: []string{"60"}, From: "conf/metier.toml:7:1: [serve] upstream-stall"},
		},
		Skills: config.Skills{
			Settings: []config.Setting{
				{Flag: "skills-dir", Values: []string{"skills", "/srv/skills"}, From: "conf/metier.toml:10:1: [skills] skills-dir"},
				{Flag: "no-skills", Values: []string{"false"}, From: "conf/metier.toml:11:1: [skills] no-skills"},
				{Flag: "skills-allow-exec", Values: []string{"true"}, From: "conf/metier.toml:14:1: [skills] skills-allow-exec"},
				{Flag: "skills-sandbox", Values: []string{"preferred"}, From: "conf/metier.toml:15:1: [skills] skills-sandbox"},
				{Flag: "skills-allow-network", Values: []string{"false"}, From: "conf/metier.toml:16:1: [skills] skills-allow-network"},
				{Flag: "skills-network-domains", Values: []string{"a.example", "*.b.example:8443"}, From: "conf/metier.toml:17:1: [skills] skills-network-domains"},
				{Flag: "sandbox-minimum", Values: []string{"strong"}, From: "conf/metier.toml:18:1: [skills] sandbox-minimum"},
				{Flag: "sandbox-backend", Values: []string{"native"}, From: "conf/metier.toml:19:1: [skills] sandbox-backend"},
				{Flag: "skills-max-rounds", Values: []string{"12"}, From: "conf/metier.toml:12:1: [skills] skills-max-rounds"},
			},
			Discovery: config.DiscoveryNamed,
		},
		Code: []config.Setting{
			{Flag: "code-exec", Values: []string{"true"}, From: "conf/metier.toml:43:1: [code] code-exec"},
			{Flag: "code-exec-unconfined", Values: []string{"false"}, From: "conf/metier.toml:44:1: [code] code-exec-unconfined"},
			{Flag: "code-exec-allow-install", Values: []string{"true"}, From: "conf/metier.toml:45:1: [code] code-exec-allow-install"},
			{Flag: "code-exec-packages", Values: []string{"requests", "@scope/tool"}, From: "conf/metier.toml:46:1: [code] code-exec-packages"},
			{Flag: "code-exec-install-index", Values: []string{"https://packages.example/simple"}, From: "conf/metier.toml:47:1: [code] code-exec-install-index"},
			{Flag: "code-exec-install-domains", Values: []string{"packages.example", "*.files.example"}, From: "conf/metier.toml:48:1: [code] code-exec-install-domains"},
			{Flag: "code-exec-allow-network", Values: []string{"false"}, From: "conf/metier.toml:49:1: [code] code-exec-allow-network"},
			{Flag: "code-exec-network-domains", Values: []string{"api.example"}, From: "conf/metier.toml:50:1: [code] code-exec-network-domains"},
			{Flag: "code-exec-temperature", Values: []string{"0.2"}, From: "conf/metier.toml:51:1: [code] code-exec-temperature"},
			{Flag: "code-exec-shell", Values: []string{"conf/bin/bash"}, From: "conf/metier.toml:52:1: [code] code-exec-shell"},
			{Flag: "code-exec-timeout", Values: []string{"60"}, From: "conf/metier.toml:53:1: [code] code-exec-timeout"},
			{Flag: "code-exec-max-output", Values: []string{"65536"}, From: "conf/metier.toml:54:1: [code] code-exec-max-output"},
			{Flag: "workspace", Values: []string{"1048576"}, From: "conf/metier.toml:55:1: [code] workspace"},
			{Flag: "packages", Values: []string{"2097152"}, From: "conf/metier.toml:56:1: [code] packages"},
		},
		LLMs: config.LLMs{
			{ID: "local", Type: "openai", BaseURL: "http://127.0.0.1:8080/v1", From: "conf/metier.toml:21:6: [llm.local]"},
			{ID: "vendor", Type: "openai", KeyEnv: "VENDOR_KEY", From: "conf/metier.toml:24:6: [llm.vendor]"},
		},
		Keys: []config.Key{
			{ID: "ci", Env: "CI_KEY", From: "conf/metier.toml:33:6: [key.ci]"},
			{ID: "laptop", Hash: [32]byte{0: 0xab, 31: 0x01}, Skills: []string{"pdf"}, Models: []string{"m"}, From: "conf/metier.toml:28:6: [key.laptop]"},
		},
		Models: map[string]config.Model{
			"qwen3:8b": {Skills: []string{"pdf"}, Discovery: config.DiscoveryOff, Declares: &yes, Parsed: &no, Context: 32768},
		},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

const whole = `[serve]
host = "0.0.0.0"
port = 9000
record = "tapes"
upstream = "local"
log-json = true
upstream-stall = 60

[skills]
skills-dir = ["../skills", "/srv/skills"]
no-skills = false
skills-max-rounds = 12
discovery = "named"
skills-allow-exec = true
skills-sandbox = "preferred"
skills-allow-network = false
skills-network-domains = ["a.example", "*.b.example:8443"]
sandbox-minimum = "strong"
sandbox-backend = "native"

[llm.local]
type = "openai"
base_url = "http://127.0.0.1:8080/v1"
[llm.vendor]
type = "openai"
api_key_env = "VENDOR_KEY"

[key.laptop]
hash = "sha256:ab00000000000000000000000000000000000000000000000000000000000001"
skills = ["pdf"]
models = ["m"]

[key.ci]
env = "CI_KEY"

[model."qwen3:8b"]
skills = ["pdf"]
discovery = "off"
declares = true
parsed = false
context = 32768
[code]
code-exec = true
code-exec-unconfined = false
code-exec-allow-install = true
code-exec-packages = ["requests", "@scope/tool"]
code-exec-install-index = "https://packages.example/simple"
code-exec-install-domains = ["packages.example", "*.files.example"]
code-exec-allow-network = false
code-exec-network-domains = ["api.example"]
code-exec-temperature = 0.2
code-exec-shell = "bin/bash"
code-exec-timeout = 60
code-exec-max-output = 65536
workspace = 1048576
packages = 2097152
`

// TestMerge: later files win key by key, lists are replaced whole, and paths are
// relative to the file that has them.
func TestMerge(t *testing.T) {
	got, err := read(
		config.Source{Name: "base/metier.toml", Text: []byte("[serve]\nhost='a'\nport=1\n[skills]\nskills-dir=['no/such','other']\n[key.k]\nenv='K'\nskills=['x','y']\n" +
			"[code]\ncode-exec-install-domains=['a.example']\ncode-exec-network-domains=['a.example']\ncode-exec-temperature=1\ncode-exec-timeout=9\n")},
		config.Source{Name: "here/local.toml", Text: []byte("[serve]\nport=2\n[skills]\nskills-dir=['mine']\n[key.k]\nskills=[]\n[key.l]\nenv='L'\n" +
			"[code]\ncode-exec-install-domains=[]\ncode-exec-network-domains=[]\ncode-exec-temperature=-1\n")},
	)
	if err != nil {
		t.Fatal(err)
	}
	want := all{
		Serve: []config.Setting{
			{Flag: "host", Values: []string{"a"}},
			{Flag: "port", Values: []string{"2"}},
		},
		Skills: config.Skills{Settings: []config.Setting{{Flag: "skills-dir", Values: []string{"here/mine"}}}},
		// A list of hosts for installs is set without one, too: it holds none back.
		Code: []config.Setting{
			{Flag: "code-exec-install-domains", Values: []string{""}},
			{Flag: "code-exec-network-domains", Values: []string{}},
			{Flag: "code-exec-temperature", Values: []string{"-1"}},
			{Flag: "code-exec-timeout", Values: []string{"9"}},
		},
		Keys:   []config.Key{{ID: "k", Env: "K", Skills: []string{}}, {ID: "l", Env: "L"}},
		Models: map[string]config.Model{},
	}
	if d := cmp.Diff(want, got, cmpopts.IgnoreFields(config.Setting{}, "From"), cmpopts.IgnoreFields(config.Key{}, "From")); d != "" {
		t.Error(d)
	}
}

func TestUpstream(t *testing.T) {
	a, b := config.LLM{ID: "a", From: "f:1:1: [llm.a]"}, config.LLM{ID: "b"}
	for _, c := range []struct {
		llms  config.LLMs
		named string
		want  string
		err   string
	}{
		{nil, "", "", ""},
		{config.LLMs{a}, "", "a", ""},
		{config.LLMs{a, b}, "b", "b", ""},
		{config.LLMs{a, b}, "http://x", "", ""},
		{config.LLMs{a}, "demo", "", ""},
		{config.LLMs{a, b}, "", "", "f:1:1: [llm.a]: there are 2 of them, a, b: pick one"},
	} {
		got, ok, err := c.llms.Upstream(c.named)
		if got.ID != c.want || ok != (c.want != "") || (err == nil) != (c.err == "") || (err != nil && !strings.Contains(err.Error(), c.err)) {
			t.Errorf("Upstream(%q) of %d = %v, %v, %v, want %q, %q", c.named, len(c.llms), got, ok, err, c.want, c.err)
		}
	}
}

func TestDiscovery(t *testing.T) {
	for d, want := range map[config.Discovery][2]bool{
		"": {true, true}, config.DiscoveryOn: {true, true}, config.DiscoveryNamed: {false, true}, config.DiscoveryOff: {false, false},
	} {
		if got := [2]bool{d.Advertises(false), d.Advertises(true)}; got != want {
			t.Errorf("%q advertises %v, want %v", d, got, want)
		}
	}
}

func TestOpenFiles(t *testing.T) {
	if _, err := config.OpenFiles("no/such.toml"); err == nil || !strings.Contains(err.Error(), "no/such.toml") {
		t.Errorf("OpenFiles: %v, want the file's name", err)
	}
	d, err := config.OpenFiles()
	if err != nil || d.Check() != nil || len(config.ReadKeys(d)) != 0 {
		t.Errorf("no file is an empty document: %v", err)
	}
}

// FuzzRead: no file brings the reader down, each mistake has a place inside of
// the file, and what is written twice reads the same.
func FuzzRead(f *testing.F) {
	names, _ := filepath.Glob("testdata/file/*.txtar")
	for _, name := range names {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range archive.Files {
			f.Add(string(file.Data))
		}
	}
	f.Add(whole)
	f.Add("a.b.c=1\n[[a.q]]\nx=[[1,{y=2}],[]]\n[[a.q.z]]\n")
	f.Fuzz(func(t *testing.T, text string) {
		one, err := read(source(text))
		lines := strings.Count(text, "\n") + 1
		if e, ok := errors.AsType[*config.FileError](err); ok {
			for _, p := range e.Problems {
				if p.At.Line < 1 || p.At.Line > lines || p.At.Column < 1 || p.Text == "" {
					t.Errorf("%q: a problem without a place: %+v", text, p)
				}
			}
			return
		}
		two, err := read(source(text), source(text))
		if err != nil {
			t.Fatalf("%q: twice: %v", text, err)
		}
		if d := cmp.Diff(one, two); d != "" {
			t.Errorf("%q: twice: %s", text, d)
		}
	})
}
