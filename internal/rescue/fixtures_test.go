package rescue

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/llm"
)

// declared are the tools of the tests.
func declared() []llm.Declaration {
	schema := func(properties string) jsontext.Value {
		return jsontext.Value(`{"type":"object","properties":{` + properties + `}}`)
	}
	return []llm.Declaration{
		{Name: "get_weather", Parameters: schema(`"city":{"type":"string"},"days":{"type":"integer"},"metric":{"type":"boolean"},"zip":{"type":"string"}`)},
		{Name: "get_time", Parameters: schema(``)},
		{Name: "read_file", Parameters: schema(`"path":{"type":"string"},"lines":{"type":"array"}`)},
		{Name: "write_file", Parameters: schema(`"path":{"type":"string"},"content":{"type":"string"},"mode":{"type":["string","null"]}`)},
		{Name: "search", Parameters: schema(`"query":{"type":"string"},"limit":{"type":"number"},"sources":{"type":"array"},"filter":{"type":"object"}`)},
		{Name: "shell", Parameters: schema(`"command":{"type":"array"},"timeout":{"anyOf":[{"type":"integer"},{"type":"null"}]}`)},
		{Name: "fs__list-directory", Parameters: schema(`"path":{"type":"string"}`)},
		{Name: "Calculate", Parameters: schema(`"expression":{"type":"string"}`)},
	}
}

// ids counts calls.
func ids() func() string {
	n := 0
	return func() string { n++; return fmt.Sprint(n) }
}

const testHold = 32 << 10

func newFilter(held int) *Filter {
	return New(Options{Tools: declared(), MaxHeld: held, NewID: ids()})
}

// outcome is what a filter makes of a reply.
type outcome struct {
	Show  string
	Calls []string
}

func (o *outcome) add(show string, calls []llm.Call) {
	o.Show += show
	for _, c := range calls {
		o.Calls = append(o.Calls, c.Name+" "+c.Arguments)
	}
}

// play pushes the pieces and ends the reply.
func play(f *Filter, pieces ...string) outcome {
	var o outcome
	for _, p := range pieces {
		o.add(f.Push(strings.Clone(p)))
	}
	o.add(f.Flush())
	return o
}

func (o outcome) equal(p outcome) bool {
	return o.Show == p.Show && strings.Join(o.Calls, "\x00") == strings.Join(p.Calls, "\x00")
}

// bytesOf cuts a text into its bytes.
func bytesOf(s string) []string {
	pieces := make([]string, len(s))
	for i := range pieces {
		pieces[i] = s[i : i+1]
	}
	return pieces
}

// everyWay plays a text whole, byte by byte, and cut in two at every place, and
// wants the same each time.
func everyWay(t *testing.T, text string, held int, want outcome) {
	t.Helper()
	check := func(how string, pieces ...string) {
		if got := play(newFilter(held), pieces...); !got.equal(want) {
			t.Errorf("%s: got %q and calls %q, want %q and calls %q", how, got.Show, got.Calls, want.Show, want.Calls)
		}
	}
	check("whole", text)
	check("byte by byte", bytesOf(text)...)
	for i := 1; i < len(text) && !t.Failed(); i++ {
		check(fmt.Sprintf("cut at %d", i), text[:i], text[i:])
	}
}
