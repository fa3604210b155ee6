package model

import (
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"

	"github.com/metier-run/metier/test/tasks/task"
)

// injection is a fault at its place in a plan.
type injection struct {
	fault *Fault
	// at is the step whose results are judged.
	at int
	// silent are the rounds sent in place of right ones before at; an empty one is
	// left out.
	silent map[int]task.Round
	// faulty is sent instead of the round at at.
	faulty task.Round
	// fix is what the model sends once it knows better, a round each. After it the
	// step is done. Empty when there is nothing to put right.
	fix []task.Round
	// look is a look around.
	look task.Round
	// words go into the rules. Tool is the tool of the right call.
	words map[string]string
	tool  string
	// seen takes the word "seen" out of the results before at, for arguments that
	// hold {{seen}}; nil when none does.
	seen *regexp.Regexp
}

// claims are the steps that the injection changes.
func (in injection) claims() []int {
	return append(slices.Collect(maps.Keys(in.silent)), in.at)
}

// Plan is a right way through a task, with detours, and the faults made on it.
type Plan struct {
	Run    Run
	Steps  []task.Round
	Answer string
	// Detours is how many of the first steps are no part of the task.
	Detours int

	injections []injection
	// idle is a fault that uses up the rounds before the last step; nil without.
	idle *Fault
}

// Baseline is the number of requests of a run without faults: one for each step, and
// the answer.
func (p Plan) Baseline() int { return len(p.Steps) + 1 }

// Book is what plans are made from.
type Book struct {
	tasks   map[string]task.Task
	files   map[string]task.Tree
	detours map[string]task.Trajectory
	faults  map[string]*Fault
	order   []Fault
}

// NewBook takes the tasks and reads the detours, of which each file of the folder is
// one, and the table of faults.
func NewBook(tasks []task.Task, detours string) (*Book, error) {
	faults, err := Faults()
	if err != nil {
		return nil, err
	}
	b := &Book{
		tasks: map[string]task.Task{}, files: map[string]task.Tree{},
		detours: map[string]task.Trajectory{}, faults: map[string]*Fault{}, order: faults,
	}
	for _, t := range tasks {
		b.tasks[t.Name] = t
		if b.files[t.Name], err = t.Files(); err != nil {
			return nil, err
		}
	}
	for i := range faults {
		f := &faults[i]
		b.faults[f.Name] = f
		if f.Detour == "" {
			continue
		}
		t, err := task.ReadTrajectory(detours + "/" + f.Detour + ".json")
		if err != nil {
			return nil, fmt.Errorf("fault %s: %w", f.Name, err)
		}
		b.detours[f.Detour] = t
	}
	return b, nil
}

// Faults are the classes of the table, in its order.
func (b *Book) Faults() []Fault { return slices.Clone(b.order) }

// NewPlan plans a run. A fault that has no place in the task, or whose place another
// one has taken, gets a detour before the task: the same rounds that a plain run of
// these faults has. So a plan and its plain twin have the same steps.
func (b *Book) NewPlan(run Run) (Plan, error) {
	t, ok := b.tasks[run.Task]
	if !ok {
		return Plan{}, fmt.Errorf("plan %s: there is no such task", run.ID())
	}
	p := Plan{Run: run, Steps: slices.Clone(t.Rounds), Answer: t.Answer}
	rng := run.chance()
	for _, name := range run.Faults {
		f := b.faults[name]
		if f == nil {
			return Plan{}, fmt.Errorf("plan %s: there is no fault %q", run.ID(), name)
		}
		if err := p.inject(f, b.detours[f.Detour], b.files[run.Task], rng); err != nil {
			return Plan{}, fmt.Errorf("plan %s: fault %s: %w", run.ID(), name, err)
		}
	}
	if run.Plain {
		p.injections, p.idle = nil, nil
	}
	return p, nil
}

// chance is the run's own source of chance; the tag and whether it is plain don't
// matter.
func (r Run) chance() *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(r.Task + "+" + strings.Join(r.Faults, "+"))) // a hash takes everything
	return rand.New(rand.NewPCG(r.Seed, h.Sum64()))
}

// inject makes the fault at a place that the other ones have left.
func (p *Plan) inject(f *Fault, detour task.Trajectory, files task.Tree, rng *rand.Rand) error {
	if f.Detour == "" {
		p.idle = f
		return nil
	}
	if !f.AlwaysDetour && p.spoil(f, files, 0, len(p.Steps), rng) {
		return nil
	}
	p.prepend(detour.Rounds, "scratch-"+f.Name)
	if !p.spoil(f, files, 0, len(detour.Rounds), rng) {
		return fmt.Errorf("its detour %s has no place for it", f.Detour)
	}
	return nil
}

// scratch is the folder that the recorded detours work in.
var scratch = regexp.MustCompile(`\bscratch\b`)

// prepend puts a detour before all steps, in a folder of its own.
func (p *Plan) prepend(rounds []task.Round, folder string) {
	var own []task.Round
	for _, r := range rounds {
		moved := slices.Clone(r)
		for i, c := range moved {
			for name, value := range c.Args {
				if text, ok := value.(string); ok {
					moved[i] = moved[i].With(name, scratch.ReplaceAllString(text, folder))
				}
			}
		}
		own = append(own, moved)
	}
	n := len(own)
	p.Steps = append(own, p.Steps...)
	p.Detours += n
	for i := range p.injections {
		in := &p.injections[i]
		silent := map[int]task.Round{}
		for at, r := range in.silent {
			silent[at+n] = r
		}
		in.at, in.silent = in.at+n, silent
	}
}

// spoil tries the calls of the steps from..to in an order of chance, until the fault
// has a place; with Every it takes all.
func (p *Plan) spoil(f *Fault, files task.Tree, from, to int, rng *rand.Rand) bool {
	v := view{steps: p.Steps, trees: task.Trees(files, p.Steps), rng: rng}
	var places [][2]int
	for i := from; i < to; i++ {
		for j := range p.Steps[i] {
			places = append(places, [2]int{i, j})
		}
	}
	rng.Shuffle(len(places), func(a, b int) { places[a], places[b] = places[b], places[a] })
	make := makers()[f.Name]
	found := false
	for _, at := range places {
		in, ok := make(v, at[0], at[1])
		if !ok || p.claimed(in.claims()) {
			continue
		}
		in.fault = f
		p.injections = append(p.injections, in)
		found = true
		if !f.Every {
			break
		}
	}
	return found
}

func (p *Plan) claimed(steps []int) bool {
	for _, in := range p.injections {
		for _, s := range in.claims() {
			if slices.Contains(steps, s) {
				return true
			}
		}
	}
	return false
}
