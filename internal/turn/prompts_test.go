package turn

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/llm"
)

var update = flag.Bool("update", false, "rewrite the golden file")

// TestPrompts pins every sentence that the machine says to a model.
func TestPrompts(t *testing.T) {
	got := strings.Join([]string{
		outOfRoundsRequest(8),
		outOfRoundsNotice([]string{"skills_read", "shell"}),
		tooManyCalls(8),
		interrupted("shell"),
		hostFault("skills_read"),
		resultAsUser(llm.Call{Name: "skills_read", Arguments: `{"skill":"pdf"}`}, "Skill: pdf"),
		elidedResult(llm.Call{Name: "skills_read", Arguments: `{"skill":"pdf"}`}, 48210),
		"page" + cutResult(1024, 48210),
	}, "\n---\n") + "\n"
	const file = "testdata/prompts.golden"
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
		t.Errorf("prompts (-want +got):\n%s", diff)
	}
}
