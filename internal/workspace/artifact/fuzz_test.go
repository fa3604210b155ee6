package artifact

import (
	"errors"
	"io"
	"path/filepath"
	"slices"
	"testing"

	"github.com/metier-run/metier/internal/guard"
)

// FuzzRecord: whatever a record says, its paths are local and it is read without
// harm.
func FuzzRecord(f *testing.F) {
	f.Add([]byte(`{"owner":"me","created":"2026-09-01T12:00:00Z","files":[{"path":"a","bytes":1}]}`))
	f.Add([]byte(`{"files":[{"path":"../a","bytes":1}]}`))
	f.Add([]byte(`{"files":[{"path":"a/./b","bytes":-1}]}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, data []byte) {
		rec, err := parse(data)
		if err != nil && !errors.Is(err, errBroken) {
			t.Fatal(err)
		}
		for _, file := range rec.Files {
			if !filepath.IsLocal(file.Path) || file.Bytes < 0 {
				t.Errorf("%+v", file)
			}
		}
	})
}

// FuzzOpen: only the files of the run are opened, by any owner, id and path.
func FuzzOpen(f *testing.F) {
	r := newRig(f, nil)
	before := Snapshot{}
	r.write(f, map[string]string{"a": "in a", "b/c": "in b/c"})
	c, err := r.Capture(f.Context(), "me", r.work, before)
	check(f, err)
	for _, path := range []string{"a", "b/c", "../run.json", "b/../a", "b//c", "./a", "/a", "a/", `b\c`, "", ".", "b"} {
		f.Add("me", c.RunID, path)
		f.Add("me", "../artifacts/"+c.RunID, path)
		f.Add("", c.RunID, path)
	}
	names := []string{"a", "b/c"}
	f.Fuzz(func(t *testing.T, owner, id, path string) {
		got, file, err := r.Open(owner, id, path)
		if err != nil {
			if _, spelled := errors.AsType[*guard.PathError](err); !spelled && !errors.Is(err, ErrNotFound) {
				t.Errorf("%q: %v", path, err)
			}
			return
		}
		defer got.Close()
		text, err := io.ReadAll(got)
		if err != nil || owner != "me" || id != c.RunID || !slices.Contains(names, file.Path) || string(text) != "in "+file.Path {
			t.Errorf("%q %q %q: %q, %v", owner, id, path, text, err)
		}
	})
}
