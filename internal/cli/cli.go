// Package cli is the command line: one file a command. Results go to standard
// output, everything else to standard error; the exit status is 0, 1 (it
// failed) or 2 (it was called wrongly).
//
// It wires nothing itself and holds no logic of a room.
//
// Start at [Main].
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/metier-run/metier/internal/app"
	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/internal/telemetry"
)

// IO is where a command reads and writes.
type IO struct {
	In       io.Reader
	Out, Err io.Writer
}

// Main runs a command and returns its exit status.
func Main(ctx context.Context, std IO, version string, args []string) int {
	root := (&session{std: std, version: version}).newRoot()
	root.SetArgs(args)
	root.SetIn(std.In)
	root.SetOut(std.Out)
	root.SetErr(std.Err)
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(std.Err, "metier: interrupted")
	default:
		fmt.Fprintln(std.Err, "metier: "+sentence(err))
	}
	return fault.ExitCode(err)
}

// interruptible ends ctx at the first interrupt; a second one ends the process
// as the system does.
func interruptible(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// sentence is what a person reads of an error: its own text, and the cause
// where that says more. It may quote files and servers, so only its lines are kept.
func sentence(err error) string {
	lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
	for i, line := range lines {
		lines[i] = printable(line)
	}
	return strings.Join(lines, "\n")
}

// session is what all commands share.
type session struct {
	std     IO
	version string
	flags   flags
	file    file
	set     *pflag.FlagSet  // of the command that runs
	typed   map[string]bool // its flags that the command line has
}

// given reports whether the command line, the environment or a file sets a flag.
func (s *session) given(flag string) bool { return s.set != nil && s.set.Changed(flag) }

// flags are the settings that several commands take.
type flags struct {
	configs      []string
	skillsDirs   []string
	skills       []string
	noSkills     bool
	noDiscovery  bool
	listSkills   bool
	upstream     string
	upstreamType string
	upstreamKey  string
	model        string
	record       string
	db           string
	session      string
	logLevel     string
	logJSON      bool
	host         string
	port         int
	insecure     bool
	noAuth       bool
	scripts      scriptFlags
	code         codeFlags
	limits       map[config.Name]*int64
}

func (s *session) newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:     "metier",
		Short:   "Give any language model Agent Skills, behind the APIs its clients already speak",
		Version: s.version,
		Long: "metier stands between ordinary LLM clients and any model, and gives every one of them Agent Skills:\n" +
			"folders with a SKILL.md that the model opens by itself when a task needs it.\n\n" +
			"Every flag is also a variable of the environment: --skills-dir is METIER_SKILLS_DIR. metier.toml in the\n" +
			"working directory is read, too.",
		SilenceErrors: true,
		SilenceUsage:  true,
		// One slip of two letters is still understood.
		SuggestionsMinimumDistance: 2,
		Args:                       cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return unknownCommand(cmd, args[0])
		},
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			s.set, s.typed = cmd.Flags(), map[string]bool{}
			s.set.Visit(func(f *pflag.Flag) { s.typed[f.Name] = true })
			if s.typed[flagDB] && s.flags.db == "" {
				return fault.Usage("--%s: it is empty: name a database, or leave it out", flagDB)
			}
			if err := fromEnvironment(s.set); err != nil {
				return err
			}
			return s.fromFiles(s.set)
		},
	}
	root.SetGlobalNormalizationFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		return pflag.NormalizedName(strings.ToLower(name)) // flags in any case
	})
	root.SetVersionTemplate("metier {{.Version}}\n")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if gone, ok := errors.AsType[removed](err); ok {
			return fault.Usage("%w", gone)
		}
		return fault.Usage("%w (see %s --help)", err, cmd.CommandPath())
	})
	root.PersistentFlags().StringArrayVarP(&s.flags.configs, "config", "c", nil, "configuration file, in place of metier.toml in this directory (repeatable; later files win)")
	root.AddCommand(s.newServe(), s.newRun(), s.newChat(), s.newSkills(), s.newSessions(), s.newKeys(), s.newDoctor(), s.newVersion())
	return root
}

func unknownCommand(cmd *cobra.Command, name string) error {
	text := fmt.Sprintf("there is no command %q", name)
	if near := cmd.SuggestionsFor(name); len(near) > 0 {
		text += "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return fault.Usage("%s (see %s --help)", text, cmd.CommandPath())
}

// environmentPrefix stands before the name of each flag.
const environmentPrefix = "METIER_"

// fromEnvironment sets the flags that the command line left alone. A switch
// counts as on but for 0, false, no and off, and a list is split like PATH (seed 1,
// "Operator surface").
func fromEnvironment(set *pflag.FlagSet) error {
	var failed error
	set.VisitAll(func(f *pflag.Flag) {
		name := variableOf(f.Name)
		value, ok := os.LookupEnv(name)
		if !ok || f.Changed || value == "" || failed != nil {
			return
		}
		values := []string{value}
		switch f.Value.Type() {
		case "bool":
			values[0] = fmt.Sprint(switchedOn(value))
		case "stringArray":
			values = filepath.SplitList(value)
		}
		for _, v := range values {
			err := set.Set(f.Name, v)
			if gone, ok := errors.AsType[removed](err); ok {
				err = gone
			}
			if err != nil {
				failed = fault.Usage("%s: %w", name, err)
			}
		}
	})
	return failed
}

// variableOf is the variable of the environment that stands for a flag.
func variableOf(flag string) string {
	return environmentPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// from names what set a flag, for errors.
func (s *session) from(flag string) string {
	if s.typed[flag] {
		return "--" + flag
	}
	if from := s.file.from[flag]; from != "" {
		return from
	}
	return variableOf(flag)
}

// switchedOn reads a switch of the environment: on for anything but 0 (seed 1)
// and the other words by which people mean off.
func switchedOn(value string) bool {
	switch strings.ToLower(value) {
	case "0", "false", "no", "off":
		return false
	}
	return true
}

// ofRegistry fits the limits of a command that only looks at skills, ofTurns
// those of one that asks a model itself.
func ofRegistry(name config.Name) bool { return name == config.SkillCount }

func ofTurns(name config.Name) bool {
	return name != config.RequestBody && name != config.KeepAlive && name != config.Drain
}

// registryFlags are those of commands that only look at skills.
func (s *session) registryFlags(set *pflag.FlagSet) {
	f := &s.flags
	set.StringArrayVar(&f.skillsDirs, "skills-dir", nil, "directory to scan for skills, in place of the default ones and after those installed in METIER_HOME (repeatable)")
	set.BoolVar(&f.noSkills, "no-skills", false, "turn skills off")
	set.BoolVar(&f.noDiscovery, "skills-no-discovery", false, "do not tell the model of skills that a request did not name")
	set.BoolVar(&f.listSkills, "list-skills", false, "print the skills and exit")
}

// limitFlags makes a flag of every limit that has one.
func (s *session) limitFlags(set *pflag.FlagSet, fits func(config.Name) bool) {
	if s.flags.limits == nil {
		s.flags.limits = map[config.Name]*int64{}
	}
	for _, l := range config.Limits() {
		if l.Flag == "" || !fits(l.Name) {
			continue
		}
		// The commands share their flags' values: one of them runs.
		if s.flags.limits[l.Name] == nil {
			s.flags.limits[l.Name] = new(int64)
		}
		set.Int64Var(s.flags.limits[l.Name], l.Flag, l.Default, l.Help+l.Unit.Words())
	}
}

const flagDB = "db"

// storeFlags are those of commands that keep something, or show what is kept.
func (s *session) storeFlags(set *pflag.FlagSet) {
	set.StringVar(&s.flags.db, flagDB, "", "database: a file, postgres://USER:PASSWORD@HOST/NAME, or memory to keep nothing (default metier.db in METIER_HOME)")
}

func (s *session) upstreamFlags(set *pflag.FlagSet) {
	f := &s.flags
	set.StringVar(&f.upstream, "upstream", "", "URL of the model endpoint, an [llm.NAME] of the file, or demo; without any this machine is looked over")
	set.StringVar(&f.upstreamType, "upstream-type", "", "dialect of the upstream, when guessing is wrong: openai, anthropic or ollama")
	set.StringVar(&f.upstreamKey, "upstream-key-env", "", "environment variable that holds the upstream's key")
	set.StringVar(&f.logLevel, "log-level", "", "debug, info, warn or error")
	set.BoolVar(&f.logJSON, "log-json", false, "log one JSON object a line")
}

// settings resolves what the flags say.
func (s *session) settings() (app.Settings, error) {
	f := s.flags
	home, err := homeDir()
	if err != nil {
		return app.Settings{}, err
	}
	out := app.Settings{
		Home: home, SkillsDirs: f.skillsDirs, SkillsFrom: s.file.from["skills-dir"], NoSkills: f.noSkills,
		Discovery: s.file.discovery, Models: s.file.models, Record: f.record, Version: s.version,
		DB: config.NewSecret(f.db), NoAuth: f.noAuth,
	}
	if f.noDiscovery {
		out.Discovery = config.DiscoveryOff
	}
	if out.Limits, err = s.limits(); err != nil {
		return out, err
	}
	if out.Scripts, err = s.scripts(); err != nil {
		return out, err
	}
	if out.Code, err = s.code(); err != nil {
		return out, err
	}
	out.Upstream, err = s.upstream()
	return out, err
}

// limits are those that were set. That one was not can mean more than its default
// (B1 7.9).
func (s *session) limits() (config.Values, error) {
	var out config.Values
	for _, l := range config.Limits() {
		if l.Flag == "" || !s.given(l.Flag) {
			continue
		}
		var err error
		if out, err = out.Set(l.Name, *s.flags.limits[l.Name]); err != nil {
			return out, fault.Usage("%w", err)
		}
	}
	return out, nil
}

// homeDir is METIER_HOME, or the user's data directory.
func homeDir() (string, error) {
	if dir := os.Getenv("METIER_HOME"); dir != "" {
		return filepath.Abs(dir)
	}
	if dir := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "metier"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find a place for state: %w; set METIER_HOME", err)
	}
	return filepath.Join(home, ".local", "share", "metier"), nil
}

// logger logs to standard error at a level that the command has by default.
func (s *session) logger(level slog.Level) (*slog.Logger, error) {
	if s.flags.logLevel != "" {
		if err := level.UnmarshalText([]byte(s.flags.logLevel)); err != nil {
			return nil, fault.Usage("--log-level %s: give debug, info, warn or error", s.flags.logLevel)
		}
	}
	return telemetry.NewLogger(s.std.Err, telemetry.Options{
		Level: level, JSON: s.flags.logJSON, Color: isTerminal(s.std.Err),
	}), nil
}

func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
