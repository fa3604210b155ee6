package patch

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/guard"
)

// changeOfAllKinds is a change with every kind of step, and the files it is for.
func changeOfAllKinds(t *testing.T) (*disk, Change) {
	t.Helper()
	d := newDisk(map[string]string{"a": "1\n", "b": "2\n", "c": "3\n", "x": "9\n"})
	p, err := Parse(env("*** Update File: a", "-1", "+one", "*** Update File: b", "*** Move to: d/b", "-2", "+two", "*** Delete File: c", "*** Add File: n", "+new", "*** Delete File: x", "*** Add File: x/y", "+z"), guard.Clean, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := p.Resolve(context.Background(), d, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return d, c
}

// TestRollback: a failure at any step, before or after it took effect, leaves
// the files as they were (B1 12.13).
func TestRollback(t *testing.T) {
	_, c := changeOfAllKinds(t)
	for at := 1; at <= len(c.Paths()); at++ {
		for _, half := range []bool{false, true} {
			d, c := changeOfAllKinds(t)
			before := d.texts()
			d.failAt, d.half = at, half
			err := c.Apply(context.Background(), d)
			e, ok := errors.AsType[*UndoneError](err)
			if !ok || !errors.Is(err, errDisk) || len(e.Lost) > 0 {
				t.Errorf("step %d, half %v: %v", at, half, err)
			}
			if diff := cmp.Diff(before, d.texts()); diff != "" {
				t.Errorf("step %d, half %v: %s", at, half, diff)
			}
		}
	}
}

// TestRollbackThatFails: what could not be put back is named, and nothing else.
func TestRollbackThatFails(t *testing.T) {
	_, c := changeOfAllKinds(t)
	for at := 1; at <= len(c.Paths()); at++ {
		d, c := changeOfAllKinds(t)
		before := d.texts()
		d.failAt, d.stuck, d.half = at, true, false
		err := c.Apply(context.Background(), d)
		e, ok := errors.AsType[*UndoneError](err)
		if !ok {
			t.Fatalf("step %d: %v", at, err)
		}
		var differ []string
		after := d.texts()
		for _, path := range c.Paths() {
			was, had := before[path]
			is, has := after[path]
			if had != has || was != is {
				differ = append(differ, path)
			}
		}
		slices.Sort(e.Lost)
		if diff := cmp.Diff(differ, e.Lost); diff != "" {
			t.Errorf("step %d: lost %s", at, diff)
		}
	}
}

// TestChangedMeanwhile: a file that is not any more what it was when the patch
// was resolved is not written over, and what was written is taken back.
func TestChangedMeanwhile(t *testing.T) {
	tests := map[string]func(d *disk){
		"edited":   func(d *disk) { d.files["a"] = File{Data: []byte("other\n"), Mode: 0o644} },
		"chmod":    func(d *disk) { d.files["a"] = File{Data: []byte("1\n"), Mode: 0o755} },
		"removed":  func(d *disk) { delete(d.files, "c") },
		"appeared": func(d *disk) { d.files["n"] = File{Data: []byte("other\n"), Mode: 0o644} },
		"same":     func(d *disk) { d.files["n"] = File{Data: []byte("new\n"), Mode: 0o644} },
	}
	for name, meddle := range tests {
		d, c := changeOfAllKinds(t)
		meddle(d)
		before := d.texts()
		err := c.Apply(context.Background(), d)
		if _, ok := errors.AsType[*Error](err); !ok {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(before, d.texts()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// racing is a disk on which a file appears between the look and the write.
type racing struct{ *disk }

func (r racing) Create(path string, f File) error {
	if path == "n" {
		r.files["n"] = File{Data: []byte("other\n"), Mode: 0o644}
	}
	return r.disk.Create(path, f)
}

func TestAppearedBetween(t *testing.T) {
	d, c := changeOfAllKinds(t)
	want := d.texts()
	want["n"] = "other\n"
	err := c.Apply(context.Background(), racing{d})
	if _, ok := errors.AsType[*Error](err); !ok {
		t.Errorf("%v", err)
	}
	if diff := cmp.Diff(want, d.texts()); diff != "" {
		t.Error(diff)
	}
}

// TestOneFileByTwoPaths: a link makes two paths one file; the second write is
// refused rather than the first lost.
func TestOneFileByTwoPaths(t *testing.T) {
	d := newDisk(map[string]string{"a": "1\n2\n", "link": "1\n2\n"})
	p, err := Parse(env("*** Update File: a", "-1", "+one", "*** Update File: link", "-2", "+two"), guard.Clean, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := p.Resolve(context.Background(), d, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	err = c.Apply(context.Background(), linked{d})
	if _, ok := errors.AsType[*Error](err); !ok {
		t.Errorf("%v", err)
	}
	if got := string(d.files["a"].Data); got != "1\n2\n" {
		t.Errorf("a is %q", got)
	}
}

// linked is a disk on which link is another name of a.
type linked struct{ *disk }

func (l linked) Read(path string) (File, error) { return l.disk.Read("a") }

func (l linked) Write(path string, f File) error { return l.disk.Write("a", f) }

// TestApplyEnds: a context that ends in the middle takes the change back.
func TestApplyEnds(t *testing.T) {
	d, c := changeOfAllKinds(t)
	before := d.texts()
	ctx, cancel := context.WithCancel(context.Background())
	d.before = func(string) {
		if d.steps == 2 {
			cancel()
		}
	}
	err := c.Apply(ctx, d)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if diff := cmp.Diff(before, d.texts()); diff != "" {
		t.Error(diff)
	}
}
