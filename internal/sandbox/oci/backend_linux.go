package oci

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/sandbox/program"
)

// Backend runs launches under one runtime. Make it with [Find].
type Backend struct {
	runtime runtime
	host    host
	version string
	setUp   time.Duration
	temp    string
	shell   []string
	system  program.System
	users   *program.Users // nil unless the launch gets users of nobody's
}

// Name is [sandbox.Backend.Name].
func (b *Backend) Name() string { return b.runtime.name }

// Close is [sandbox.Backend.Close].
func (b *Backend) Close() error { return nil }

// Ids of a launch.
const (
	insideID = 1000 // its user as it sees it, when the host is root
	perUser  = 2    // ids that it takes outside: the container's root and its user
)

// launch is one launch on its way.
type launch struct {
	b       *Backend
	recipe  recipe
	bundle  string
	held    []program.Held
	user    uint32
	first   *program.Process
	reached bool
	err     error
}

// Start is [sandbox.Backend.Start].
func (b *Backend) Start(ctx context.Context, l sandbox.Launch) (sandbox.Job, error) {
	if err := l.Check(); err != nil {
		return nil, err
	}
	if l.Network.Mode == sandbox.NetworkProxied {
		return nil, b.runtime.unavailable("limit the network to domains", errors.New("a runtime of containers hands out no listener from inside"), "use the native backend for that, or deny the network")
	}
	x := &launch{b: b}
	if err := x.prepare(l); err != nil {
		x.release()
		return nil, b.runtime.unavailable("prepare a launch", err, program.Fix(err.Error()))
	}
	job, err := sandbox.StartProcess(ctx, l, x.command(ctx))
	if err != nil {
		x.release()
		return nil, err
	}
	if x.reached {
		return job, nil
	}
	job.Stop() // it has ended, or has to
	said := string(job.Wait().Stderr.Head)
	if err := ctx.Err(); err != nil {
		return nil, b.runtime.unavailable("set up a container", err, "")
	}
	if x.err == nil {
		x.err = errors.New(said)
	}
	return nil, b.runtime.unavailable("set up a container", x.err, program.Fix(x.err.Error()))
}

func (x *launch) prepare(l sandbox.Launch) error {
	places, err := program.Places(l)
	if err != nil {
		return err
	}
	r := recipe{system: x.b.system, launch: l, strong: x.b.runtime.strong, filter: filterFor(goruntime.GOARCH), uid: os.Getuid(), gid: os.Getgid()}
	if r.vector, err = l.Vector(x.b.shell); err != nil {
		return err
	}
	for _, limit := range program.Limits(l) {
		r.limits = append(r.limits, limitOf(limit))
	}
	if x.held, err = program.Hold(places); err != nil {
		return err
	}
	if err := x.identify(&r); err != nil {
		return err
	}
	x.placesOf(&r)
	if x.bundle, err = os.MkdirTemp(x.b.temp, x.b.runtime.prefix()); err != nil {
		return err
	}
	if err := os.Chmod(x.bundle, 0o711); err != nil { // the launch's user comes through
		return err
	}
	r.id = filepath.Base(x.bundle)
	x.recipe = r
	return makeBundle(x.bundle, r, program.Etc(r.uid, r.gid, l.Network.Mode))
}

func limitOf(l program.Limit) limit { return limit{Type: l.Name, Hard: l.Value, Soft: l.Value} }

// identify finds out as whom the launch runs.
func (x *launch) identify(r *recipe) error {
	switch {
	case x.b.users != nil:
		var err error
		if x.user, err = x.b.users.Take(); err != nil {
			return err
		}
		r.uidMaps = []mapping{{0, x.user, 1}, {insideID, x.user + 1, 1}}
		r.gidMaps = r.uidMaps
		r.uid, r.gid = insideID, insideID
		r.groups = x.b.runtime.name == Runc
	case !x.b.runtime.strong:
		// A runtime needs a root inside, so that is who the host's user becomes.
		r.uidMaps, r.gidMaps = []mapping{{0, uint32(r.uid), 1}}, []mapping{{0, uint32(r.gid), 1}}
		r.uid, r.gid = 0, 0
	case !x.b.host.root:
		r.uid, r.gid = 0, 0
	default:
		// A kernel of its own runs as nobody's user; inside, the launch owns what the
		// owner of its directory does.
		r.uid, r.gid = x.ownerOf(r.launch.Dir)
	}
	return nil
}

// ownerOf is who owns the place that a directory lies in.
func (x *launch) ownerOf(dir string) (uid, gid int) {
	for _, h := range x.held {
		if sandbox.Within(h.Path, dir) && h.Kind == program.Writable {
			uid, gid = int(h.UID), int(h.GID)
		}
	}
	return uid, gid
}

// placesOf says where the places are mounted from. A runtime takes nothing but a
// path, and looks it up again; nothing on the way to what the launch names can be
// changed by a launch, and there was no link in it just before.
func (x *launch) placesOf(r *recipe) {
	for _, h := range x.held {
		p := place{Place: h.Place, source: h.Path}
		if x.b.users != nil && h.File != nil {
			p.uids, p.gids = []mapping{{h.UID, x.user + 1, 1}}, []mapping{{h.GID, x.user + 1, 1}}
		}
		r.places = append(r.places, p)
	}
}

func (x *launch) command(ctx context.Context) sandbox.Command {
	cmd := sandbox.Command{
		Backend:   x.b.runtime.name,
		Path:      x.b.host.path,
		Args:      x.b.runtime.runArgs(x.b.host, x.bundle, x.recipe.launch.Network.Mode),
		Env:       environment(),
		Dir:       "/",
		Contained: true,
		Started:   func(p *os.Process) error { return x.started(ctx, p.Pid) },
		Kill:      x.kill,
		Finish:    x.finish,
	}
	if limit := x.recipe.launch.Memory; limit > 0 {
		if x.recipe.strong {
			limit += ownKernel
		}
		cmd.Watch = func(ctx context.Context) sandbox.Ended {
			if x.first == nil {
				return ""
			}
			return program.Memory(ctx, x.first.PID, limit)
		}
	}
	return cmd
}

// ownKernel is the memory that a kernel of the launch's own takes itself.
const ownKernel = 96 << 20

// environment is that of the runtime itself; the launch's stands in the bundle.
func environment() []string { return []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"} }

// started waits until the program of the launch runs, or the runtime has ended
// without that.
func (x *launch) started(ctx context.Context, pid int) error {
	own, err := program.HoldProcess(pid)
	if err != nil {
		return err
	}
	defer own.Close()
	const first, longest = time.Millisecond, 10 * time.Millisecond
	end := time.Now().Add(x.b.setUp)
	for pause := first; ; pause = min(2*pause, longest) {
		ended := own.Gone(0)
		if text, err := os.ReadFile(filepath.Join(x.bundle, pidFile)); err == nil && len(text) > 0 {
			x.reached = true
			x.adopt(string(text), pid)
			return nil
		}
		switch {
		case ended:
			x.err = x.logged()
			return nil
		case ctx.Err() != nil:
			program.KillTree(pid)
			return nil
		case time.Now().After(end):
			x.err = fmt.Errorf("not done after %s: raise sandbox-set-up", x.b.setUp)
			program.KillTree(pid)
			return nil
		}
		time.Sleep(pause)
	}
}

// adopt holds the first process of the container. While it has not been reaped, it
// descends from the runtime; else it is gone, and its number may be another's.
func (x *launch) adopt(text string, parent int) {
	pid, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		return
	}
	p, err := program.HoldProcess(pid)
	if err != nil {
		return
	}
	if !p.Below(parent) {
		p.Close()
		return
	}
	x.first = p
}

// logged is the last error that the runtime wrote to its log; nil if there is none.
func (x *launch) logged() error {
	text, err := os.ReadFile(filepath.Join(x.bundle, logFile))
	if err != nil {
		return nil
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	var entry struct {
		Message string `json:"msg"`
	}
	last := lines[len(lines)-1]
	if json.Unmarshal([]byte(last), &entry) == nil && entry.Message != "" {
		last = entry.Message
	}
	if last == "" {
		return nil
	}
	return errors.New(last)
}

// killWait is how long the end of a killed tree, and the runtime that cleans up
// after it, may take.
const killWait = 5 * time.Second

// kill ends the container in every case. What the runtime has forgotten already
// has ended.
func (x *launch) kill() {
	if x.first != nil {
		x.first.Kill()
		x.first.Gone(killWait)
	}
	x.b.forget(x.bundle)
}

// forget has the runtime end and forget what it knows of a bundle.
func (b *Backend) forget(bundle string) {
	records, err := os.ReadDir(filepath.Join(bundle, stateDir))
	if err != nil || len(records) == 0 {
		return
	}
	// The launch's own context has ended when it is killed, so it does not bound this.
	ctx, cancel := context.WithTimeout(context.Background(), killWait)
	defer cancel()
	args := b.runtime.deleteArgs(b.host, bundle)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env, cmd.Dir, cmd.WaitDelay = environment(), "/", time.Second
	_ = cmd.Run() // it fails for what is gone already
}

func (x *launch) finish(r *sandbox.Result) {
	program.Signalled(r)
	x.release()
}

// release gives back what the launch held; nothing of it runs any more.
func (x *launch) release() {
	program.Release(x.held)
	if x.first != nil {
		x.first.Close()
	}
	if x.bundle != "" {
		_ = os.RemoveAll(x.bundle)
		removeGroups(filepath.Base(x.bundle))
	}
	if x.user != 0 {
		x.b.users.Return(x.user)
	}
}
