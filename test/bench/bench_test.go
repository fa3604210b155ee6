package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

// TestMain is also the reverse proxy: the bench starts its own program again,
// and in a test that is the test's.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == proxyCommand {
		os.Exit(dispatch(context.Background(), os.Args[1:]))
	}
	goleak.VerifyTestMain(m)
}

// TestMeasure is the whole bench, as small as it can be: every workload runs
// against every target, and no child is left.
func TestMeasure(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and starts programs")
	}
	size := sizes{rounds: 1, short: 8, streams: 8, long: 2, slow: 8, slowRounds: 1, hold: 1200 * time.Millisecond}
	size.launches = launchSizes{rounds: 1, pythons: 1, batches: 1, batch: 2, together: 2, heap: 1 << 20, heapTurns: 1, heapRounds: 1, kills: 1}
	size.stores = storeSizes{rounds: 1, appends: 20, batches: 2, sessions: 2, events: 100, heard: 3, followers: 5}
	rep, err := measure(t.Context(), size, "", "", io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"idle", "buffered", "buffered-paced", "stream-50"}
	for _, l := range doorLoads(size) {
		want = append(want, l.name)
	}
	want = append(want, "stream-2000", "stream-2000-at-once")
	if hasProc() {
		want = append(want, slowName+"-cpu", slowName+"-memory")
	} else {
		want = want[1:]
	}
	var got []string
	for _, x := range rep.Rows {
		got = append(got, x.Name)
		for _, name := range targets()[1:] {
			if r := x.Targets[name]; r == nil || r.Median <= 0 {
				t.Errorf("%s: %s has no measurement above zero: %v", x.Name, name, r)
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("workloads (-want +got):\n%s", diff)
	}
	checkLaunches(t, rep)
	checkStores(t, rep)
	file := filepath.Join(t.TempDir(), "bench.json")
	if err := rep.writeFile(file); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var again report
	if err := json.Unmarshal(data, &again); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(*rep, again); diff != "" {
		t.Errorf("read back (-printed +read):\n%s", diff)
	}
}

// checkStores: each row has a number for the database that everybody has.
func checkStores(t *testing.T, rep *report) {
	t.Helper()
	if rep.NoPostgres != "" {
		t.Log(rep.NoPostgres)
	}
	if len(rep.Stores) != 11 {
		t.Errorf("%d rows of stores, want 11", len(rep.Stores))
	}
	for _, x := range rep.Stores {
		way := ourSQLite
		if strings.Contains(x.Title, "another process") {
			way = ourPostgres
		}
		if x.Unit == "KiB each" {
			continue // so few need no page of their own
		}
		if f := x.Ways[way]; (f == nil || f.Value <= 0) && !(way == ourPostgres && rep.NoPostgres != "") {
			t.Errorf("%s, %s: no measurement above zero: %v", x.Title, x.Unit, f)
		}
	}
}

// checkLaunches: where launches can be confined, each row has a number above zero
// for the native backend, and for a bare start where one is compared.
func checkLaunches(t *testing.T, rep *report) {
	t.Helper()
	if rep.NoLaunches != "" {
		t.Logf("launches were not measured: %s", rep.NoLaunches)
		return
	}
	if len(rep.Launches) < 10 {
		t.Errorf("%d rows of launches", len(rep.Launches))
	}
	for _, x := range rep.Launches {
		if f := x.Ways[warmStart]; f == nil || f.Value <= 0 {
			t.Errorf("%s, %s: no measurement above zero: %v", x.Title, x.Unit, f)
		}
		if x.Ways[coldStart] != nil && x.Ways[plainStart] == nil {
			t.Errorf("%s, %s: nothing to compare with", x.Title, x.Unit)
		}
	}
}

func TestLaunchRow(t *testing.T) {
	r := newReport(time.Unix(0, 0))
	x := r.launchRow("true", "ms")
	for way, v := range map[string]float64{plainStart: 2, bwrapStart: 10, warmStart: 8, coldStart: 20} {
		x.Ways[way] = &figure{Value: v}
	}
	x.aims(true)
	y := r.launchRow("python", "ms")
	y.Ways[plainStart], y.Ways[warmStart] = &figure{Value: 20}, &figure{Value: 60}
	y.aims(true)
	for _, c := range []struct {
		row       *launchRow
		way, want string
	}{
		{x, plainStart, "2.00"},
		{x, bwrapStart, "10.0 (5.00x)"},
		{x, warmStart, "8.00 (4.00x*, 0.80x bwrap)"},
		{x, coldStart, "20.0 (10.00x)"},
		{y, warmStart, "60.0 (3.00x)"},
		{y, bwrapStart, "-"},
	} {
		if got := c.row.cell(c.way); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.row.Title, c.way, got, c.want)
		}
	}
	var out strings.Builder
	if err := r.print(&out); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); !strings.Contains(text, "3.0x, 1.0x bwrap") || strings.Contains(text, "workload") {
		t.Errorf("the table lacks an aim, or has one of no rows:\n%s", text)
	}
}

func TestQuantile(t *testing.T) {
	values := []float64{5, 1, 4, 2, 3}
	for share, want := range map[float64]float64{0: 1, 0.1: 1, 0.5: 3, 0.9: 5, 1: 5} {
		if got := quantile(values, share); got != want {
			t.Errorf("%v: %v, want %v", share, got, want)
		}
	}
	if got := quantile(nil, 0.5); got != 0 {
		t.Error(got)
	}
}

// TestStopsEarly holds that a bench that is interrupted leaves no child.
func TestStopsEarly(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and starts programs")
	}
	h, err := newHouse(t.Context(), os.Args[0], io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	p, err := h.start(t.Context(), bare, os.Args[0], proxyCommand, "http://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	h.close()
	if p.cmd.ProcessState == nil || p.cmd.ProcessState.Success() {
		t.Errorf("the child was not killed: %v", p.cmd.ProcessState)
	}
	if _, err := os.Stat(h.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is still there: %v", err)
	}
}

// TestFailsOnAWrongAnswer: numbers of answers that are not whole mean nothing.
func TestFailsOnAWrongAnswer(t *testing.T) {
	g := newGate(t, sendAtOnce(wordStream(3)))
	if err := drive(t.Context(), g.url, question("gate", true), 4, wholeStream(99)); err == nil || !strings.Contains(err.Error(), "6 chunks, not 99") {
		t.Errorf("a short stream gave %v", err)
	}
	if err := drive(t.Context(), g.url, question("gate", false), 4, wholeAnswer(99)); err == nil || !strings.Contains(err.Error(), "not whole") {
		t.Errorf("a short answer gave %v", err)
	}
}

func TestRow(t *testing.T) {
	r := newReport(time.Unix(0, 0))
	x := r.row("a", "A load", "us", 1.5)
	for _, v := range []float64{10, 30, 20} {
		x.add(bare, v)
	}
	// The ratios of the rounds are 2, 1 and 1.2; that of the medians is 1.2.
	for _, v := range []float64{20, 30, 24} {
		x.add(plain, v)
	}
	for _, v := range []float64{20, 60, 50} {
		x.add(withSkills, v)
	}
	r.row("b", "Another", "KiB", 0).limit(64).add(plain, 65)
	for name, want := range map[string]string{bare: "20.0", plain: "24.0 (1.20x)", withSkills: "50.0 (2.00x)*", direct: "-"} {
		if got := x.cell(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	var out strings.Builder
	if err := r.print(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"1970-01-01", "A load", "1.5x", "65.0", "64"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, out.String())
		}
	}
	if met, known := r.row("b", "", "", 0).met(plain); met || !known {
		t.Errorf("65 of 64: met %t, known %t", met, known)
	}
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{4, 1}, 2.5}, {[]float64{9, 1, 2}, 2}} {
		if got := median(c.values); got != c.want {
			t.Errorf("median of %v: %v, want %v", c.values, got, c.want)
		}
	}
}

func TestProcessTimes(t *testing.T) {
	if !hasProc() {
		t.Skip("this system tells no processor times")
	}
	before, err := cpuTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for began := time.Now(); time.Since(began) < 50*time.Millisecond; { // work
	}
	after, err := cpuTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if after <= before {
		t.Errorf("work took no time: %v, then %v", before, after)
	}
	if kib, err := residentKiB(os.Getpid()); err != nil || kib < 1000 {
		t.Errorf("memory of this process: %v KiB, %v", kib, err)
	}
	if _, err := cpuTime(1 << 30); err == nil {
		t.Error("a process that is not there has a processor time")
	}
}

func TestCalledWrongly(t *testing.T) {
	for _, args := range [][]string{{"-nope"}, {"extra"}} {
		if err := run(t.Context(), args, io.Discard, io.Discard); !errors.Is(err, errUsage) {
			t.Errorf("%v: %v", args, err)
		}
	}
}
