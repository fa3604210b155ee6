package wire_test

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/wire"
)

func members(v string) []string {
	var got []string
	for c := wire.Object(jsontext.Value(v)); c.Next(); {
		got = append(got, string(c.Name)+"="+string(c.Value))
	}
	return got
}

func TestObject(t *testing.T) {
	for _, c := range []struct {
		in   string
		want []string
	}{
		{`{}`, nil},
		{` { } `, nil},
		{`[1]`, nil},
		{`"x"`, nil},
		{``, nil},
		{`{"a":1,"b":"x,}\"","c":{"d":[1,{"e":"]"}]},"f":null}`, []string{"a=1", `b="x,}\""`, `c={"d":[1,{"e":"]"}]}`, "f=null"}},
		{"{\n \"a\" : true ,\r\n\t\"b\\u0062\" : [ ] }", []string{"a=true", "b\\u0062=[ ]"}},
		{`{"a":"\\","b":"\\\""}`, []string{`a="\\"`, `b="\\\""`}},
		{`{"a":-1.5e+3}`, []string{"a=-1.5e+3"}},
		{`{"a"`, nil},
		{`{"a":`, nil},
		{`{a:1}`, nil},
	} {
		if diff := cmp.Diff(c.want, members(c.in)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.in, diff)
		}
	}
}

func TestCursorIs(t *testing.T) {
	if got := wire.Member(jsontext.Value(`{"x":1,"mod\u0065l":2}`), "model"); string(got) != "2" {
		t.Errorf("an escaped name is not found: %q", got)
	}
}

func TestString(t *testing.T) {
	for _, c := range []struct {
		in, want string
		ok       bool
	}{
		{`"plain"`, "plain", true},
		{`"a\n\u00e9\""`, "a\né\"", true},
		{`"\ud83d\ude00"`, "😀", true},
		{`"half \ud83d"`, "half \uFFFD", true},
		{"\"bad \xff utf\"", "bad \uFFFD utf", true},
		{`""`, "", true},
		{`1`, "", false},
		{`null`, "", false},
		{``, "", false},
	} {
		got, ok := wire.String(jsontext.Value(c.in))
		if got != c.want || ok != c.ok {
			t.Errorf("String(%s) = %q, %v, want %q, %v", c.in, got, ok, c.want, c.ok)
		}
	}
}

func TestSetAndRemove(t *testing.T) {
	for _, c := range []struct{ in, set, removed string }{
		{`{}`, `{"k":9}`, `{}`},
		{`{"a":1}`, `{"a":1,"k":9}`, `{"a":1}`},
		{`{"k":1}`, `{"k":9}`, `{}`},
		{`{ "a" : 1 , "k" : {"k":2} , "z":"k" }`, `{ "a" : 1 , "k" : 9 , "z":"k" }`, `{"a":1,"z":"k"}`},
	} {
		if got := wire.Set(jsontext.Value(c.in), "k", []byte("9")); string(got) != c.set {
			t.Errorf("Set(%s) = %s, want %s", c.in, got, c.set)
		}
		if got := wire.Remove(jsontext.Value(c.in), "k"); string(got) != c.removed {
			t.Errorf("Remove(%s) = %s, want %s", c.in, got, c.removed)
		}
	}
	for _, in := range []string{`"}"`, `[{}]`, `1`} {
		if got := wire.Set(jsontext.Value(in), "k", []byte("9")); string(got) != in {
			t.Errorf("Set(%s) = %s, but it is no object", in, got)
		}
	}
}

func TestCheck(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`{"a":[1,2]}`, ""},
		{` {"a":1} ` + "\n", ""},
		{``, "EOF"},
		{`{"a":1} x`, "more text"},
		{`{"a":1,"a":2}`, "duplicate"},
		{`{"a":{"b":tru}}`, "/a/b"},
		{"{\"a\":\"\xff\"}", "UTF-8"},
	} {
		err := wire.Check([]byte(c.in))
		if c.want == "" {
			if err != nil {
				t.Errorf("Check(%s): %v", c.in, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Check(%s) = %v, want an error with %q", c.in, err, c.want)
		}
	}
}

// FuzzCursor: on valid JSON the cursor sees what a decoder sees, and splicing
// keeps everything else; on any other bytes it does not panic.
func FuzzCursor(f *testing.F) {
	for _, s := range []string{`{"a":1,"k":[{}],"c":"\\\""}`, `{"a":"\u0061","\u006b":2}`, `[1,2]`, `{"k":{"k":{}}}`, `{"a`, "{\"\xff\":1}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		v := jsontext.Value(b)
		set, removed := wire.Set(v, "k", []byte("9")), wire.Remove(v, "k")
		_, _ = wire.String(v)
		if !v.IsValid() || v.Kind() != '{' {
			return
		}
		var want map[string]jsontext.Value
		if err := json.Unmarshal(b, &want); err != nil {
			return
		}
		got := map[string]jsontext.Value{}
		for c := wire.Object(v); c.Next(); {
			name, ok := wire.String(jsontext.Value(`"` + string(c.Name) + `"`))
			if !ok {
				t.Fatalf("name %q cannot be read", c.Name)
			}
			got[name] = c.Value
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("members (-want +got):\n%s", diff)
		}
		check := func(v jsontext.Value, has bool) {
			var m map[string]jsontext.Value
			if err := json.Unmarshal(v, &m); err != nil {
				t.Fatalf("%s is not JSON any more: %v", v, err)
			}
			if _, ok := m["k"]; ok != has {
				t.Errorf("%s has k: %v, want %v", v, ok, has)
			}
			delete(m, "k")
			rest := map[string]jsontext.Value{}
			for name, x := range want {
				if name != "k" {
					rest[name] = x
				}
			}
			if diff := cmp.Diff(rest, m); diff != "" {
				t.Errorf("other members (-want +got):\n%s", diff)
			}
		}
		check(set, true)
		check(removed, false)
	})
}
