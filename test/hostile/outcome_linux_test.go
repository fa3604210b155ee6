package hostile

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/metier-run/metier/internal/sandbox"
)

// outcome is how the probes of one attempt went.
type outcome struct {
	escaped []string
	held    []string // PROBE:REASON
	broken  []string
}

var verdictLine = regexp.MustCompile(`(?m)^VERDICT (\d+) escaped=(\S*) held=(\S*) broken=(\S*)$`)

// verdict reads what the program says of itself and adds what its output shows.
// Without the right marker it says nothing.
func (x *trial) verdict(n uint32, r sandbox.Result) *outcome {
	o := &outcome{}
	found := false
	for _, m := range verdictLine.FindAllStringSubmatch(r.Stdout.Text(), -1) {
		if m[1] != strconv.FormatUint(uint64(n)*7919+13, 10) {
			continue
		}
		found = true
		o.escaped, o.held, o.broken = list(m[2]), list(m[3]), list(m[4])
	}
	if !found {
		o.broken = append(o.broken, fmt.Sprintf("no-verdict: %s exit %d %s: %.200s", r.Ended, r.Exit, r.Signal, r.Stderr.Text()))
	}
	if seen(r, x.secret) {
		o.add("secret-seen")
	}
	return o
}

func seen(r sandbox.Result, text string) bool {
	for _, out := range []sandbox.Output{r.Stdout, r.Stderr} {
		if bytes.Contains(out.Head, []byte(text)) || bytes.Contains(out.Tail, []byte(text)) {
			return true
		}
	}
	return false
}

func list(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// add notes an escape that the host saw.
func (o *outcome) add(probe string) {
	o.held = slices.DeleteFunc(o.held, func(h string) bool { return h == probe || strings.HasPrefix(h, probe+":") })
	if !slices.Contains(o.escaped, probe) {
		o.escaped = append(o.escaped, probe)
	}
}

// sees notes an escape if the host saw it, else that it was held. A program that
// tells of an escape which the host does not see is believed all the same.
func (o *outcome) sees(probe string, happened bool) {
	if happened {
		o.add(probe)
	} else if !slices.Contains(o.escaped, probe) && !o.has(probe) {
		o.held = append(o.held, probe+":unseen")
	}
}

// deny notes that an escape which the program tells of is none, as the host knows
// better.
func (o *outcome) deny(probe, why string) {
	o.escaped = slices.DeleteFunc(o.escaped, func(p string) bool { return p == probe })
	o.held = append(o.held, probe+":"+why)
}

func (o *outcome) has(probe string) bool {
	return slices.ContainsFunc(o.held, func(h string) bool { return h == probe || strings.HasPrefix(h, probe+":") })
}

// died makes of an end without a verdict the proof that the attempt was ended, for
// rows where that is the way to hold it.
func (o *outcome) died(r sandbox.Result, probe string) {
	if len(o.broken) == 1 && strings.HasPrefix(o.broken[0], "no-verdict") {
		o.broken = nil
		o.held = append(o.held, fmt.Sprintf("%s:%s", probe, strings.ReplaceAll(string(r.Ended), " ", "-")))
	}
}

// merge takes the probes of another outcome under a name before theirs.
func (o *outcome) merge(prefix string, other *outcome) {
	for _, p := range other.escaped {
		o.add(prefix + "-" + p)
	}
	for _, p := range other.held {
		o.held = append(o.held, prefix+"-"+p)
	}
	for _, p := range other.broken {
		o.broken = append(o.broken, prefix+"-"+p)
	}
}

// String is for failures.
func (o *outcome) String() string {
	return fmt.Sprintf("escaped %v, held %v, broken %v", o.escaped, o.held, o.broken)
}
