package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"log/slog"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/metier-run/metier/internal/access"
	"github.com/metier-run/metier/internal/app"
	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/server/sessions"
	"github.com/metier-run/metier/internal/store"
)

func (s *session) newSessions() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sessions",
		Short: "Look at conversations that are kept",
		Args:  cobra.ArbitraryArgs,
		// One slip of two letters is still understood.
		SuggestionsMinimumDistance: 2,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return unknownCommand(cmd, args[0])
		},
	}
	cmd.AddCommand(s.newSessionsList(), s.newSessionsShow(), s.newSessionsEvents())
	return cmd
}

// listFlags are those of metier sessions list.
type listFlags struct {
	agent, status, cursor string
	limit                 int
	asJSON                bool
}

func (s *session) newSessionsList() *cobra.Command {
	var f listFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List sessions, the latest first",
		Example: "  metier sessions list\n" +
			"  metier sessions list --status running --json\n" +
			"  metier sessions list --db postgres://localhost/metier",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return s.withStore(cmd.Context(), func(ctx context.Context, db *store.DB) error {
				return s.listSessions(ctx, db, f)
			})
		},
	}
	set := cmd.Flags()
	s.storeFlags(set)
	set.StringVar(&f.agent, "agent", "", "only sessions of this agent")
	set.StringVar(&f.status, "status", "", "only sessions that are idle, running, waiting or ended")
	set.IntVar(&f.limit, "limit", config.Values{}.Int(config.SessionPage), "how many at most")
	set.StringVar(&f.cursor, "cursor", "", "where the page before ended")
	set.BoolVar(&f.asJSON, "json", false, "print JSON")
	return cmd
}

func (s *session) listSessions(ctx context.Context, db *store.DB, f listFlags) error {
	status, err := sessions.ParseStatus(f.status)
	if err != nil {
		return fault.Usage("--status %s: %w", f.status, err)
	}
	if f.limit < 1 {
		return fault.Usage("--limit %d: give a number from 1", f.limit)
	}
	page := sessions.Page{Sessions: []sessions.Row{}}
	if db != nil {
		q := store.Query{Tenant: access.DefaultTenant, Agent: f.agent, Status: status, Limit: f.limit, Cursor: f.cursor}
		if page, err = sessions.List(ctx, db, q); err != nil {
			return usageOf(err)
		}
	}
	if f.asJSON {
		return s.printJSON(page)
	}
	if len(page.Sessions) == 0 {
		fmt.Fprintln(s.std.Err, "there are no such sessions; metier run and metier chat begin one")
		return nil
	}
	w := tabwriter.NewWriter(s.std.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SESSION\tSTATUS\tTURNS\tCHANGED\tFROM\tTITLE")
	for _, r := range page.Sessions {
		from := r.Origin
		if r.Agent != "" {
			from = r.Agent
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%s\n", printable(r.SessionID), r.Status, r.Turns, shownTime(r.UpdatedAt), printable(from), printable(r.Title))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if page.NextCursor != "" {
		fmt.Fprintf(s.std.Err, "there are more: add --cursor %s\n", page.NextCursor)
	}
	return nil
}

// shownTime is a time as a person here reads it.
func shownTime(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05") }

func (s *session) newSessionsShow() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show what was said in a session",
		Long: "Show what was said in a session, along the branch that it stands on, with the calls of the model and what\n" +
			"answered them. --json prints all of it, and the tree of all branches.",
		Example: "  metier sessions show ses_01KB…",
		Args:    between(1, 1, "the id of a session"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.withStore(cmd.Context(), func(ctx context.Context, db *store.DB) error {
				if db == nil {
					return noSuchSession(args[0])
				}
				found, err := sessions.Show(ctx, db, access.DefaultTenant, args[0])
				if errors.Is(err, store.ErrNoSession) {
					return noSuchSession(args[0])
				}
				if err != nil {
					return err
				}
				if asJSON {
					return s.printJSON(found)
				}
				s.showSession(found)
				return nil
			})
		},
	}
	s.storeFlags(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func noSuchSession(id string) error {
	return fmt.Errorf("there is no session %q: metier sessions list shows those that there are", id)
}

func (s *session) showSession(x sessions.Session) {
	w := s.std.Out
	status := string(x.Status)
	if x.Status == journal.Ended {
		status += " (" + printable(string(x.Reason)) + ")"
	}
	fmt.Fprintf(w, "session  %s\nstatus   %s\n", printable(x.SessionID), status)
	fmt.Fprintf(w, "begun    %s\nchanged  %s\nturns    %d\n", shownTime(x.CreatedAt), shownTime(x.UpdatedAt), x.Turns)
	if x.Model != "" {
		fmt.Fprintf(w, "model    %s\n", printable(x.Model))
	}
	if x.Usage.Total > 0 {
		fmt.Fprintf(w, "tokens   %d in, %d out\n", x.Usage.Input, x.Usage.Output)
	}
	if other := len(x.Tree) - len(x.Messages); other > 0 {
		fmt.Fprintf(w, "messages %d, and %d on other branches\n", len(x.Messages), other)
	}
	for _, m := range x.Messages {
		fmt.Fprintf(w, "\n--- %s ---\n", printable(string(m.Role)))
		if m.Text != "" {
			fmt.Fprintln(w, shownText(m.Text))
		}
		for _, c := range m.Calls {
			fmt.Fprintf(w, "[calls %s %s]\n", printable(c.Name), shownText(c.Arguments))
		}
	}
}

// shownText is a text of several lines that cannot steer the terminal.
func shownText(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, line := range lines {
		lines[i] = printable(strings.ReplaceAll(line, "\t", "    "))
	}
	return strings.Join(lines, "\n")
}

// eventFlags are those of metier sessions events.
type eventFlags struct {
	from   int64
	follow bool
	asJSON bool
}

func (s *session) newSessionsEvents() *cobra.Command {
	var f eventFlags
	cmd := &cobra.Command{
		Use:   "events ID",
		Short: "Print the events of a session",
		Long: "Print the events of a session, one a line. With --follow those that come are printed, too, also when another\n" +
			"process makes them, until you press Ctrl-C.",
		Example: "  metier sessions events ses_01KB…\n" +
			"  metier sessions events ses_01KB… --from 12 --follow --json",
		Args: between(1, 1, "the id of a session"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.withStore(cmd.Context(), func(ctx context.Context, db *store.DB) error {
				if db == nil {
					return noSuchSession(args[0])
				}
				return s.printEvents(ctx, db, args[0], f)
			})
		},
	}
	set := cmd.Flags()
	s.storeFlags(set)
	set.Int64Var(&f.from, "from", 1, "number of the first event")
	set.BoolVarP(&f.follow, "follow", "f", false, "wait for more")
	set.BoolVar(&f.asJSON, "json", false, "print one JSON object a line")
	return cmd
}

func (s *session) printEvents(ctx context.Context, db *store.DB, id string, f eventFlags) error {
	if f.from < 1 {
		return fault.Usage("--from %d: give the number of an event, from 1", f.from)
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	l := db.Log(access.DefaultTenant, id)
	var events iter.Seq2[journal.Event, error]
	if events = l.Read(ctx, f.from-1); f.follow {
		events = l.Follow(ctx, f.from-1)
	}
	for e, err := range events {
		switch {
		case errors.Is(err, store.ErrNoSession):
			return noSuchSession(id)
		case err != nil && f.follow && ctx.Err() != nil:
			return nil // the person has seen enough
		case err != nil:
			return err
		}
		if err := s.printEvent(id, e, f.asJSON); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) printEvent(id string, e journal.Event, asJSON bool) error {
	if !asJSON {
		line := fmt.Sprintf("%5d  %s  %-18s %s", e.Seq, shownTime(e.At), e.Data.Kind(), gist(e.Data))
		_, err := fmt.Fprintln(s.std.Out, strings.TrimRight(line, " "))
		return err
	}
	frame, err := sessions.FrameOf(id, e)
	if err != nil {
		return err
	}
	b, err := frame.Encode()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.std.Out, "%s\n", b)
	return err
}

// gist is what an event tells, in a few words.
func gist(d journal.Data) string {
	switch d := d.(type) {
	case journal.SessionCreated:
		return "from " + printable(d.Origin)
	case journal.MessagesAdded:
		return gistOfMessages(d.Entries)
	case journal.HeadMoved:
		return "to " + printable(string(d.To))
	case journal.TurnStarted:
		return "model " + printable(d.Model)
	case journal.TurnEnded:
		return strings.TrimSpace(string(d.Reason) + " " + clipped(d.Error))
	case journal.GenerateRequested:
		return fmt.Sprintf("round %d, attempt %d", d.Round, d.Attempt)
	case journal.GenerateEnded:
		return strings.TrimSpace(clipped(d.Reply.Message.Text()) + shownCalls(d.Reply.Message.Calls))
	case journal.GenerateFailed:
		return clipped(d.Error)
	case journal.InvokeRequested:
		return fmt.Sprintf("%s %s", printable(d.Call.Name), clipped(d.Call.Arguments))
	case journal.InvokeEnded:
		return clipped(d.Result.Text)
	}
	return ""
}

func gistOfMessages(entries []journal.Entry) string {
	if len(entries) == 0 { // no writer of today makes it
		return "no message"
	}
	last := entries[len(entries)-1].Message
	said := printable(string(last.Role)) + " " + clipped(last.Text()) + shownCalls(last.Calls)
	if len(entries) == 1 {
		return said
	}
	return fmt.Sprintf("%d messages, the last: %s", len(entries), said)
}

func shownCalls(calls []llm.Call) string {
	var b strings.Builder
	for _, c := range calls {
		fmt.Fprintf(&b, " [calls %s]", printable(c.Name))
	}
	return b.String()
}

// clipped is the beginning of a text, in one line.
func clipped(text string) string {
	const most = 80
	line := []rune(strings.Join(strings.Fields(printable(text)), " "))
	if len(line) > most {
		return string(line[:most]) + "…"
	}
	return string(line)
}

// withStore opens the database for a command that only looks. It is nil where nothing was
// ever kept: no database is made to look into it.
func (s *session) withStore(ctx context.Context, do func(context.Context, *store.DB) error) (err error) {
	home, err := homeDir()
	if err != nil {
		return err
	}
	logger, err := s.logger(slog.LevelError)
	if err != nil {
		return err
	}
	if s.flags.db == app.MemoryDB {
		return fault.Usage("%s: what is kept in memory ends with its process: name a database to look into, or leave that out", s.from(flagDB))
	}
	settings := app.Settings{Home: home, DB: config.NewSecret(s.flags.db)}
	if path := settings.DBPath(); path != "" {
		if _, statErr := os.Stat(path); errors.Is(statErr, fs.ErrNotExist) {
			return s.withoutStore(ctx, do)
		}
	}
	db, warning, err := app.OpenStore(ctx, settings, logger)
	if err != nil {
		return err
	}
	if db == nil {
		fmt.Fprintln(s.std.Err, "database: "+printable(warning))
		return do(ctx, nil)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return do(ctx, db)
}

// withoutStore looks where there is no database. Who named it for this command may have
// misspelled it; a file names the one that is to be.
func (s *session) withoutStore(ctx context.Context, do func(context.Context, *store.DB) error) error {
	if s.flags.db == "" || s.file.from[flagDB] != "" {
		return do(ctx, nil)
	}
	return fault.Usage("%s: there is no database %s: check the name; metier run, chat and serve make one", s.from(flagDB), shownPath(s.flags.db))
}
