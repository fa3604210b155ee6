package admission_test

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/admission"
	"github.com/metier-run/metier/internal/llm"
)

const rest = time.Minute

// server is an upstream with slots. Its rounds last until they are told to end, and
// then say what they found in their slot.
type server struct {
	llm.Provider
	n   atomic.Int64
	got chan *llm.Request // one for each round that began
}

type endKey struct{}

func (s *server) Stream(ctx context.Context, r *llm.Request) iter.Seq2[llm.Piece, error] {
	return func(yield func(llm.Piece, error) bool) {
		s.got <- r
		found := <-ctx.Value(endKey{}).(chan string)
		if !yield(llm.Piece{Usage: &llm.Usage{}, Raw: llm.Raw{Bytes: jsontext.Value(found)}}, nil) {
			return
		}
		yield(llm.Piece{Reply: &llm.Reply{}}, nil)
	}
}

func (s *server) options() admission.PinOptions {
	return admission.PinOptions{
		Slots: func(context.Context) (int, bool) { return int(s.n.Load()), s.n.Load() > 0 },
		Most:  8, Rest: rest, Logger: slog.New(slog.DiscardHandler),
		Reused: func(v jsontext.Value) (int64, bool) {
			n, err := strconv.Atoi(string(v))
			return int64(n), err == nil
		},
	}
}

// bench runs rounds against a pinned server, in a bubble.
type bench struct {
	t     *testing.T
	p     llm.Provider
	s     *server
	turns map[string]context.Context
	over  map[string]func()
	ends  map[string]chan string
	seen  []string
}

func newBench(t *testing.T, n int) *bench {
	s := &server{got: make(chan *llm.Request, 1)}
	s.n.Store(int64(n))
	return &bench{
		t: t, s: s, p: admission.Pin(s, s.options()),
		turns: map[string]context.Context{}, over: map[string]func(){}, ends: map[string]chan string{},
	}
}

// do carries out one step:
//
//	+a1        a round of turn a1, of conversation a; +a1=2 names slot 2 itself
//	-a1 -a1:0  it ends; the upstream found 9 tokens, or 0, or does not say (:?)
//	.a1        the turn ends
//	n4         the server has 4 slots now
//	w          the time passes for which no slot is named
func (b *bench) do(step string) {
	name, more, _ := strings.Cut(step[1:], ":")
	name, own, _ := strings.Cut(name, "=")
	switch step[0] {
	case '+':
		b.begin(name, own)
	case '-':
		if more == "" {
			more = "9"
		}
		b.ends[name] <- more
		delete(b.ends, name)
	case '.':
		b.over[name]()
	case 'n':
		n, _ := strconv.Atoi(name)
		b.s.n.Store(int64(n))
	case 'w':
		<-time.After(rest + time.Second)
	}
	synctest.Wait()
}

func (b *bench) begin(name, own string) {
	if b.turns[name] == nil {
		b.turns[name], b.over[name] = admission.WithTurn(b.t.Context(), func() string { return name[:1] })
	}
	end := make(chan string, 1)
	b.ends[name] = end
	r := &llm.Request{Dialect: llm.OpenAIChat, Rest: []llm.Member{{Name: "model"}}}
	if own != "" {
		r.Rest = append(r.Rest, llm.Member{Name: "id_slot", Value: jsontext.Value(own)})
	}
	go func() {
		for range b.p.Stream(context.WithValue(b.turns[name], endKey{}, end), r) {
		}
	}()
	b.seen = append(b.seen, name+"@"+slotOf(<-b.s.got))
}

// close ends all rounds.
func (b *bench) close() {
	for _, end := range b.ends {
		end <- ""
	}
	synctest.Wait()
}

// slotOf is the slots that a request names, "-" for none.
func slotOf(r *llm.Request) string {
	var ids []string
	for _, m := range slices.Concat(r.Rest, r.Added) {
		if m.Name == "id_slot" {
			ids = append(ids, string(m.Value))
		}
	}
	if ids == nil {
		return "-"
	}
	return strings.Join(ids, "+")
}

// TestSlots: each step, and the slot that each round got.
func TestSlots(t *testing.T) {
	for name, c := range map[string]struct {
		n           int
		steps, want string
	}{
		"a turn keeps its slot":                   {2, "+a1 -a1 +a1 -a1 +a1", "a1@0 a1@0 a1@0"},
		"two turns, interleaved":                  {2, "+a1 -a1 +b1 -b1 +a1 -a1 +b1 -b1 +a1 +b1", "a1@0 b1@1 a1@0 b1@1 a1@0 b1@1"},
		"two turns at once":                       {2, "+a1 +b1 -a1 +a1 -b1 +b1", "a1@0 b1@1 a1@0 b1@1"},
		"a later turn gets its conversation's":    {3, "+a1 -a1 .a1 +b1 -b1 .b1 +c1 -c1 .c1 +b2 -b2 .b2 +a2", "a1@0 b1@1 c1@2 b2@1 a2@0"},
		"the one used longest ago is given away":  {2, "+a1 -a1 .a1 +b1 -b1 .b1 +a2 -a2 .a2 +c1 -c1 .c1 +a3", "a1@0 b1@1 a2@0 c1@1 a3@0"},
		"not from the middle of a turn":           {2, "+a1 -a1 +b1 -b1 .b1 +c1 -c1 .c1 +a1", "a1@0 b1@1 c1@1 a1@0"},
		"but sooner than to wait":                 {2, "+a1 -a1 +b1 -b1 +c1 -c1 +a1", "a1@0 b1@1 c1@0 a1@1"},
		"its slot is busy":                        {2, "+a1 -a1 +b1 +c1 +a1", "a1@0 b1@1 c1@0 a1@-"},
		"its conversation's slot is busy":         {3, "+a1 +a2", "a1@0 a2@-"},
		"one of two of the conversation is busy":  {3, "+a1 -a1 +a2 -a2 .a1 .a2 +b1 -b1 .b1 +a3 +a4", "a1@0 a2@1 b1@2 a3@1 a4@0"},
		"the last of the conversation goes first": {3, "+a1 -a1 +a2 -a2 +a1 -a1 .a1 .a2 +a3 +a4", "a1@0 a2@1 a1@0 a3@0 a4@1"},
		"its conversation is in the middle there": {3, "+a1 -a1 +a2", "a1@0 a2@1"},
		"all are busy":                            {2, "+a1 +b1 +c1", "a1@0 b1@1 c1@-"},
		"none while one runs somewhere":           {3, "+a1 +a2 +b1 -a2 +c1 -b1 -c1 +d1", "a1@0 a2@- b1@- c1@- d1@1"},
		"a client's own":                          {2, "+a1=1 +b1 -a1 +a1=7 +c1", "a1@1 b1@0 a1@7 c1@-"},
		"a client's own, anywhere":                {2, "+a1=-1 +b1 -a1 -b1 +b1 +a1=null", "a1@-1 b1@- b1@0 a1@null"},
		"a client's own, out of the table":        {20, "+a1=9 +b1 -a1 -b1 +a1=20 +b1", "a1@9 b1@- a1@20 b1@1"},
		"what a client's own left is another's":   {2, "+a1 -a1 .a1 +b1 -b1 .b1 +x1=0 -x1 .x1 +a2", "a1@0 b1@1 x1@0 a2@1"},
		"one slot":                                {1, "+a1 -a1 +a1", "a1@- a1@-"},
		"not known":                               {0, "+a1 -a1 +a1", "a1@- a1@-"},
		"not known yet":                           {0, "+a1 n2 +b1 -a1 -b1 +a1", "a1@- b1@- a1@0"},
		"not known for a while":                   {2, "+a1 -a1 +b1 -b1 n0 +a1 -a1 n2 +b1", "a1@0 b1@1 a1@- b1@1"},
		"more slots than are counted":             {20, "+a1 +b1 +c1 +d1 +e1 +f1 +g1 +h1 +i1", "a1@0 b1@1 c1@2 d1@3 e1@4 f1@5 g1@6 h1@7 i1@-"},
		"another number of slots":                 {2, "+a1 +b1 n3 +c1 -c1 -a1 -b1 +b1 +a1", "a1@0 b1@1 c1@0 b1@1 a1@2"},
		"an emptied slot":                         {2, "+a1 -a1:0 +b1 -b1:0 +a1 -a1:0 +a1 -a1 +b1", "a1@0 b1@1 a1@0 a1@- b1@-"},
		"an emptied slot, which does not tell":    {2, "+a1 -a1:? +b1 -b1:? +a1 -a1:? +b1", "a1@0 b1@1 a1@0 b1@1"},
		"an emptied slot, of another":             {2, "+a1 -a1:0 .a1 +b1 -b1:0 .b1 +c1 -c1:0 .c1 +a2", "a1@0 b1@1 c1@0 a2@-"},
		"and again after a while":                 {2, "+a1 -a1 +b1 -b1 +a1 -a1:0 +a1 w -a1 +a1", "a1@0 b1@1 a1@0 a1@- a1@0"},
		"for twice as long":                       {2, "+a1 -a1 +a1 -a1:0 w +a1 -a1:0 w +a1 -a1 w +a1", "a1@0 a1@0 a1@0 a1@- a1@0"},
		"once for all that ran":                   {2, "+a1 +b1 -a1 -b1 +a1 +b1 -a1:0 -b1:0 w +a1", "a1@0 b1@1 a1@0 b1@1 a1@0"},
		"alone it proves nothing":                 {2, "+a1 -a1 +a1 -a1:0 w +a1 -a1 +a1 -a1:0 w +a1", "a1@0 a1@0 a1@0 a1@0 a1@-"},
		"until one keeps something":               {2, "+a1 -a1 +b1 -b1 +a1 -a1:0 w +b1 -b1 +a1 -a1 +a1 -a1:0 w +a1", "a1@0 b1@1 a1@0 b1@1 a1@0 a1@0 a1@0"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, c.n)
				for _, step := range strings.Fields(c.steps) {
					b.do(step)
				}
				if d := cmp.Diff(strings.Fields(c.want), b.seen); d != "" {
					t.Errorf("%s: %s", c.steps, d)
				}
				b.close()
			})
		})
	}
}

// TestUnnamed: for which requests no slot is named, and that a request is never
// changed.
func TestUnnamed(t *testing.T) {
	member := func(name, value string) llm.Member {
		return llm.Member{Name: name, Value: jsontext.Value(value)}
	}
	for name, c := range map[string]struct {
		r    llm.Request
		most int
		want string
	}{
		"plain":           {llm.Request{Dialect: llm.OpenAIChat}, 8, "0"},
		"one choice":      {llm.Request{Dialect: llm.OpenAIChat, Options: llm.Options{Choices: 1}}, 8, "0"},
		"with the cache":  {llm.Request{Dialect: llm.OpenAIChat, Rest: []llm.Member{member("cache_prompt", "true")}}, 8, "0"},
		"without a cache": {llm.Request{Dialect: llm.OpenAIChat, Rest: []llm.Member{member("cache_prompt", "false")}}, 8, "-"},
		"two choices":     {llm.Request{Dialect: llm.OpenAIChat, Options: llm.Options{Choices: 2}}, 8, "-"},
		"other dialects":  {llm.Request{Dialect: llm.Anthropic}, 8, "0"},
		"one of them":     {llm.Request{Dialect: llm.OpenAIChat}, 1, "-"},
		"turned off":      {llm.Request{Dialect: llm.OpenAIChat}, 0, "-"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &server{got: make(chan *llm.Request, 1)}
			s.n.Store(4)
			o := s.options()
			o.Most = c.most
			ctx, end := admission.WithTurn(t.Context(), nil)
			defer end()
			done := make(chan string, 1)
			done <- "9"
			r := c.r
			r.Added = slices.Grow(r.Added, 4)
			before := r
			for _, err := range admission.Pin(s, o).Stream(context.WithValue(ctx, endKey{}, done), &r) {
				if err != nil {
					t.Error(err)
				}
			}
			if got := slotOf(<-s.got); got != c.want {
				t.Errorf("slot %s, want %s", got, c.want)
			}
			if d := cmp.Diff(before, r); d != "" || slices.ContainsFunc(r.Added[:cap(r.Added)], func(m llm.Member) bool { return m.Name == "id_slot" }) {
				t.Errorf("the caller's request was changed: %s", d)
			}
		})
	}
	t.Run("no turn", func(t *testing.T) {
		s := &server{got: make(chan *llm.Request, 1)}
		s.n.Store(4)
		done := make(chan string, 1)
		done <- "9"
		for range admission.Pin(s, s.options()).Stream(context.WithValue(t.Context(), endKey{}, done), &llm.Request{Dialect: llm.OpenAIChat}) {
			break // and what is held comes back
		}
		if got := slotOf(<-s.got); got != "-" {
			t.Errorf("slot %s, want none", got)
		}
	})
}

// TestConversationIsAskedForOnce: and only where there are slots.
func TestConversationIsAskedForOnce(t *testing.T) {
	for n, want := range map[int64]int{0: 0, 1: 0, 2: 1} {
		s := &server{got: make(chan *llm.Request, 3)}
		s.n.Store(n)
		asked := 0
		ctx, end := admission.WithTurn(t.Context(), func() string { asked++; return "a" })
		p := admission.Pin(s, s.options())
		for range 3 {
			done := make(chan string, 1)
			done <- "9"
			for range p.Stream(context.WithValue(ctx, endKey{}, done), &llm.Request{Dialect: llm.OpenAIChat}) {
			}
		}
		end()
		if asked != want {
			t.Errorf("with %d slots asked %d times, want %d", n, asked, want)
		}
	}
}

// TestSlotsRace: from all sides, a slot is never named for two rounds at once, and
// in the end all are free again.
func TestSlotsRace(t *testing.T) {
	const slots, clients, turns, rounds = 4, 8, 20, 3
	busy := make([]atomic.Int64, slots)
	named := atomic.Int64{}
	s := &server{}
	s.n.Store(slots)
	check := provider(func(_ context.Context, r *llm.Request, yield func(llm.Piece, error) bool) {
		id, err := strconv.Atoi(slotOf(r))
		if err == nil {
			named.Add(1)
			if busy[id].Add(1) > 1 {
				t.Errorf("slot %d is named for two rounds at once", id)
			}
			defer busy[id].Add(-1)
		}
		yield(llm.Piece{Usage: &llm.Usage{}, Raw: llm.Raw{Bytes: jsontext.Value("9")}}, nil)
	})
	p := admission.Pin(check, s.options())
	var wg sync.WaitGroup
	for c := range clients {
		wg.Go(func() {
			for i := range turns {
				ctx, end := admission.WithTurn(t.Context(), func() string { return fmt.Sprint(c, i%3) })
				for range rounds {
					for range p.Stream(ctx, &llm.Request{Dialect: llm.OpenAIChat}) {
					}
				}
				end()
			}
		})
	}
	wg.Wait()
	if named.Load() == 0 {
		t.Error("no slot was ever named")
	}
	got := map[string]bool{}
	free := provider(nil)
	free = func(ctx context.Context, r *llm.Request, yield func(llm.Piece, error) bool) {
		got[slotOf(r)] = true
		if len(got) < slots {
			more, _ := admission.WithTurn(ctx, nil)
			for range p.Stream(context.WithValue(more, endKey{}, free), &llm.Request{Dialect: llm.OpenAIChat}) {
			}
		}
	}
	first, _ := admission.WithTurn(t.Context(), nil)
	for range p.Stream(context.WithValue(first, endKey{}, free), &llm.Request{Dialect: llm.OpenAIChat}) {
	}
	if len(got) != slots || got["-"] {
		t.Errorf("in the end these are free: %v, want all %d", got, slots)
	}
}

// provider answers with a function; one in the context goes first.
type provider func(context.Context, *llm.Request, func(llm.Piece, error) bool)

func (p provider) Dialect() llm.Dialect { return llm.OpenAIChat }

func (p provider) Lost(*llm.Request) []string { return nil }

func (p provider) Capabilities(context.Context, string) (llm.Capabilities, error) {
	return llm.Capabilities{}, nil
}

func (p provider) Models(context.Context) ([]llm.Model, error) { return nil, nil }

func (p provider) Stream(ctx context.Context, r *llm.Request) iter.Seq2[llm.Piece, error] {
	f := p
	if first, ok := ctx.Value(endKey{}).(provider); ok {
		f = first
	}
	return func(yield func(llm.Piece, error) bool) { f(ctx, r, yield) }
}
