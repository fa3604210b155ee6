package guard

import (
	"errors"
	"io"
	"path"
	"testing"
)

func TestEntryOpen(t *testing.T) {
	r := open(t, tree(t))
	opened := 0
	for e, err := range r.Walk(t.Context(), nil) {
		if err != nil {
			continue
		}
		f, err := e.Open()
		if e.Link != "" || e.Info.IsDir() {
			if !errors.Is(err, ErrIrregular) {
				t.Errorf("%s: %v", e.Path, err)
			}
			continue
		}
		check(t, err)
		text, err := io.ReadAll(f)
		check(t, errors.Join(err, f.Close()))
		if want, _ := read(r, e.Path); string(text) != want || path.Base(e.Path) != e.Info.Name() {
			t.Errorf("%s: %q, want %q", e.Path, text, want)
		}
		opened++
	}
	if opened != 4 {
		t.Errorf("%d files were opened", opened)
	}
	if _, err := (Entry{}).Open(); err == nil {
		t.Error("an entry of no walk was opened")
	}
}
