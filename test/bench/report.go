package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// report is everything that a run measured, as -json writes it.
type report struct {
	Date    string `json:"date"`
	Machine string `json:"machine"`
	Go      string `json:"go"`
	Quick   bool   `json:"quick,omitzero"`
	// Clock says that times are those of the clock: the system told no others.
	Clock bool   `json:"clock,omitzero"`
	Took  string `json:"took"`
	Rows  []*row `json:"rows"`
	// Launches are measured against bare ones, unless NoLaunches says why not.
	Launches   []*launchRow `json:"launches,omitzero"`
	NoLaunches string       `json:"no_launches,omitzero"`
	// Stores are measured against bare statements, unless NoPostgres says why one is
	// missing.
	Stores     []*launchRow `json:"stores,omitzero"`
	NoPostgres string       `json:"no_postgres,omitzero"`
}

// row is one workload.
type row struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	Unit  string `json:"unit"`
	// Aim is the most that Metier should cost: Ratio to the reverse proxy, or
	// Most of the unit.
	Ratio   float64             `json:"aim_ratio,omitzero"`
	Most    float64             `json:"aim_most,omitzero"`
	Targets map[string]*results `json:"targets"`
}

// results are one target's measurements of a row, and what they come to.
type results struct {
	Values []float64 `json:"values"`
	Median float64   `json:"median"`
	// Ratio is the median of the ratios to the reverse proxy in the same round.
	Ratio float64 `json:"ratio,omitzero"`
}

func newReport(now time.Time) *report {
	return &report{
		Date: now.UTC().Format(time.DateOnly), Go: runtime.Version(), Clock: !hasProc(),
		Machine: fmt.Sprintf("%s/%s, %d cores", runtime.GOOS, runtime.GOARCH, runtime.NumCPU()),
	}
}

// row is the named row, added if it is new.
func (r *report) row(name, title, unit string, ratio float64) *row {
	for _, x := range r.Rows {
		if x.Name == name {
			return x
		}
	}
	x := &row{Name: name, Title: title, Unit: unit, Ratio: ratio, Targets: map[string]*results{}}
	r.Rows = append(r.Rows, x)
	return x
}

// limit sets what a unit may be at most.
func (x *row) limit(most float64) *row {
	x.Most = most
	return x
}

func (x *row) add(target string, value float64) {
	t := x.Targets[target]
	if t == nil {
		t = &results{}
		x.Targets[target] = t
	}
	t.Values = append(t.Values, value)
	t.Median = median(t.Values)
	for _, other := range x.Targets {
		if base := x.Targets[bare]; base != nil {
			other.Ratio = median(ratios(other.Values, base.Values))
		}
	}
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(values))
	if len(s)%2 == 1 {
		return s[len(s)/2]
	}
	return (s[len(s)/2-1] + s[len(s)/2]) / 2
}

// ratios divides values by those of the same round.
func ratios(values, base []float64) []float64 {
	var out []float64
	for i := range min(len(values), len(base)) {
		if base[i] > 0 {
			out = append(out, values[i]/base[i])
		}
	}
	return out
}

// met says whether a target of ours costs no more than it should; known is false
// where the row has no aim.
func (x *row) met(target string) (met, known bool) {
	t := x.Targets[target]
	switch {
	case t == nil:
		return false, false
	case x.Most > 0:
		return t.Median <= x.Most, true
	case x.Ratio > 0:
		return t.Ratio <= x.Ratio, true
	}
	return false, false
}

func (x *row) aim() string {
	switch {
	case x.Most > 0:
		return fmt.Sprintf("%.0f", x.Most)
	case x.Ratio > 0:
		return fmt.Sprintf("%.1fx", x.Ratio)
	}
	return "-"
}

// print writes the table. In brackets stands the ratio to the reverse proxy, and
// what is over its aim is marked.
func (r *report) print(w io.Writer) error {
	fmt.Fprintf(w, "%s, %s, %s, took %s\n", r.Date, r.Machine, r.Go, r.Took)
	if r.Clock {
		fmt.Fprintln(w, "This system tells no processor times: times are those of the clock, the load's own included.")
	}
	if r.Quick {
		fmt.Fprintln(w, "A smoke run: the numbers are of little worth.")
	}
	if len(r.Rows) > 0 {
		if err := r.printRows(w); err != nil {
			return err
		}
	}
	if err := r.printLaunches(w); err != nil {
		return err
	}
	return r.printStores(w)
}

func (r *report) printRows(w io.Writer) error {
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "workload\tunit\t")
	for _, name := range targets() {
		fmt.Fprintf(t, "%s\t", name)
	}
	fmt.Fprintln(t, "aim\t")
	for _, x := range r.Rows {
		fmt.Fprintf(t, "%s\t%s\t", x.Title, x.Unit)
		for _, name := range targets() {
			fmt.Fprintf(t, "%s\t", x.cell(name))
		}
		fmt.Fprintf(t, "%s\t\n", x.aim())
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w, "\nMedians of one process each; in brackets the ratio to the reverse proxy; * is over the aim.")
	return printPeers(w)
}

// printPeers prints what other gateways cost.
func printPeers(w io.Writer) error {
	fmt.Fprintln(w, "\nOther gateways, each measured once with such a request, on another day and a busy machine:")
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "gateway\tus CPU a request\tus CPU a stream of 50\tMB resident\t")
	for _, p := range peers() {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t\n", p.name, p.request, p.stream, p.memory)
	}
	return t.Flush()
}

func (x *row) cell(target string) string {
	t := x.Targets[target]
	if t == nil {
		return "-"
	}
	text := number(t.Median)
	if target != plain && target != withSkills {
		return text
	}
	mark := ""
	if met, known := x.met(target); known && !met {
		mark = "*"
	}
	return fmt.Sprintf("%s (%.2fx)%s", text, t.Ratio, mark)
}

func (r *report) writeFile(name string) error {
	data, err := json.Marshal(r, jsontext.WithIndent("  "), json.Deterministic(true))
	if err != nil {
		return fmt.Errorf("bench: write %s: %w", name, err)
	}
	if err := os.WriteFile(name, append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("bench: write %s: %w", name, err)
	}
	return nil
}
