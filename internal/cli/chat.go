package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/metier-run/metier/internal/app"
	"github.com/metier-run/metier/internal/code"
	"github.com/metier-run/metier/internal/llm"
)

// conversationFlags are those of run and chat.
func (s *session) conversationFlags(set *pflag.FlagSet) {
	set.StringArrayVar(&s.flags.skills, "skill", nil, "skill to select (repeatable)")
	set.StringVar(&s.flags.session, "session", "", "id of a session to go on with (metier sessions list shows them)")
	set.StringVar(&s.flags.model, "model", "", "model to ask; without it the first that the upstream lists")
}

func (s *session) newChat() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "chat",
		Short: "Talk with a model, line by line",
		Long:  "Talk with a model, line by line. Commands begin with a slash; /help lists them.",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if s.flags.listSkills {
				return s.listSkills(cmd, false)
			}
			return s.chat(cmd.Context())
		},
	}
	f := cmd.Flags()
	s.registryFlags(f)
	s.scriptFlags(f)
	s.codeFlags(f)
	s.limitFlags(f, ofTurns)
	s.upstreamFlags(f)
	s.storeFlags(f)
	s.conversationFlags(f)
	return cmd
}

// conversation is what a chat goes on from.
type conversation struct {
	*session
	app      *app.App
	model    string
	system   string
	selected []string
	work     *code.Conversation // nil without code work
	files    []llm.Attachment   // for the next message
	messages []llm.Message      // hidden rounds included, the system message not
	id       string             // of the session
	kept     bool               // a turn of it was answered
}

// goOn begins with what was said in the session that --session names, or in a new one.
func (c *conversation) goOn(ctx context.Context) error {
	var err error
	if c.messages, c.id, err = c.earlier(ctx, c.app); err != nil {
		return err
	}
	if len(c.messages) > 0 && c.messages[0].Role == llm.System {
		c.system, c.messages = c.messages[0].Text(), c.messages[1:]
	}
	return nil
}

func (s *session) chat(ctx context.Context) error {
	a, err := s.open(ctx)
	if err != nil {
		return err
	}
	defer a.Close()
	model, err := s.pickModel(ctx, a)
	if err != nil {
		return err
	}
	c := &conversation{session: s, app: a, model: model, work: a.OpenCode()}
	defer closeCode(ctx, c.work, s)
	if err := c.goOn(ctx); err != nil {
		return err
	}
	for _, name := range s.flags.skills {
		if err := c.toggle(name); err != nil {
			return usageOf(err)
		}
	}
	fmt.Fprintf(s.std.Err, "upstream: %s\nmodel: %s\n/help lists the commands\n", a.Chosen, model)
	defer c.sayGoOn()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	lines := readLines(ctx, s.std.In)
	for {
		fmt.Fprint(s.std.Err, "> ")
		select {
		case <-ctx.Done():
			return ctx.Err()
		case line, ok := <-lines:
			if !ok {
				fmt.Fprintln(s.std.Err)
				return nil
			}
			if c.line(ctx, strings.TrimSpace(line)) {
				return nil
			}
		}
	}
}

// sayGoOn tells how the conversation can be taken up again, if there is anything of it.
func (c *conversation) sayGoOn() {
	if c.kept {
		c.session.sayGoOn(c.app, "chat", c.id)
	}
}

// line takes what a person typed and reports whether they want to leave.
func (c *conversation) line(ctx context.Context, line string) (leave bool) {
	switch {
	case line == "":
	case line == "/exit" || line == "/quit":
		return true
	case strings.HasPrefix(line, "/"):
		c.command(line)
	default:
		c.ask(ctx, line)
	}
	return false
}

// readLines reads in the background, so that the end of ctx is seen while
// nobody types.
func readLines(ctx context.Context, r io.Reader) <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		in := bufio.NewReader(r)
		for {
			line, err := in.ReadString('\n')
			if line != "" {
				select {
				case lines <- line:
				case <-ctx.Done():
					return
				}
			}
			if err != nil {
				return
			}
		}
	}()
	return lines
}

const chatHelp = `/skills          list the skills; selected ones are marked
/skill NAME      select a skill, or let it go; begins the conversation anew
/attach FILE     put a file into the model's working directory (needs --code-exec)
/system TEXT     set the system message; begins the conversation anew
/reset           begin the conversation anew
/exit            leave
`

func (c *conversation) command(line string) {
	name, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	switch name {
	case "/help":
		fmt.Fprint(c.std.Out, chatHelp)
	case "/skills":
		c.listSelected()
	case "/skill":
		if rest == "" {
			fmt.Fprintln(c.std.Out, "/skill needs a name; /skills lists them")
			return
		}
		if err := c.toggle(rest); err != nil {
			fmt.Fprintln(c.std.Out, sentence(err))
			return
		}
		c.reset()
	case "/attach":
		c.attach(rest)
	case "/system":
		c.system = rest
		c.reset()
	case "/reset":
		c.reset()
	default:
		fmt.Fprintf(c.std.Out, "there is no command %s; /help lists them\n", name)
	}
}

// reset drops the conversation: what stands at the front of the prompt has
// changed, or the person wants it so.
func (c *conversation) reset() {
	c.sayGoOn() // this one stays where it is
	c.messages, c.files, c.id, c.kept = nil, nil, c.app.NewSessionID(), false
	if c.work != nil {
		// What is left behind goes with the process.
		if err := c.work.Reset(context.Background()); err != nil {
			fmt.Fprintln(c.std.Err, sentence(err))
		}
	}
	fmt.Fprintln(c.std.Out, "(the conversation begins anew)")
}

func (c *conversation) listSelected() {
	if c.app.Registry == nil {
		fmt.Fprintln(c.std.Out, "skills are off (--no-skills)")
		return
	}
	for _, k := range c.app.Skills().Skills() {
		mark := " "
		if slices.Contains(c.selected, k.Name) {
			mark = "*"
		}
		fmt.Fprintf(c.std.Out, "%s %s: %s\n", mark, k.Name, k.Description)
	}
}

// attach keeps a file for the next message.
func (c *conversation) attach(name string) {
	f, err := attach(c.app, []string{name})
	if err != nil {
		fmt.Fprintln(c.std.Out, sentence(err))
		return
	}
	c.files = append(c.files, f...)
	fmt.Fprintf(c.std.Out, "%s goes with your next message\n", printable(f[0].Name))
}

// toggle selects a skill or lets it go.
func (c *conversation) toggle(name string) error {
	if c.app.Registry == nil {
		return errors.New("skills are off (--no-skills)")
	}
	k, ok := c.app.Skills().Find(name)
	if !ok {
		return fmt.Errorf("there is no skill %q; /skills lists them", name)
	}
	if i := slices.Index(c.selected, k.Name); i >= 0 {
		c.selected = slices.Delete(c.selected, i, i+1)
		fmt.Fprintf(c.std.Out, "%s is not selected any more\n", k.Name)
		return nil
	}
	c.selected = append(c.selected, k.Name)
	fmt.Fprintf(c.std.Out, "%s is selected\n", k.Name)
	return nil
}

// ask runs one turn. An interrupt ends the answer, not the chat.
func (c *conversation) ask(ctx context.Context, text string) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	messages := append(slices.Clone(c.messages), llm.TextMessage(llm.User, text))
	if c.system != "" {
		messages = slices.Insert(messages, 0, llm.TextMessage(llm.System, c.system))
	}
	request := c.request(c.model, messages, c.selected, c.work)
	request.Notes = withLast(c.work, c.files)
	request.Journal = c.app.Session(c.id, "chat")
	t, err := c.app.Gateway.Prepare(ctx, request)
	if err == nil {
		c.files = nil
		c.sayWarnings(t)
		err = c.answer(ctx, t, false, "")
	}
	switch {
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(c.std.Err, "(stopped)")
		return
	case err != nil:
		fmt.Fprintln(c.std.Err, sentence(err))
		return
	}
	c.messages = t.Messages()
	if c.system != "" {
		c.messages = c.messages[1:]
	}
	c.kept = true
}
