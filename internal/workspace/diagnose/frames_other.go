package diagnose

import (
	"iter"
	"net/url"
	"regexp"
	"strings"
)

// Shapes of Node 18 to 24.
var (
	nodeHeader   = regexp.MustCompile(`^(?:Uncaught |\[?cause\]?: )?([A-Z][\w$.]*)(?: \[[A-Z][A-Z0-9_]+\])?(?:: .*)?$`)
	nodeFrame    = regexp.MustCompile(`^\s+at (?:.* \()?(?:async )?((?:file:///?)?[^\s()][^()\n]*):(\d{1,9}):\d{1,9}\)?$`)
	nodePreamble = regexp.MustCompile(`^((?:file:///?)?[^\s:][^\n]*?\.(?:[cm]?[jt]sx?)):(\d{1,9})$`)
	nodeError    = regexp.MustCompile(`Error|Exception`)
)

// nodePlaces are the places of an output's stacks, the best first: those of the last
// error, from the top, where it was thrown; for an error of syntax the line that Node
// shows above it.
func nodePlaces(output string) []place {
	if !strings.Contains(output, ":") {
		return nil
	}
	var stacks [][]place
	var preamble []place
	header := false
	for line := range strings.Lines(output) {
		line = strings.TrimRight(line, "\r\n")
		if line == "" || line[0] == ' ' && !header {
			continue
		}
		if m := nodeFrame.FindStringSubmatch(line); header && m != nil {
			stacks[len(stacks)-1] = append(stacks[len(stacks)-1], placeOf(fromURL(m[1]), m[2]))
			continue
		}
		if m := nodePreamble.FindStringSubmatch(line); m != nil {
			preamble, header = []place{placeOf(fromURL(m[1]), m[2])}, false
			continue
		}
		if m := nodeHeader.FindStringSubmatch(line); m != nil && nodeError.MatchString(m[1]) {
			stacks, header = append(stacks, nil), true
			if strings.HasPrefix(m[1], "SyntaxError") {
				stacks[len(stacks)-1] = append(stacks[len(stacks)-1], preamble...)
			}
		}
	}
	var found []place
	for i := len(stacks) - 1; i >= 0; i-- {
		found = append(found, stacks[i]...)
	}
	return found
}

// fromURL is the path of a file: URL, or the text itself.
func fromURL(text string) string {
	if !strings.HasPrefix(text, "file:") {
		return text
	}
	rest := strings.TrimPrefix(strings.TrimPrefix(text, "file:"), "//")
	if u, err := url.PathUnescape(rest); err == nil {
		return u
	}
	return rest
}

// compilerShapes are what compilers and interpreters write of an error: C, C++, Go, Rust,
// TypeScript, Java, C#, shells, Ruby, Perl, PHP. Each has the file and the line.
var (
	compilerGCC   = regexp.MustCompile(`(?m)^([^\s:][^:\n]*):(\d{1,9}):(?:\d{1,9}:)? (?:fatal )?error: `)
	compilerGo    = regexp.MustCompile(`(?m)^(?:vet: |#\s)?(\.{0,2}/?[^\s:]+\.go):(\d{1,9}):\d{1,9}: `)
	goTest        = regexp.MustCompile(`(?m)^    +([^\s:/]+_test\.go):(\d{1,9}): `)
	goFrame       = regexp.MustCompile(`(?m)^\t([^\s:][^:\n]*\.go):(\d{1,9})(?: \+0x[0-9a-f]+)?$`)
	goPanic       = regexp.MustCompile(`(?:panic|fatal error): `)
	compilerRust  = regexp.MustCompile(`(?m)^error(?:\[E\d+\])?: .*\n\s*--> ([^\s:][^:\n]*):(\d{1,9}):\d{1,9}$`)
	rustPanic     = regexp.MustCompile(`(?m)^thread '.*'(?: \(\d+\))? panicked at (?:'.*', )?([^\s:'][^:\n]*\.rs):(\d{1,9}):\d{1,9}`)
	compilerTSC   = regexp.MustCompile(`(?m)^([^\s(:][^(\n]*)\((\d{1,9}),\d{1,9}\): error `)
	compilerTSC2  = regexp.MustCompile(`(?m)^([^\s:][^:\n]*):(\d{1,9}):\d{1,9} - error `)
	shellError    = regexp.MustCompile(`(?m)^([^\s:][^:\n]*\.(?:sh|bash)): (?:line )?(\d{1,9}): (?i:syntax error|unexpected|[\w-]+: (?:unbound variable|parameter not set|bad substitution|not a valid identifier|readonly variable|bad array subscript))`)
	zshError      = regexp.MustCompile(`(?m)^([^\s:][^:\n]*\.(?:sh|bash|zsh)):(\d{1,9}): (?:parse error|unmatched)`)
	kshError      = regexp.MustCompile(`(?m)^([^\s:][^:\n]*\.(?:sh|bash|ksh)): syntax error at line (\d{1,9})`)
	rubyError     = regexp.MustCompile("(?m)^([^\\s:][^:\\n]*\\.rb):(\\d{1,9}):in [`'].*\\(\\w*(?:Error|Exception)\\w*\\)$|^([^\\s:][^:\\n]*\\.rb):(\\d{1,9}): syntax error")
	perlError     = regexp.MustCompile(`(?m) at ([^\s:][^:\n]*\.p[lm]) line (\d{1,9})[.,]`)
	phpError      = regexp.MustCompile(`(?m)^(?:PHP )?(?:Fatal|Parse) error: .* in ([^\s:][^:\n]*\.php)(?: on line |:)(\d{1,9})`)
	nodeTestPlace = regexp.MustCompile(`(?m)^\s+location: '([^'\n]+):(\d{1,9}):\d{1,9}'$`)
)

// shape is a shape of messages, and a text that each of them holds: to look for that
// first is much faster.
type shape struct {
	holds string
	re    *regexp.Regexp
}

func compilerShapes() []shape {
	return []shape{
		{"--> ", compilerRust},
		{"panicked at ", rustPanic},
		{"): error ", compilerTSC},
		{" - error ", compilerTSC2},
		{" error: ", compilerGCC},
		{".go:", compilerGo},
		{"_test.go:", goTest},
		{"sh: ", shellError},
		{"sh:", zshError},
		{": syntax error at line ", kshError},
		{".rb:", rubyError},
		{" line ", perlError},
		{".php", phpError},
		{"location: '", nodeTestPlace},
	}
}

// compilerPlaces are the places of compilers' errors, the first first: what follows an
// error often comes from it.
func compilerPlaces(output string) []place {
	shapes := compilerShapes()
	if goPanic.MatchString(output) {
		shapes = append(shapes, shape{".go:", goFrame})
	}
	var found []place
	for _, s := range shapes {
		if !strings.Contains(output, s.holds) {
			continue
		}
		for _, m := range s.re.FindAllStringSubmatch(output, mostPlaces) {
			for i := 1; i+1 < len(m); i += 2 {
				if m[i] != "" {
					found = append(found, placeOf(fromURL(m[i]), m[i+1]))
				}
			}
		}
	}
	return found
}

// mostPlaces is how many places of one shape are looked at.
const mostPlaces = 200

// places are all places that an output names as those of an error, the best first.
func places(output string) iter.Seq[place] {
	return func(yield func(place) bool) {
		for _, list := range []func(string) []place{pythonPlaces, nodePlaces, compilerPlaces} {
			for _, p := range list(output) {
				if p.File != "" && p.Line > 0 && !yield(p) {
					return
				}
			}
		}
	}
}
