package packages

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/sandbox/registry"
	"github.com/metier-run/metier/internal/workspace"
)

// stage is a directory in which one install is put together: tree is what becomes the
// set, run is where the installer is at home.
type stage struct {
	dir  string
	mark *mark
}

func (t stage) tree() string { return filepath.Join(t.dir, treeDir) }
func (t stage) run() string  { return filepath.Join(t.dir, "run") }
func (t stage) temp() string { return filepath.Join(t.dir, "run", "tmp") }

// treeDir holds the packages of a set, and of a stage.
const treeDir = "tree"

// stage makes a stage, marked as in use.
func (s *Store) stage() (stage, error) {
	dir, err := os.MkdirTemp(s.stages(), "new-")
	if err != nil {
		return stage{}, fmt.Errorf("make a directory for an install: %w", err)
	}
	t := stage{dir: dir}
	if t.mark, err = claim(dir, false); err != nil {
		return stage{}, errors.Join(err, os.RemoveAll(dir))
	}
	for _, d := range []string{t.tree(), t.run(), t.temp()} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.drop()
			return stage{}, fmt.Errorf("make a directory for an install: %w", err)
		}
	}
	return t, nil
}

// drop removes a stage. What cannot be removed goes with the next start.
func (t stage) drop() {
	_ = workspace.Remove(t.dir)
	t.mark.release()
}

// perform installs and keeps what came.
func (s *Store) perform(ctx context.Context, p plan) (Set, error) {
	t, err := s.stage()
	if err != nil {
		return Set{}, err
	}
	defer t.drop()
	if err := s.launch(ctx, p, t); err != nil {
		return Set{}, err
	}
	if err := t.tidy(); err != nil {
		return Set{}, s.judged(err)
	}
	seen, err := look(ctx, t.tree(), s.o.Limits.Get(config.InstallBytes))
	if err != nil {
		return Set{}, s.judged(err)
	}
	names, err := installed(p.kind, t.tree())
	if err != nil {
		return Set{}, err
	}
	return s.commit(ctx, p, t, record{Kind: p.kind, Digest: seen.digest, Entries: seen.entries, Bytes: seen.bytes, Cost: seen.cost, Names: names})
}

// tidy makes sure that the tree is still the folder that it was, and takes npm's own
// notes away, which name addresses that are gone with the launch. No link of the
// installer's is followed out of the tree.
func (t stage) tidy() error {
	info, err := os.Lstat(t.tree())
	if err != nil || !info.IsDir() {
		return &treeError{path: treeDir, why: "is no folder any more"}
	}
	root, err := os.OpenRoot(t.tree())
	if err != nil {
		return err
	}
	_ = root.Remove("node_modules/.package-lock.json") // pip has none
	return root.Close()
}

// judged makes a fault of what came a sentence.
func (s *Store) judged(err error) error {
	if f, ok := errors.AsType[*treeError](err); ok {
		s.log.Warn("what an installer brought is refused", "why", f.Error())
		return failure(Refused, f.sentence())
	}
	return fmt.Errorf("look at what was installed: %w", err)
}

// launch runs the installer and says what went wrong.
func (s *Store) launch(ctx context.Context, p plan, t stage) error {
	session := s.o.Front.Session(p.kind)
	network, address, stop, err := s.network(ctx, session)
	if err != nil {
		return err
	}
	l := s.command(p, t)
	l.Network = network
	l.Env = append(l.Env, session.Environ(address)...)
	result, err := s.o.Runner.Run(ctx, l)
	stop()
	if err != nil {
		if errors.Is(err, sandbox.ErrBusy) {
			return failure(Busy, busySentence)
		}
		return fmt.Errorf("start the installer: %w", err)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("install: %w", context.Cause(ctx))
	}
	if result.OK() {
		return nil
	}
	report := session.Report()
	s.log.InfoContext(ctx, "an install failed", "kind", string(p.kind), "ended", string(result.Ended), "exit", result.Exit, "troubles", len(report.Troubles))
	return explain(p, result, report, s.o.Limits.Duration(config.InstallTime))
}

// network is what the installer reaches: the front, in a network of its own, or on the
// loopback of a host whose network it shares.
func (s *Store) network(ctx context.Context, session *registry.Session) (sandbox.Network, string, func(), error) {
	if !s.o.Open {
		return sandbox.Network{Mode: sandbox.NetworkProxied, Serve: session.Serve}, "", func() {}, nil
	}
	var listen net.ListenConfig
	l, err := listen.Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return sandbox.Network{}, "", nil, fmt.Errorf("listen for the installer: %w", err)
	}
	var served sync.WaitGroup
	served.Go(func() { session.Serve(ctx, l) })
	stop := func() {
		_ = l.Close()
		served.Wait()
	}
	return sandbox.Network{Mode: sandbox.NetworkOpen}, l.Addr().String(), stop, nil
}

// command is the launch, but for its network.
func (s *Store) command(p plan, t stage) sandbox.Launch {
	l := sandbox.Launch{
		Purpose: sandbox.Install, Dir: t.run(), Write: []string{t.tree(), t.run()}, Read: p.read, Hide: s.o.Hide,
		Deadline: s.o.Limits.Duration(config.InstallTime), Output: s.o.Limits.Get(config.CodeOutput),
		// What is fetched and what is unpacked from it are there at the same time.
		Disk: 2 * s.o.Limits.Get(config.InstallBytes),
		Env: []string{
			"PATH=" + strings.Join(s.o.Interpreters.Search(p.use), string(os.PathListSeparator)),
			"HOME=" + t.run(), "USERPROFILE=" + t.run(), "PWD=" + t.run(),
			"TMPDIR=" + t.temp(), "TEMP=" + t.temp(), "TMP=" + t.temp(), "LANG=C.UTF-8", "LC_ALL=C.UTF-8",
		},
	}
	if p.kind == registry.Npm {
		s.npmCommand(&l, p, t)
	} else {
		s.pipCommand(&l, p, t)
	}
	for _, x := range p.specs {
		l.Argv = append(l.Argv, x.argument(p.kind))
	}
	return l
}

func (s *Store) pipCommand(l *sandbox.Launch, p plan, t stage) {
	l.Argv = []string{
		p.use.Path, "-s", "-m", "pip", "install", "--target", t.tree(), "--only-binary", ":all:", "--no-compile", "--no-input",
		"--disable-pip-version-check", "--no-cache-dir", "--no-color", "--progress-bar", "off", "--retries", retries, "--",
	}
	l.Env = append(l.Env,
		// No file of the host is read: what counts of it, the front knows.
		"PIP_CONFIG_FILE="+os.DevNull, "PYTHONNOUSERSITE=1", "PYTHONDONTWRITEBYTECODE=1", "PYTHONUTF8=1",
		"PIP_ROOT_USER_ACTION=ignore", "PIP_NO_WARN_SCRIPT_LOCATION=1",
		// The front waits for the registry, and the launch has a deadline.
		"PIP_DEFAULT_TIMEOUT="+strconv.Itoa(int(l.Deadline.Seconds())),
	)
	if len(p.use.Packages) > 0 {
		l.Env = append(l.Env, "PYTHONPATH="+strings.Join(p.use.Packages, string(os.PathListSeparator)))
	}
	if runtime.GOOS == "windows" {
		l.Env = append(l.Env, "SystemRoot="+os.Getenv("SystemRoot"))
	}
}

// retries is how often an installer asks again after an error of a registry.
const retries = "2"

func (s *Store) npmCommand(l *sandbox.Launch, p plan, t stage) {
	l.Argv = []string{
		p.use.Path, p.npm, "install", "--prefix", t.tree(), "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier",
		"--no-save", "--no-package-lock", "--no-progress", "--no-color", "--loglevel=error", "--cache", filepath.Join(t.run(), "cache"),
		"--userconfig", filepath.Join(t.run(), "user"), "--globalconfig", filepath.Join(t.run(), "global"), "--logs-max=0",
		"--fetch-retries=" + retries, "--fetch-retry-mintimeout=100", "--fetch-retry-maxtimeout=1000",
		"--fetch-timeout=" + strconv.FormatInt(l.Deadline.Milliseconds(), 10), "--",
	}
	l.Env = append(l.Env, "npm_config_ignore_scripts=true", "NO_UPDATE_NOTIFIER=1")
}
