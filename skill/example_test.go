package skill_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/metier-run/metier/skill"
)

func ExampleLoad() {
	ctx := context.Background()
	s, err := skill.Load(ctx, skill.Options{Roots: []skill.Root{{Dir: "../examples/skills"}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range s.Errors() {
		fmt.Println(e) // one bad skill does not take the others down
	}
	for _, k := range s.Skills() {
		fmt.Println(k.Name)
	}
	pricing, _ := s.Find("Unit-Pricing")
	page, err := pricing.Read(ctx, "references/examples.md", 0, 18)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(strings.TrimSpace(page.Text), page.More())
	// Output:
	// incident-report
	// release-notes
	// unit-pricing
	// # Checked examples true
}
