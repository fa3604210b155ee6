package skill

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/metier-run/metier/internal/disclosure"
	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/tool"
	"github.com/metier-run/metier/skill"
)

const mainFile = skill.ManifestFile

// Rendering, not settings: how many names of skills, and how many further calls,
// a sentence holds.
const (
	namesInSentence = 40
	callsInSentence = 8
)

// read answers skills_read with one page of one file, and says how to get what
// else was asked for.
func (s *Set) read(ctx context.Context, text string, e tool.Env) (journal.Result, error) {
	a, err := parseArguments(text)
	if errors.Is(err, errNoObject) {
		return failure("", "", badArguments, ReadName), nil
	}
	k, name, found := s.locate(a.target)
	if !found {
		return s.notFound(a.skill), nil
	}
	if bad, ok := errors.AsType[*offsetError](err); ok {
		return failure(k.Name, name, badOffset, bad.text, k.Name, name), nil
	}
	r, err := s.open(ctx, k, name, a.offset, e)
	if err != nil {
		return journal.Result{}, err
	}
	r.Text += s.others(a.also)
	return r, nil
}

// open reads a page of a located file.
func (s *Set) open(ctx context.Context, k skill.Skill, name string, offset int64, e tool.Env) (journal.Result, error) {
	size := s.pageFor(e)
	if e.Room > 0 { // what stands around the text takes room too
		size = min(size, max(int64(e.Room-frame(k, name)), smallestPage))
	}
	page, err := k.Read(ctx, name, offset, size)
	if bad, ok := errors.AsType[*skill.ReadError](err); ok {
		if errors.Is(bad, skill.ErrFolder) {
			return folder(k, name, offset, s.pageFor(e)), nil
		}
		return refusal(k, name, bad), nil
	}
	if err != nil {
		return journal.Result{}, fmt.Errorf("%s: %w", ReadName, err)
	}
	result := render(k, page)
	guide := s.guidanceAfter(k, name, page)
	if index := indexAfter(k, name, page); index != "" {
		if e.Room > 0 && len(result)+len(index)+len(guide) > max(e.Room, smallestPage) {
			index = fmt.Sprintf(indexElsewhere, k.Name)
		}
		result = strings.TrimRight(result, "\n") + "\n\n" + index
	}
	if guide != "" {
		result += "\n\n" + guide
	}
	return journal.Result{Text: result, OK: true, Skill: k.Name, Detail: page.Path}, nil
}

// frame is about what the head and the foot of a page take, in bytes.
func frame(k skill.Skill, name string) int {
	const digits = 4 * 20
	return len(readHeader) + len(readRange) + len(readTruncated) + digits + 2*(len(k.Name)+len(name))
}

// notFound answers a name that no skill here has, or none at all.
func (s *Set) notFound(name string) journal.Result {
	if name == "" {
		return failure("", "", "%s", noSkillNamed+s.reachable())
	}
	text := fmt.Sprintf(unknownSkill, name)
	if near := nearestSkill(s.skills, name); near != "" {
		text += fmt.Sprintf(didYouMean, near)
	}
	return failure("", "", "%s", text+" "+s.reachable())
}

// reachable names the skills there are, and what to do with the names.
func (s *Set) reachable() string {
	if len(s.skills) == 0 {
		return skillsNone
	}
	var names []string
	for _, k := range s.skills[:min(len(s.skills), namesInSentence)] {
		names = append(names, k.Name)
	}
	text := strings.Join(names, ", ")
	if more := len(s.skills) - namesInSentence; more > 0 {
		text += fmt.Sprintf(skillsMore, more)
	}
	return fmt.Sprintf(skillsAre, text)
}

// others says how to get what one call asked for beside the first file.
func (s *Set) others(also []target) string {
	var calls []string
	for _, t := range also[:min(len(also), callsInSentence)] {
		if k, name, found := s.locate(t); found {
			calls = append(calls, fmt.Sprintf(readCall, k.Name, name))
		}
	}
	if len(calls) == 0 {
		return ""
	}
	text := strings.Join(calls, ", ")
	if more := len(also) - callsInSentence; more > 0 {
		text += fmt.Sprintf(listMore, more)
	}
	return fmt.Sprintf(oneAtATime, text)
}

// render is a page with its header, and what it says of what follows.
func render(k skill.Skill, p skill.Page) string {
	var b strings.Builder
	fmt.Fprintf(&b, readHeader, k.Name, p.Path)
	switch {
	case p.Binary:
		fmt.Fprintf(&b, "\n"+readBinary, disclosure.Size(p.Total))
		return b.String()
	case p.Offset > 0 || p.More():
		fmt.Fprintf(&b, readRange, p.Offset, p.Next, p.Total)
	}
	b.WriteString("\n")
	switch {
	case p.Total == 0:
		b.WriteString(readEmpty)
	case p.Offset == p.Total:
		b.WriteString(readAtEnd)
	default:
		b.WriteString(p.Text)
	}
	if p.More() {
		fmt.Fprintf(&b, readTruncated, k.Name, p.Path, p.Next)
	}
	return b.String()
}

// lastOfMain reports whether a page is the last of the instructions, which may be a
// link to another file.
func lastOfMain(name string, p skill.Page) bool {
	return !p.More() && !p.Binary && (name == mainFile || p.Path == mainFile)
}

// indexAfter is the index of the files, behind the last page of the instructions.
func indexAfter(k skill.Skill, name string, p skill.Page) string {
	if !lastOfMain(name, p) {
		return ""
	}
	return strings.TrimRight(disclosure.FileIndex(k), "\n")
}

// guidanceAfter says how the scripts run that the instructions name, with a call
// that can be copied (B1 5.6); empty when none can.
func (s *Set) guidanceAfter(k skill.Skill, name string, p skill.Page) string {
	if !lastOfMain(name, p) || !s.canRun() {
		return ""
	}
	scripts := s.runnable(k)
	if len(scripts) == 0 {
		return ""
	}
	return fmt.Sprintf(guidance, exampleCall(k.Name, scripts[0].Path, nil))
}

// refusal turns a refusal into a sentence.
func refusal(k skill.Skill, name string, e *skill.ReadError) journal.Result {
	switch {
	case !errors.Is(e, skill.ErrNoFile):
		return failure(k.Name, name, refused, k.Name, e.Message)
	case has(k, name):
		return failure(k.Name, name, goneFile, k.Name, name)
	}
	return missing(k, name)
}

// missing answers a path that names nothing: with the file that was probably
// meant, and with what there is.
func missing(k skill.Skill, name string) journal.Result {
	text := fmt.Sprintf(noFile, k.Name, name)
	if near := nearestFile(k, name); near != "" {
		text += fmt.Sprintf(didYouMean, near)
	}
	if others := bundled(k); len(others) > 0 {
		text += fmt.Sprintf(filesAre, strings.TrimRight(disclosure.Files(others), "\n"))
	} else {
		text += fmt.Sprintf(onlyMain, k.Name)
	}
	return failure(k.Name, name, "%s", text)
}
