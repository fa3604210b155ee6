package diagnose

import (
	"regexp"
	"strconv"
	"strings"
)

// pythonNewer are shapes of errors that an older Python gives for code that a newer one
// takes, and the version that does.
var (
	matchStatement = regexp.MustCompile(`(?m)^\s+(?:match .*:|case .*:)\n(?:[\s^]*\n)?\s*SyntaxError`)
	exceptStar     = regexp.MustCompile(`(?m)^\s+except\*`)
	typeStatement  = regexp.MustCompile(`(?m)^\s+(?:type \w+(?:\[.*\])? = |(?:def|class) \w+\[)`)
	unionOperator  = regexp.MustCompile(`TypeError: unsupported operand type\(s\) for \|: '(?:type|NoneType|_GenericAlias|_UnionGenericAlias|_SpecialForm)' and`)
	notSubscript   = regexp.MustCompile(`TypeError: '(?:type|ABCMeta|function)' object is not subscriptable`)
	typingName     = regexp.MustCompile(`cannot import name '(\w+)' from '(?:typing|dataclasses|datetime|enum|itertools|functools|contextlib|asyncio|warnings|collections\.abc)' \(`)
	strictKeyword  = regexp.MustCompile(`TypeError: (?:zip\(\)|zip) .*keyword|dataclass\(\) got an unexpected keyword argument '(?:slots|kw_only|match_args)'`)
	positionWith   = regexp.MustCompile(`(?m)^\s+with \(\n`)
	removePrefix   = regexp.MustCompile(`'str' object has no attribute '(?:removeprefix|removesuffix)'`)
	walrus         = regexp.MustCompile(`(?m)^.*:=.*\n[\s^]*\n?SyntaxError: invalid syntax`)
	fStringQuotes  = regexp.MustCompile(`SyntaxError: f-string: (?:expecting '}'|unmatched|expression part cannot include a backslash|unterminated)`)
	badSyntax      = regexp.MustCompile(`(?m)^(?:SyntaxError|IndentationError):`)
)

// newer lists what needs which minor version of Python 3.
func newer() []struct {
	shape *regexp.Regexp
	minor int
	only  bool // it is an error of syntax
} {
	return []struct {
		shape *regexp.Regexp
		minor int
		only  bool
	}{
		{walrus, 8, true},
		{notSubscript, 9, false},
		{removePrefix, 9, false},
		{unionOperator, 10, false},
		{strictKeyword, 10, false},
		{matchStatement, 10, true},
		{positionWith, 10, true},
		{exceptStar, 11, true},
		{typeStatement, 12, true},
		{fStringQuotes, 12, true},
	}
}

// typingSince are names of the standard library that came with a minor version.
func typingSince() map[string]int {
	return map[string]int{
		"Literal": 8, "Final": 8, "Protocol": 8, "TypedDict": 8, "Annotated": 9, "ParamSpec": 10, "TypeAlias": 10, "TypeGuard": 10, "Concatenate": 10, "pairwise": 10, "KW_ONLY": 10,
		"Self": 11, "Never": 11, "LiteralString": 11, "Required": 11, "NotRequired": 11, "assert_never": 11, "StrEnum": 11, "UTC": 11, "TaskGroup": 11, "Unpack": 11, "chdir": 11,
		"override": 12, "batched": 12, "TypeAliasType": 12, "Buffer": 12, "ReadOnly": 13, "TypeIs": 13, "deprecated": 13,
	}
}

// readOld is about code that is newer than the interpreter (B1 10.5). It needs the
// interpreter's version, and is silent without.
func readOld(output string, o Facts) (Failure, bool) {
	minor, ok := minorOf(o.Python)
	if !ok || !strings.Contains(output, "Error: ") {
		return Failure{}, false
	}
	for _, n := range newer() {
		if minor < n.minor && n.shape.MatchString(output) && (!n.only || badSyntax.MatchString(output)) {
			return Failure{Class: OldInterpreter, detail: "3." + strconv.Itoa(n.minor)}, true
		}
	}
	if m := typingName.FindStringSubmatch(output); m != nil && minor < typingSince()[m[1]] {
		return Failure{Class: OldInterpreter, detail: "3." + strconv.Itoa(typingSince()[m[1]])}, true
	}
	return Failure{}, false
}

// minorOf is the minor version of a Python 3.
func minorOf(version string) (int, bool) {
	major, rest, _ := strings.Cut(version, ".")
	text, _, _ := strings.Cut(rest, ".")
	n, err := strconv.Atoi(text)
	return n, err == nil && major == "3"
}
