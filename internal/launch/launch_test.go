package launch

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/sandbox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scripted is a backend that plays the launches of a test.
type scripted struct {
	name string
	tier sandbox.Tier
	// escapes are what a canary says in it.
	escapes string
	// hold blocks launches until it is closed, when it is not nil.
	hold chan struct{}

	mu       sync.Mutex
	launches []sandbox.Launch
	closed   atomic.Bool
}

func (s *scripted) Name() string { return s.name }
func (s *scripted) Close() error { s.closed.Store(true); return nil }

func (s *scripted) Capabilities() sandbox.Capabilities {
	return sandbox.Capabilities{Backend: s.name, Tier: s.tier}
}

func (s *scripted) Start(ctx context.Context, l sandbox.Launch) (sandbox.Job, error) {
	if err := l.Check(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.Purpose != sandbox.Canary {
		s.launches = append(s.launches, l)
	}
	return &played{s: s, ctx: ctx, canary: l.Purpose == sandbox.Canary}, nil
}

type played struct {
	s      *scripted
	ctx    context.Context
	canary bool
}

func (p *played) Stop() {}

func (p *played) Wait() sandbox.Result {
	if p.canary {
		return sandbox.Result{Ended: sandbox.Exited, Stdout: sandbox.Output{Head: []byte(p.s.escapes + "\ncanary done\n")}}
	}
	if p.s.hold != nil {
		select {
		case <-p.s.hold:
		case <-p.ctx.Done():
			return sandbox.Result{Ended: sandbox.Cancelled}
		}
	}
	return sandbox.Result{Ended: sandbox.Exited}
}

func finder(s *scripted, problem error) Finder {
	return Finder{Name: s.name, Tier: s.tier, Find: func(context.Context, Options) sandbox.Finding {
		if problem != nil {
			return sandbox.Finding{Name: s.name, Problem: problem}
		}
		return sandbox.Finding{Name: s.name, Backend: s}
	}}
}

func options(t *testing.T, finders ...Finder) Options {
	t.Helper()
	return Options{
		Policy: sandbox.DefaultPolicy(), Scratch: filepath.Join(t.TempDir(), "scratch"), Finders: finders,
		Logger: slog.New(slog.DiscardHandler),
	}
}

func script(t *testing.T) sandbox.Launch {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return sandbox.Launch{Purpose: sandbox.Script, Argv: []string{"/bin/true"}, Dir: dir, Write: []string{dir}, Env: []string{"A=b"}}
}

func start(t *testing.T, o Options) *Launcher {
	t.Helper()
	l, err := Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// TestNeverLess: what cannot be confined is refused, with the reason, and what
// seemed to confine and does not is not taken.
func TestNeverLess(t *testing.T) {
	broken := &sandbox.Unavailable{Backend: "native", Step: "make namespaces", Err: errors.New("not permitted"), Fix: "do this"}
	full := func(escapes string) *scripted {
		return &scripted{name: "native", tier: sandbox.TierFull, escapes: escapes}
	}
	bare := &scripted{name: sandbox.Bare}
	tests := []struct {
		name    string
		first   Finder
		mode    sandbox.Mode
		backend string
		want    string // a backend, or what the refusal says
	}{
		{"good", finder(full(""), nil), sandbox.Required, "", "native"},
		{"not to be had", finder(full(""), broken), sandbox.Required, "", "!do this"},
		{"not to be had, and bare will do", finder(full(""), broken), sandbox.Preferred, "", "bare"},
		{"reads outside", finder(full("escaped: read x"), nil), sandbox.Required, "", "!it read a file outside"},
		{"writes outside", finder(full("escaped: wrote"), nil), sandbox.Required, "", "!it wrote a file outside"},
		{"reaches the host", finder(full("escaped: connected"), nil), sandbox.Required, "", "!it reached this host's network"},
		{"reaches below the host", finder(full("escaped: vsock"), nil), sandbox.Required, "", "!it made a socket to the machine's host"},
		{"makes namespaces", finder(full("escaped: user namespace"), nil), sandbox.Required, "", "!it may make user namespaces"},
		{"off", finder(full(""), nil), sandbox.Off, "", "bare"},
		{"by name", finder(full(""), nil), sandbox.Required, "bare", "!bare"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := options(t, tt.first, finder(bare, nil))
			o.Policy.Mode, o.Policy.Backend = tt.mode, tt.backend
			l := start(t, o)
			r, err := l.Run(context.Background(), script(t))
			if said, refused := strings.CutPrefix(tt.want, "!"); refused {
				if err == nil || !strings.Contains(err.Error(), said) || l.Problem() == nil || l.Capabilities().Backend != "" {
					t.Errorf("%v, %v", r, err)
				}
				return
			}
			if err != nil || l.Capabilities().Backend != tt.want || l.Problem() != nil {
				t.Errorf("%q, %v", l.Capabilities().Backend, err)
			}
		})
	}
}

// TestCanarySecret: a canary that says nothing of what it read is found out.
func TestCanarySecret(t *testing.T) {
	tr := &trial{secret: "the secret", dir: t.TempDir()}
	if got := tr.escapes("all is well: the secret\n"); len(got) != 1 {
		t.Error(got)
	}
	tr.reached.Store(1)
	if got := tr.escapes("canary done\n"); len(got) != 1 {
		t.Error(got)
	}
}

// TestSurvey looks at all, and closes all.
func TestSurvey(t *testing.T) {
	native, runsc, bare := &scripted{name: "native", tier: sandbox.TierFull}, &scripted{name: "runsc", tier: sandbox.TierStrong}, &scripted{name: sandbox.Bare}
	s := Look(context.Background(), options(t, finder(native, nil), finder(runsc, errors.New("not installed")), finder(bare, nil)))
	var got []string
	for _, r := range s.Rows {
		got = append(got, r.Name+" "+r.Capabilities.Tier.String())
		if r.Problem != nil {
			got = append(got, r.Problem.Error())
		}
	}
	if want := []string{"native full", "runsc none", "not installed", "bare none"}; !slices.Equal(got, want) || s.Chosen != "native" || s.Problem != nil {
		t.Errorf("%v, %q, %v", got, s.Chosen, s.Problem)
	}
	if !native.closed.Load() || !bare.closed.Load() {
		t.Error("a backend was left open")
	}
}

// TestOthersAreClosed: what was found on the way to the one that is taken.
func TestOthersAreClosed(t *testing.T) {
	weak, full := &scripted{name: "landlock", tier: sandbox.TierWeak}, &scripted{name: "native", tier: sandbox.TierFull}
	o := options(t, finder(weak, nil), finder(full, nil))
	o.Policy.Mode = sandbox.Preferred
	l := start(t, o)
	if l.Capabilities().Backend != "native" || !weak.closed.Load() || full.closed.Load() {
		t.Error(l.Capabilities().Backend, weak.closed.Load(), full.closed.Load())
	}
}

// TestFilled: limits, and the network of the purpose and of no other.
func TestFilled(t *testing.T) {
	b := &scripted{name: "native", tier: sandbox.TierFull}
	o := options(t, finder(b, nil))
	o.Networks = map[sandbox.Purpose]Network{
		sandbox.Shell:  {Open: true, Domains: []string{"ignored.example"}},
		sandbox.Script: {Domains: []string{"example.com"}, Flag: "--skills-network-domains"},
	}
	l := start(t, o)
	for _, purpose := range []sandbox.Purpose{sandbox.Shell, sandbox.Script, sandbox.Syntax} {
		x := script(t)
		x.Purpose = purpose
		if purpose == sandbox.Syntax {
			x.Memory = 7
		}
		if _, err := l.Run(context.Background(), x); err != nil {
			t.Fatal(err)
		}
	}
	shell, proxied, syntax := b.launches[0], b.launches[1], b.launches[2]
	if shell.Network.Mode != sandbox.NetworkOpen || shell.Network.Serve != nil || len(shell.Env) != 1 {
		t.Errorf("%+v", shell)
	}
	if proxied.Network.Mode != sandbox.NetworkProxied || proxied.Network.Serve == nil || !slices.Contains(proxied.Env, "https_proxy=http://"+sandbox.ProxyAddress) {
		t.Errorf("%+v", proxied)
	}
	if syntax.Network.Mode != sandbox.NetworkDenied || syntax.Memory != 7 || syntax.Disk != (config.Values{}).Get(config.SandboxDisk) ||
		syntax.Processes != (config.Values{}).Get(config.SandboxProcs) || len(syntax.Env) != 1 {
		t.Errorf("%+v", syntax)
	}
	o.Networks = map[sandbox.Purpose]Network{sandbox.Script: {Domains: []string{"*"}, Flag: "--skills-network-domains"}}
	if _, err := Open(context.Background(), o); err == nil || !strings.Contains(err.Error(), "--skills-network-domains") {
		t.Error(err)
	}
}

// TestPlaces: so many at once, so many wait, the rest is told so; who leaves frees
// a place, and Close waits.
func TestPlaces(t *testing.T) {
	b := &scripted{name: "native", tier: sandbox.TierFull, hold: make(chan struct{})}
	o := options(t, finder(b, nil))
	var err error
	for name, n := range map[config.Name]int64{config.SandboxLaunches: 1, config.SandboxQueue: 1} {
		if o.Limits, err = o.Limits.Set(name, n); err != nil {
			t.Fatal(err)
		}
	}
	l, err := Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	ran := make(chan error, 3)
	x := script(t)
	run := func(ctx context.Context) {
		_, err := l.Run(ctx, x)
		ran <- err
	}
	go run(context.Background())
	waitFor(t, func() bool { return len(l.places) == 1 })
	waiting, leave := context.WithCancel(context.Background())
	go run(waiting)
	waitFor(t, func() bool { return len(l.queue) == 2 })
	if _, err := l.Run(context.Background(), x); !errors.Is(err, sandbox.ErrBusy) {
		t.Error(err)
	}
	leave()
	if err := <-ran; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	closed := make(chan error)
	go func() { closed <- l.Close() }()
	waitFor(t, func() bool { l.mu.Lock(); defer l.mu.Unlock(); return l.closed })
	if _, err := l.Run(context.Background(), x); err == nil || !strings.Contains(err.Error(), "stopping") {
		t.Error(err)
	}
	if b.closed.Load() {
		t.Error("the backend was closed under a launch")
	}
	close(b.hold)
	if err := errors.Join(<-ran, <-closed); err != nil || !b.closed.Load() {
		t.Error(err)
	}
}

// waitFor waits for what another goroutine is about to do.
func waitFor(t *testing.T, done func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal("it did not happen")
		}
	}
}

// TestHere tries the backends of this machine.
func TestHere(t *testing.T) {
	o := options(t)
	s := Look(context.Background(), o)
	if len(s.Rows) != len(Finders()) {
		t.Errorf("%d rows", len(s.Rows))
	}
	for _, r := range s.Rows {
		t.Log(r.Name, r.Capabilities.Tier, r.Problem)
		if r.Name == "native" && runtime.GOOS == "linux" && r.Problem != nil {
			t.Error("this Linux cannot confine natively:", r.Problem)
		}
	}
	if left, _ := os.ReadDir(o.Scratch); len(left) > 0 {
		t.Errorf("%d trials were left", len(left))
	}
}
