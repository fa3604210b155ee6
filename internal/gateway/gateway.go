// Package gateway takes one stateless request through the machine: it selects
// skills, has the block and the tools made for them, opens a journal, in memory or that
// of its conversation, and drives the turn.
//
// Every chat door uses it and adds nothing to it. It knows no dialect and holds
// no loop; what it keeps between requests is in a continuity store.
//
// Start at [Gateway.Prepare].
package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/metier-run/metier/internal/access"
	"github.com/metier-run/metier/internal/admission"
	"github.com/metier-run/metier/internal/code"
	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/continuity"
	"github.com/metier-run/metier/internal/disclosure"
	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/tool"
	toolskill "github.com/metier-run/metier/internal/tool/skill"
	"github.com/metier-run/metier/internal/turn"
	"github.com/metier-run/metier/internal/workspace/artifact"
	"github.com/metier-run/metier/skill"
)

// Options set up a [Gateway].
type Options struct {
	Provider llm.Provider
	// Skills gives the snapshot that a request holds from its start to its end.
	// It returns nil when skills are turned off.
	Skills func() *skill.Snapshot
	// Discovery says when skills that a request does not name are advertised.
	Discovery config.Discovery
	// Models is what the operator says of single models, by their names.
	Models map[string]config.Model
	Limits config.Values
	Logger *slog.Logger
	Now    func() time.Time
	Host   turn.Host
	// Continuity keeps what clients do not see of their conversations; nil keeps
	// nothing.
	Continuity continuity.Store
	// Runner runs the scripts of skills; with nil none may run. Scripts say how; their
	// owner is the caller of each request.
	Runner  toolskill.Runner
	Scripts toolskill.Scripts
	// Code gives conversations a workspace and the tools that work in it; nil gives
	// none. Temperature is what a turn with these tools asks for where its client does
	// not say; nil leaves that to the upstream (B1 18.5).
	Code        *code.Service
	Temperature *float64
	// Record, if set, is told of each turn's end with what went over the wire.
	Record Recorder
}

// Recorder writes down what a turn's requests and rounds were.
type Recorder interface {
	// Begin gives the context that the turn's generations run in.
	Begin(ctx context.Context, turnID string) (context.Context, func())
}

// Gateway is safe for concurrent use.
type Gateway struct {
	o      Options
	bounds journal.Bounds
	page   int
}

// New makes a gateway.
func New(o Options) *Gateway {
	return &Gateway{
		o: o, page: o.Limits.Int(config.PageSize),
		bounds: journal.Bounds{Rounds: o.Limits.Int(config.MaxRounds), Calls: o.Limits.Int(config.CallsPerRound)},
	}
}

// Dialect is the upstream's: a door of the same one need not decode messages.
func (g *Gateway) Dialect() llm.Dialect { return g.o.Provider.Dialect() }

// Capabilities are those of a model that the caller may use.
func (g *Gateway) Capabilities(ctx context.Context, model string) (llm.Capabilities, error) {
	if err := access.FromContext(ctx).May(model); err != nil {
		return llm.Capabilities{}, err
	}
	return g.o.Provider.Capabilities(ctx, model)
}

// Models lists what the upstream offers and the caller may use.
func (g *Gateway) Models(ctx context.Context) ([]llm.Model, error) {
	models, err := g.o.Provider.Models(ctx)
	caller := access.FromContext(ctx)
	return slices.DeleteFunc(models, func(m llm.Model) bool { return !caller.Sees(m.ID) }), err
}

// Request is a client's request as a door hands it over.
type Request struct {
	*llm.Request
	// Skills are the names that the request selects.
	Skills []string
	// Discovery says whether other skills are advertised; nil is the default.
	Discovery *bool
	// Header goes upstream with each generation.
	Header http.Header
	// EndUser is whom the caller acts for, if it says so.
	EndUser string
	// Files are the files that a message holds; nil finds none. A conversation that
	// goes on is given its files by whoever holds it: see Notes.
	Files func(llm.Message) []llm.Attachment
	// Conversation is the code work that the request goes on with; nil is a workspace
	// of its own, gone when the turn has ended.
	Conversation *code.Conversation
	// Journal keeps the turn with those before it of the same conversation; nil keeps it
	// as long as it runs.
	Journal Journal
	// Notes are told behind messages of such a conversation, by their place among those
	// of the request. It is asked only where tools can reach the files that it tells of:
	// elsewhere a note of them would be a lie.
	Notes func([]llm.Message) map[int]string
	// Nameless says that clients of the dialect keep no ids of calls.
	Nameless bool
	// Progress has the turn's watcher told of calls that are written and what they say.
	Progress bool
	// Expand fills the parts and calls of a message that holds only its wire form;
	// nil when all are filled.
	Expand func(llm.Message) llm.Message
}

// Turn is a request that is ready to run, once.
type Turn struct {
	gateway  *Gateway
	id       string
	request  Request
	plan     selection
	start    journal.TurnStarted
	tools    tool.Set
	work     *code.Conversation // nil without code work
	memory   memory
	warnings []string
	// When the turn has run:
	state   *turn.State
	outcome turn.Outcome
}

// Warnings are sentences for the client about what was left out.
func (t *Turn) Warnings() []string { return t.warnings }

// Rounds is how many rounds in a row the host answers before it asks for the answer: an
// outcome with more was forced (B1 7.5).
func (t *Turn) Rounds() int { return t.start.Bounds.Rounds }

// Prepare checks a request and makes everything that its turn is started with.
// It asks nothing of the upstream but its capabilities. Its errors are the
// client's: [fault.Invalid] with the member at fault.
func (g *Gateway) Prepare(ctx context.Context, r Request) (*Turn, error) {
	caller := access.FromContext(ctx)
	if err := caller.May(r.Model); err != nil {
		return nil, err
	}
	if err := r.otherModels(caller); err != nil {
		return nil, err
	}
	caps, err := g.o.Provider.Capabilities(ctx, r.Model)
	if err != nil {
		return nil, fmt.Errorf("prepare turn: %w", err)
	}
	plan, err := g.choose(r, caller, caps)
	if err != nil {
		return nil, err
	}
	files := g.attach(&r, plan)
	remembered := g.recall(ctx, &r, caller, plan)
	r.Added = g.sample(r, plan, caps)
	t := &Turn{gateway: g, id: "turn_" + g.o.Host.NewID(), request: r, plan: plan, memory: remembered, warnings: append(plan.warnings, g.lost(r.Request)...)}
	t.start = journal.TurnStarted{
		Model: r.Model, Dialect: r.Dialect, Rest: r.Rest, Added: r.Added, Options: r.Options, Caller: r.Tools,
		Bounds:        g.boundsOf(plan),
		ResultsAsUser: !caps.Results,
		Context:       caps.Context,
		Snapshot:      plan.digest,
	}
	if err := t.disclose(ctx, caps); err != nil {
		return nil, fmt.Errorf("prepare turn: %w", err)
	}
	if plan.code {
		if t.work = r.Conversation; t.work == nil {
			t.work = g.o.Code.Open(artifact.Owner(caller.Tenant, caller.ID), files)
		}
	}
	t.tools = t.toolset(caller)
	return t, nil
}

// mostLost is how many things a warning names that the upstream is not told of.
const mostLost = 8

// lost warns of what the upstream's dialect cannot carry.
func (g *Gateway) lost(r *llm.Request) []string {
	lost := g.o.Provider.Lost(r)
	if len(lost) == 0 {
		return nil
	}
	more := ""
	if n := len(lost) - mostLost; n > 0 {
		lost, more = lost[:mostLost], fmt.Sprintf(" and %d more", n)
	}
	return []string{"the upstream's dialect cannot carry " + strings.Join(lost, ", ") + more}
}

// disclose renders what the model is told.
func (t *Turn) disclose(ctx context.Context, caps llm.Capabilities) error {
	g, plan := t.gateway, t.plan
	var blocks []string
	if plan.skills() > 0 {
		told := disclosure.NewPlan(plan.selected, plan.advertised, disclosure.Options{
			Tools: plan.tools, Inline: g.o.Models[t.request.Model].Inline, Scripts: plan.runs && g.o.Runner.Refusal() == nil, Context: caps.Context,
		})
		block, err := told.Render(ctx)
		if err != nil {
			return err
		}
		blocks = append(blocks, block)
	}
	if plan.code {
		taken := func(name string) bool { return declares(t.request.Tools, name) }
		blocks = append(blocks, disclosure.WorkingWithFiles(g.o.Code.FileTools(taken)))
	}
	blocks = slices.DeleteFunc(blocks, func(b string) bool { return b == "" })
	t.start.Block = strings.Join(blocks, "\n\n")
	return nil
}

// toolset makes the tools of one request; nil when it has none. What its scripts make
// is its caller's.
func (t *Turn) toolset(caller access.Caller) tool.Set {
	g, plan := t.gateway, t.plan
	var skills tool.Set
	if plan.skills() > 0 && plan.tools {
		o := toolskill.Options{Skills: plan.reachable(), PageBytes: g.page, Scripts: g.o.Scripts}
		if plan.runs {
			o.Runner = g.o.Runner
		}
		o.Scripts.Owner = artifact.Owner(caller.Tenant, caller.ID)
		if t.work != nil {
			o.Scripts = t.work.Scripts(o.Scripts, o.Skills)
		}
		skills = toolskill.New(o)
	}
	if t.work == nil {
		return skills
	}
	return t.work.Tools(skills)
}

// boundsOf are the bounds of a turn. Where code may run they are wider, unless the
// operator has set them (seed 1, "Bounds").
func (g *Gateway) boundsOf(plan selection) journal.Bounds {
	b := g.bounds
	if plan.code && !g.o.Limits.IsSet(config.MaxRounds) {
		b.Rounds = g.o.Limits.Int(config.CodeRounds)
	}
	return b
}

// otherModels refuses members by which routers behind the upstream take another
// model than the one that was asked for, if the caller may not use all.
func (r Request) otherModels(caller access.Caller) error {
	if len(caller.Models) == 0 {
		return nil
	}
	for _, m := range r.Rest {
		for _, name := range []string{"models", "fallbacks"} {
			if strings.EqualFold(m.Name, name) {
				e := fault.New(fault.Forbidden, "the key %q may only use %s: leave out %q", caller.ID, strings.Join(caller.Models, ", "), m.Name)
				e.Param, e.Detail = m.Name, "model_not_allowed"
				return e
			}
		}
	}
	return nil
}

// Run drives the turn and returns when it has ended or is parked for the
// caller's tools. The error is the cause when it failed or was cancelled.
func (t *Turn) Run(ctx context.Context, emit func(turn.Signal) error) (turn.Outcome, error) {
	g := t.gateway
	w := &watcher{began: g.o.Now(), now: g.o.Now}
	ctx, end := admission.WithTurn(ctx, t.conversation)
	defer end()
	if g.o.Record != nil {
		recording, done := g.o.Record.Begin(ctx, t.id)
		ctx = recording
		defer done()
	}
	err := t.drive(ctx, func(s turn.Signal) error {
		w.see(ctx, t, s)
		return emit(s)
	})
	t.leave(ctx)
	t.remember(ctx, w)
	w.log(ctx, g.o.Logger, t, err)
	return t.outcome, err
}

// leave ends the code work of a request that has none to go on with.
func (t *Turn) leave(ctx context.Context) {
	if t.work == nil || t.work == t.request.Conversation {
		return
	}
	// The answer stands; who has the host can clear up.
	if err := t.work.Close(context.WithoutCancel(ctx)); err != nil {
		t.gateway.o.Logger.ErrorContext(ctx, "workspace left behind", "turn", t.id, "error", err)
	}
}

// conversation names what the turn belongs to, the same for all turns that begin
// with the same words of the same user.
func (t *Turn) conversation() string {
	for _, m := range t.memory.visible {
		if m.Role == llm.User {
			mark := t.memory.scope.Chain().Add(t.request.expand(m))
			return string(mark[:])
		}
	}
	return ""
}

// drive runs the machine and keeps where it ended.
func (t *Turn) drive(ctx context.Context, emit func(turn.Signal) error) error {
	d, state, release, err := t.begin(ctx)
	if err != nil {
		t.outcome.Reason = turn.Failed
		return err
	}
	defer release(ctx)
	t.state = state
	t.outcome, err = d.Run(ctx, state, emit)
	return err
}

// drafts are the facts that the turn begins with: the client's conversation and
// everything that was rendered for it.
func (t *Turn) drafts() []journal.Draft {
	added := journal.MessagesAdded{Entries: make([]journal.Entry, len(t.request.Messages))}
	for i, m := range t.request.Messages {
		added.Entries[i] = journal.Entry{ID: journal.NodeID(fmt.Sprintf("%s.%d", t.id, i)), Message: m}
	}
	tip := added.Entries[len(added.Entries)-1].ID
	return []journal.Draft{
		{TurnID: t.id, Data: added},
		{TurnID: t.id, Anchor: tip, Data: t.start},
	}
}

// refusal is a 400 about one member.
func refusal(param, detail, format string, args ...any) error {
	e := fault.New(fault.Invalid, format, args...)
	e.Param, e.Detail = param, detail
	return e
}
