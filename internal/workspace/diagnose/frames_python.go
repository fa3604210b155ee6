package diagnose

import (
	"regexp"
	"strconv"
	"strings"
)

// place is a line of a source that an output names.
type place struct {
	File string
	Line int
}

// trace is one complete traceback of Python.
type trace struct {
	frames []place // the outermost first
	header string  // the last line: the exception and what it says
	last   bool    // no other traceback follows
}

func (t trace) deepest() place { return t.frames[len(t.frames)-1] }

// Shapes of Python's tracebacks, 3.8 to 3.14, with the bars of exception groups taken
// away; and of pytest's.
var (
	groupBars    = regexp.MustCompile(`^[ ]*(?:[|+][ +-]*)+ ?`)
	traceStart   = regexp.MustCompile(`^\s*(?:Exception Group )?Traceback \(most recent call last\):$`)
	traceFrame   = regexp.MustCompile(`^\s+File "([^"\n]+)", line (\d{1,9})(?:, in .*)?$`)
	traceHeader  = regexp.MustCompile(`^[A-Za-z_][\w.]*(?:: .*)?$`)
	syntaxHeader = regexp.MustCompile(`^(?:SyntaxError|IndentationError|TabError)(?:: .*)?$`)
	pytestPlace  = regexp.MustCompile(`(?m)^([^\s:][^:\n]*\.py):(\d{1,9}): (?:in \S+|[A-Z]\w*(?:Error|Exception|Failure|Warning|Exit|Interrupt)|Failed|DID NOT)`)
)

// unbar takes the frame of bars from a line of an exception group.
func unbar(line string) string {
	if !strings.Contains(line, "|") {
		return line
	}
	if bars := groupBars.FindString(line); strings.ContainsAny(bars, "|") {
		rest := strings.TrimLeft(line, " +-")
		rest = strings.TrimPrefix(rest, "|")
		return strings.TrimPrefix(rest, " ")
	}
	return line
}

// tracer collects tracebacks line by line.
type tracer struct {
	done   []trace
	frames []place
	open   bool // a "Traceback" line was seen
}

// pythonTraces lists the complete tracebacks, in their order.
func pythonTraces(output string) []trace {
	if !strings.Contains(output, `  File "`) {
		return nil
	}
	var c tracer
	for line := range strings.Lines(output) {
		c.take(unbar(strings.TrimRight(line, "\r\n")))
	}
	if n := len(c.done); n > 0 {
		c.done[n-1].last = true
	}
	return c.done
}

// frameIn reads a line that may be a frame.
func frameIn(line string) []string {
	if !strings.Contains(line, `File "`) {
		return nil
	}
	return traceFrame.FindStringSubmatch(line)
}

func (c *tracer) take(line string) {
	if strings.HasSuffix(line, "(most recent call last):") && traceStart.MatchString(line) {
		c.frames, c.open = nil, true
		return
	}
	if m := frameIn(line); m != nil {
		n, err := strconv.Atoi(m[2])
		if err == nil {
			c.frames = append(c.frames, place{File: m[1], Line: n})
		}
		return
	}
	if line == "" || line[0] == ' ' || line[0] == '\t' || len(c.frames) == 0 {
		return
	}
	// A line that is not indented ends the block: with an exception or by being cut.
	if c.open && traceHeader.MatchString(line) || syntaxHeader.MatchString(line) {
		c.done = append(c.done, trace{frames: c.frames, header: line})
	}
	c.frames, c.open = nil, false
}

// packageFile reports whether a file belongs to an installed package or to the
// language itself.
func packageFile(file string) bool {
	file = strings.ReplaceAll(file, `\`, "/")
	for _, part := range []string{"/site-packages/", "/dist-packages/", "/node_modules/", "/env/", "/lib/python3"} {
		if strings.Contains("/"+file, part) {
			return true
		}
	}
	return strings.HasPrefix(file, "node:") || strings.HasPrefix(file, "<frozen ")
}

// packageOf is the package that a file belongs to, or empty.
func packageOf(file string) string {
	file = "/" + strings.ReplaceAll(file, `\`, "/")
	for _, part := range []string{"/site-packages/", "/dist-packages/", "/node_modules/", "/env/"} {
		if i := strings.LastIndex(file, part); i >= 0 {
			name, _, _ := strings.Cut(file[i+len(part):], "/")
			if name = strings.TrimSuffix(name, ".py"); pipName.MatchString(name) || npmName.MatchString(name) {
				return name
			}
		}
	}
	return ""
}

// pythonPlaces are the places of an output's tracebacks, the best first: of the last
// block the deepest frame, then further out, then the blocks before.
func pythonPlaces(output string) []place {
	var found []place
	traces := pythonTraces(output)
	for i := len(traces) - 1; i >= 0; i-- {
		frames := traces[i].frames
		for j := len(frames) - 1; j >= 0; j-- {
			found = append(found, frames[j])
		}
	}
	if strings.Contains(output, "\nE   ") {
		all := pytestPlace.FindAllStringSubmatch(output, -1)
		for i := len(all) - 1; i >= 0; i-- {
			found = append(found, placeOf(all[i][1], all[i][2]))
		}
	}
	return found
}

func placeOf(file, line string) place {
	n, err := strconv.Atoi(line)
	if err != nil {
		return place{}
	}
	return place{File: file, Line: n}
}
