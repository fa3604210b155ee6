package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/metier-run/metier/internal/access"
	"github.com/metier-run/metier/internal/app"
	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/fault"
)

// file is what the configuration files say beyond flags.
type file struct {
	paths     []string
	found     bool              // in the working directory: nobody named it (trust.go)
	from      map[string]string // by flag, where the file that set it does so
	discovery config.Discovery
	models    map[string]config.Model
	llms      config.LLMs
	keys      []config.Key
}

// fromFiles reads the configuration and sets the flags that neither the command
// line nor the environment has set. A command that takes no setting reads no file,
// so that none can keep it from running.
func (s *session) fromFiles(set *pflag.FlagSet) error {
	if set.Lookup("skills-dir") == nil && set.Lookup("upstream") == nil && set.Lookup(flagDB) == nil {
		return nil
	}
	d, paths, err := s.openFiles()
	if err != nil {
		return err
	}
	top, serve, skills, code := config.ReadTop(d), config.ReadServe(d), config.ReadSkills(d), config.ReadCode(d)
	s.file = file{
		paths: paths, found: len(s.flags.configs) == 0, from: map[string]string{}, discovery: skills.Discovery,
		models: config.ReadModels(d), llms: config.ReadLLMs(d), keys: config.ReadKeys(d),
	}
	if err := d.Check(); err != nil {
		return fault.Usage("%w", err)
	}
	if set.Lookup("upstream") == nil {
		s.file.llms = nil // the command asks no model, so none must be picked
	}
	return s.apply(set, slices.Concat(top, serve, skills.Settings, code))
}

// openFiles reads those that were named, or the one in the working directory if
// it is there.
func (s *session) openFiles() (*config.Document, []string, error) {
	paths := s.flags.configs
	if len(paths) > 0 {
		d, err := config.OpenFiles(paths...)
		if err != nil {
			return nil, nil, fault.Usage("%w", err)
		}
		return d, paths, nil
	}
	var sources []config.Source
	text, err := readFound(config.FileName)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, nil, fault.Usage("read configuration: %w", err)
	default:
		paths = []string{config.FileName}
		sources = []config.Source{{Name: config.FileName, Text: text}}
	}
	d, err := config.ParseFiles(sources...)
	if err != nil {
		return nil, nil, fault.Usage("%w", err)
	}
	return d, paths, nil
}

// apply sets flags. What the file says of its own upstream is no word about
// another one that the command line or the environment names: a key must not go
// there.
func (s *session) apply(set *pflag.FlagSet, settings []config.Setting) error {
	other := set.Changed("upstream")
	for _, v := range settings {
		flag := set.Lookup(v.Flag)
		if flag == nil || flag.Changed || (other && ofOneUpstream(v.Flag)) {
			continue
		}
		if err := s.file.mayOpen(v); err != nil {
			return err
		}
		for _, text := range v.Values {
			if err := set.Set(v.Flag, text); err != nil {
				return fault.Usage("%s: %w", v.From, err)
			}
		}
		s.file.from[v.Flag] = v.From
	}
	return nil
}

// ofOneUpstream reports whether a flag is about one upstream only, and not a
// limit for any.
func ofOneUpstream(flag string) bool {
	return flag == "upstream-type" || flag == "upstream-key-env"
}

// upstream is the endpoint that the flags name, or the file's.
func (s *session) upstream() (app.Upstream, error) {
	f := s.flags
	one, ok, err := s.file.llms.Upstream(f.upstream)
	if err != nil {
		return app.Upstream{}, fault.Usage("%w", err)
	}
	if !ok {
		if err := s.file.maySend(s.file.from["upstream"], f.upstreamKey, f.upstream); err != nil {
			return app.Upstream{}, err
		}
		key, err := app.UpstreamKey(f.upstream, f.upstreamKey)
		return app.Upstream{URL: f.upstream, Type: f.upstreamType, Key: key}, err
	}
	u := app.Upstream{URL: one.BaseURL, Type: one.Type}
	if u.URL == "" {
		u.URL = app.DefaultURL(u.Type)
	}
	if one.KeyEnv == "" {
		u.Key, err = app.UpstreamKey(u.URL, "")
		return u, err
	}
	if err := s.file.maySend(one.From, one.KeyEnv, one.BaseURL); err != nil {
		return app.Upstream{}, err
	}
	u.Key, err = variable(one.From+" api_key_env", one.KeyEnv)
	return u, err
}

// variable reads a secret from the environment.
func variable(from, name string) (config.Secret, error) {
	text := os.Getenv(name)
	if text == "" {
		return config.Secret{}, fault.Usage("%s: the variable %s is not set", from, name)
	}
	return config.NewSecret(text), nil
}

// accessKeys are the keys that callers must present. Only a server needs them:
// their variables are read here and not before.
func (f file) accessKeys() ([]access.Key, error) {
	var keys []access.Key
	for _, k := range f.keys {
		one := access.Key{ID: k.ID, Hash: k.Hash, Skills: k.Skills, Models: k.Models, Admin: k.Admin}
		if f.found && k.Admin {
			return nil, fault.Usage("%s admin: a file that was not named cannot show sessions to anybody: name the file with %s", k.From, trusted)
		}
		if k.Env != "" {
			text, err := variable(k.From+" env", k.Env)
			if err != nil {
				return nil, err
			}
			one.Hash = access.Hash(text)
		}
		keys = append(keys, one)
	}
	return keys, nil
}

// sayFiles tells which files were read: one that lies in the working directory
// may be somebody else's.
func (s *session) sayFiles() {
	if len(s.file.paths) > 0 {
		fmt.Fprintf(s.std.Err, "configuration: %s\n", strings.Join(s.file.paths, ", "))
	}
}
