package model

import (
	_ "embed" // for the table of faults
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

//go:embed faults.toml
var table string

// Verdict is what the model takes an answer for; faults.toml says what each leads to.
type Verdict string

// The verdicts.
const (
	Done    Verdict = "done"
	Pass    Verdict = "pass"
	Told    Verdict = "told"
	Lost    Verdict = "lost"
	Learned Verdict = "learned"
)

// The moves of a model that flounders.
const (
	again = "again"
	look  = "look"
)

// Rule is a row of a fault's table.
type Rule struct {
	Then Verdict `toml:"then"`
	When string  `toml:"when"`
}

// Example is an answer, and what it is to be taken for.
type Example struct {
	Then Verdict `toml:"then"`
	Text string  `toml:"text"`
	// Later tries the rules for the results that follow.
	Later bool `toml:"later"`
}

// Fault is one class of mistakes.
type Fault struct {
	Name   string `toml:"name"`
	Title  string `toml:"title"`
	Source string `toml:"source"`
	// Detour is the file of rounds that gives the fault a place in a task without one.
	Detour       string `toml:"detour"`
	AlwaysDetour bool   `toml:"always_detour"`
	// Every makes the fault in all places, until the model has learned better.
	Every bool `toml:"every"`
	// Fixed says why the fault costs the same with a host's recovery switched off; empty
	// when it must cost more.
	Fixed string `toml:"fixed"`
	// Measure is "rounds", or "bytes" for a fault that costs output and no round.
	Measure   string            `toml:"measure"`
	Rules     []Rule            `toml:"rules"`
	Later     []Rule            `toml:"later"`
	Otherwise Verdict           `toml:"otherwise"`
	Flounder  []string          `toml:"flounder"`
	Words     map[string]string `toml:"words"`
	Examples  []Example         `toml:"examples"`

	ok map[string]string
}

// Faults reads the table, in its order. It fails when the table is wrong.
func Faults() ([]Fault, error) {
	var file struct {
		OK    map[string]string `toml:"ok"`
		Fault []Fault           `toml:"fault"`
	}
	if err := toml.NewDecoder(strings.NewReader(table)).DisallowUnknownFields().Decode(&file); err != nil {
		return nil, fmt.Errorf("read faults.toml: %w", err)
	}
	for i := range file.Fault {
		f := &file.Fault[i]
		f.ok = file.OK
		if f.Measure == "" {
			f.Measure = "rounds"
		}
		if f.Otherwise == "" {
			f.Otherwise = Lost
		}
		if err := f.check(); err != nil {
			return nil, fmt.Errorf("read faults.toml: fault %s: %w", f.Name, err)
		}
	}
	return file.Fault, nil
}

func (f *Fault) check() error {
	verdicts := []Verdict{Done, Pass, Told, Lost, Learned}
	for _, r := range append(slices.Clone(f.Rules), f.Later...) {
		if !slices.Contains(verdicts, r.Then) {
			return fmt.Errorf("verdict %q: use one of %v", r.Then, verdicts)
		}
		if _, err := f.expand(r.When, f.Words, "shell"); err != nil {
			return err
		}
	}
	for _, m := range f.Flounder {
		if m != again && m != look {
			return fmt.Errorf("move %q: use again or look", m)
		}
	}
	return nil
}

// unset is a word of a rule that no maker has set.
var unset = regexp.MustCompile(`\{\{[a-z]+\}\}`)

// expand puts the words into an expression, literally, and compiles it.
func (f *Fault) expand(when string, words map[string]string, tool string) (*regexp.Regexp, error) {
	when = strings.ReplaceAll(when, "{{ok}}", "(?:"+f.ok[tool]+")")
	for _, name := range slices.Sorted(maps.Keys(words)) {
		when = strings.ReplaceAll(when, "{{"+name+"}}", regexp.QuoteMeta(words[name]))
	}
	if left := unset.FindString(when); left != "" {
		return nil, fmt.Errorf("rule %q: the word %s is not set", when, left)
	}
	re, err := regexp.Compile(when)
	if err != nil {
		return nil, fmt.Errorf("rule %q: %w", when, err)
	}
	return re, nil
}

// judge takes an answer for something. Tool is the one that the right call uses.
// Of the later rules none need match; then the verdict is "".
func (f *Fault) judge(seen string, later bool, words map[string]string, tool string) (Verdict, error) {
	rules, otherwise := f.Rules, f.Otherwise
	if later {
		rules, otherwise = f.Later, ""
	}
	for _, r := range rules {
		re, err := f.expand(r.When, words, tool)
		if err != nil {
			return "", err
		}
		if re.MatchString(seen) {
			return r.Then, nil
		}
	}
	return otherwise, nil
}
