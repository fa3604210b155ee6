package packages

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/metier-run/metier/internal/sandbox"
	"github.com/metier-run/metier/internal/sandbox/registry"
)

// explain says why an install failed. What the front saw for itself counts for more than
// what the installer prints, which comes from packages as well.
func explain(p plan, r sandbox.Result, report registry.Report, limit time.Duration) error {
	switch r.Ended {
	case sandbox.TimedOut:
		t, _ := report.First(registry.Late, registry.Unreachable, registry.Failing)
		return failure(Late, timeIsUp(limit, t.Host))
	case sandbox.OutOfRoom:
		return failure(NoRoom, outOfRoom)
	case sandbox.OutOfMem, sandbox.TooMany, sandbox.Signalled, sandbox.Cancelled:
		return failure(Unknown, stopped(p.kind, r.Ended))
	}
	text := r.Stdout.Text() + "\n" + r.Stderr.Text()
	if t, ok := report.First(registry.Mismatch, registry.Cut, registry.TooLarge); ok {
		return failure(Damaged, broken(t))
	}
	if t, ok := report.First(registry.NotAllowed); ok {
		return failure(NotAllowed, notAllowed(t))
	}
	read := readPip
	if p.kind == registry.Npm {
		read = readNpm
	}
	f := read(text, p, report)
	// A package that was not found may be one that could not be looked up.
	if f.Reason == NoPackage || f.Reason == Unknown || f.Reason == NoVersion {
		if t, ok := report.First(registry.Untrusted, registry.Denied); ok {
			return about(t, Denied, denied(t))
		}
		if t, ok := report.First(registry.Unreachable, registry.Failing, registry.Late); ok {
			return about(t, NoAnswer, noAnswer(t))
		}
		if t, ok := report.First(registry.Broken); ok {
			return about(t, Damaged, broken(t))
		}
	}
	return &f
}

// about is a failure for what the front saw. Where that was a project's page, the
// failure is about the project.
func about(t registry.Trouble, reason Reason, text string) error {
	f := &Failure{Reason: reason, Text: text}
	if t.Page {
		f.Package = t.What
	}
	return f
}

// What pip says.
var (
	pipNone     = regexp.MustCompile(`(?m)Could not find a version that satisfies the requirement (.+) \(from versions: (.*)\)`)
	pipFrom     = regexp.MustCompile(` \(from [^)]*\)`)
	pipBare     = regexp.MustCompile(`^[A-Za-z0-9._-]+`)
	pipConflict = regexp.MustCompile(`(?m)^ERROR: (Cannot install .*)$`)
	pipPython   = regexp.MustCompile(`(?m)Requires-Python ([^;\n]+)`)
	pipMissing  = regexp.MustCompile(`No module named '?"?pip(\b|$)`)
)

// readPip finds the reason in what pip printed.
func readPip(text string, p plan, report registry.Report) Failure {
	if pipMissing.MatchString(text) {
		return Failure{Reason: NoInstaller, Text: noPip}
	}
	if m := pipConflict.FindStringSubmatch(text); m != nil {
		return Failure{Reason: Conflict, Text: conflict(clip(m[1]), pipCauses(text))}
	}
	if m := pipNone.FindStringSubmatch(text); m != nil {
		wanted := clip(pipFrom.ReplaceAllString(m[1], ""))
		name := pipBare.FindString(wanted)
		versions := strings.FieldsFunc(m[2], func(r rune) bool { return r == ',' || r == ' ' })
		project := report.Projects[registry.Fold(name)]
		requires := ""
		if r := pipPython.FindStringSubmatch(text); r != nil {
			requires = clip(r[1])
		}
		switch {
		case m[2] != "none" && len(versions) > 0:
			return Failure{NoVersion, noVersion(wanted, name, latest(versions)), name}
		case !project.Found:
			return Failure{NoPackage, noPackage(name, p.kind), name}
		case project.Wheels == 0:
			return Failure{NoWheel, onlySource(name), name}
		default:
			return Failure{NoWheel, noWheel(wanted, p.use.Version, requires), name}
		}
	}
	last := lastLine(text, "ERROR: ")
	if last == "" {
		last = lastLine(text, "")
	}
	return Failure{Reason: Unknown, Text: unknown(p.kind, last)}
}

// pipCauses are the lines in which pip's resolver says what does not go together.
func pipCauses(text string) []string {
	_, rest, found := strings.Cut(text, "The conflict is caused by:\n")
	if !found {
		return nil
	}
	var lines []string
	for line := range strings.Lines(rest) {
		if !strings.HasPrefix(line, "    ") || len(lines) == mostLines {
			break
		}
		lines = append(lines, clip(line))
	}
	return lines
}

// mostLines is how many lines of an installer are quoted.
const mostLines = 6

// latest are the last few of a list of versions.
func latest(versions []string) []string {
	var few []string
	for _, v := range versions[max(0, len(versions)-mostLines):] {
		few = append(few, clip(v))
	}
	return few
}

// lastLine is the last line that begins with a mark, without it.
func lastLine(text, mark string) string {
	last := ""
	for line := range strings.Lines(text) {
		if rest, found := strings.CutPrefix(line, mark); found && strings.TrimSpace(rest) != "" {
			last = clip(rest)
		}
	}
	return last
}

// What npm says.
var (
	npmMark   = regexp.MustCompile(`(?m)^npm (error|ERR!) ?`)
	npmCode   = regexp.MustCompile(`(?m)^code (\S+)`)
	npmWanted = regexp.MustCompile(`No matching version found for (\S+?)\.?(\s|$)`)
)

// readNpm finds the reason in what npm printed.
func readNpm(text string, p plan, report registry.Report) Failure {
	var lines []string
	for line := range strings.Lines(text) {
		if at := npmMark.FindString(line); at != "" {
			lines = append(lines, strings.TrimRight(strings.TrimPrefix(line, at), "\r\n"))
		}
	}
	said := strings.Join(lines, "\n")
	code := ""
	if m := npmCode.FindStringSubmatch(said); m != nil {
		code = m[1]
	}
	switch code {
	case "E404":
		name := ""
		for _, asked := range slices.Sorted(maps.Keys(report.Projects)) {
			if name == "" && !report.Projects[asked].Found {
				name = clip(asked)
			}
		}
		return Failure{NoPackage, noPackage(name, p.kind), name}
	case "ETARGET":
		wanted := ""
		if m := npmWanted.FindStringSubmatch(said); m != nil {
			wanted = clip(m[1])
		}
		return Failure{NoVersion, noVersion(wanted, npmBare(wanted), nil), npmBare(wanted)}
	case "ERESOLVE":
		return Failure{Reason: Conflict, Text: conflict("these packages do not go together", npmCauses(lines))}
	case "EINTEGRITY":
		return Failure{Reason: Damaged, Text: integrity}
	case "ENOSPC":
		return Failure{Reason: NoRoom, Text: outOfRoom}
	}
	last := lastLine(text, "")
	if i := slices.IndexFunc(lines, func(l string) bool { return l != "" && !strings.HasPrefix(l, "code ") }); i >= 0 {
		last = clip(lines[i])
	}
	return Failure{Reason: Unknown, Text: unknown(p.kind, last)}
}

// npmBare is the name in a spec such as "@scope/name@^1".
func npmBare(spec string) string {
	if at := strings.LastIndexByte(spec, '@'); at > 0 {
		return spec[:at]
	}
	return spec
}

// npmCauses are the lines in which npm's resolver says what does not go together.
func npmCauses(lines []string) []string {
	var causes []string
	for _, line := range lines {
		line = strings.TrimPrefix(strings.TrimSpace(line), "ERESOLVE ")
		for _, mark := range []string{"Found:", "peer ", "Could not resolve", "Conflicting peer"} {
			if strings.HasPrefix(line, mark) && len(causes) < mostLines {
				causes = append(causes, clip(line))
			}
		}
	}
	return causes
}
