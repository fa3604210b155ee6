// Package app is the only wiring: it turns settings into the rooms that are
// connected to each other.
//
// It decides nothing that a room could decide, and no room but the command line
// imports it.
//
// Start at [Open].
package app

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/metier-run/metier/internal/access"
	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/internal/gateway"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/llm/upstream"
	"github.com/metier-run/metier/internal/server"
	dooranthropic "github.com/metier-run/metier/internal/server/anthropic"
	doorartifacts "github.com/metier-run/metier/internal/server/artifacts"
	doorollama "github.com/metier-run/metier/internal/server/ollama"
	dooropenai "github.com/metier-run/metier/internal/server/openai"
	"github.com/metier-run/metier/internal/server/responses"
	doorsessions "github.com/metier-run/metier/internal/server/sessions"
	doorskills "github.com/metier-run/metier/internal/server/skills"
	doorweb "github.com/metier-run/metier/internal/server/web"
	"github.com/metier-run/metier/internal/store"
	"github.com/metier-run/metier/skill"
	"github.com/metier-run/metier/skill/watch"
)

// Settings are what an operator can set, resolved from flags, environment and
// defaults.
type Settings struct {
	// Home is METIER_HOME: where state lives.
	Home string
	// SkillsDirs replace the default roots when there are any.
	SkillsDirs []string
	// SkillsFrom names the setting that SkillsDirs come from, for errors; empty
	// means the flag.
	SkillsFrom string
	NoSkills   bool
	// Discovery says when skills that a request does not name are advertised.
	Discovery config.Discovery
	Upstream  Upstream
	// Keys are what callers must present; with none, everybody is served.
	Keys []access.Key
	// Models is what the operator says of single models, by their names.
	Models  map[string]config.Model
	Scripts Scripts
	Code    Code
	Limits  config.Values
	// NoAuth lets who reaches a server of this machine see what else needs a key.
	NoAuth bool
	// DB is the path of an SQLite file, postgres://…, or [MemoryDB]; empty is the file in
	// Home.
	DB config.Secret
	// Record is a directory for recordings of turns; empty records nothing.
	Record  string
	Version string
}

// App is a wired process.
type App struct {
	Settings Settings
	Gateway  *gateway.Gateway
	// Registry holds the skills; nil with --no-skills.
	Registry *skill.Registry
	// Chosen says in one line which upstream is used and why.
	Chosen string
	// Store is the database; nil where nothing is kept. StoreWarning says so where that is
	// not what was asked for.
	Store        *store.DB
	StoreWarning string

	continuity *store.Continuity
	logger     *slog.Logger
	transport  *http.Transport
	host       ids
	keys       *access.Keys
	launches   *launches // nil when nothing may run
	scripts    bool      // those of skills may
	work       *work     // nil when a model may not work with files
	sessions   *doorweb.Sessions
	responses  *responses.Door
}

// ids makes unguessable, sortable ids.
type ids struct{}

// NewID is a ULID: 48 bits of time and 80 of randomness.
func (ids) NewID() string { return ulid.MustNew(ulid.Now(), rand.Reader).String() }

// Open wires a process. It reads the skills, finds the upstream and, where scripts
// may run, what confines them; it asks no model. Close what it returns.
func Open(ctx context.Context, s Settings, logger *slog.Logger) (*App, error) {
	a := &App{Settings: s, logger: logger}
	var err error
	if a.keys, err = access.New(s.Keys); err != nil {
		return nil, fault.Usage("%w", err)
	}
	if a.Registry, err = OpenSkills(ctx, s); err != nil {
		return nil, err
	}
	a.warnOfSkills()
	a.transport = upstream.NewTransport(s.Limits)
	var recorder *recorder
	if s.Record != "" {
		if recorder, err = newRecorder(s.Record, a.transport, logger); err != nil {
			return nil, err
		}
	}
	upstream, err := connect(ctx, s, recorded(recorder, a.transport), a.host.NewID)
	if err != nil {
		return nil, err
	}
	a.Chosen = upstream.chosen
	options := gateway.Options{
		Provider: a.bounded(upstream), Skills: a.Skills, Discovery: s.Discovery, Models: s.Models,
		Limits: s.Limits, Logger: logger, Now: time.Now, Host: a.host,
	}
	if options.Continuity, err = a.openStore(ctx); err != nil {
		a.Close()
		return nil, err
	}
	if recorder != nil {
		recorder.secret(s.Upstream.Key)
		options.Record = recorder
	}
	if err := a.openLaunches(ctx, &options); err != nil {
		a.Close()
		return nil, err
	}
	a.Gateway = gateway.New(options)
	a.sessions = doorweb.NewSessions(doorweb.SessionOptions{
		Code: options.Code, Limits: s.Limits, Now: time.Now, NewID: a.NewSessionID, Logger: logger,
		Journals: a.webJournals(),
	})
	a.openResponses()
	return a, nil
}

// openLaunches opens what runs scripts and commands, as far as they may run.
func (a *App) openLaunches(ctx context.Context, o *gateway.Options) (err error) {
	s := a.Settings
	a.scripts = s.Scripts.Allowed && a.Registry != nil
	if !a.scripts && !s.Code.Allowed {
		return nil
	}
	if a.launches, err = openLaunches(ctx, s, a.logger); err != nil {
		return err
	}
	var roots []skill.Root
	if a.Registry != nil {
		roots = a.Registry.Roots()
	}
	if a.scripts {
		o.Runner, o.Scripts = a.launches.scripts(), a.launches.forTools(roots)
	}
	if !s.Code.Allowed {
		return nil
	}
	if a.work, err = openWork(ctx, s, a.launches, roots, a.logger); err != nil {
		a.work = nil
		return err
	}
	o.Code, o.Temperature = a.work.service, s.Code.Temperature
	return nil
}

func recorded(r *recorder, transport http.RoundTripper) http.RoundTripper {
	if r == nil {
		return transport
	}
	return r
}

// Skills is the registry as it stands now; nil with --no-skills.
func (a *App) Skills() *skill.Snapshot {
	if a.Registry == nil {
		return nil
	}
	return a.Registry.Snapshot()
}

// Watch keeps the registry as its folders are, until ctx ends.
func (a *App) Watch(ctx context.Context) error {
	if a.Registry == nil {
		return nil
	}
	return watch.Run(ctx, a.Registry, watch.Options{Logger: a.logger})
}

// OpenSkills reads the registry: what is installed first, then the configured
// or the default roots. It is nil when skills are turned off.
func OpenSkills(ctx context.Context, s Settings) (*skill.Registry, error) {
	if s.NoSkills {
		return nil, nil
	}
	roots, err := s.roots()
	if err != nil {
		return nil, err
	}
	return skill.Open(ctx, skill.Options{
		Roots: roots, MaxManifest: s.Limits.Get(config.ManifestSize), MaxFiles: s.Limits.Int(config.SkillFiles),
		MaxBytes: s.Limits.Get(config.SkillBytes), MaxSkills: s.Limits.Int(config.SkillCount), MaxDepth: s.Limits.Int(config.ScanDepth),
	})
}

func (s Settings) roots() ([]skill.Root, error) {
	roots := []skill.Root{{Dir: filepath.Join(s.Home, "skills"), Origin: skill.Installed, Optional: true}}
	for _, dir := range s.SkillsDirs {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return nil, missingRoot(cmp.Or(s.SkillsFrom, "--skills-dir"), dir, err)
		}
		roots = append(roots, skill.Root{Dir: dir})
	}
	if len(s.SkillsDirs) > 0 {
		return roots, nil
	}
	wd, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("find default skill roots: %w", err)
	}
	found, err := skill.DefaultRoots(wd)
	return append(roots, found...), err
}

func missingRoot(from, dir string, err error) error {
	if err == nil {
		return fault.Usage("%s %s: it is not a directory", from, dir)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fault.Usage("%s %s: there is no such directory", from, dir)
	}
	return fault.Usage("%s %s: %w", from, dir, err)
}

// Confinement is how scripts are confined; false when none may run.
func (a *App) Confinement() (Confinement, bool) {
	if !a.scripts {
		return Confinement{}, false
	}
	return a.launches.scripts().confinement(), true
}

// Close ends the sessions of the web stream, responses in the background and scripts that
// still run, waits for them, and gives the connections to the upstream back. It ends no other turn: let the server
// drain first.
func (a *App) Close() {
	if a.sessions != nil { // opening may have failed before there were any
		a.sessions.Close()
	}
	if a.responses != nil {
		a.responses.Close()
	}
	if a.launches != nil {
		a.launches.close()
	}
	if a.work != nil {
		a.work.close()
	}
	a.transport.CloseIdleConnections()
	a.closeStore()
}

// Models lists what the upstream offers.
func (a *App) Models(ctx context.Context) ([]llm.Model, error) { return a.Gateway.Models(ctx) }

// Server makes the HTTP server with all doors.
func (a *App) Server(loopback bool) *server.Server {
	chat := dooropenai.New(dooropenai.Options{
		Gateway: a.Gateway, Limits: a.Settings.Limits, Now: time.Now, NewID: a.host.NewID,
	})
	return server.New(server.Options{
		Doors:  a.behindKeys(a.messagesDoor(), a.ollamaDoor(), a.responses, chat, a.webDoor(), a.skillsDoor(loopback), a.artifactsDoor(), a.sessionsDoor(loopback)),
		Limits: a.Settings.Limits, Logger: a.logger, NewID: a.host.NewID, Version: a.Settings.Version, Loopback: loopback,
	})
}

// messagesDoor is for clients of Anthropic. It shares paths with the one of OpenAI, and
// knows its own requests by their header: it stands before it.
func (a *App) messagesDoor() server.Door {
	return dooranthropic.New(dooranthropic.Options{
		Gateway: a.Gateway, Limits: a.Settings.Limits, Now: time.Now, NewID: a.host.NewID,
	})
}

// ollamaDoor is for clients of Ollama. One of its routes is the web stream's, too, to which
// it gives what names no model.
func (a *App) ollamaDoor() server.Door {
	return doorollama.New(doorollama.Options{
		Gateway: a.Gateway, Limits: a.Settings.Limits, Now: time.Now, Web: a.webDoor().Routes()["POST /api/chat"],
	})
}

// openResponses makes the door of Responses, which keeps what clients come back to.
func (a *App) openResponses() {
	o := responses.Options{
		Gateway: a.Gateway, Limits: a.Settings.Limits, Now: time.Now, NewID: a.host.NewID, Logger: a.logger,
		Journal: func(id string) gateway.Journal { return a.Session(id, originResponses) },
	}
	if a.Store != nil { // a nil pointer in an interface would count as a store
		o.Store, o.Held = a.Store, a.held
	}
	a.responses = responses.New(o)
}

// originResponses is the origin of sessions that background responses are worked on in.
const originResponses = "responses"

// held reports whether some process has a session for writing.
func (a *App) held(ctx context.Context, tenant, id string) (bool, error) {
	s, err := a.Store.Session(ctx, tenant, id)
	if errors.Is(err, store.ErrNoSession) {
		return false, nil
	}
	return s.Held, err
}

// skillsDoor shows the registry. Paths of this host are for its own operator.
func (a *App) skillsDoor(loopback bool) server.Door {
	o := doorskills.Options{
		Discovery: a.Settings.Discovery != config.DiscoveryOff, ShowPaths: loopback,
		AllowScripts: a.scriptsRun(),
		MaxView:      a.Settings.Limits.Get(config.SkillView), Logger: a.logger,
	}
	if a.Registry != nil { // a nil pointer in an interface would count as skills
		o.Registry = a.Registry
		for _, r := range a.Registry.Roots() {
			o.Roots = append(o.Roots, r.Dir)
		}
	}
	return doorskills.New(o)
}

// scriptsRun reports whether those of skills do, here and now.
func (a *App) scriptsRun() bool { return a.scripts && a.launches.scripts().Refusal() == nil }

// webDoor is for browsers: a stream of frames, and sessions.
func (a *App) webDoor() server.Door {
	return doorweb.New(doorweb.Options{
		Gateway: a.Gateway, Sessions: a.sessions, Skills: a.Skills, Scripts: a.scriptsRun(),
		Installs: a.work != nil && a.Settings.Code.Install, Limits: a.Settings.Limits, Now: time.Now, Logger: a.logger,
	})
}

// sessionsDoor shows the sessions to the operator.
func (a *App) sessionsDoor(loopback bool) server.Door {
	return doorsessions.New(doorsessions.Options{
		Store: a.Store, Open: loopback && a.Settings.NoAuth, Limits: a.Settings.Limits, Logger: a.logger,
	})
}

// artifactsDoor gives out what launches made; nothing while none may run.
func (a *App) artifactsDoor() server.Door {
	o := doorartifacts.Options{Logger: a.logger}
	if a.launches != nil { // a nil pointer in an interface would count as a store
		o.Store = a.launches.files
	}
	return doorartifacts.New(o)
}

// Loopback reports whether only this machine reaches a listener.
func Loopback(l net.Listener) bool {
	addr, ok := l.Addr().(*net.TCPAddr)
	return ok && addr.IP.IsLoopback()
}
