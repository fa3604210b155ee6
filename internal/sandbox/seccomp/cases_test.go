package seccomp

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// architectures are those that there are rules for.
func architectures() []string { return []string{"amd64", "arm64"} }

// profiles are the profiles that testdata/calls.txt speaks of.
func profiles(arch string) map[string]Profile {
	return map[string]Profile{
		"native": {Arch: arch, Guarded: []int{1}, Sockets: true, Metadata: true, Namespaced: true},
		"musl":   {Arch: arch, Guarded: []int{1}, Sockets: true, Metadata: true, Namespaced: true, Tkill: true},
		"bwrap":  {Arch: arch, Sockets: true, Metadata: true, Namespaced: true},
		"apart":  {Arch: arch, Guarded: []int{4242}, Metadata: true},
		"weak":   {Arch: arch, Guarded: []int{4242}},
	}
}

func profileNames() []string { return []string{"native", "musl", "bwrap", "apart", "weak"} }

// example is a line of testdata/calls.txt.
type example struct {
	profiles []string
	name     string
	args     [6]uint64
	want     verdict
	text     string
}

var exampleLine = regexp.MustCompile(`^(\S+) ([a-z0-9_]+)\((\S*)\) (\S+)$`)

func examples(t testing.TB) []example {
	t.Helper()
	data, err := os.ReadFile("testdata/calls.txt")
	if err != nil {
		t.Fatal(err)
	}
	words := map[string]verdict{}
	for _, v := range verdicts() {
		words[v.String()] = v
	}
	var found []example
	for i, text := range strings.Split(string(data), "\n") {
		if text == "" || text[0] == '#' {
			continue
		}
		m := exampleLine.FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("calls.txt:%d: %q is no example", i+1, text)
		}
		e := example{profiles: strings.Split(m[1], ","), name: m[2], text: fmt.Sprintf("calls.txt:%d: %s", i+1, text)}
		if m[1] == "*" {
			e.profiles = profileNames()
		}
		var known bool
		if e.want, known = words[m[4]]; !known {
			t.Fatalf("%s: unknown verdict", e.text)
		}
		for j, a := range strings.Split(m[3], ",") {
			if a == "" {
				continue
			}
			n, err := strconv.ParseInt(a, 0, 64)
			if err != nil {
				t.Fatalf("%s: %v", e.text, err)
			}
			e.args[j] = uint64(n)
		}
		found = append(found, e)
	}
	return found
}

// pointers are arguments of which a rule compares all 64 bits; every other one is
// an int for the rules.
func pointer(name string, arg int) bool {
	return (name == "utimensat" || name == "futimesat") && arg == 1
}

// variants are the example with other bits in the upper halves of its ints: the
// kernel sees the same call.
func (e example) variants() [][6]uint64 {
	all := [][6]uint64{e.args}
	for _, high := range []uint64{0, 1, 0x80000000, 0xdeadbeef, 0xffffffff} {
		v := e.args
		for i := range v {
			if !pointer(e.name, i) {
				v[i] = high<<32 | v[i]&lowHalf
			}
		}
		all = append(all, v)
	}
	return all
}

// syscalls are the numbers of all calls of an architecture.
func syscalls(t testing.TB, arch string) map[string]uint32 {
	t.Helper()
	data, err := os.ReadFile("testdata/syscalls.txt")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]uint32{}
	for _, text := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		if text[0] == '#' {
			continue
		}
		f := strings.Fields(text)
		if n := f[1+slices.Index(architectures(), arch)]; n != "-" {
			number, err := strconv.ParseUint(n, 10, 32)
			if err != nil {
				t.Fatal(err)
			}
			found[f[0]] = uint32(number)
		}
	}
	return found
}

// program is Program for a profile that is right.
func program(t testing.TB, p Profile) []Instruction {
	t.Helper()
	prog, err := Program(p)
	if err != nil {
		t.Fatal(err)
	}
	if err := check(prog); err != nil {
		t.Fatalf("the kernel would refuse the program: %v", err)
	}
	return prog
}

// ask runs a program on a call.
func ask(t testing.TB, prog []Instruction, r request) verdict {
	t.Helper()
	v, _, err := interpret(prog, r)
	if err != nil {
		t.Fatalf("call %d: %v", r.number, err)
	}
	return v
}

func auditOf(t testing.TB, arch string) uint32 {
	t.Helper()
	m, err := machineOf(arch)
	if err != nil {
		t.Fatal(err)
	}
	return m.audit
}
