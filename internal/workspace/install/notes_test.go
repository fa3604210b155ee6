package install

import "testing"

// TestNotes pins what a model reads about installs that were performed (B1
// 13.11).
func TestNotes(t *testing.T) {
	r := Read("pip install numpy==1.0 python_dateutil", Options{Provided: func(Kind, string) bool { return true }})
	unchecked, _ := r.Requests[0].BuiltIn()
	r = Read("pip install numpy requests", Options{Allowed: true, Provided: func(_ Kind, name string) bool { return name == "numpy" }})
	builtIn, ok := r.Requests[0].BuiltIn()
	if needs := r.Requests[0].Needs(); !ok || len(needs) != 1 || needs[0].Name != "requests" {
		t.Errorf("needs %+v", needs)
	}
	if _, ok := (Request{Specs: []Spec{{Name: "x"}}}).BuiltIn(); ok {
		t.Error("x is not built in")
	}
	golden(t, "notes.txt", Note([]Outcome{
		{Kind: Pip, State: Installed, Names: []string{"numpy 2.1.0", "six"}},
		{Kind: Npm, State: Installed, Names: []string{"lodash 4.17.21"}},
		{Kind: Pip, State: Already, Names: []string{"numpy"}},
		builtIn,
		unchecked,
		{Kind: Npm, State: ManifestDone, Names: []string{"express", "jest"}},
		{Kind: Npm, State: ManifestDone},
		{Kind: Pip, State: Failed, Names: []string{"nosuch"}, Reason: "The registry has no package of that name."},
		{Kind: Npm, State: Together, Names: []string{"express", "jest@1"}, Reason: "nosuch"},
		{Kind: Npm, State: Skipped, Names: []string{"a", "b"}},
	})+"\n")
	if Note(nil) != "" {
		t.Error("a note on nothing")
	}
}
