package seccomp

import "fmt"

// The operations that the rules need (linux/bpf_common.h).
const (
	opLoad = 0x20 // BPF_LD|BPF_W|BPF_ABS: a word of struct seccomp_data
	opAnd  = 0x54 // BPF_ALU|BPF_AND|BPF_K
	opJump = 0x05 // BPF_JMP|BPF_JA
	opJeq  = 0x15 // BPF_JMP|BPF_JEQ|BPF_K
	opJgt  = 0x25 // BPF_JMP|BPF_JGT|BPF_K
	opJge  = 0x35 // BPF_JMP|BPF_JGE|BPF_K
	opRet  = 0x06 // BPF_RET|BPF_K
)

// next is the label of whatever comes after a jump.
const next = ""

// line is an instruction whose jumps name labels, or a label if it has a name.
type line struct {
	name   string
	code   uint16
	k      uint32
	yes    string // where a conditional jump goes; for opJump the only target
	no     string
	target bool // the line jumps
}

// assembler collects lines. Jumps go forward only, as in the kernel.
type assembler struct {
	lines []line
	fresh int
}

func (a *assembler) label(name string)        { a.lines = append(a.lines, line{name: name}) }
func (a *assembler) do(code uint16, k uint32) { a.lines = append(a.lines, line{code: code, k: k}) }
func (a *assembler) jump(to string)           { a.when(opJump, 0, to, next) }
func (a *assembler) load(offset uint32)       { a.do(opLoad, offset) }
func (a *assembler) newLabel(stem string) string {
	a.fresh++
	return fmt.Sprintf("%s.%d", stem, a.fresh)
}

func (a *assembler) when(code uint16, k uint32, yes, no string) {
	a.lines = append(a.lines, line{code: code, k: k, yes: yes, no: no, target: true})
}

// near is how far a conditional jump may go when a trampoline can still come
// between: the field has 8 bits.
const near = 254

// assemble resolves the labels. It works from the end, so that every target is
// known when a jump to it is met, and puts an unconditional jump, which has 32
// bits, behind each conditional one that has to go far.
func (a *assembler) assemble() ([]Instruction, error) {
	s := &assembly{places: map[string]int{}}
	for i := len(a.lines) - 1; i >= 0; i-- {
		if err := s.line(a.lines[i]); err != nil {
			return nil, err
		}
	}
	prog := make([]Instruction, len(s.reversed))
	for i, in := range s.reversed {
		prog[len(prog)-1-i] = in
	}
	return prog, nil
}

// assembly is a program from its end on. A place is the number of instructions
// from there to the end.
type assembly struct {
	reversed []Instruction
	places   map[string]int
}

func (s *assembly) line(l line) error {
	switch {
	case l.name != "":
		if _, twice := s.places[l.name]; twice {
			return fmt.Errorf("label %s stands twice", l.name)
		}
		s.places[l.name] = len(s.reversed)
		return nil
	case !l.target:
		s.add(Instruction{Code: l.code, K: l.k})
		return nil
	}
	after := len(s.reversed)
	yes, err := s.place(l.yes, after)
	if err != nil {
		return err
	}
	if l.code == opJump {
		s.add(Instruction{Code: opJump, K: uint32(after - yes)})
		return nil
	}
	no, err := s.place(l.no, after)
	if err != nil {
		return err
	}
	no = s.reach(no)
	yes = s.reach(yes)
	end := len(s.reversed)
	s.add(Instruction{Code: l.code, K: l.k, JT: uint8(end - yes), JF: uint8(end - no)})
	return nil
}

func (s *assembly) add(in Instruction) { s.reversed = append(s.reversed, in) }

// place finds a label. One that stands before the jump is not known yet.
func (s *assembly) place(name string, after int) (int, error) {
	if name == next {
		return after, nil
	}
	at, ok := s.places[name]
	if !ok {
		return 0, fmt.Errorf("label %s does not stand after its jump", name)
	}
	return at, nil
}

// reach is a place that a conditional jump can go to: the target itself, or a
// trampoline to it.
func (s *assembly) reach(place int) int {
	distance := len(s.reversed) - place
	if distance <= near {
		return place
	}
	s.add(Instruction{Code: opJump, K: uint32(distance)})
	return len(s.reversed)
}
