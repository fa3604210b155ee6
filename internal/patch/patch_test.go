package patch

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/guard"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares a text with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs; run the test with -update if that is meant\n%s", file, diff)
	}
}

var errDisk = errors.New("the disk is full")

// disk is a file set in memory. Its step failAt fails, counted from 1, and so do
// the next ones if stuck; with half it first does what it was asked for.
type disk struct {
	files   map[string]File
	failAt  int
	stuck   bool
	half    bool
	steps   int
	touched map[string]bool
	before  func(path string) // runs before a write
}

func newDisk(files map[string]string) *disk {
	d := &disk{files: map[string]File{}, touched: map[string]bool{}}
	for name, data := range files {
		d.files[name] = File{Data: []byte(data), Mode: 0o644}
	}
	return d
}

func (d *disk) Read(path string) (File, error) {
	d.touched[path] = true
	f, ok := d.files[path]
	if !ok {
		return File{}, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	return File{Data: bytes.Clone(f.Data), Mode: f.Mode}, nil
}

func (d *disk) Near(string) string {
	if len(d.files) == 0 {
		return ""
	}
	return "Here are: " + strings.Join(slices.Sorted(maps.Keys(d.files)), ", ") + "."
}

func (d *disk) step(path string, do func()) error {
	d.touched[path] = true
	if d.before != nil {
		d.before(path)
	}
	d.steps++
	if d.failAt > 0 && (d.steps == d.failAt || d.stuck && d.steps > d.failAt) {
		if d.half {
			do()
		}
		return errDisk
	}
	do()
	return nil
}

func (d *disk) Create(path string, f File) error {
	if _, ok := d.files[path]; ok {
		return fs.ErrExist
	}
	for other := range d.files {
		if strings.HasPrefix(path, other+"/") {
			return fmt.Errorf("%s is no folder", other)
		}
	}
	return d.step(path, func() { d.files[path] = f })
}

func (d *disk) Write(path string, f File) error {
	if _, ok := d.files[path]; !ok {
		return fs.ErrNotExist
	}
	return d.step(path, func() { d.files[path] = f })
}

func (d *disk) Remove(path string) error {
	if _, ok := d.files[path]; !ok {
		return fs.ErrNotExist
	}
	return d.step(path, func() { delete(d.files, path) })
}

// texts is the file set as text.
func (d *disk) texts() map[string]string {
	texts := map[string]string{}
	for name, f := range d.files {
		texts[name] = string(f.Data)
	}
	return texts
}

// run applies a patch to files and gives what there is then.
func run(files map[string]string, patch string) (map[string]string, Change, error) {
	d := newDisk(files)
	p, err := Parse(patch, guard.Clean, Limits{})
	if err != nil {
		return d.texts(), Change{}, err
	}
	return apply(d, p)
}

func apply(d *disk, p Patch) (map[string]string, Change, error) {
	c, err := p.Resolve(context.Background(), d, Limits{})
	if err != nil {
		return d.texts(), c, err
	}
	err = c.Apply(context.Background(), d)
	return d.texts(), c, err
}

// env puts the lines of an envelope around sections.
func env(sections ...string) string {
	return "*** Begin Patch\n" + strings.Join(sections, "\n") + "\n*** End Patch\n"
}

// show is a file set or an outcome in a readable form.
func show(files map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(&b, "%s: %q\n", name, files[name])
	}
	return b.String()
}

func outcome(c Change, err error) string {
	if err != nil {
		return err.Error()
	}
	return c.Summary()
}
