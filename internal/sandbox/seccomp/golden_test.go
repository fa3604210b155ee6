package seccomp

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

// TestPolicyText pins the policy as text, so that a change of it is seen.
func TestPolicyText(t *testing.T) {
	for _, arch := range architectures() {
		t.Run(arch, func(t *testing.T) {
			file, got := "testdata/policy_"+arch+".txt", policyText(t, arch)
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("the policy has changed; if that is meant, run with -update (-want +got):\n%s", diff)
			}
		})
	}
}

// policyText has every call of the first profile, and of the others what differs.
func policyText(t *testing.T, arch string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Made by go test -update. Arguments are counted from 0; \"int\" compares the low half, \"long\" all 64 bits.\n")
	first := map[string]string{}
	for _, name := range profileNames() {
		p := profiles(arch)[name]
		rules, numbers := policy(p), syscalls(t, arch)
		fmt.Fprintf(&b, "\n%s %+v: %d instructions\n", name, p, len(program(t, p)))
		var plain []string
		for _, call := range slices.SortedFunc(maps.Keys(numbers), func(x, y string) int { return int(numbers[x]) - int(numbers[y]) }) {
			text := callText(rules, call)
			if len(first) > 0 && first[call] == text {
				continue
			}
			if text == allow.String() && name == profileNames()[0] {
				plain = append(plain, call)
				continue
			}
			fmt.Fprintf(&b, "%4d %s: %s\n", numbers[call], call, text)
		}
		if name == profileNames()[0] {
			for call := range numbers {
				first[call] = callText(rules, call)
			}
			fmt.Fprintf(&b, "     allowed without a look at arguments:\n")
			for group := range slices.Chunk(plain, 8) {
				fmt.Fprintf(&b, "       %s\n", strings.Join(group, " "))
			}
		}
	}
	return b.String()
}

func callText(rules []rule, call string) string {
	var parts []string
	for _, r := range rules {
		if !slices.Contains(r.calls, call) {
			continue
		}
		var when []string
		for _, c := range r.when {
			when = append(when, c.String())
		}
		if len(when) == 0 {
			return strings.Join(append(parts, r.then.String()), "; ")
		}
		parts = append(parts, r.then.String()+" if "+strings.Join(when, " and "))
	}
	return strings.Join(append(parts, allow.String()), "; ")
}

// String is the condition for a reader.
func (c condition) String() string {
	kind, full := "int", uint64(lowHalf)
	if c.long {
		kind, full = "long", whole
	}
	mask, is := "", "is"
	if c.mask != full {
		mask = fmt.Sprintf(" & %#o", c.mask)
	}
	if c.not {
		is = "is not"
	}
	values := make([]string, len(c.values))
	for i, v := range c.values {
		values[i] = fmt.Sprintf("%#x", v)
		if c.mask != full {
			values[i] = fmt.Sprintf("%#o", v)
		}
	}
	return fmt.Sprintf("%s %d%s %s %s", kind, c.arg, mask, is, strings.Join(values, ", "))
}
