package patch

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/guard"
)

// FuzzPatch: whatever a model sends, nothing panics, no path is touched but
// those that the patch names, and a change is whole or not at all, also when the
// disk fails.
func FuzzPatch(f *testing.F) {
	for _, s := range scenarios() {
		for i, m := range mutations() {
			if patch := m.do(s); patch != "" {
				f.Add(patch, uint8(i))
			}
		}
	}
	files := map[string]string{}
	for _, s := range scenarios() {
		for name, text := range s.files {
			files[name] = text
		}
	}
	limits := Limits{PatchBytes: 1 << 16, PatchFiles: 16, FileBytes: 1 << 16, TotalBytes: 1 << 18}
	f.Fuzz(func(t *testing.T, patch string, failAt uint8) {
		d := newDisk(files)
		before := d.texts()
		p, err := Parse(patch, guard.Clean, limits)
		if err != nil {
			wholesome(t, err)
			return
		}
		c, err := p.Resolve(context.Background(), d, limits)
		if err == nil {
			_ = c.Summary()
			d.failAt, d.half = int(failAt%8), failAt >= 128
			err = c.Apply(context.Background(), d)
		} else {
			wholesome(t, err)
		}
		if diff := cmp.Diff(before, d.texts()); err != nil && diff != "" {
			t.Errorf("%v, and the files have changed: %s", err, diff)
		}
		for path := range d.touched {
			if !slices.Contains(p.Paths(), path) {
				t.Errorf("%q was touched and is not named: %q", path, p.Paths())
			}
		}
	})
}

// wholesome checks that an error is one for a model.
func wholesome(t *testing.T, err error) {
	t.Helper()
	e, ok := errors.AsType[*Error](err)
	if !ok || len(e.Faults) == 0 {
		t.Fatalf("%#v is no refusal", err)
	}
	for _, fault := range e.Faults {
		if fault.Text == "" {
			t.Errorf("a fault says nothing: %#v", fault)
		}
	}
}

// FuzzFile: any file comes through a change to another line as it is.
func FuzzFile(f *testing.F) {
	for _, s := range []string{"", "a\n", "\xff\xfea\x00", Marked.mark() + "x\r\ny", "\xfe\xff\x00a", "\xe9\x00\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		tx, err := decode(data)
		if err != nil {
			return
		}
		if got := tx.encode(tx.lines); string(got) != string(data) {
			t.Errorf("%q comes out as %q", data, got)
		}
		if got := tx.encode(splice(tx, nil)); string(got) != string(data) {
			t.Errorf("%q comes out unchanged as %q", data, got)
		}
		if tx.enc != Plain || len(tx.lines) == 0 {
			return
		}
		file := string(data) + "\nlast"
		got, _, err := run(map[string]string{"f": file}, env("*** Update File: f", "-last", "+new", "*** End of File"))
		if want := string(data) + "\nnew"; err != nil || got["f"] != want {
			t.Errorf("%q became %q, %v", file, got["f"], err)
		}
	})
}
