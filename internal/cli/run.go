package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/metier-run/metier/internal/access"
	"github.com/metier-run/metier/internal/app"
	"github.com/metier-run/metier/internal/code"
	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/internal/gateway"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/turn"
)

// runFlags are those of metier run alone.
type runFlags struct {
	input      string
	showPrompt bool
	asJSON     bool
	attach     []string
}

func (s *session) newRun() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run MESSAGE",
		Short: "Ask one question and print the answer",
		Long: "Ask one question and print the answer. Rounds and what the model reads are told on standard error.\n" +
			"With --show-prompt nothing is asked: what the model would be told is printed instead.",
		Example: "  metier run --skills-dir examples/skills --upstream demo \"How do we write release notes?\"\n" +
			"  metier run --skill pdf --input letter.txt \"Summarise this\"",
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if s.flags.listSkills {
				return s.listSkills(cmd, f.asJSON)
			}
			return s.run(cmd.Context(), f, args)
		},
	}
	set := cmd.Flags()
	s.registryFlags(set)
	s.scriptFlags(set)
	s.codeFlags(set)
	s.limitFlags(set, ofTurns)
	s.upstreamFlags(set)
	s.storeFlags(set)
	s.conversationFlags(set)
	set.StringVar(&f.input, "input", "", "file with the message, or with text that follows it; - is standard input")
	set.StringArrayVar(&f.attach, flagAttach, nil, "file to put into the model's working directory (repeatable; needs --"+flagCode+")")
	set.BoolVar(&f.showPrompt, "show-prompt", false, "print what the model would be told, and ask nothing")
	set.BoolVar(&f.asJSON, "json", false, "print the answer, its rounds and its calls as JSON")
	return cmd
}

func (s *session) run(ctx context.Context, f runFlags, args []string) error {
	ctx, stop := interruptible(ctx)
	defer stop()
	message, err := s.message(f, args)
	if err != nil {
		return err
	}
	if f.showPrompt && s.flags.upstream == "" {
		s.flags.upstream = app.Demo // nothing is asked, so no model is needed
	}
	a, err := s.open(ctx)
	if err != nil {
		return err
	}
	defer a.Close()
	model, err := s.pickModel(ctx, a)
	if err != nil && !f.showPrompt {
		return err
	}
	files, err := attach(a, f.attach)
	if err != nil {
		return err
	}
	work := a.OpenCode()
	defer closeCode(ctx, work, s)
	messages, id, err := s.earlier(ctx, a)
	if err != nil {
		return err
	}
	request := s.request(model, append(messages, llm.TextMessage(llm.User, message)), s.flags.skills, work)
	request.Journal = a.Session(id, "run")
	request.Notes = withLast(work, files)
	t, err := a.Gateway.Prepare(ctx, request)
	if err != nil {
		return usageOf(err)
	}
	s.sayWarnings(t)
	if f.showPrompt {
		return s.showPrompt(ctx, t)
	}
	if a.Store == nil {
		id = ""
	}
	if err := s.answer(ctx, t, f.asJSON, id); err != nil {
		return err
	}
	s.sayGoOn(a, "run", id)
	return nil
}

// earlier is what was said in the session that --session names, and its id; without one
// it is a new session.
func (s *session) earlier(ctx context.Context, a *app.App) ([]llm.Message, string, error) {
	switch {
	case s.flags.session == "" && s.typed["session"]:
		return nil, "", fault.Usage("--session: it is empty: give the id of a session, or leave it out")
	case s.flags.session == "":
		return nil, a.NewSessionID(), nil
	case a.Store == nil:
		return nil, "", fault.Usage("--session: nothing is kept here: name a database with --%s", flagDB)
	}
	messages, err := a.Conversation(ctx, access.DefaultTenant, s.flags.session)
	if err != nil {
		return nil, "", usageOf(fmt.Errorf("--session: %w", err))
	}
	return messages, s.flags.session, nil
}

// sayGoOn tells how the conversation can be taken up again, in words that can be pasted. A
// URL may have a password: it is not said.
func (s *session) sayGoOn(a *app.App, command, id string) {
	if a.Store == nil {
		return
	}
	words, same := []string{"metier", command}, []string(nil)
	switch name := s.flags.upstream; {
	case !s.typed["upstream"]:
	case plain(name):
		words = append(words, "--upstream", name)
	default:
		same = append(same, "--upstream")
	}
	if words = append(words, "--session", id); command == "run" {
		words = append(words, `"MESSAGE"`)
	}
	if s.typed[flagDB] {
		same = append(same, "--"+flagDB)
	}
	with := ""
	if len(same) > 0 {
		with = ", and the same " + strings.Join(same, " and ")
	}
	fmt.Fprintf(s.std.Err, "to go on: %s%s\n", strings.Join(words, " "), with)
}

// plain reports whether a text is a word to every shell, and no URL.
func plain(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.", r))
	})
}

// sayStore tells where conversations are kept.
func (s *session) sayStore(a *app.App) {
	switch {
	case a.StoreWarning != "":
		fmt.Fprintln(s.std.Err, "database: "+printable(a.StoreWarning))
	case a.Store == nil:
		fmt.Fprintln(s.std.Err, "database: none; sessions end with this process")
	default:
		fmt.Fprintln(s.std.Err, "database: "+printable(a.Store.Name()))
	}
}

// message is what the arguments and --input say together.
func (s *session) message(f runFlags, args []string) (string, error) {
	if len(args) > 1 {
		return "", fault.Usage("run takes one message, and got %d: put it in quotes", len(args))
	}
	text := strings.Join(args, "")
	if f.input != "" {
		in, err := s.readInput(f.input)
		if err != nil {
			return "", err
		}
		text = strings.TrimSpace(text + "\n\n" + in)
	}
	if strings.TrimSpace(text) == "" {
		return "", fault.Usage("run needs a message, in quotes or by --input (- is standard input): metier run \"How do we write release notes?\"")
	}
	return text, nil
}

func (s *session) readInput(name string) (string, error) {
	if name == "-" {
		b, err := io.ReadAll(s.std.In)
		if err != nil {
			return "", fmt.Errorf("--input -: %w", err)
		}
		return string(b), nil
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return "", fault.Usage("--input: %w", err)
	}
	return string(b), nil
}

// open wires a process for one person at a terminal: the log is quiet unless it
// is asked for.
func (s *session) open(ctx context.Context) (*app.App, error) {
	settings, err := s.settings()
	if err != nil {
		return nil, err
	}
	logger, err := s.logger(slog.LevelError)
	if err != nil {
		return nil, err
	}
	s.sayFiles()
	a, err := app.Open(ctx, settings, logger)
	if err != nil {
		return nil, err
	}
	if a.StoreWarning != "" {
		fmt.Fprintln(s.std.Err, "database: "+printable(a.StoreWarning))
	}
	if a.Registry != nil {
		s.sayNotLoaded(listing(a.Skills()))
	}
	confinement, on := a.Confinement()
	sayConfinement(s.std.Err, "scripts", confinement, on)
	code, on := a.CodeConfinement()
	sayConfinement(s.std.Err, "code", code, on)
	return a, nil
}

// pickModel is --model, or the first that the upstream lists.
func (s *session) pickModel(ctx context.Context, a *app.App) (string, error) {
	if s.flags.model != "" {
		return s.flags.model, nil
	}
	models, err := a.Models(ctx)
	if err != nil {
		return "", fmt.Errorf("pick a model: %w; name one with --model", err)
	}
	if len(models) == 0 {
		return "", errors.New("pick a model: the upstream lists none; load one there, or name one with --model")
	}
	return models[0].ID, nil
}

func (s *session) request(model string, messages []llm.Message, skills []string, work *code.Conversation) gateway.Request {
	return gateway.Request{Request: &llm.Request{Model: model, Messages: messages}, Skills: skills, Conversation: work, Progress: true}
}

// closeCode ends a conversation's code work, if there is any.
func closeCode(ctx context.Context, work *code.Conversation, s *session) {
	if work == nil {
		return
	}
	if err := work.Close(context.WithoutCancel(ctx)); err != nil {
		fmt.Fprintln(s.std.Err, sentence(err))
	}
}

// usageOf makes an unknown skill on the command line a wrong call.
func usageOf(err error) error {
	if e, ok := errors.AsType[*fault.Error](err); ok && e.Code == fault.Invalid {
		return &fault.UsageError{Err: err}
	}
	return err
}

func (s *session) showPrompt(ctx context.Context, t *gateway.Turn) error {
	r, err := t.Preview(ctx)
	if err != nil {
		return err
	}
	for _, m := range r.Messages {
		text := m.Text()
		if m.Tail != "" {
			text = strings.TrimSpace(text + "\n\n" + m.Tail)
		}
		fmt.Fprintf(s.std.Out, "--- %s ---\n%s\n\n", m.Role, text)
	}
	for _, d := range r.Tools {
		fmt.Fprintf(s.std.Out, "--- tool %s ---\n%s\n%s\n\n", d.Name, d.Description, d.Parameters)
	}
	return nil
}

// callRow is one host call as --json prints it.
type callRow struct {
	Round  int    `json:"round"`
	Tool   string `json:"tool"`
	Skill  string `json:"skill,omitzero"`
	Detail string `json:"detail,omitzero"`
	OK     bool   `json:"ok"`
	Bytes  int    `json:"bytes"`
}

// reply is a whole answer as --json prints it.
type reply struct {
	Answer string    `json:"answer"`
	Model  string    `json:"model"`
	Finish string    `json:"finish"`
	Rounds int       `json:"rounds"`
	Calls  []callRow `json:"calls"`
	Usage  llm.Usage `json:"usage"`
	// Session is what the conversation goes on with; empty where nothing is kept.
	Session string `json:"session,omitzero"`
}

// answer runs a turn and prints it as it comes, or whole as JSON.
func (s *session) answer(ctx context.Context, t *gateway.Turn, asJSON bool, id string) error {
	v := &view{out: s.std.Out, err: s.std.Err, progress: progress{out: s.std.Err}}
	if asJSON {
		v.out = io.Discard
	}
	out, err := t.Run(ctx, v.see)
	v.end()
	if err != nil {
		return err
	}
	if most := t.Rounds(); out.Rounds > most {
		fmt.Fprintf(s.std.Err, "(the limit of %d rounds was reached, and the answer asked for; --%s raises it)\n", most, config.MaxRounds)
	}
	if !asJSON {
		if out.Finish == llm.FinishLength {
			fmt.Fprintln(s.std.Err, "(the answer was cut at its token limit)")
		}
		return nil
	}
	model := out.Model
	if model == "" {
		model = s.flags.model
	}
	return s.printJSON(reply{
		Answer: v.text.String(), Model: model, Finish: string(out.Finish), Rounds: out.Rounds, Calls: v.calls, Usage: out.Usage, Session: id,
	})
}

// view shows a turn at a terminal: the text on one side, what happens meanwhile
// on the other.
type view struct {
	out, err io.Writer
	text     strings.Builder
	calls    []callRow
	open     bool // the last line of out has no end yet
	progress progress
}

func (v *view) see(s turn.Signal) error {
	if s.Kind != turn.Delta {
		v.end()
		defer v.progress.see(s)
	}
	switch s.Kind {
	case turn.Delta:
		if s.Piece.Choice != 0 || s.Piece.Text == "" {
			return nil
		}
		v.text.WriteString(s.Piece.Text)
		v.open = !strings.HasSuffix(s.Piece.Text, "\n")
		_, err := io.WriteString(v.out, s.Piece.Text)
		return err
	case turn.CallEnded:
		row := callRow{
			Round: s.Round, Tool: code.Canonical(s.Call.Name), Skill: s.Result.Skill, Detail: s.Result.Detail,
			OK: s.Result.OK, Bytes: len(s.Result.Text),
		}
		v.calls = append(v.calls, row)
		fmt.Fprintln(v.err, row.line())
	}
	return nil
}

func (r callRow) line() string {
	what := r.Tool
	switch {
	case r.Skill != "":
		what += " " + r.Skill + "/" + r.Detail
	case r.Detail != "":
		what += " " + r.Detail
	}
	if !r.OK {
		what += " (failed)"
	}
	return fmt.Sprintf("[round %d] %s, %d bytes", r.Round, what, r.Bytes)
}

// end closes the line that text stands on.
func (v *view) end() {
	if v.open {
		fmt.Fprintln(v.out)
		v.open = false
	}
}
