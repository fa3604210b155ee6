package hostile

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/metier-run/metier/internal/sandbox"
)

// kind says what a row proves.
type kind int

const (
	// attack: it must be held, and must succeed without confinement.
	attack kind = iota
	// manners: it must be held or done right, and the control proves nothing, since
	// nobody is attacked or the host would be harmed.
	manners
	// honest: it must work, confined or not.
	honest
	// told: it is not prevented, and docs/sandbox.md says so.
	told
)

// row is one attempt. It is made in this order: setUp on the host, the launch,
// check on the host. A row that needs more than one launch has try in their place.
type row struct {
	id, what string
	kind     kind
	// costly rows are left out of short runs.
	costly bool
	// verb is the attempt, a word that the attacking program knows.
	verb string
	// setUp prepares the host, changes x.l, and returns the arguments of the verb.
	setUp func(x *trial) []string
	// check looks at the host.
	check func(x *trial, r sandbox.Result, o *outcome)
	try   func(x *trial) *outcome
	// mayDie: an end without a verdict is the way to hold it. The probe's name.
	mayDie string
	// confinedOnly rows have no control run, as it would harm the host or makes no
	// sense there.
	confinedOnly bool
}

// skipsControl: a run without confinement proves nothing here or does harm.
func (w row) skipsControl() bool { return w.confinedOnly || w.kind == manners || w.kind == told }

// rows is the table of attempts, as spec and experience have it.
func rows() []row {
	return slices.Concat(fileRows(), processRows(), kernelRows(), networkRows(), resourceRows(), honestRows())
}

func (w row) run(x *trial) *outcome {
	if w.try != nil {
		return w.try(x)
	}
	var args []string
	if w.setUp != nil {
		args = w.setUp(x)
	}
	r, o := x.send(x.l, w.verb, args...)
	if w.mayDie != "" {
		o.died(r, w.mayDie)
	}
	if w.check != nil {
		w.check(x, r, o)
	}
	return o
}

// cell is one result of the table.
type cell struct {
	ID, Backend, User, Text string
	// Fault is why the row failed; empty if it did not.
	Fault string
}

// The texts of cells.
const (
	isHeld    = "held"
	isEscaped = "**escapes**"
	escapes   = "escapes"
	partly    = "partly"
	works     = "works"
	isBroken  = "**broken**"
	notMade   = ""
	isTold    = "told"
	excepted  = "n/a"
	isOpen    = "open"
)

func TestRows(t *testing.T) {
	pattern, err := regexp.Compile(*only)
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t)
	var cells []cell
	for _, b := range backends(t) {
		for i, w := range rows() {
			name := fmt.Sprintf("%s/%s/%s", b.Name(), user(), w.id)
			if !pattern.MatchString(name) || w.costly && short() || b.Name() == bareControl && w.skipsControl() {
				continue
			}
			t.Run(name, func(t *testing.T) {
				c := tryRow(t, r, b, w, i)
				cells = append(cells, c)
				note(t, c)
			})
		}
	}
	switch {
	case os.Getenv(envResults) != "": // whoever started this looks at the table
	case user() == "root":
		t.Run("user", func(t *testing.T) { cells = append(cells, asUser(t, `^Test(Rows|Killing|NothingLeft)$`)...) })
		fallthrough
	default:
		t.Run("table", func(t *testing.T) { checkTable(t, cells) })
	}
}

// tryRow makes one attempt, with an honest launch beside it where one is
// confined, and judges it.
func tryRow(t *testing.T, r *rig, b sandbox.Backend, w row, i int) cell {
	x := newTrial(t, r, b)
	c := cell{ID: w.id, Backend: b.Name(), User: user()}
	if why := notApplicable(w.id, c.Backend, c.User); why != "" {
		t.Logf("n/a: %s", why)
		c.Text = excepted
		return c
	}
	beside := make(chan string, 1)
	if x.control || w.kind == honest {
		beside <- ""
	} else {
		l, check := x.companion(i)
		go func() { beside <- accompany(x, l, check) }()
	}
	o := w.run(x)
	c.Text, c.Fault = judge(w, c, x.control, o)
	if wrong := <-beside; wrong != "" {
		c.Text, c.Fault = isBroken, c.Fault+" the honest launch beside it: "+wrong
	}
	t.Log(o)
	if c.Fault != "" {
		t.Error(strings.TrimSpace(c.Fault))
	}
	return c
}

// judge is the text of a cell and what is wrong with it.
func judge(w row, c cell, control bool, o *outcome) (text, fault string) {
	switch {
	case w.kind == honest && len(o.broken)+len(o.escaped) > 0:
		return isBroken, "it does not work: " + o.String()
	case w.kind == honest:
		return works, ""
	case len(o.broken) > 0:
		return isBroken, "the attempt could not be made: " + o.String()
	case w.kind == told && len(o.escaped) > 0:
		return isTold, ""
	case w.kind == told:
		return isBroken, "it is prevented now: make the row an attack: " + o.String()
	case control:
		return judgeControl(w, c, o)
	case concession(c.ID, c.Backend, c.User) != "":
		if len(o.escaped) == 0 {
			fault = "it is held now: take it out of conceded: " + o.String()
		}
		return isOpen, fault
	case len(o.escaped) > 0:
		return isEscaped, "it got out: " + o.String()
	case len(o.held) == 0:
		return isBroken, "nothing was tried"
	}
	return isHeld, ""
}

// judgeControl: each probe must succeed where nothing confines it, or exceptions
// says why not.
func judgeControl(w row, c cell, o *outcome) (text, fault string) {
	var unexplained []string
	for _, h := range o.held {
		probe, _, _ := strings.Cut(h, ":")
		if exception(w.id, probe, c.User) == "" {
			unexplained = append(unexplained, h)
		}
	}
	if len(unexplained) > 0 {
		fault = fmt.Sprintf("without confinement it is held too, so it proves nothing: %v (%s)", unexplained, o)
	}
	switch {
	case len(o.escaped) == 0:
		return excepted, fault
	case len(o.held) > 0:
		return partly, fault
	}
	return escapes, fault
}
