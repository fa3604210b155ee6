package model

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/metier-run/metier/test/tasks/task"
)

// Kind says why a round was sent.
type Kind string

// The kinds.
const (
	Right  Kind = "right"  // as recorded
	Silent Kind = "silent" // spoiled, and nothing shows yet
	Faulty Kind = "faulty" // spoiled, and judged by its results
	Again  Kind = "again"  // floundering: the spoiled round once more
	Look   Kind = "look"   // floundering, or using up rounds
	Fix    Kind = "fix"    // putting it right
	Redo   Kind = "redo"   // a right round, sent again after a fix
	Answer Kind = "answer" // the final text
)

// Move is one generation of the model.
type Move struct {
	Kind  Kind       `json:"kind"`
	Fault string     `json:"fault"`
	Calls task.Round `json:"calls"`
	Text  string     `json:"text"`
	// Seen is the text that came back, Verdict what the model took it for.
	Seen    string  `json:"seen"`
	Verdict Verdict `json:"verdict"`
	// Dropped says that the host allowed no call in this generation.
	Dropped bool `json:"dropped"`

	in *injection
}

// session plays one plan. It is used by one caller at a time.
type session struct {
	plan   Plan
	rounds int // of a turn, before the host ends it
	step   int
	todo   []Move
	// flounder are the moves left to a model that is lost.
	flounder []string
	// armed are faults that sit in the files unnoticed.
	armed []*injection
	// learned are faults that the model has learned better of.
	learned map[string]bool
	log     []Move
	turn    int // requests of this turn
}

// newSession plays a plan against a host that allows so many rounds a turn.
func newSession(p Plan, rounds int) *session {
	return &session{plan: p, rounds: rounds, step: -1, learned: map[string]bool{}}
}

// moves are the generations so far.
func (s *session) moves() []Move { return slices.Clone(s.log) }

// next is the next generation, after the results of the one before. Forced says that
// the host allows no calls in it: the model calls nevertheless, as small ones do, and
// goes on from there when it may.
func (s *session) next(seen string, forced bool) (Move, error) {
	if err := s.read(seen); err != nil {
		return Move{}, err
	}
	if len(s.todo) == 0 {
		s.advance()
	}
	m := s.todo[0]
	m.Dropped = forced && m.Kind != Answer
	if !m.Dropped {
		s.todo = s.todo[1:]
	}
	s.turn++
	s.log = append(s.log, m)
	return m, nil
}

// newTurn says that the user has written again, after the assistant's text.
func (s *session) newTurn(said string) error {
	s.turn = 0
	f := s.plan.idle
	if f == nil || len(s.log) == 0 || !s.log[len(s.log)-1].Dropped {
		return nil
	}
	verdict, err := f.judge(said, false, f.Words, task.Shell)
	if err != nil {
		return err
	}
	s.log[len(s.log)-1].Verdict = verdict
	if verdict == Lost {
		var looks []Move
		for i := range f.Flounder {
			looks = append(looks, Move{Kind: Look, Fault: f.Name, Calls: task.Round{idle(i)}})
		}
		s.todo = append(looks, s.todo...)
	}
	return nil
}

// read takes the results of the last move for something.
func (s *session) read(seen string) error {
	if len(s.log) == 0 || s.log[len(s.log)-1].Dropped {
		return nil
	}
	m := &s.log[len(s.log)-1]
	m.Seen = seen
	switch m.Kind {
	case Faulty, Again:
		return s.judge(m, seen)
	case Look:
		if m.in != nil {
			return s.judge(m, seen)
		}
	case Right, Fix, Redo, Silent:
		return s.notice(m, seen)
	}
	return nil
}

// judge reads what a spoiled round led to.
func (s *session) judge(m *Move, seen string) error {
	in := m.in
	verdict, err := in.fault.judge(seen, false, in.words, in.tool)
	if err != nil {
		return err
	}
	if m.Kind == Look && verdict != Told {
		verdict = Lost // a look around changes nothing
	}
	m.Verdict = verdict
	switch verdict {
	case Learned:
		s.learned[in.fault.Name] = true
	case Pass:
		s.armed = append(s.armed, in)
	case Told:
		s.todo = in.fixes()
	case Lost:
		s.lost(in)
	}
	return nil
}

// lost is the next move of a model that knows no better.
func (s *session) lost(in *injection) {
	if len(s.flounder) == 0 {
		s.todo = in.fixes()
		return
	}
	move := s.flounder[0]
	s.flounder = s.flounder[1:]
	if move == again {
		s.todo = []Move{{Kind: Again, Fault: in.fault.Name, Calls: in.spoiled(s.seenWord(in)), in: in}}
		return
	}
	s.todo = []Move{{Kind: Look, Fault: in.fault.Name, Calls: in.look, in: in}}
}

func (in *injection) fixes() []Move {
	var moves []Move
	for _, r := range in.fix {
		moves = append(moves, Move{Kind: Fix, Fault: in.fault.Name, Calls: r})
	}
	return moves
}

// notice reads the results of a right round for signs of an earlier mistake.
func (s *session) notice(m *Move, seen string) error {
	for i, in := range s.armed {
		verdict, err := in.fault.judge(seen, true, in.words, in.tool)
		if err != nil {
			return err
		}
		if verdict == "" {
			continue
		}
		m.Verdict, m.Fault = verdict, in.fault.Name
		s.armed = slices.Delete(s.armed, i, i+1)
		var moves []Move
		if verdict == Lost {
			for _, f := range in.fault.Flounder {
				calls := in.look
				if f == again {
					calls = m.Calls
				}
				moves = append(moves, Move{Kind: Look, Fault: in.fault.Name, Calls: calls})
			}
		}
		moves = append(moves, in.fixes()...)
		moves = append(moves, Move{Kind: Redo, Fault: in.fault.Name, Calls: m.Calls})
		s.todo = append(moves, s.todo...)
		return nil
	}
	return nil
}

// advance plans the next step.
func (s *session) advance() {
	for {
		s.step++
		if s.step >= len(s.plan.Steps) {
			s.todo = []Move{{Kind: Answer, Text: s.plan.Answer}}
			return
		}
		if m, ok := s.move(); ok {
			s.todo = append(s.looks(), m)
			return
		}
	}
}

// move is what the step begins with; false for a round that is left out.
func (s *session) move() (Move, bool) {
	for i := range s.plan.injections {
		in := &s.plan.injections[i]
		if s.learned[in.fault.Name] {
			continue
		}
		if in.at == s.step {
			s.flounder = slices.Clone(in.fault.Flounder)
			return Move{Kind: Faulty, Fault: in.fault.Name, Calls: in.spoiled(s.seenWord(in)), in: in}, true
		}
		if r, ok := in.silent[s.step]; ok {
			return Move{Kind: Silent, Fault: in.fault.Name, Calls: r}, len(r) > 0
		}
	}
	return Move{Kind: Right, Calls: s.plan.Steps[s.step]}, true
}

// looks use up the rounds before the last step, if that is the fault.
func (s *session) looks() []Move {
	if s.plan.idle == nil || s.step != len(s.plan.Steps)-1 {
		return nil
	}
	var moves []Move
	for i := s.turn; i < s.rounds; i++ {
		moves = append(moves, Move{Kind: Look, Fault: s.plan.idle.Name, Calls: task.Round{idle(i)}})
	}
	return moves
}

// idle is a look around that differs from the one before.
func idle(i int) task.Call {
	return command(fmt.Sprintf("ls -la | head -n %d", i+2))
}

func command(text string) task.Call {
	return task.Call{Tool: task.Shell, Args: map[string]any{"command": text}}
}

// seenWord is what the model copies out of the last results; "" when it copies
// nothing. What is long and rooted it cannot copy without a slip.
func (s *session) seenWord(in *injection) string {
	if in.seen == nil || len(s.log) == 0 {
		return ""
	}
	found := in.seen.FindStringSubmatch(s.log[max(0, s.shown())].Seen)
	if found == nil {
		return ""
	}
	word := found[1]
	if parts := strings.Split(word, "/"); strings.HasPrefix(word, "/") && len(parts) > 3 {
		parts[2] = strings.TrimRight(parts[2], "0123456789abcdef") + "0"
		word = strings.Join(parts, "/")
	}
	return word
}

// shown is the last move before this step's own.
func (s *session) shown() int {
	for i := len(s.log) - 1; i >= 0; i-- {
		if s.log[i].in == nil {
			return i
		}
	}
	return -1
}

// spoiled is the faulty round, with the word that was seen put in; without one it is
// what the maker fell back on.
func (in *injection) spoiled(seen string) task.Round {
	if in.seen == nil {
		return in.faulty
	}
	if seen == "" {
		return in.fix[0]
	}
	var calls task.Round
	for _, c := range in.faulty {
		c.Args = maps.Clone(c.Args)
		for name, value := range c.Args {
			if text, ok := value.(string); ok {
				c.Args[name] = strings.ReplaceAll(text, "{{seen}}", seen)
			}
		}
		calls = append(calls, c)
	}
	return calls
}
