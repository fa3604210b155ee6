package seccomp

import (
	"fmt"
	"slices"
	"testing"
)

func TestAssembleShort(t *testing.T) {
	a := &assembler{}
	a.load(4)
	a.when(opJeq, 7, next, "no")
	a.when(opJge, 9, "yes", next)
	a.jump("no")
	a.label("yes")
	a.do(opRet, 1)
	a.label("no")
	a.do(opRet, 2)
	got, err := a.assemble()
	if err != nil {
		t.Fatal(err)
	}
	want := []Instruction{
		{Code: opLoad, K: 4},
		{Code: opJeq, K: 7, JF: 3},
		{Code: opJge, K: 9, JT: 1},
		{Code: opJump, K: 1},
		{Code: opRet, K: 1},
		{Code: opRet, K: 2},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}

// TestAssembleFar tries jumps of every length around the limits of 8 bits, to one
// side and to both.
func TestAssembleFar(t *testing.T) {
	for gap := range 600 {
		for _, sides := range []string{"yes", "no", "both", "apart", "crossed"} {
			t.Run(fmt.Sprintf("%s/%d", sides, gap), func(t *testing.T) { farJump(t, gap, sides) })
		}
	}
}

func farJump(t *testing.T, gap int, sides string) {
	a := &assembler{}
	a.load(0)
	yes, no := "first", "second"
	switch sides {
	case "yes":
		no = next
	case "no":
		yes = next
	case "crossed":
		yes, no = no, yes
	}
	a.when(opJeq, 5, yes, no)
	a.do(opRet, 3) // what comes next
	for range gap {
		a.do(opAnd, 0)
	}
	a.label("first")
	a.do(opRet, 1)
	if sides == "apart" || sides == "crossed" {
		for range gap {
			a.do(opAnd, 0)
		}
	}
	a.label("second")
	a.do(opRet, 2)
	prog, err := a.assemble()
	if err != nil {
		t.Fatal(err)
	}
	if err := check(prog); err != nil {
		t.Fatal(err)
	}
	want := map[string][2]verdict{"yes": {1, 3}, "no": {3, 2}, "both": {1, 2}, "apart": {1, 2}, "crossed": {2, 1}}[sides]
	for i, n := range []uint32{5, 6} {
		if got, _, err := interpret(prog, request{number: n}); err != nil || got != want[i] {
			t.Errorf("number %d: got %d, %v, want %d", n, got, err, want[i])
		}
	}
	if extra := len(prog) - len(a.lines) + 2; extra > 2 || extra > 0 && gap < near-2 && sides != "apart" && sides != "crossed" {
		t.Errorf("%d trampolines", extra)
	}
}

func TestAssembleRefuses(t *testing.T) {
	back := &assembler{}
	back.label("loop")
	back.do(opAnd, 1)
	back.jump("loop")
	unknown := &assembler{}
	unknown.when(opJeq, 1, next, "nowhere")
	unknown.do(opRet, 0)
	twice := &assembler{}
	twice.label("here")
	twice.do(opRet, 0)
	twice.label("here")
	for name, test := range map[string]struct {
		a    *assembler
		want string
	}{
		"back":    {back, "label loop does not stand after its jump"},
		"unknown": {unknown, "label nowhere does not stand after its jump"},
		"twice":   {twice, "label here stands twice"},
	} {
		if _, err := test.a.assemble(); err == nil || err.Error() != test.want {
			t.Errorf("%s: got %v, want %s", name, err, test.want)
		}
	}
}

// TestCheckRefuses: the checker of these tests finds what the kernel would.
func TestCheckRefuses(t *testing.T) {
	end := Instruction{Code: opRet}
	for name, prog := range map[string][]Instruction{
		"empty":         {},
		"no return":     {{Code: opAnd}},
		"jump":          {{Code: opJump, K: 1}, end},
		"far jump":      {{Code: opJump, K: 0xffffffff}, end},
		"yes":           {{Code: opJeq, JT: 1}, end},
		"no":            {{Code: opJge, JF: 1}, end},
		"odd load":      {{Code: opLoad, K: 2}, end},
		"load outside":  {{Code: opLoad, K: 64}, end},
		"operation":     {{Code: 0x28}, end},
		"stray targets": {{Code: opAnd, JT: 1}, end},
		"too long":      make([]Instruction, MaxInstructions+1),
	} {
		if check(prog) == nil {
			t.Errorf("%s: passes", name)
		}
	}
}
