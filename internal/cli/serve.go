package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/metier-run/metier/internal/app"
	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/fault"
)

// The default address (DESIGN section 6).
const (
	defaultHost = "127.0.0.1"
	defaultPort = 8484
)

func (s *session) newServe() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the APIs of OpenAI, Anthropic and Ollama in front of a model, with skills",
		Long: "Serve the APIs of OpenAI, Anthropic and Ollama in front of a model. Point any OpenAI client at\n" +
			"http://127.0.0.1:8484/v1, an Anthropic client at http://127.0.0.1:8484, and an Ollama client at\n" +
			"http://127.0.0.1:8484/ollama. A request may name skills (\"skills\": [\"pdf\"]), and the model finds\n" +
			"the others by itself.",
		Example: "  metier serve --skills-dir ~/skills\n" +
			"  metier serve --upstream http://127.0.0.1:8080 --skills-dir ~/skills\n" +
			"  metier serve --upstream demo --skills-dir examples/skills\n" +
			"  metier serve -c metier.toml -c local.toml",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if s.flags.listSkills {
				return s.listSkills(cmd, false)
			}
			return s.serve(cmd.Context())
		},
	}
	f := cmd.Flags()
	s.registryFlags(f)
	s.scriptFlags(f)
	s.codeFlags(f)
	s.limitFlags(f, func(config.Name) bool { return true })
	s.upstreamFlags(f)
	s.storeFlags(f)
	f.StringVar(&s.flags.host, "host", defaultHost, "address to listen on")
	f.IntVar(&s.flags.port, "port", defaultPort, "port to listen on; 0 takes a free one")
	f.BoolVar(&s.flags.insecure, "insecure", false, "listen beyond this machine although no keys are asked for")
	f.BoolVar(&s.flags.noAuth, "no-auth", false, "let who reaches a server of this machine see its sessions without a key (/api/admin)")
	f.StringVar(&s.flags.record, "record", "", "directory to record each turn's requests and rounds in, credentials taken out")
	return cmd
}

func (s *session) serve(ctx context.Context) error {
	ctx, stop := interruptible(ctx)
	defer stop()
	settings, err := s.settings()
	if err != nil {
		return err
	}
	if settings.Keys, err = s.file.accessKeys(); err != nil {
		return err
	}
	if settings.NoAuth && len(settings.Keys) > 0 {
		return fault.Usage("--no-auth: this server asks for keys: give one of them admin = true, or leave --no-auth out")
	}
	settings.Scripts.FilesURL = app.ArtifactsURL
	logger, err := s.logger(slog.LevelInfo)
	if err != nil {
		return err
	}
	a, err := app.Open(ctx, settings, logger)
	if err != nil {
		return err
	}
	defer a.Close()
	l, err := s.listen(ctx, len(settings.Keys))
	if err != nil {
		return err
	}
	s.welcome(a, l)
	return serveAndWatch(ctx, a, l, logger)
}

// serveAndWatch serves, keeps the skills as their folders are meanwhile, and ends turns
// that other processes left.
func serveAndWatch(ctx context.Context, a *app.App, l net.Listener, logger *slog.Logger) error {
	ctx, stop := context.WithCancel(ctx)
	watching, settled := make(chan error, 1), make(chan struct{})
	go func() { watching <- a.Watch(ctx) }()
	go func() {
		defer close(settled)
		a.Settle(ctx)
	}()
	err := a.Server(app.Loopback(l)).Serve(ctx, l)
	stop()
	<-settled
	if watchErr := <-watching; watchErr != nil && !errors.Is(watchErr, context.Canceled) {
		logger.Warn("skills were not watched to the end", "error", watchErr)
	}
	return err
}

// listen opens the port. Another address than loopback needs keys, or leave
// where everybody who reaches it may use the model.
func (s *session) listen(ctx context.Context, keys int) (net.Listener, error) {
	address := net.JoinHostPort(s.flags.host, strconv.Itoa(s.flags.port))
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, network(s.flags.host), address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w; choose another with --host and --port", address, err)
	}
	if !app.Loopback(l) && keys == 0 && !s.flags.insecure {
		_ = l.Close() // nothing came in yet
		return nil, fault.Usage("--host %s reaches beyond this machine and no keys are asked for: make one with metier keys new NAME, or add --insecure if everybody who reaches it may use the model", s.flags.host)
	}
	if !app.Loopback(l) && s.flags.noAuth {
		_ = l.Close() // nothing came in yet
		return nil, fault.Usage("--no-auth: --host %s reaches beyond this machine: give a key admin = true in its place", s.flags.host)
	}
	return l, nil
}

// network keeps an IPv4 address from being listened to on IPv6 as well.
func network(host string) string {
	if ip := net.ParseIP(host); ip != nil && ip.To4() != nil {
		return "tcp4"
	}
	return "tcp"
}

// welcome says what was found and where to go. The address is the result; the
// rest is for the operator to read.
func (s *session) welcome(a *app.App, l net.Listener) {
	s.sayFiles()
	fmt.Fprintf(s.std.Err, "upstream: %s\n", a.Chosen)
	s.sayStore(a)
	if n := len(a.Settings.Keys); n > 0 {
		fmt.Fprintf(s.std.Err, "keys: %d; a request needs one\n", n)
	}
	switch {
	case a.Registry == nil:
		fmt.Fprintln(s.std.Err, "skills: off (--no-skills)")
	default:
		rows := listing(a.Skills())
		var names []string
		warnings := 0
		for _, k := range rows.Skills {
			names = append(names, k.Name)
			warnings += len(k.Warnings)
		}
		fmt.Fprintf(s.std.Err, "skills: %d %v\n", len(names), names)
		if len(names) == 0 {
			fmt.Fprintln(s.std.Err, noSkills)
		}
		if warnings > 0 {
			fmt.Fprintf(s.std.Err, "skills: %s; see metier skills list\n", plural(warnings, "warning"))
		}
		s.sayNotLoaded(rows)
	}
	confinement, on := a.Confinement()
	sayScripts(s.std.Err, confinement, on)
	code, _ := a.CodeConfinement()
	s.sayCode(s.std.Err, a.Settings.Code, code)
	fmt.Fprintf(s.std.Out, "listening on http://%s\n", l.Addr())
}
