package scripted

import (
	"bytes"
	"fmt"
	"net/http"
	"path"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"
)

// Scenario is a parsed file.
type Scenario struct {
	// Name is the file's name without folder and [Ext].
	Name string
	// Note is the prose before the first section.
	Note string
	// Client is the body that the client of a recording sent; nil in a file that
	// was written by hand.
	Client []byte
	Steps  []Step
}

// Step is one answer and when it is given.
type Step struct {
	// Number counts from 1, in the order of the file.
	Number int
	Status int
	Header http.Header
	// Request is the recorded body that the step answered, if the file has one.
	Request []byte

	when   []condition
	before []op // run before the headers are sent
	body   []op
}

// ParseError says where a scenario file is broken.
type ParseError struct {
	File string
	// Step is 0 for what belongs to no step.
	Step int
	// Line counts from 1.
	Line    int
	Message string
}

// Error names file, step and line.
func (e *ParseError) Error() string {
	if e.Step == 0 {
		return fmt.Sprintf("scenario %s: line %d: %s", e.File, e.Line, e.Message)
	}
	return fmt.Sprintf("scenario %s: step %d, line %d: %s", e.File, e.Step, e.Line, e.Message)
}

// Parse reads a scenario file. An error is a [*ParseError].
func Parse(file string, data []byte) (*Scenario, error) {
	p := &parser{file: file, scenario: &Scenario{Name: strings.TrimSuffix(path.Base(file), Ext)}}
	if err := p.parse(data); err != nil {
		return nil, err
	}
	return p.scenario, nil
}

type parser struct {
	file     string
	scenario *Scenario
	step     *Step // the one being read
	answered bool  // it has its answer
	stage    int   // of the section read last, in the order of stages
	line     int   // of the section's marker
}

// The sections of a step, in the order that a file must keep.
const (
	stageNone = iota
	stageRequest
	stageWhen
	stageAnswer
	stageBody
)

func (p *parser) parse(data []byte) error {
	if line := brokenMarker(data); line > 0 {
		return p.fail(line, `section marker without a name: write it as "-- 1.answer --"`)
	}
	archive := txtar.Parse(data)
	p.scenario.Note = strings.TrimSpace(string(archive.Comment))
	next := 1 + bytes.Count(archive.Comment, []byte("\n"))
	for _, f := range archive.Files {
		p.line = next
		next += 1 + bytes.Count(f.Data, []byte("\n"))
		if err := p.section(f.Name, f.Data); err != nil {
			return err
		}
	}
	if len(p.scenario.Steps) == 0 && p.step == nil {
		return p.fail(1, `no step: begin with a section "-- 1.answer --"`)
	}
	return p.endStep()
}

// brokenMarker is the line of a marker whose two halves overlap or hold nothing.
// The archive's parser cannot read the first and takes the second for text.
func brokenMarker(data []byte) int {
	for i, line := range bytes.Split(data, []byte("\n")) {
		line = bytes.TrimSuffix(line, []byte("\r"))
		if !bytes.HasPrefix(line, []byte("-- ")) || !bytes.HasSuffix(line, []byte(" --")) {
			continue
		}
		if len(line) < len("--  --") || len(bytes.TrimSpace(line[len("-- "):len(line)-len(" --")])) == 0 {
			return i + 1
		}
	}
	return 0
}

func (p *parser) section(name string, data []byte) error {
	if name == "client.request" {
		return p.client(data)
	}
	number, kind, ok := strings.Cut(name, ".")
	n, err := strconv.Atoi(number)
	if !ok || err != nil || strconv.Itoa(n) != number {
		return p.fail(p.line, fmt.Sprintf("section %q: name it client.request or N.when, N.answer, N.body, N.request with N from 1", name))
	}
	if p.step == nil || n != p.step.Number {
		if err := p.begin(n); err != nil {
			return err
		}
	}
	stage := stageOf(kind)
	if stage == stageNone {
		return p.fail(p.line, fmt.Sprintf("section %q: %q is none of request, when, answer, body", name, kind))
	}
	if stage <= p.stage {
		return p.fail(p.line, fmt.Sprintf("section %q comes twice or too late: the order is request, when, answer, body", name))
	}
	p.stage = stage
	switch stage {
	case stageRequest:
		p.step.Request, err = p.plain(data)
		return err
	case stageWhen:
		return p.when(data)
	case stageAnswer:
		return p.answer(data)
	}
	return p.body(data)
}

func stageOf(kind string) int {
	switch kind {
	case "request":
		return stageRequest
	case "when":
		return stageWhen
	case "answer":
		return stageAnswer
	case "body":
		return stageBody
	}
	return stageNone
}

func (p *parser) client(data []byte) error {
	if p.step != nil || p.scenario.Client != nil {
		return p.fail(p.line, "section client.request: give it once, before all steps")
	}
	body, err := p.plain(data)
	if body == nil {
		body = []byte{}
	}
	p.scenario.Client = body
	return err
}

// plain reads a section that holds bytes and nothing to do.
func (p *parser) plain(data []byte) ([]byte, error) {
	ops, err := p.ops(data, false)
	if err != nil {
		return nil, err
	}
	var out []byte
	for _, o := range ops {
		if o.kind != opWrite || o.split > 0 {
			return nil, p.fail(p.line, "a request holds bytes only: of the directives it may use @chomp, @crlf and @raw")
		}
		out = append(out, o.data...)
	}
	return out, nil
}

func (p *parser) begin(n int) error {
	if err := p.endStep(); err != nil {
		return err
	}
	if want := len(p.scenario.Steps) + 1; n != want {
		return p.fail(p.line, fmt.Sprintf("step %d comes where step %d should: number the steps 1, 2, 3 in order", n, want))
	}
	p.step, p.answered, p.stage = &Step{Number: n}, false, stageNone
	return nil
}

func (p *parser) endStep() error {
	if p.step == nil {
		return nil
	}
	if !p.answered {
		return p.fail(p.line, fmt.Sprintf(`it has no answer: add a section "-- %d.answer --" with a status`, p.step.Number))
	}
	p.scenario.Steps = append(p.scenario.Steps, *p.step)
	p.step = nil
	return nil
}

func (p *parser) answer(data []byte) error {
	p.answered = true
	p.step.Header = http.Header{}
	for i, line := range lines(data) {
		at := p.line + 1 + i
		switch {
		case strings.TrimSpace(line) == "":
		case strings.HasPrefix(line, "@"):
			if p.step.Status != 0 {
				return p.fail(at, fmt.Sprintf("%s after the status: in an answer directives come first", line))
			}
			o, err := p.early(at, line)
			if err != nil {
				return err
			}
			p.step.before = append(p.step.before, o)
		case p.step.Status == 0:
			status, err := parseStatus(line)
			if err != nil {
				return p.fail(at, err.Error())
			}
			p.step.Status = status
		default:
			name, value, ok := strings.Cut(line, ":")
			if !ok || name == "" || strings.ContainsAny(name, " \t") {
				return p.fail(at, fmt.Sprintf("header %q: write it as Name: value", line))
			}
			p.step.Header.Add(name, strings.TrimSpace(value))
		}
	}
	if p.step.Status == 0 && !ends(p.step.before) {
		return p.fail(p.line, "the answer has no status: begin it with one, such as 200")
	}
	return nil
}

// early reads a directive that stands before the status.
func (p *parser) early(at int, line string) (op, error) {
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "@stall":
		return p.stall(at, rest)
	case "@cut":
		return op{kind: opCut}, nil
	}
	return op{}, p.fail(at, fmt.Sprintf("%s: an answer knows @stall and @cut", word))
}

func parseStatus(line string) (int, error) {
	word, _, _ := strings.Cut(strings.TrimSpace(line), " ")
	n, err := strconv.Atoi(word)
	if err != nil || n < 200 || n > 599 {
		return 0, fmt.Errorf("status %q: give a number from 200 to 599", word)
	}
	return n, nil
}

func (p *parser) body(data []byte) error {
	if !p.answered {
		return p.fail(p.line, fmt.Sprintf(`a body without an answer: add a section "-- %d.answer --" before it`, p.step.Number))
	}
	kind := p.step.Header.Get("Content-Type")
	if kind == "" && p.step.Status != 0 {
		return p.fail(p.line, "the answer has a body and no Content-Type: add the header")
	}
	ops, err := p.ops(data, strings.HasPrefix(kind, "text/event-stream"))
	if err != nil {
		return err
	}
	p.step.body = ops
	if closes(ops) {
		p.step.Header.Set("Connection", "close")
	}
	return nil
}

// ends reports whether nothing can follow ops.
func ends(ops []op) bool {
	return len(ops) > 0 && ops[len(ops)-1].kind == opCut
}

func closes(ops []op) bool {
	for _, o := range ops {
		if o.kind == opClose || closes(o.ops) {
			return true
		}
	}
	return false
}

func (p *parser) fail(line int, message string) error {
	e := &ParseError{File: p.file, Line: line, Message: message}
	if p.step != nil {
		e.Step = p.step.Number
	}
	return e
}

// lines splits a section, whose last line always ends with a newline.
func lines(data []byte) []string {
	if len(data) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
}
