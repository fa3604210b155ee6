package seccomp

import (
	"encoding/binary"
	"fmt"
)

// seccompData is the size of struct seccomp_data.
const seccompData = 64

// request is what the kernel shows to a filter.
type request struct {
	number uint32
	arch   uint32
	args   [6]uint64
}

// bytes are the request as struct seccomp_data, little-endian.
func (r request) bytes() []byte {
	out := binary.LittleEndian.AppendUint32(nil, r.number)
	out = binary.LittleEndian.AppendUint32(out, r.arch)
	out = binary.LittleEndian.AppendUint64(out, 0x7f0000001000) // instruction pointer
	for _, a := range r.args {
		out = binary.LittleEndian.AppendUint64(out, a)
	}
	return out
}

// check finds what the kernel would refuse in a program (bpf_check_classic and
// seccomp_check_filter).
func check(prog []Instruction) error {
	if len(prog) == 0 || len(prog) > MaxInstructions {
		return fmt.Errorf("%d instructions", len(prog))
	}
	for i, in := range prog {
		left := uint64(len(prog) - i - 1) // instructions after this one
		switch in.Code {
		case opLoad:
			if in.K%4 != 0 || in.K >= seccompData {
				return fmt.Errorf("%d: loads from %d", i, in.K)
			}
		case opAnd, opRet:
		case opJump:
			if uint64(in.K) >= left {
				return fmt.Errorf("%d: jumps out of the program by %d", i, in.K)
			}
		case opJeq, opJgt, opJge:
			if uint64(in.JT) >= left || uint64(in.JF) >= left {
				return fmt.Errorf("%d: jumps out of the program by %d or %d", i, in.JT, in.JF)
			}
		default:
			return fmt.Errorf("%d: unknown operation %#x", i, in.Code)
		}
		if in.Code != opJeq && in.Code != opJgt && in.Code != opJge && (in.JT != 0 || in.JF != 0) {
			return fmt.Errorf("%d: no conditional jump, and has targets", i)
		}
	}
	if prog[len(prog)-1].Code != opRet {
		return fmt.Errorf("does not end with a return")
	}
	return nil
}

// interpret runs a program on a request, and says how many steps it took.
func interpret(prog []Instruction, r request) (verdict, int, error) {
	data := r.bytes()
	var acc uint32
	steps := 0
	for pc := 0; ; pc++ {
		if pc >= len(prog) {
			return 0, steps, fmt.Errorf("ran off the end to %d", pc)
		}
		steps++
		in := prog[pc]
		var holds bool
		switch in.Code {
		case opLoad:
			if in.K%4 != 0 || int(in.K)+4 > len(data) {
				return 0, steps, fmt.Errorf("%d: loads from %d", pc, in.K)
			}
			acc = binary.LittleEndian.Uint32(data[in.K:])
			continue
		case opAnd:
			acc &= in.K
			continue
		case opRet:
			return verdict(in.K), steps, nil
		case opJump:
			pc += int(in.K)
			continue
		case opJeq:
			holds = acc == in.K
		case opJgt:
			holds = acc > in.K
		case opJge:
			holds = acc >= in.K
		default:
			return 0, steps, fmt.Errorf("%d: unknown operation %#x", pc, in.Code)
		}
		if holds {
			pc += int(in.JT)
		} else {
			pc += int(in.JF)
		}
	}
}

// judge applies the rules as they are written, with no program between.
func judge(rules []rule, name string, args [6]uint64) (verdict, int) {
	for i, r := range rules {
		if r.fits(name, args) {
			return r.then, i
		}
	}
	return allow, none
}

func (r rule) fits(name string, args [6]uint64) bool {
	for _, c := range r.calls {
		if c != name {
			continue
		}
		for _, cond := range r.when {
			if !cond.holds(args) {
				return false
			}
		}
		return true
	}
	return false
}

func (c condition) holds(args [6]uint64) bool {
	width := uint64(lowHalf)
	if c.long {
		width = whole
	}
	for _, v := range c.values {
		if args[c.arg]&c.mask&width == v&width {
			return !c.not
		}
	}
	return c.not
}
