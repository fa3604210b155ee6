package cli

import (
	"context"
	"errors"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/metier-run/metier/internal/app"
	"github.com/metier-run/metier/internal/launch"
	"github.com/metier-run/metier/internal/sandbox"
)

func (s *session) newDoctor() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say what this machine can confine, and what would change it",
		Long: "Try everything that can confine the scripts of skills on this machine, and say in plain words what each holds\n" +
			"back, why others are not there, and the command that would change it. Also: which programs scripts can be\n" +
			"run with, where Metier keeps its files, and whether a model answers. No model is asked anything.\n\n" +
			"It judges by the flags and files that the server is started with; those about scripts, limits and the upstream\n" +
			"count. The exit status is 0 when scripts can be confined as they ask, and 1 when they cannot.",
		Example: "  metier doctor\n" +
			"  metier doctor --skills-allow-exec --skills-network-domains api.example.com\n" +
			"  metier doctor --json",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return s.doctor(cmd.Context(), asJSON)
		},
	}
	f := cmd.Flags()
	s.scriptFlags(f)
	s.limitFlags(f, ofTurns)
	s.upstreamFlags(f)
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// errUnmet is the end of a doctor that said everything already.
var errUnmet = errors.New("scripts cannot be confined on this machine as the settings ask")

func (s *session) doctor(ctx context.Context, asJSON bool) error {
	ctx, stop := interruptible(ctx)
	defer stop()
	settings, err := s.settings()
	if err != nil {
		return err
	}
	logger, err := s.logger(slog.LevelError)
	if err != nil {
		return err
	}
	d, err := app.Examine(ctx, settings, logger)
	if err != nil {
		return err
	}
	if asJSON {
		err = s.printJSON(diagnosis(d, s.file.paths))
	} else {
		sayDiagnosis(s.std.Out, d, s.file.paths)
	}
	if err == nil && !d.OK() {
		err = errUnmet
	}
	return err
}

// doctorReport is a diagnosis as --json prints it.
type doctorReport struct {
	OK           bool          `json:"ok"`
	System       string        `json:"system"`
	Scripts      doctorScripts `json:"scripts"`
	Backends     []doctorRow   `json:"backends"`
	Interpreters []doctorTool  `json:"interpreters"`
	Home         doctorHome    `json:"home"`
	Upstream     doctorPlace   `json:"upstream"`
	Files        []string      `json:"configuration"`
}

type doctorScripts struct {
	Allowed bool     `json:"allowed"`
	Sandbox string   `json:"sandbox"`
	Minimum string   `json:"minimum"`
	Backend string   `json:"backend,omitzero"` // the one that was asked for
	Network string   `json:"network"`
	Domains []string `json:"domains"`
	Chosen  string   `json:"chosen,omitzero"`
	Problem string   `json:"problem,omitzero"`
}

type doctorRow struct {
	Name    string      `json:"name"`
	Tier    string      `json:"tier,omitzero"`
	Version string      `json:"version,omitzero"`
	Holds   []doctorCan `json:"holds"`
	Problem string      `json:"problem,omitzero"`
	Fix     string      `json:"fix,omitzero"`
}

type doctorCan struct {
	Aspect string `json:"aspect"`
	Held   bool   `json:"held"`
	Note   string `json:"note,omitzero"`
}

type doctorTool struct {
	Kind    string   `json:"kind"`
	Path    string   `json:"path,omitzero"`
	Version string   `json:"version,omitzero"`
	Needs   []string `json:"needs"`
	Problem string   `json:"problem,omitzero"`
}

type doctorHome struct {
	Dir        string `json:"dir"`
	Problem    string `json:"problem,omitzero"`
	FileSystem string `json:"file_system,omitzero"`
	Free       *int64 `json:"free,omitzero"` // bytes
}

type doctorPlace struct {
	Found   string `json:"found,omitzero"`
	Problem string `json:"problem,omitzero"`
}

func diagnosis(d app.Diagnosis, files []string) doctorReport {
	r := doctorReport{OK: d.OK(), System: d.System, Files: files, Upstream: doctorPlace{d.Upstream, told(d.UpstreamProblem)}}
	policy := d.Scripts.Policy
	r.Scripts = doctorScripts{
		Allowed: d.Scripts.Allowed, Sandbox: policy.Mode.String(), Minimum: policy.Minimum.String(), Backend: policy.Backend,
		Network: networkWord(d.Scripts.Network), Domains: d.Scripts.Network.Domains, Chosen: d.Chosen, Problem: told(d.Problem),
	}
	for _, row := range d.Backends {
		r.Backends = append(r.Backends, doctorBackend(row))
	}
	for _, p := range d.Programs {
		r.Interpreters = append(r.Interpreters, doctorTool{string(p.Kind), p.Path, p.Version, p.Read, told(p.Problem)})
	}
	r.Home = doctorHome{Dir: d.Home.Dir, Problem: told(d.Home.Problem), FileSystem: d.Home.FileSystem}
	if d.Home.Free >= 0 {
		r.Home.Free = &d.Home.Free
	}
	return r
}

func doctorBackend(row launch.Row) doctorRow {
	one := doctorRow{Name: row.Name}
	if row.Problem != nil {
		one.Problem, one.Fix = why(row.Problem)
		return one
	}
	one.Tier, one.Version = row.Capabilities.Tier.String(), row.Capabilities.Version
	for _, c := range row.Capabilities.All {
		one.Holds = append(one.Holds, doctorCan{string(c.Aspect), c.Held, c.Note})
	}
	return one
}

// told is an error's text, empty for none.
func told(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// why takes a problem apart: what failed, and what would change it.
func why(err error) (problem, fix string) {
	u, ok := errors.AsType[*sandbox.Unavailable](err)
	switch {
	case err == nil:
		return "", ""
	case !ok:
		return err.Error(), ""
	case u.Err == nil:
		return u.Step, u.Fix
	}
	return u.Step + ": " + u.Err.Error(), u.Fix
}

func networkWord(n launch.Network) string {
	switch {
	case n.Open:
		return "open"
	case len(n.Domains) > 0:
		return "domains"
	}
	return "denied"
}
