package seccomp

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
)

// each runs a test for every architecture and profile.
func each(t *testing.T, test func(t *testing.T, name string, p Profile)) {
	for _, arch := range architectures() {
		for _, name := range profileNames() {
			t.Run(arch+"/"+name, func(t *testing.T) { test(t, name, profiles(arch)[name]) })
		}
	}
}

func TestExamples(t *testing.T) {
	all := examples(t)
	tried := map[string]bool{}
	each(t, func(t *testing.T, profile string, p Profile) {
		numbers, prog := syscalls(t, p.Arch), program(t, p)
		for _, e := range all {
			n, exists := numbers[e.name]
			if !exists || !slices.Contains(e.profiles, profile) {
				continue
			}
			tried[e.text] = true
			for _, args := range e.variants() {
				r := request{number: n, arch: auditOf(t, p.Arch), args: args}
				if got := ask(t, prog, r); got != e.want {
					t.Errorf("%s: got %v with %x", e.text, got, args)
				}
			}
		}
	})
	for _, e := range all {
		if !tried[e.text] {
			t.Errorf("%s: no architecture has this call", e.text)
		}
	}
}

// TestRulesAreNeeded takes the rules apart, one piece at a time, and demands that
// an example notices each.
func TestRulesAreNeeded(t *testing.T) {
	all := examples(t)
	for _, name := range profileNames() {
		rules := policy(profiles("amd64")[name])
		for _, m := range mutants(rules) {
			noticed := slices.ContainsFunc(all, func(e example) bool {
				return slices.Contains(e.profiles, name) && e.name == m.call && e.notices(m.rules)
			})
			if !noticed {
				t.Errorf("%s: no example fails when %s", name, m.what)
			}
		}
	}
}

func (e example) notices(rules []rule) bool {
	return slices.ContainsFunc(e.variants(), func(args [6]uint64) bool {
		got, _ := judge(rules, e.name, args)
		return got != e.want
	})
}

// mutant is a set of rules in which one thing was changed for one call.
type mutant struct {
	call, what string
	rules      []rule
}

func mutants(rules []rule) []mutant {
	var all []mutant
	for i, r := range rules {
		for _, name := range r.calls {
			add := func(what string, changed ...rule) {
				rest := r
				rest.calls = slices.DeleteFunc(slices.Clone(r.calls), func(n string) bool { return n == name })
				for j := range changed {
					changed[j].calls = []string{name}
				}
				all = append(all, mutant{
					name, fmt.Sprintf("rule %d for %s %s", i, name, what),
					slices.Concat(rules[:i], changed, []rule{rest}, rules[i+1:]),
				})
			}
			add("is taken out")
			for j, c := range r.when {
				with := func(what string, changed ...condition) {
					other := r
					other.when = slices.Concat(r.when[:j], changed, r.when[j+1:])
					add(fmt.Sprintf("condition %d %s", j, what), other)
				}
				with("is taken out")
				for what, changed := range c.mutants() {
					with(what, changed)
				}
			}
		}
	}
	return all
}

func (c condition) mutants() map[string]condition {
	all := map[string]condition{}
	turned := c
	turned.not = !c.not
	all["is turned round"] = turned
	other := c
	other.long = !c.long
	if other.long {
		other.mask |= whole &^ lowHalf
	}
	all["compares another width"] = other
	for k := range c.values {
		if len(c.values) > 1 {
			fewer := c
			fewer.values = slices.Delete(slices.Clone(c.values), k, k+1)
			all[fmt.Sprintf("loses value %#x", c.values[k])] = fewer
		}
		different := c
		different.values = slices.Clone(c.values)
		different.values[k] = 0x7777
		all[fmt.Sprintf("has another value than %#x", c.values[k])] = different
	}
	if c.mask == lowHalf || c.mask == whole {
		return all
	}
	// A mask of few bits must not lose one; one of many must not gain one.
	many := bits.OnesCount64(c.mask) > 16
	for b := range 32 {
		if (c.mask&(1<<b) == 0) == many {
			flipped := c
			flipped.mask ^= 1 << b
			all[fmt.Sprintf("has another mask by bit %#x", 1<<b)] = flipped
		}
	}
	return all
}

// TestEveryNumber: each number has one verdict with plain arguments, whichever way
// they are, and those that no rule names or that are too new the one that they should.
func TestEveryNumber(t *testing.T) {
	each(t, func(t *testing.T, _ string, p Profile) {
		prog, rules := program(t, p), policy(p)
		names := map[uint32]string{}
		for name, n := range syscalls(t, p.Arch) {
			names[n] = name
		}
		for n := range uint32(1024) {
			want, _ := judge(rules, names[n], [6]uint64{})
			if n > newest {
				want = enosys
			}
			if got := ask(t, prog, request{number: n, arch: auditOf(t, p.Arch)}); got != want {
				t.Errorf("%d %s: got %v, want %v", n, names[n], got, want)
			}
		}
	})
}

// TestConvention: calls of another architecture and of x32 kill.
func TestConvention(t *testing.T) {
	const i386, arm, x86, arm64 = 0x40000003, 0x40000028, 0xc000003e, 0xc00000b7
	each(t, func(t *testing.T, _ string, p Profile) {
		prog, own := program(t, p), auditOf(t, p.Arch)
		for _, arch := range []uint32{0, i386, arm, x86, arm64, 0xc0000015, 0xffffffff} {
			for _, n := range []uint32{0, 1, 11, 39, 172, 0xffffffff} {
				want := kill
				if arch == own {
					continue
				}
				if got := ask(t, prog, request{number: n, arch: arch}); got != want {
					t.Errorf("architecture %#x, call %d: got %v", arch, n, got)
				}
			}
		}
		for _, n := range []uint32{x32Bit, x32Bit + 39, x32Bit + 520, x32Bit + 545, 0x7fffffff, 0x80000000, 0xc0000000, 0xfffffffe} {
			want := enosys
			if p.Arch == "amd64" {
				want = kill
			}
			if got := ask(t, prog, request{number: n, arch: own}); got != want {
				t.Errorf("call %#x: got %v, want %v", n, got, want)
			}
		}
		for _, n := range []uint32{newest + 1, 512, 520, 547, 0x3fffffff, 0xffffffff} {
			if got := ask(t, prog, request{number: n, arch: own}); got != enosys {
				t.Errorf("call %#x: got %v, want %v", n, got, enosys)
			}
		}
	})
}

// TestProgramIsPolicy compares the program with the rules, read directly, on
// arguments near the values that the rules know.
func TestProgramIsPolicy(t *testing.T) {
	each(t, func(t *testing.T, _ string, p Profile) {
		rules, prog := policy(p), program(t, p)
		numbers := syscalls(t, p.Arch)
		random := rand.New(rand.NewPCG(5, 1))
		for i, r := range rules {
			for _, name := range r.calls {
				n, exists := numbers[name]
				if !exists {
					continue
				}
				for range 200 {
					args := near64(random, rules, name)
					want, _ := judge(rules, name, args)
					if got := ask(t, prog, request{n, auditOf(t, p.Arch), args}); got != want {
						t.Fatalf("rule %d, %s(%x): the program says %v, the rules %v", i, name, args, got, want)
					}
				}
			}
		}
	})
}

// near64 makes arguments from the values of a call's rules, some with a bit
// flipped.
func near64(random *rand.Rand, rules []rule, name string) [6]uint64 {
	var args [6]uint64
	for i := range args {
		args[i] = random.Uint64() >> random.IntN(65)
	}
	for _, r := range rules {
		if !slices.Contains(r.calls, name) {
			continue
		}
		for _, c := range r.when {
			if random.IntN(2) == 0 {
				args[c.arg] = c.values[random.IntN(len(c.values))]
			}
			if random.IntN(3) == 0 {
				args[c.arg] ^= 1 << random.IntN(64)
			}
		}
	}
	return args
}

// TestNumbers: the numbers that the rules use are those of the list of all calls,
// every known one is used, and none is newer than the newest.
func TestNumbers(t *testing.T) {
	used := map[string]bool{}
	for _, name := range profileNames() {
		for _, r := range policy(profiles("amd64")[name]) {
			for _, c := range r.calls {
				used[c] = true
			}
		}
	}
	for _, arch := range architectures() {
		all := syscalls(t, arch)
		m, err := machineOf(arch)
		if err != nil {
			t.Fatal(err)
		}
		for name, n := range numbersOf(m) {
			if want, exists := all[name]; exists && int(want) != n || !exists && n != none {
				t.Errorf("%s %s: %d, the list says %d", arch, name, n, want)
			}
			if !used[name] {
				t.Errorf("%s: no rule names it", name)
			}
		}
		highest := uint32(0)
		for _, n := range all {
			highest = max(highest, n)
		}
		if highest != newest {
			t.Errorf("%s: the newest call is %d, not %d", arch, highest, newest)
		}
	}
}

// TestSteps: the search keeps calls cheap. The kernel answers those without a look
// at arguments from a table anyway.
func TestSteps(t *testing.T) {
	each(t, func(t *testing.T, _ string, p Profile) {
		prog := program(t, p)
		for name, n := range syscalls(t, p.Arch) {
			if _, steps, err := interpret(prog, request{number: n, arch: auditOf(t, p.Arch)}); err != nil || steps > 40 {
				t.Errorf("%s takes %d steps, %v", name, steps, err)
			}
		}
	})
}

func TestBadProfiles(t *testing.T) {
	many := make([]int, 3000)
	for i := range many {
		many[i] = i + 1
	}
	for _, test := range []struct {
		name string
		p    Profile
		want string
	}{
		{"architecture", Profile{Arch: "riscv64"}, `seccomp program: there are no rules for the architecture "riscv64": amd64 and arm64 are known`},
		{"no architecture", Profile{}, `seccomp program: there are no rules for the architecture "": amd64 and arm64 are known`},
		{"zero", Profile{Arch: "amd64", Guarded: []int{1, 0}}, `seccomp program: guarded id 0 is none of a process: give ids from 1 to 4194304`},
		{"group", Profile{Arch: "arm64", Guarded: []int{-1}}, `seccomp program: guarded id -1 is none of a process: give ids from 1 to 4194304`},
		{"large", Profile{Arch: "arm64", Guarded: []int{1 << 32}}, `seccomp program: guarded id 4294967296 is none of a process: give ids from 1 to 4194304`},
	} {
		t.Run(test.name, func(t *testing.T) {
			if _, err := Program(test.p); err == nil || err.Error() != test.want {
				t.Errorf("got %v\nwant %s", err, test.want)
			}
		})
	}
	if _, err := Program(Profile{Arch: "amd64", Guarded: many}); err == nil {
		t.Error("a program that is too long is handed out")
	}
}

// TestManyGuarded: an init with many threads needs long jumps.
func TestManyGuarded(t *testing.T) {
	for _, arch := range architectures() {
		p := profiles(arch)["apart"]
		p.Guarded = nil
		for i := range 200 {
			p.Guarded = append(p.Guarded, 1000+i, 1000+i)
		}
		prog, numbers := program(t, p), syscalls(t, arch)
		for _, pid := range []uint64{999, 1000, 1100, 1199, 1200} {
			want := allow
			if pid >= 1000 && pid < 1200 {
				want = eperm
			}
			for _, name := range []string{"kill", "tgkill", "pidfd_open", "rt_sigqueueinfo"} {
				if got := ask(t, prog, request{numbers[name], auditOf(t, arch), [6]uint64{pid, 9}}); got != want {
					t.Errorf("%s %s(%d): got %v, want %v", arch, name, pid, got, want)
				}
			}
		}
	}
}

func TestBytes(t *testing.T) {
	got := Bytes([]Instruction{{Code: 0x15, JT: 1, JF: 2, K: 0xc000003e}, {Code: 6, K: 0x7fff0000}})
	want := []byte{0x15, 0, 1, 2, 0x3e, 0, 0, 0xc0, 6, 0, 0, 0, 0, 0, 0xff, 0x7f}
	if !slices.Equal(got, want) {
		t.Errorf("got %x\nwant %x", got, want)
	}
}
