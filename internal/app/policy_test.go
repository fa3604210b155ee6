package app

import "testing"

// TestScriptsPolicy: what is left out is never less confinement.
func TestScriptsPolicy(t *testing.T) {
	if got := (Scripts{}).policy(); got.Minimum.String() != "full" || got.Mode.String() != "required" {
		t.Errorf("the zero policy is %s %s", got.Mode, got.Minimum)
	}
}
