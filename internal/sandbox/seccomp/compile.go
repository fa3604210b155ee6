package seccomp

import (
	"fmt"
	"slices"
	"strings"
)

// verdict is what a rule answers: a SECCOMP_RET_* value.
type verdict uint32

// The verdicts. The numbers of errors are the same on both architectures.
const (
	allow  verdict = 0x7fff0000
	kill   verdict = 0x80000000 // the whole process
	eperm  verdict = 0x00050000 | 1
	enosys verdict = 0x00050000 | 38
	eopnot verdict = 0x00050000 | 95 // EOPNOTSUPP
)

// verdicts are all verdicts, in the order in which they end a program.
func verdicts() []verdict { return []verdict{eperm, enosys, eopnot, kill, allow} }

func (v verdict) String() string {
	switch v {
	case allow:
		return "allow"
	case kill:
		return "kill"
	case eperm:
		return "EPERM"
	case enosys:
		return "ENOSYS"
	case eopnot:
		return "EOPNOTSUPP"
	}
	return fmt.Sprintf("verdict %#x", uint32(v))
}

// rule is a verdict for calls whose arguments meet all its conditions. The first
// rule that fits a call decides; a call that none fits is allowed.
type rule struct {
	calls []string
	when  []condition
	then  verdict
}

// condition compares an argument, after a mask, with a set of values.
type condition struct {
	arg    int
	mask   uint64
	values []uint64
	not    bool // none of the values
	// long compares all 64 bits, for a pointer. Else only the low half counts,
	// because the kernel takes an int there and never sees the other half.
	long bool
}

// The words of struct seccomp_data.
const (
	wordNumber = 0
	wordArch   = 4
	wordArgs   = 16
)

// newest is the largest number of a system call that the rules were made for. A
// newer one does not exist for the payload until somebody has thought about it.
const newest = 471

// x32Bit marks calls of the x32 convention on amd64.
const x32Bit = 0x40000000

// compile makes the program: architecture, convention, a search tree over the
// numbers, and the rules of each call.
func compile(m machine, rules []rule) ([]Instruction, error) {
	ranges, chains, err := layOut(m, rules)
	if err != nil {
		return nil, err
	}
	a := &assembler{}
	a.load(wordArch)
	a.when(opJeq, m.audit, next, kill.String())
	a.load(wordNumber)
	if m.x32 {
		// -1 is what a tracer leaves and what programs probe with: no call at all.
		a.when(opJeq, 0xffffffff, enosys.String(), next)
		a.when(opJge, x32Bit, kill.String(), next)
	}
	a.when(opJgt, newest, enosys.String(), next)
	a.tree(ranges)
	for _, c := range chains {
		a.chain(c)
	}
	for _, v := range verdicts() {
		a.label(v.String())
		a.do(opRet, uint32(v))
	}
	return a.assemble()
}

// chain is the rules of the calls that have the same ones.
type chain struct {
	name  string
	rules []rule
}

// span is numbers, from one on, that go to one label.
type span struct {
	from uint32
	to   string
}

// layOut finds the rules of each number, and joins neighbours.
func layOut(m machine, rules []rule) ([]span, []chain, error) {
	numbered, err := numbered(m, rules)
	if err != nil {
		return nil, nil, err
	}
	var chains []chain
	spans := []span{{0, allow.String()}}
	for n := range uint32(newest + 1) {
		to := allow.String()
		if own := numbered[n]; len(own) > 0 {
			c := chainOf(own, rules)
			to = c.name
			if len(c.rules) > 0 && !slices.ContainsFunc(chains, func(o chain) bool { return o.name == to }) {
				chains = append(chains, c)
			}
		}
		switch last := &spans[len(spans)-1]; {
		case last.to == to:
		case last.from == n:
			last.to = to
		default:
			spans = append(spans, span{n, to})
		}
	}
	return spans, chains, nil
}

// numbered maps the numbers of calls to the indices of their rules.
func numbered(m machine, rules []rule) (map[uint32][]int, error) {
	numbers := numbersOf(m)
	found := map[uint32][]int{}
	for i, r := range rules {
		for _, name := range r.calls {
			n, known := numbers[name]
			switch {
			case !known:
				return nil, fmt.Errorf("the rules name a call %q whose number is not known", name)
			case n == none:
			case n > newest:
				return nil, fmt.Errorf("the call %s is newer than %d", name, newest)
			case !slices.Contains(found[uint32(n)], i):
				found[uint32(n)] = append(found[uint32(n)], i)
			}
		}
	}
	return found, nil
}

// chainOf names a chain after its rules. One that begins with a rule without
// conditions needs no code, only the verdict.
func chainOf(own []int, rules []rule) chain {
	if first := rules[own[0]]; len(first.when) == 0 {
		return chain{name: first.then.String()}
	}
	var c chain
	var name strings.Builder
	for _, i := range own {
		fmt.Fprintf(&name, "rule-%d ", i)
		c.rules = append(c.rules, rules[i])
	}
	c.name = name.String()
	return c
}

// tree finds the span of the number that is loaded, by halves.
func (a *assembler) tree(spans []span) {
	if len(spans) == 1 {
		a.jump(spans[0].to)
		return
	}
	half := len(spans) / 2
	below, above := spans[:half], spans[half:]
	left, right := a.entry(below), a.entry(above)
	a.when(opJge, above[0].from, right, left)
	for _, side := range []struct {
		spans []span
		name  string
	}{{below, left}, {above, right}} {
		if len(side.spans) > 1 {
			a.label(side.name)
			a.tree(side.spans)
		}
	}
}

func (a *assembler) entry(spans []span) string {
	if len(spans) == 1 {
		return spans[0].to
	}
	return a.newLabel("tree")
}

func (a *assembler) chain(c chain) {
	a.label(c.name)
	for _, r := range c.rules {
		other := a.newLabel("else")
		for _, cond := range r.when {
			a.condition(cond, other)
		}
		a.jump(r.then.String())
		a.label(other)
	}
	a.jump(allow.String())
}

// condition goes on if it is met, and to other if not.
func (a *assembler) condition(c condition, other string) {
	met := a.newLabel("met")
	hit, miss := met, other
	if c.not {
		hit, miss = other, met
	}
	values := slices.Clone(c.values)
	slices.Sort(values)
	values = slices.Compact(values)
	if c.long {
		a.longs(c, values, hit)
	} else {
		a.half(c, 0)
		for _, v := range values {
			a.when(opJeq, uint32(v), hit, next)
		}
	}
	a.jump(miss)
	a.label(met)
}

// longs compares both halves.
func (a *assembler) longs(c condition, values []uint64, hit string) {
	for _, v := range values {
		other := a.newLabel("next")
		a.half(c, 1)
		a.when(opJeq, uint32(v>>32), next, other)
		a.half(c, 0)
		a.when(opJeq, uint32(v), hit, other)
		a.label(other)
	}
}

// half loads the low (0) or the high (1) half of an argument, masked.
func (a *assembler) half(c condition, half uint32) {
	a.load(wordArgs + 8*uint32(c.arg) + 4*half)
	if mask := uint32(c.mask >> (32 * half)); mask != 0xffffffff {
		a.do(opAnd, mask)
	}
}
