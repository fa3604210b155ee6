package skill_test

import (
	"context"
	"errors"
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

func ExampleParse() {
	m, warnings, err := skill.Parse([]byte(`---
name: pdf
description: Fill in PDF forms. Use when: the user has a form.
effort: high
---
Ask for the form first.
`), "pdf")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(m.Description)
	fmt.Println(m.Extra["effort"])
	for _, w := range warnings {
		fmt.Println(w)
	}
	// Output:
	// Fill in PDF forms. Use when: the user has a form.
	// high
	// line 3, column 41: description holds a colon that YAML takes for the start of a value, and is read as text: write it in quotes, as in description: 'Fill in PDF forms. Use when: the user has a form.'
}

func ExampleParse_error() {
	_, _, err := skill.Parse([]byte("---\nname: pdf\nname: docx\n---\n"), "pdf")
	fmt.Println(err)
	if e, ok := errors.AsType[*skill.ManifestError](err); ok {
		fmt.Println(e.Line, e.Fix)
	}
	// Output:
	// read SKILL.md: line 3, column 1: "name" stands twice, first on line 2: keep one of them
	// 3 keep one of them
}

func ExampleOpen() {
	ctx := context.Background()
	registry, err := skill.Open(ctx, skill.Options{
		Roots: []skill.Root{{Dir: "../examples/skills", Setting: "--skills-dir"}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	request := registry.Snapshot() // what one request sees, from its start to its end
	if _, err := registry.Rescan(ctx); err != nil {
		fmt.Println(err) // the snapshot before stays in force
	}
	fmt.Println(registry.Snapshot().Digest() == request.Digest())
	// Output:
	// true
}

func ExampleSkill_Read() {
	ctx := context.Background()
	s, err := skill.Load(ctx, skill.Options{Roots: []skill.Root{{Dir: "../examples/skills"}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	pricing, _ := s.Find("unit-pricing")
	pages := 0
	for offset, more := int64(0), true; more; pages++ {
		page, err := pricing.Read(ctx, "SKILL.md", offset, 512)
		if err != nil {
			fmt.Println(err)
			return
		}
		offset, more = page.Next, page.More()
	}
	fmt.Println(pages > 1)
	_, err = pricing.Read(ctx, "../release-notes/SKILL.md", 0, 512)
	fmt.Println(errors.Is(err, skill.ErrPath), err)
	// Output:
	// true
	// true read skill "unit-pricing": path "../release-notes/SKILL.md": ".." is refused, because files outside this folder may not be opened: write the path from the top of the folder
}

func ExampleLinks() {
	for _, l := range skill.Links("Run `scripts/fill.py FORM`; see [the fields](fields.md#text) and references/style.md.") {
		fmt.Println(l.Kind, l.Path)
	}
	// Output:
	// code scripts/fill.py
	// link fields.md
	// text references/style.md
}
