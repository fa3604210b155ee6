package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The targets, in the order of the table.
const (
	direct     = "upstream"
	bare       = "reverse-proxy"
	plain      = "metier"
	withSkills = "metier-skills"
)

func targets() []string { return []string{direct, bare, plain, withSkills} }

// The models of test/upstream, and how many chunks a stream of theirs has
// besides its words: role, finish and usage.
const (
	modelFlushed  = "bench"
	modelAtOnce   = "bench-buffered"
	framingChunks = 3
)

// cpuLoad is a workload that is measured in processor time.
type cpuLoad struct {
	name, title, unit string
	model             string
	stream            bool
	requests          int // of one repetition
	units             int // that one request counts for
	aim               float64
	// door is where Metier is asked; nil is Chat Completions.
	door *dialect
}

// cpuStage is loads that need the same processes.
type cpuStage struct {
	words int
	loads []cpuLoad
}

// most is the ratio that DESIGN's first issue aims at.
const most = 1.5

func cpuStages(s sizes) []cpuStage {
	const short, long = 50, 2000
	perRequest, perStream, perChunk := "us CPU a request", "us CPU a stream", "us CPU a chunk"
	return []cpuStage{
		{short, append([]cpuLoad{
			{"buffered", "buffered request, answer there at once", perRequest, modelAtOnce, false, s.short, 1, most, nil},
			{"buffered-paced", "buffered request, 50 chunks one by one", perRequest, modelFlushed, false, s.short, 1, 0, nil},
			{"stream-50", "stream of 50 chunks, one by one", perStream, modelFlushed, true, s.streams, 1, most, nil},
		}, doorLoads(s)...)},
		{long, []cpuLoad{
			{"stream-2000", "stream of 2,000 chunks, one by one", perChunk, modelFlushed, true, s.long, long + framingChunks, most, nil},
			{"stream-2000-at-once", "stream of 2,000 chunks, there at once", perChunk, modelAtOnce, true, s.long, long + framingChunks, most, nil},
		}},
	}
}

func (s cpuStage) only(text string) cpuStage {
	s.loads = slices.DeleteFunc(slices.Clone(s.loads), func(l cpuLoad) bool { return !strings.Contains(l.name, text) })
	return s
}

// ask is what a target is asked, and what its answer has to be.
func (l cpuLoad) ask(target string, words int) (request, func([]byte) error) {
	switch {
	case l.door != nil && (target == plain || target == withSkills):
		return l.door.ask(l.model, l.stream), l.door.check(words, l.stream)
	case l.stream:
		return question(l.model, true), wholeStream(words + framingChunks)
	}
	return question(l.model, false), wholeAnswer(words)
}

// run measures the loads of a stage, the targets in turn, each round beginning
// with another one.
func (s cpuStage) run(ctx context.Context, h *house, rep *report, rounds int) error {
	up, err := h.start(ctx, direct, h.upstream, "-fast", strconv.Itoa(s.words))
	if err != nil {
		return err
	}
	defer h.stop(up)
	at := map[string]*process{direct: up}
	for _, name := range targets()[1:] {
		p, err := h.target(ctx, rep, name, up.url)
		if err != nil {
			return err
		}
		defer h.stop(p)
		at[name] = p
	}
	for _, l := range s.loads {
		row := rep.row(l.name, l.title, l.unit, l.aim)
		h.say("measuring %s", l.name)
		for round := range rounds + 1 { // the first warms up
			for i := range targets() {
				name := targets()[(i+round)%len(targets())]
				value, err := l.repeat(ctx, name, at[name], s.words)
				if err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
				if round > 0 {
					row.add(name, value)
				}
			}
		}
	}
	return nil
}

// repeat is one repetition: microseconds of the target's processor time a unit,
// or of the clock where the system does not tell processor times.
func (l cpuLoad) repeat(ctx context.Context, target string, p *process, words int) (float64, error) {
	ask, check := l.ask(target, words)
	if l.door != nil && l.door.sessions && ask.path != "/v1/chat/completions" {
		var err error
		if ask, err = inSessions(ctx, p.url, ask); err != nil {
			return 0, err
		}
	}
	began := time.Now()
	before, err := spent(p.pid(), began)
	if err != nil {
		return 0, err
	}
	if err := drive(ctx, p.url, ask, l.requests, check); err != nil {
		return 0, err
	}
	after, err := spent(p.pid(), began)
	if err != nil {
		return 0, err
	}
	return float64((after - before).Nanoseconds()) / 1e3 / float64(l.requests*l.units), nil
}

func spent(pid int, began time.Time) (time.Duration, error) {
	if !hasProc() {
		return time.Since(began), nil
	}
	return cpuTime(pid)
}

// settleTime is how long a started server is left alone before its memory is
// read.
const settleTime = 300 * time.Millisecond

// manyRounds lets every stream through at once: the gate is not what is measured.
const manyRounds = 4096

// target starts one of the three that stand before the upstream and notes what
// it uses while idle.
func (h *house) target(ctx context.Context, rep *report, name, upstream string) (*process, error) {
	program, args := h.metier, []string{"serve", "--port", "0", "--upstream", upstream, "--upstream-rounds", strconv.Itoa(manyRounds)}
	switch name {
	case bare:
		program, args = h.self, []string{proxyCommand, upstream}
	case plain:
		args = append(args, "--no-skills")
	case withSkills:
		args = append(args, "--skills-dir", filepath.Join(h.root, "examples", "skills"))
	}
	p, err := h.start(ctx, name, program, args...)
	if err != nil {
		return nil, err
	}
	if !hasProc() {
		return p, nil
	}
	if err := pause(ctx, settleTime); err != nil {
		return nil, err
	}
	kib, err := residentKiB(p.pid())
	if err != nil {
		return nil, err
	}
	rep.row("idle", "idle server after its start", "MB resident", 0).limit(idleAim).add(name, kib*1024/1e6)
	return p, nil
}

// idleAim is what an idle server may use, in MB.
const idleAim = 40
