package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// The ways to start a program, in the order of the table.
const (
	plainStart = "bare"
	bwrapStart = "bwrap"
	warmStart  = "native, warm"
	coldStart  = "native, cold"
)

func starts() []string { return []string{plainStart, bwrapStart, warmStart, coldStart} }

// The workloads of launches, as -only knows them.
const (
	launchTrue     = "launch-true"
	launchPython   = "launch-python"
	launchTogether = "launch-together"
	launchHeap     = "launch-heap"
	launchKill     = "launch-kill"
)

func launchNames() []string {
	return []string{launchTrue, launchPython, launchTogether, launchHeap, launchKill}
}

// What a launch may cost (issue of the sandbox): times of a bare start, the
// time of bubblewrap, and the time that it took before the host grew. The last has
// a tenth for what medians of the same thing differ by.
const (
	bareAim  = 3.0
	bwrapAim = 1.0
	heapAim  = 1.1
)

// launchRow is one number of launches, for each way to start.
type launchRow struct {
	Title string             `json:"title"`
	Unit  string             `json:"unit"`
	Aim   string             `json:"aim,omitzero"`
	Ways  map[string]*figure `json:"ways"`
}

// figure is a number, the single ones that it was made of, and what it is compared
// with.
type figure struct {
	Value  float64   `json:"value"`
	Values []float64 `json:"values,omitzero"`
	Ratios []against `json:"ratios,omitzero"`
}

// against is a ratio to something else, and the most that it should be.
type against struct {
	To    string  `json:"to"`
	Ratio float64 `json:"ratio"`
	Most  float64 `json:"most,omitzero"`
}

// launchRow adds a row for a number of each way.
func (r *report) launchRow(title, unit string) *launchRow {
	x := &launchRow{Title: title, Unit: unit, Ways: map[string]*figure{}}
	r.Launches = append(r.Launches, x)
	return x
}

// compare sets the ratios of a way to the others of the row that were measured.
func (x *launchRow) compare(way string, to ...against) {
	f := x.Ways[way]
	if f == nil {
		return
	}
	for _, a := range to {
		if base := x.Ways[a.To]; base != nil && base.Value > 0 {
			a.Ratio = f.Value / base.Value
			f.Ratios = append(f.Ratios, a)
		}
	}
}

// aims compares as the aims for the time of a warm start ask; rows without an aim
// have the ratios alone.
func (x *launchRow) aims(aimed bool) {
	toBare, toBwrap := against{To: plainStart}, against{To: bwrapStart}
	x.compare(bwrapStart, toBare)
	x.compare(coldStart, toBare)
	if aimed {
		toBare.Most, toBwrap.Most = bareAim, bwrapAim
		x.Aim = fmt.Sprintf("%.1fx, %.1fx %s", bareAim, bwrapAim, bwrapStart)
	}
	x.compare(warmStart, toBare, toBwrap)
}

func (x *launchRow) cell(way string) string {
	f := x.Ways[way]
	if f == nil {
		return "-"
	}
	text := number(f.Value)
	var ratios []string
	for _, a := range f.Ratios {
		s := fmt.Sprintf("%.2fx", a.Ratio)
		if a.To == bwrapStart {
			s += " " + a.To
		}
		if a.Most > 0 && a.Ratio > a.Most {
			s += "*"
		}
		ratios = append(ratios, s)
	}
	if len(ratios) > 0 {
		text += " (" + strings.Join(ratios, ", ") + ")"
	}
	return text
}

// printLaunches writes the table of launches, if there is anything in it.
func (r *report) printLaunches(w io.Writer) error {
	if r.NoLaunches != "" {
		fmt.Fprintf(w, "\nLaunches were not measured: %s\n", r.NoLaunches)
	}
	if len(r.Launches) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "launch\tunit\t%s\taim\t\n", strings.Join(starts(), "\t"))
	for _, x := range r.Launches {
		fmt.Fprintf(t, "%s\t%s\t", x.Title, x.Unit)
		for _, way := range starts() {
			fmt.Fprintf(t, "%s\t", x.cell(way))
		}
		fmt.Fprintf(t, "%s\t\n", dash(x.Aim))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, "\nWays take turns; ratios are those of the numbers in the row, to bare or as named, and in rows of the heap to before; * is over the aim.\n"+
		"CPU is all that a launch uses on average: the host's own, its helpers' and the program's. Warm: the next init was ready.")
	return err
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// number has three digits that mean something.
func number(v float64) string {
	digits := 1
	if v >= 100 {
		digits = 0
	} else if v < 10 {
		digits = 2
	}
	return fmt.Sprintf("%.*f", digits, v)
}

// lowest is the share of the launches that a busy machine held up least.
const lowest = 0.1

// quantile is the value that a share of all is not over.
func quantile(values []float64, share float64) float64 {
	if len(values) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(values))
	return s[min(int(share*float64(len(s))), len(s)-1)]
}
