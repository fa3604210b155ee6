package cli

import (
	"context"
	"errors"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/metier-run/metier/internal/app"
	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/internal/launch"
	"github.com/metier-run/metier/internal/sandbox"
)

func (s *session) newDoctor() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say what this machine can confine, and what would change it",
		Long: "Try everything that can confine the scripts of skills and the commands of models on this machine, and say\n" +
			"in plain words what each holds back, why others are not there, and the command that would change it. Also:\n" +
			"which programs scripts can be run with, where Metier keeps its files, and whether a model answers. No model\n" +
			"is asked anything.\n\n" +
			"It judges by the flags and files that the server is started with; those about scripts, code, limits and the\n" +
			"upstream count. The exit status is 0 when what may run can be confined as they ask (scripts, if nothing may),\n" +
			"and 1 when it cannot.",
		Example: "  metier doctor\n" +
			"  metier doctor --skills-allow-exec --skills-network-domains api.example.com\n" +
			"  metier doctor --code-exec --code-exec-allow-install\n" +
			"  metier doctor --json",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return s.doctor(cmd.Context(), asJSON)
		},
	}
	f := cmd.Flags()
	s.scriptFlags(f)
	s.codeFlags(f)
	s.limitFlags(f, ofTurns)
	s.upstreamFlags(f)
	s.storeFlags(f)
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// These are the ends of a doctor that said everything already.
var (
	errUnmet     = errors.New("scripts cannot be confined on this machine as the settings ask")
	errCodeUnmet = errors.New("commands cannot be confined on this machine as the settings ask")
)

// finding is a diagnosis, and how commands would be confined.
type finding struct {
	app.Diagnosis
	Code        app.Code
	Confinement app.Confinement // of commands; nothing while they are off
}

// examine looks at all that a doctor tells of.
func examine(ctx context.Context, settings app.Settings, logger *slog.Logger) (finding, error) {
	d := finding{Code: settings.Code}
	var err error
	if d.Diagnosis, err = app.Examine(ctx, settings, logger); err != nil {
		return d, err
	}
	if !settings.Code.Allowed {
		return d, nil
	}
	d.Confinement, err = app.LookAtCode(ctx, settings, logger)
	if err != nil && ctx.Err() == nil && fault.ExitCode(err) != fault.ExitUsage {
		d.Confinement.Problem, err = err, nil // of this machine: to be told, as all else of it
	}
	return d, err
}

// unmet is what cannot be had, of what may run; nil when all can.
func (d finding) unmet() error {
	switch {
	case !d.OK() && (d.Scripts.Allowed || !d.Code.Allowed):
		return errUnmet
	case d.Code.Allowed && d.Confinement.Problem != nil:
		return errCodeUnmet
	}
	return nil
}

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
	d, err := examine(ctx, settings, logger)
	if err != nil {
		return err
	}
	if asJSON {
		err = s.printJSON(diagnosis(d, s.file.paths))
	} else {
		sayDiagnosis(s.std.Out, d, s.file.paths)
	}
	if err == nil {
		err = d.unmet()
	}
	return err
}

// doctorReport is a diagnosis as --json prints it.
type doctorReport struct {
	OK           bool          `json:"ok"`
	System       string        `json:"system"`
	Scripts      doctorScripts `json:"scripts"`
	Code         doctorCode    `json:"code"`
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

// doctorCode has no index: a password may be part of that.
type doctorCode struct {
	Allowed        bool     `json:"allowed"`
	Unconfined     bool     `json:"unconfined"`
	Network        string   `json:"network"`
	Domains        []string `json:"domains"`
	Install        bool     `json:"install"`
	Packages       []string `json:"packages"`
	InstallDomains []string `json:"install_domains"`
	Chosen         string   `json:"chosen,omitzero"`
	Gaps           []string `json:"not_confined"`
	Problem        string   `json:"problem,omitzero"`
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

func diagnosis(d finding, files []string) doctorReport {
	r := doctorReport{OK: d.unmet() == nil, System: d.System, Files: files, Upstream: doctorPlace{d.Upstream, told(d.UpstreamProblem)}}
	policy := d.Scripts.Policy
	r.Scripts = doctorScripts{
		Allowed: d.Scripts.Allowed, Sandbox: policy.Mode.String(), Minimum: policy.Minimum.String(), Backend: policy.Backend,
		Network: networkWord(d.Scripts.Network), Domains: d.Scripts.Network.Domains, Chosen: d.Chosen, Problem: told(d.Problem),
	}
	r.Code = doctorCode{
		Allowed: d.Code.Allowed, Unconfined: d.Code.Unconfined, Network: networkWord(d.Code.Network), Domains: d.Code.Network.Domains,
		Install: d.Code.Install, Packages: d.Code.Packages, InstallDomains: d.Code.Domains,
		Chosen: d.Confinement.Capabilities.Backend, Gaps: d.Confinement.Gaps(), Problem: told(d.Confinement.Problem),
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
