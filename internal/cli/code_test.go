package cli

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/metier-run/metier/internal/app"
	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/internal/launch"
	"github.com/metier-run/metier/internal/sandbox"
)

// settingsOf is what a command line of metier run comes to, in a folder of its own.
func settingsOf(t *testing.T, args ...string) (app.Settings, error) {
	t.Helper()
	t.Setenv("METIER_HOME", t.TempDir())
	s := &session{std: IO{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard}}
	root := s.newRoot()
	run, _, err := root.Find([]string{"run"})
	if err != nil {
		t.Fatal(err)
	}
	var got app.Settings
	run.RunE = func(*cobra.Command, []string) error {
		var err error
		got, err = s.settings()
		return err
	}
	root.SetArgs(append([]string{"run", "--upstream", app.Demo}, args...))
	root.SetOut(io.Discard)
	root.SetErr(io.Discard)
	err = root.ExecuteContext(t.Context())
	return got, err
}

// written is the path of a new file.
func written(t *testing.T, name, text string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestCodeFlags: what each flag comes to, in both spellings, in any case, with each
// separator of lists, from the environment and from files (B1 18.3, 18.4, 20.5).
func TestCodeFlags(t *testing.T) {
	warm, cold := 0.7, 0.0
	shell := written(t, "shell.exe", "#!/bin/sh\n", 0o755)
	conf := written(t, "conf.toml", "[code]\ncode-exec = true\ncode-exec-allow-install = true\ncode-exec-packages = [\"left\"]\n"+
		"code-exec-install-domains = []\ncode-exec-temperature = 1\ncode-exec-shell = '"+shell+"'\n", 0o600)
	network := func(n launch.Network) launch.Network {
		n.Flag = "--" + flagCodeDomains
		return n
	}
	none := network(launch.Network{})
	for name, c := range map[string]struct {
		args string
		env  map[string]string
		want app.Code
	}{
		"nothing":         {"", nil, app.Code{Network: none}},
		"on":              {"--code-exec", nil, app.Code{Allowed: true, Network: none}},
		"off again":       {"--code-exec=false --code-exec-allow-network", nil, app.Code{Network: network(launch.Network{Open: true})}},
		"any case":        {"--CODE-Exec --Code-Exec-Allow-INSTALL", nil, app.Code{Allowed: true, Install: true, Network: none}},
		"network":         {"--code-exec --code-exec-allow-network", nil, app.Code{Allowed: true, Network: network(launch.Network{Open: true})}},
		"unconfined":      {"--code-exec --code-exec-unconfined", nil, app.Code{Allowed: true, Unconfined: true, Network: none}},
		"unconfined bare": {"--code-exec --code-exec-unconfined --sandbox-backend bare", nil, app.Code{Allowed: true, Unconfined: true, Network: none}},
		"network domains": {
			"--code-exec --code-exec-network-domains a.example;*.b.example:8443,c.example", nil,
			app.Code{Allowed: true, Network: network(launch.Network{Domains: []string{"a.example", "*.b.example:8443", "c.example"}})},
		},
		"no network domains": {
			"--code-exec --code-exec-allow-network --code-exec-network-domains=", nil,
			app.Code{Allowed: true, Network: network(launch.Network{Open: true, Domains: []string{}})},
		},
		"packages": {
			"--code-exec --code-exec-allow-install --code-exec-packages=requests,@scope/tool --code-exec-packages typescript;zope.interface", nil,
			app.Code{Allowed: true, Install: true, Network: none, Packages: []string{"requests", "@scope/tool", "typescript", "zope.interface"}},
		},
		"install domains": {
			"--code-exec --code-exec-allow-install --code-exec-install-domains=a.example,,b.example;*.c.example --code-exec-install-domains d.example", nil,
			app.Code{Allowed: true, Install: true, Network: none, Domains: []string{"a.example", "b.example", "*.c.example", "d.example"}},
		},
		"no install domains": {
			"--code-exec --code-exec-allow-install --code-exec-install-domains=", nil,
			app.Code{Allowed: true, Install: true, Network: none, Domains: []string{}},
		},
		"index": {
			"--code-exec --code-exec-allow-install --code-exec-install-index https://u:p@packages.example:8443/simple/", nil,
			app.Code{Allowed: true, Install: true, Network: none, Index: "https://u:p@packages.example:8443/simple/"},
		},
		"temperature":       {"--code-exec --code-exec-temperature 0.7", nil, app.Code{Allowed: true, Network: none, Temperature: &warm}},
		"temperature 0":     {"--code-exec --code-exec-temperature=0", nil, app.Code{Allowed: true, Network: none, Temperature: &cold}},
		"temperature clear": {"--code-exec --code-exec-temperature 0.7 --code-exec-temperature -1", nil, app.Code{Allowed: true, Network: none}},
		"shell":             {"--code-exec --code-exec-shell " + shell, nil, app.Code{Allowed: true, Network: none, Shell: shell}},
		"environment": {
			"--code-exec-install-domains b.example",
			map[string]string{
				"METIER_CODE_EXEC": "yes", "METIER_CODE_EXEC_ALLOW_INSTALL": "1", "METIER_CODE_EXEC_INSTALL_DOMAINS": "a.example",
				"METIER_CODE_EXEC_PACKAGES": "left; right\tmiddle", "METIER_CODE_EXEC_ALLOW_NETWORK": "0", "METIER_CODE_EXEC_TEMPERATURE": "0.7",
				"METIER_CODE_EXEC_INSTALL_INDEX": "https://packages.example/simple", "METIER_CODE_EXEC_UNCONFINED": "off",
			},
			app.Code{
				Allowed: true, Install: true, Network: none, Domains: []string{"b.example"}, Packages: []string{"left", "right", "middle"},
				Index: "https://packages.example/simple", Temperature: &warm,
			},
		},
		"environment, nothing hangs on it": {"", map[string]string{"METIER_CODE_EXEC_ALLOW_INSTALL": "1"}, app.Code{Install: true, Network: none}},
		"file": {
			"--code-exec-temperature -1 -c " + conf,
			map[string]string{"METIER_CODE_EXEC_SHELL": ""},
			app.Code{Allowed: true, Install: true, Network: none, Packages: []string{"left"}, Domains: []string{}, Shell: shell},
		},
		"file, off for once": {"--code-exec=0 -c " + conf, nil, app.Code{
			Install: true, Network: none, Packages: []string{"left"}, Domains: []string{}, Temperature: new(1.0),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			for k, v := range c.env {
				t.Setenv(k, v)
			}
			got, err := settingsOf(t, strings.Fields(c.args)...)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, got.Code); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestCodeFlagsRefused: what contradicts itself, does nothing or cannot be read is a
// wrong call that says what to do, and repeats no password.
func TestCodeFlagsRefused(t *testing.T) {
	const install = "--code-exec --code-exec-allow-install "
	text := written(t, "text", "x", 0o644)
	for _, c := range []struct{ name, args, env, want string }{
		{"install alone", "--code-exec-allow-install", "", "--code-exec-allow-install does nothing without --code-exec: add it, or leave --code-exec-allow-install out"},
		{"network alone", "--code-exec-allow-network", "", "--code-exec-allow-network does nothing without --code-exec"},
		{"domains alone", "--code-exec-network-domains a.example", "", "--code-exec-network-domains does nothing without --code-exec"},
		{"unconfined alone", "--code-exec-unconfined", "", "--code-exec-unconfined does nothing without --code-exec"},
		{"temperature alone", "--code-exec-temperature 1", "", "--code-exec-temperature does nothing without --code-exec"},
		{"shell alone", "--code-exec-shell /bin/sh", "", "--code-exec-shell does nothing without --code-exec"},
		{"packages alone", "--code-exec --code-exec-packages a", "", "--code-exec-packages does nothing without --code-exec-allow-install"},
		{"index alone", "--code-exec --code-exec-install-index https://a.example", "", "--code-exec-install-index does nothing without --code-exec-allow-install"},
		{"hosts alone", "--code-exec --code-exec-install-domains a.example", "", "--code-exec-install-domains does nothing without --code-exec-allow-install"},
		{"two networks", "--code-exec --code-exec-allow-network --code-exec-network-domains a.example", "", "--code-exec-allow-network gives commands the whole network and --code-exec-network-domains only a part of it: keep one"},
		{"unconfined and a minimum", "--code-exec --code-exec-unconfined --sandbox-minimum weak", "", "--code-exec-unconfined runs commands with whatever confinement there is and --sandbox-minimum asks for weak: keep one"},
		{"unconfined by one backend", "--code-exec --code-exec-unconfined --sandbox-backend Native", "", "--sandbox-backend asks for native: keep one"},
		{"no package", install + "--code-exec-packages=", "", "--code-exec-packages names no package: name one, or leave it out to allow any"},
		{"a version", install + "--code-exec-packages requests==2.1", "", `--code-exec-packages: "requests==2.1" is not the bare name`},
		{"a scoped version", install + "--code-exec-packages @a/b@1", "", `"@a/b@1" is not the bare name`},
		{"an extra", install + "--code-exec-packages a[b]", "", `"a[b]" is not the bare name`},
		{"an address", install + "--code-exec-packages https://a.example/b.whl", "", "is not the bare name"},
		{"an index that is none", install + "--code-exec-install-index u:hunter2@a.example/simple", "", "--code-exec-install-index: this is not the URL of a package index"},
		{"an index that is no URL", install + "--code-exec-install-index https://u:hunter2@a.example:x/simple", "", "this is not the URL of a package index"},
		{"an index in a file", install + "--code-exec-install-index file:///srv/hunter2", "", "this is not the URL of a package index"},
		{"too warm", "--code-exec --code-exec-temperature 2.1", "", "give a number from 0 to 2, or a negative one"},
		{"no number", "--code-exec --code-exec-temperature nan", "", "give a number from 0 to 2, or a negative one"},
		{"no shell", "--code-exec --code-exec-shell no/such/shell", "", "give the path of a shell, such as /bin/bash"},
		{"a folder for a shell", "--code-exec --code-exec-shell .", "", "it is no program: give the path of a shell"},
		{"a text for a shell", "--code-exec --code-exec-shell " + text, "", "it is no program"},
		{"languages", "--code-exec --code-exec-languages python", "", "--code-exec-languages was removed: a command runs whatever program the sandbox shows it: leave this out"},
		{"languages by =", "--code-exec --CODE-EXEC-LANGUAGES=python", "", "--code-exec-languages was removed"},
		{"languages of the environment", "", "METIER_CODE_EXEC_LANGUAGES=python", "METIER_CODE_EXEC_LANGUAGES: --code-exec-languages was removed"},
		{"a temperature of the environment", "", "METIER_CODE_EXEC_TEMPERATURE=hot", "METIER_CODE_EXEC_TEMPERATURE: "},
		{"one that there is not", "--code-exec-everything", "", "unknown flag: --code-exec-everything (see metier run --help)"},
		{"a limit out of range", "--code-exec-timeout 0", "", "limit code-exec-timeout: 0 is out of range: give 1 to"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.name == "a text for a shell" && filepath.Separator == '\\' {
				t.Skip("this system does not say what is a program")
			}
			t.Chdir(t.TempDir())
			if name, value, found := strings.Cut(c.env, "="); found {
				t.Setenv(name, value)
			}
			_, err := settingsOf(t, strings.Fields(c.args)...)
			if err == nil || !strings.Contains(err.Error(), c.want) || fault.ExitCode(err) != fault.ExitUsage {
				t.Errorf("got %v (exit %d), want %q", err, fault.ExitCode(err), c.want)
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the password is repeated: %v", err)
			}
		})
	}
}

// TestLimitsThatWereSet: a limit that nobody set is not among the settings, so that
// another default can take its place (B1 7.9).
func TestLimitsThatWereSet(t *testing.T) {
	t.Chdir(t.TempDir())
	got, err := settingsOf(t, "--code-exec-timeout", "7", "--Code-Exec-Max-Output=2048")
	if err != nil {
		t.Fatal(err)
	}
	var want config.Values
	for name, value := range map[config.Name]int64{config.CodeTime: 7, config.CodeOutput: 2048} {
		if want, err = want.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff(want, got.Limits, cmp.AllowUnexported(config.Values{})); d != "" {
		t.Error(d)
	}
}

// family is each flag of code that help tells of.
func family() []string {
	flags := []string{flagCode, flagUnconfined, flagInstall, flagPackages, flagIndex, flagInstallDomains, flagCodeNetwork, flagCodeDomains, flagTemperature, flagShell}
	for _, l := range config.Limits() {
		if l.Flag != "" && (strings.HasPrefix(l.Flag, "code-exec-") || l.Name == config.WorkspaceBytes || l.Name == config.PackagesTotal) {
			flags = append(flags, l.Flag)
		}
	}
	return flags
}

// TestCodeUsage: the commands that take the family tell of all of it, and of nothing
// that is gone (B1 20.5).
func TestCodeUsage(t *testing.T) {
	root := (&session{}).newRoot()
	flags := family()
	if !slices.Contains(flags, "code-exec-timeout") || !slices.Contains(flags, "code-exec-max-output") {
		t.Errorf("limits of code have no flag: %v", flags)
	}
	for _, name := range []string{"serve", "run", "chat", "doctor"} {
		cmd, _, err := root.Find([]string{name})
		if err != nil {
			t.Fatal(err)
		}
		usage := cmd.UsageString()
		for _, flag := range flags {
			if !strings.Contains(usage, "--"+flag+" ") {
				t.Errorf("metier %s --help does not tell of --%s", name, flag)
			}
		}
		if strings.Contains(usage, flagLanguages) {
			t.Errorf("metier %s --help tells of --%s", name, flagLanguages)
		}
	}
}

// TestSayCode: a start says of code what an operator must know, and no password.
func TestSayCode(t *testing.T) {
	whole := sandbox.Capabilities{Backend: "native", Tier: sandbox.TierFull}
	for _, a := range sandbox.Aspects() {
		whole.All = append(whole.All, sandbox.Capability{Aspect: a, Held: true})
	}
	part := sandbox.Capabilities{Backend: "landlock", Tier: sandbox.TierWeak, All: whole.All[:2]}
	for name, c := range map[string]struct {
		code app.Code
		how  app.Confinement
		want string
	}{
		"off": {app.Code{Install: true}, app.Confinement{}, ""},
		"on":  {app.Code{Allowed: true}, app.Confinement{Capabilities: whole}, "code: on, sandbox native (full)\n"},
		"installs": {
			app.Code{Allowed: true, Install: true, Index: "https://u:hunter2@packages.example"},
			app.Confinement{Capabilities: whole},
			"code: on, sandbox native (full)\ncode: packages that commands ask for are installed (--code-exec-allow-install)\n",
		},
		"some of them": {
			app.Code{Allowed: true, Install: true, Packages: []string{"a", "@b/c"}},
			app.Confinement{Capabilities: whole, Network: sandbox.NetworkProxied, Domains: []string{"x.example"}},
			"code: on, sandbox native (full)\ncode: the network is open to them for x.example only\n" +
				"code: of the packages that commands ask for, these are installed: a, @b/c (--code-exec-allow-install)\n",
		},
		"all open": {
			app.Code{Allowed: true, Install: true, Packages: []string{"a"}},
			app.Confinement{Capabilities: part, Network: sandbox.NetworkOpen},
			"code: on, sandbox landlock (weak)\ncode: Not confined on this host: a child may outlive the request; may see other processes\n" +
				"code: the network is open to them (--code-exec-allow-network)\ncode: of the packages that commands ask for, these are installed: a (--code-exec-allow-install)\n" +
				"code: the network is open to commands, so --code-exec-packages and --code-exec-install-domains hold nothing back\n",
		},
		"refused": {
			app.Code{Allowed: true, Install: true},
			app.Confinement{Problem: errors.New("it cannot\x1b[2J"), Network: sandbox.NetworkOpen},
			"code: refused on this host: it cannot [2J (metier doctor says more)\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var said strings.Builder
			(&session{}).sayCode(&said, c.code, c.how)
			if d := cmp.Diff(c.want, said.String()); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestUnmet: the exit status of a doctor judges what may run.
func TestUnmet(t *testing.T) {
	bad := errors.New("no")
	for _, c := range []struct {
		scripts, code              bool
		scriptProblem, codeProblem error
		want                       error
	}{
		{false, false, nil, nil, nil},
		{false, false, bad, nil, errUnmet},
		{true, false, bad, nil, errUnmet},
		{false, true, bad, nil, nil},
		{false, true, bad, bad, errCodeUnmet},
		{true, true, bad, nil, errUnmet},
		{true, true, nil, bad, errCodeUnmet},
		{true, true, nil, nil, nil},
	} {
		d := finding{
			Diagnosis: app.Diagnosis{Scripts: app.Scripts{Allowed: c.scripts}, Problem: c.scriptProblem},
			Code:      app.Code{Allowed: c.code}, Confinement: app.Confinement{Problem: c.codeProblem},
		}
		if got := d.unmet(); !errors.Is(got, c.want) {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
