package tool

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// TestReadJSON: what models write for JSON is read where its meaning is certain, and
// nothing that was cut off is made whole.
func TestReadJSON(t *testing.T) {
	tests := []struct{ text, want string }{
		{`{"a":1}`, `{"a":1}`},
		{`{"a":1,}`, `{"a":1}`},
		{`{'a': None, 'b': [True, False,],}`, `{"a":null,"b":[true,false]}`},
		{`{'a': 'say "it\'s"'}`, `{"a":"say \"it's\""}`},
		{"{\"a\":\"one\ntwo\tthree\r\"}", `{"a":"one\ntwo\tthree\r"}`},
		{`{"a":"None, 'x',}"}`, `{"a":"None, 'x',}"}`},
		// Not certain, or cut off.
		{`{"a":"\d"}`, ""},
		{"{\"a\":\"\\\n\"}", ""},
		{`{"a":"b`, ""},
		{`"b\"`, ""},
		{`'b\'`, ""},
		{`{"a":"b\"}`, ""},
		{`{"a":1`, ""},
		{"", ""},
	}
	for _, tt := range tests {
		v, ok := ReadJSON(tt.text)
		if ok {
			if err := v.Canonicalize(); err != nil {
				t.Errorf("%s: %v", tt.text, err)
			}
		}
		if ok != (tt.want != "") || ok && string(v) != tt.want {
			t.Errorf("%s\ngot  %t %s\nwant %s", tt.text, ok, v, tt.want)
		}
	}
}

// FuzzReadJSON: JSON keeps its meaning, and what is read is JSON.
func FuzzReadJSON(f *testing.F) {
	for _, seed := range []string{`{"a":"b\n"}`, `{'a':'b',}`, "[\"\n\"]", `"\"`, `None`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, ok := ReadJSON(text)
		if jsontext.Value(text).IsValid(LenientJSON()) && string(v) != text {
			t.Errorf("%q became %q", text, v)
		}
		if !ok {
			return
		}
		if !v.IsValid(LenientJSON()) {
			t.Errorf("%q is no JSON", v)
		}
		_ = Text(v)
		for _, m := range Members(v) {
			_ = Key(m.Key)
		}
		_ = Elements(v)
	})
}

// TestEdits counts a swap as one.
func TestEdits(t *testing.T) {
	for _, tt := range []struct {
		a, b       string
		most, want int
	}{{"main", "main", 3, 0}, {"main", "mian", 3, 1}, {"main", "man", 3, 1}, {"main", "other", 3, 3}, {"", "ab", 9, 2}} {
		if got := Edits(tt.a, tt.b, tt.most); got != tt.want {
			t.Errorf("%s, %s: %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}
