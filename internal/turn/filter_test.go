package turn

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/llm"
)

// TestSplitNames: who answers a call is decided by its whole name, however it is
// cut, and late names cost nobody their call.
func TestSplitNames(t *testing.T) {
	host := crew{callers: []string{"get_weather", "read_mail"}, hosts: []string{"read"}}
	for _, c := range []struct {
		name   string
		crew   crew
		pieces []llm.Piece
		want   []string // what the client assembled: id name(arguments)
		host   bool
	}{
		{name: "whole", crew: host, pieces: []llm.Piece{named("get_weather"), args("{}"), stop()}, want: []string{"c get_weather({})"}},
		{name: "in two", crew: host, pieces: []llm.Piece{named("get_"), {Calls: []llm.CallDelta{{Name: "weather"}}}, args("{}"), stop()}, want: []string{"c get_weather({})"}},
		{name: "late", crew: host, pieces: []llm.Piece{named(""), {Calls: []llm.CallDelta{{Name: "get_weather"}}}, args("{}"), stop()}, want: []string{"c get_weather({})"}},
		{name: "never", crew: host, pieces: []llm.Piece{named(""), stop()}, host: true},
		{name: "no arguments", crew: host, pieces: []llm.Piece{named("read_"), {Calls: []llm.CallDelta{{Name: "mail"}}}, stop()}, want: []string{"c read_mail()"}},
		{name: "the host's begins the caller's", crew: host, pieces: []llm.Piece{named("read"), {Calls: []llm.CallDelta{{Name: "_mail"}}}, args("{}"), stop()}, want: []string{"c read_mail({})"}},
		{name: "the host's", crew: host, pieces: []llm.Piece{named("read"), args("{}"), stop()}, host: true},
		{name: "the host's, without arguments", crew: host, pieces: []llm.Piece{named("read"), stop()}, host: true},
		{name: "nobody's", crew: host, pieces: []llm.Piece{named("other"), args("{}"), stop()}, host: true},
		{name: "nobody's, without a host", crew: crew{alone: true}, pieces: []llm.Piece{named("oth"), {Calls: []llm.CallDelta{{Name: "er"}}}, args("{}"), stop()}, want: []string{"c other({})"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFilter(c.crew, llm.Usage{}, false)
			if diff := cmp.Diff(c.want, assemble(f, c.pieces)); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			if f.host != c.host {
				t.Errorf("the host's calls: %v, want %v", f.host, c.host)
			}
		})
	}
}

// TestOtherChoices: an alternative that nobody asked for does not show the host's
// calls, and one that was asked for passes.
func TestOtherChoices(t *testing.T) {
	for _, alone := range []bool{true, false} {
		p := llm.Piece{Text: "text", Calls: named("read").Calls}
		p.Choice = 1
		if _, ok := newFilter(crew{hosts: []string{"read"}, alone: alone}, llm.Usage{}, false).pass(&p); ok != alone {
			t.Errorf("without a host %v: shown %v", alone, ok)
		}
	}
}

func named(name string) llm.Piece {
	return llm.Piece{Calls: []llm.CallDelta{{ID: "c", Name: name}}}
}

func args(s string) llm.Piece { return llm.Piece{Calls: []llm.CallDelta{{Arguments: s}}} }

func stop() llm.Piece { return llm.Piece{Finish: llm.FinishCalls} }

func assemble(f *filter, pieces []llm.Piece) []string {
	var ids, names, arguments []string
	for _, p := range pieces {
		out, ok := f.pass(&p)
		if !ok {
			continue
		}
		for _, d := range out.Calls {
			for len(ids) <= d.Index {
				ids, names, arguments = append(ids, ""), append(names, ""), append(arguments, "")
			}
			ids[d.Index] += d.ID
			names[d.Index] += d.Name
			arguments[d.Index] += d.Arguments
		}
	}
	var calls []string
	for i := range ids {
		calls = append(calls, ids[i]+" "+names[i]+"("+arguments[i]+")")
	}
	return calls
}
