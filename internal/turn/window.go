package turn

import (
	"slices"
	"unicode/utf8"

	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/llm"
)

// window is what a state knows of the model's window: how much goes into it, how
// much of it the conversation takes, and what was left out to make room. It is
// a value like the state that holds it.
type window struct {
	limit   int // tokens; 0 when unknown
	perByte float64
	results []journal.NodeID // the host's answers in this turn
	elided  []journal.Elided
	over    bool // the upstream said that it was too much
}

// Estimates, for as long as no upstream has counted: three bytes a token is
// cautious for text and about right for code. What an upstream counted is
// believed within bounds.
const (
	guessedPerByte = 1.0 / 3
	leastPerByte   = 1.0 / 8
	mostPerByte    = 1.0
	// enoughBytes is what a count is taken from: in less, the frame of a chat
	// template outweighs the text.
	enoughBytes = 2000
)

func (w window) start(d journal.TurnStarted) window {
	return window{limit: d.Context, perByte: guessedPerByte, elided: w.elided}
}

// measured learns from a generation that was counted.
func (w window) measured(sent int, u llm.Usage) window {
	if u.Input > 0 && sent >= enoughBytes {
		w.perByte = min(max(float64(u.Input)/float64(sent), leastPerByte), mostPerByte)
	}
	return w
}

// added notes which of the nodes are the host's answers.
func (w window) added(calls []call, d journal.MessagesAdded) window {
	w.results = slices.Clip(w.results)
	for i, e := range d.Entries {
		if i < len(calls) && isHost(calls[i]) {
			w.results = append(w.results, e.ID)
		}
	}
	return w
}

func (w window) elide(d journal.ResultsElided) window {
	w.elided = append(slices.Clip(w.elided), d.Results...)
	w.over = false
	return w
}

// find is what stands in place of a node, if anything does.
func (w window) find(id journal.NodeID) (journal.Elided, bool) {
	i := slices.IndexFunc(w.elided, func(e journal.Elided) bool { return e.Node == id })
	if i < 0 {
		return journal.Elided{}, false
	}
	return w.elided[i], true
}

// messages are those of a path as the model gets them.
func (w window) messages(p journal.Path) []llm.Message {
	messages := p.Messages()
	if len(w.elided) == 0 {
		return messages
	}
	for i, n := range p.Nodes() {
		if e, ok := w.find(n.ID); ok {
			m := llm.TextMessage(n.Message.Role, e.Text)
			m.CallID = n.Message.CallID
			messages[i] = m
		}
	}
	return messages
}

// size is how many bytes the next generation would send, about.
func (s State) size() int {
	size := len(s.start.Block)
	for _, m := range s.window.messages(s.Path()) {
		size += messageSize(m)
	}
	for _, d := range s.start.Caller {
		size += declarationSize(d)
	}
	for _, d := range s.offer.Declared {
		size += declarationSize(d)
	}
	return size
}

// framing is what a message or a tool costs beside its text.
const framing = 16

func messageSize(m llm.Message) int {
	if len(m.Raw.Bytes) > 0 {
		return len(m.Raw.Bytes)
	}
	size := framing + len(m.Text())
	for _, c := range m.Calls {
		size += framing + len(c.Name) + len(c.Arguments)
	}
	return size
}

func declarationSize(d llm.Declaration) int {
	if len(d.Raw.Bytes) > 0 {
		return len(d.Raw.Bytes)
	}
	return framing + len(d.Name) + len(d.Description) + len(d.Parameters)
}

// reserve is what is kept free for the reply, in tokens: what the client allows
// it, or a quarter of the window.
func (s State) reserve() int {
	quarter := s.window.limit / 4
	if wanted := s.start.Options.MaxTokens; wanted > 0 {
		return min(wanted, 2*quarter)
	}
	return quarter
}

// room is how many bytes of results still fit the window, for each of n calls;
// 0 when the window is unknown. A little is always left: what does not fit makes
// older results go.
func (s State) room(n int) int {
	if s.window.limit == 0 || n == 0 {
		return 0
	}
	free := float64(s.window.limit-s.reserve())/s.window.perByte - float64(s.size())
	least := float64(s.window.limit) / leastRoom / s.window.perByte
	return int(max(free, least)) / n
}

// leastRoom is the part of the window that the results of a round may always
// fill.
const leastRoom = 8

// generateFailed fails the turn, unless the conversation was too long and there
// is something to leave out.
func (s State) generateFailed(d journal.GenerateFailed) State {
	g := s.generation
	s.generation = nil
	if !d.Overflow || g == nil || len(s.elidable()) == 0 {
		s.failure = d.Error
		return s
	}
	s.failed = &g.GenerateRequested
	s.window.over = true
	if d.Limit > 0 {
		s.window.limit = d.Limit
	}
	return s
}

// candidate is a result that can be left out.
type candidate struct {
	id   journal.NodeID
	call llm.Call
	size int
}

// smallest is the size below which leaving a result out gains nothing.
const smallest = 400

// elidable lists the host's results on the path, oldest first: those of this
// turn, and those of earlier turns that continuity put back. What a client sent
// is never touched.
func (s State) elidable() []candidate {
	var out []candidate
	calls := map[string]llm.Call{}
	for _, n := range s.Path().Nodes() {
		for _, c := range n.Message.Calls {
			calls[c.ID] = c
		}
		restored := n.Message.Role == llm.Tool && len(n.Message.Raw.Bytes) == 0
		if !restored && !slices.Contains(s.window.results, n.ID) {
			continue
		}
		size := len(n.Message.Text())
		if _, gone := s.window.find(n.ID); gone || size < smallest {
			continue
		}
		c := calls[n.Message.CallID]
		if c.Name == "" {
			c = llm.Call{Name: "an earlier call", Arguments: "its arguments"}
		}
		out = append(out, candidate{id: n.ID, call: c, size: size})
	}
	return out
}

// tooLong lists the results to leave out before the next generation, oldest
// first and the newest last: none when everything fits. When the upstream has
// refused and nobody knows its window, half of what there is goes.
func (s State) tooLong() []journal.Elided {
	w := s.window
	if w.limit == 0 && !w.over {
		return nil
	}
	excess := 0
	if w.limit > 0 {
		excess = s.size() - int(float64(w.limit-s.reserve())/w.perByte)
	}
	candidates := s.elidable()
	if w.over {
		total := 0
		for _, c := range candidates {
			total += c.size
		}
		excess = max(excess, (total+1)/2)
	}
	var out []journal.Elided
	for _, c := range candidates {
		if excess <= 0 {
			break
		}
		text := elidedResult(c.call, c.size)
		excess -= c.size - len(text)
		out = append(out, journal.Elided{Node: c.id, Text: text})
	}
	return out
}

// fit cuts a result to the room that there is, on a whole character.
func fit(r journal.Result, room int) journal.Result {
	if room <= 0 || len(r.Text) <= room+smallest {
		return r
	}
	cut := room
	for cut > 0 && !utf8.RuneStart(r.Text[cut]) {
		cut--
	}
	r.Text = r.Text[:cut] + cutResult(cut, len(r.Text))
	return r
}
