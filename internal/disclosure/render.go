package disclosure

import (
	"context"
	"fmt"
	"strings"

	"github.com/metier-run/metier/skill"
)

// Empty reports whether there is nothing to tell.
func (p Plan) Empty() bool {
	return len(p.Inlined)+len(p.Deferred)+len(p.Listed)+p.Omitted == 0
}

// Render is the block, without white space at its ends; empty when there is
// nothing to tell. It reads the bodies that go in and fails when one cannot be
// read.
func (p Plan) Render(ctx context.Context) (string, error) {
	if p.Empty() {
		return "", nil
	}
	var b strings.Builder
	if p.Tools {
		b.WriteString(opening)
	}
	b.WriteString(heading)
	if err := p.bodies(ctx, &b); err != nil {
		return "", fmt.Errorf("render skills: %w", err)
	}
	if p.Tools {
		p.catalog(&b)
		b.WriteString(rules)
		if p.Scripts {
			b.WriteString(runRule)
		}
		b.WriteString(moreRules)
	} else {
		p.withoutTools(&b)
	}
	return strings.TrimSpace(b.String()), nil
}

func (p Plan) bodies(ctx context.Context, b *strings.Builder) error {
	for _, s := range p.Inlined {
		body, err := s.Skill.Body(ctx)
		if err != nil {
			return err
		}
		shown := body
		if s.Room > 0 {
			shown = cutBody(body, s.Room)
		}
		fmt.Fprintf(b, "\n<skill name=%q>\n%s\n\n%s", s.Skill.Name, s.Description, shown)
		if len(shown) < len(body) {
			fmt.Fprintf(b, cutNotice, len(body)-len(shown), len(body))
		}
		b.WriteString("\n")
		if index := FileIndex(s.Skill); p.Tools && index != "" {
			b.WriteString("\n" + index)
		}
		b.WriteString("</skill>\n")
	}
	return nil
}

// catalog writes what a model with tools can load.
func (p Plan) catalog(b *strings.Builder) {
	if len(p.Deferred) > 0 {
		b.WriteString(selectedHeading)
	}
	for _, e := range p.Deferred {
		e.line(b)
		fmt.Fprintf(b, deferredCall, Tokens(e.Skill.BodyBytes), e.Skill.Name)
	}
	if len(p.Listed)+p.Omitted > 0 {
		b.WriteString(otherHeading)
	}
	for _, e := range p.Listed {
		e.line(b)
	}
	if p.Omitted > 0 {
		fmt.Fprintf(b, moreSkills, p.Omitted)
	}
}

func (e Entry) line(b *strings.Builder) {
	fmt.Fprintf(b, "- %s: %s\n", e.Skill.Name, e.Description)
}

func (p Plan) withoutTools(b *strings.Builder) {
	var names []string
	for _, e := range p.Deferred {
		names = append(names, e.Skill.Name)
	}
	if len(names) > 0 {
		fmt.Fprintf(b, leftOut, strings.Join(names, ", "))
	}
	b.WriteString(rulesWithoutTools)
}

// FileIndex lists the files of a skill beside its manifest, at most 40, with
// their sizes; empty when there are none.
func FileIndex(s skill.Skill) string {
	var files []skill.File
	for _, f := range s.Files {
		if f.Kind != skill.KindManifest {
			files = append(files, f)
		}
	}
	if len(files) == 0 {
		return ""
	}
	return indexHeading + Files(files)
}

// Files writes a line for each of at most 40 files, and how many more there
// are.
func Files(files []skill.File) string {
	var b strings.Builder
	for i, f := range files {
		if i == indexEntries {
			fmt.Fprintf(&b, moreFiles, len(files)-i)
			break
		}
		fmt.Fprintf(&b, "- %s%s (%s)\n", f.Path, Mark(f), Size(f.Bytes))
	}
	return b.String()
}

// Mark is what stands behind the path of a file that is not text.
func Mark(f skill.File) string {
	if f.Text {
		return ""
	}
	return " [binary]"
}

// Size is a number of bytes in words.
func Size(n int64) string {
	const kib, mib = 1 << 10, 1 << 20
	switch {
	case n == 1:
		return "1 byte"
	case n < kib:
		return fmt.Sprintf("%d bytes", n)
	case n < mib:
		return fmt.Sprintf("%.1f KiB", float64(n)/kib)
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/mib)
}
