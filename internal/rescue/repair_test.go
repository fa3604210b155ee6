package rescue

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

func TestRepair(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"valid":                 {`{"a": 1}`, `{"a": 1}`},
		"brace missing":         {`{"a":{"b":1}`, `{"a":{"b":1}}`},
		"bracket missing":       {`{"a":[1,2`, `{"a":[1,2]}`},
		"comma at the end":      {`{"a":1,`, `{"a":1}`},
		"trailing commas":       {`{"a":[1,2,],"b":{},}`, `{"a":[1,2],"b":{}}`},
		"single quotes":         {`{'a': 'x "y" z'}`, `{"a":"x \"y\" z"}`},
		"escaped single quote":  {`{'a': 'it\'s'}`, `{"a":"it's"}`},
		"bare keys":             {`{a: 1, b_c: "x", d-e: null}`, `{"a":1,"b_c":"x","d-e":null}`},
		"python words":          {`{"a": True, "b": False, "c": None}`, `{"a":true,"b":false,"c":null}`},
		"raw line break":        {"{\"a\": \"x\n\ty\r\"}", `{"a":"x\n\ty\r"}`},
		"raw control byte":      {"{\"a\": \"x\x01\"}", `{"a":"x\u0001"}`},
		"fence":                 {"```json\n{\"a\": 1}\n```", `{"a": 1}`},
		"fence without label":   {"```\n{\"a\": 1,}\n```", `{"a":1}`},
		"fence not closed":      {"```json\n{\"a\": 1}", `{"a": 1}`},
		"encoded twice":         {`"{\"a\": \"x\"}"`, `{"a": "x"}`},
		"encoded twice, broken": {`"{\"a\": \"x\",}"`, `{"a":"x"}`},
		"smart quotes":          {`{“a”: “x”, ‘b’: ‘y’}`, `{"a":"x","b":"y"}`},
		"smart quotes inside":   {`{"a": "he said “no”",}`, `{"a":"he said “no”"}`},
		"brackets too many":     {`{"a":1}}]`, `{"a":1}`},
		"doubled brackets":      {`{{"a":1}}`, `{"a":1}`},
		"missing among closing": {`{"a":[{"b":1]}`, `{"a":[{"b":1}]}`},
		"regular expression":    {`{"a":"\d+\.\w"}`, `{"a":"\\d+\\.\\w"}`},
		"triple quotes":         {"{\"a\": \"\"\"x \"y\"\nz\"\"\"}", `{"a":"x \"y\"\nz"}`},
		"long escape":           {`{"a":"\u00e9",}`, `{"a":"\u00e9"}`},
		"space around":          {" \n{\"a\":1,} ", `{"a":1}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := Repair(c.in)
			if !ok || got != c.want {
				t.Errorf("Repair(%q): got %q, %v, want %q", c.in, got, ok, c.want)
			}
		})
	}
}

func TestRepairRefuses(t *testing.T) {
	for name, in := range map[string]string{
		"nothing":                      "",
		"space":                        "  ",
		"string cut":                   `{"command":"rm -rf build`,
		"string cut, bracket in it":    `{"path":"/etc/hosts}`,
		"no object":                    `[1]`,
		"number":                       `12`,
		"text":                         `somewhere warm`,
		"string":                       `"Oslo"`,
		"quote inside":                 `{"a": "say "hi" now"}`,
		"quote inside that looks good": `{"a": "x", "y", "b": 1}`,
		"apostrophe inside":            `{'a': 'it's'}`,
		"bare value":                   `{"a": Oslo}`,
		"key without value":            `{"a":`,
		"key cut":                      `{"a":1,"b`,
		"key without colon":            `{"a" 1}`,
		"comma missing":                `{"a":"x" "b":"y"}`,
		"bracket missing in between":   `{"a":[1,2,"b":3}`,
		"name twice":                   `{"a":1,"a":2,}`,
		"two objects":                  `{"a":1}{"b":2}`,
		"words behind":                 `{"a":1} and more`,
		"words before":                 `Here: {"a":1}`,
		"number of another base":       `{"a":0x1F}`,
		"leading zero":                 `{"a":007,}`,
		"word cut":                     `{"a":tru`,
		"mixed backslashes":            `{"a":"C:\new\data"}`,
		"hex escape":                   `{'a':'\x41'}`,
		"unicode escape cut":           `{"a":"\u00`,
		"backslash at the end":         `{"a":"x\`,
		"invalid UTF-8":                "{\"a\":\"\xff\",}",
		"encoded three times":          `"\"{}\""`,
		"comments":                     `{"a":1, // one` + "\n}",
		"set":                          `{"a","b"}`,
	} {
		t.Run(name, func(t *testing.T) {
			if got, ok := Repair(in); ok {
				t.Errorf("Repair(%q): got %q, want a refusal", in, got)
			}
		})
	}
}

func FuzzRepair(f *testing.F) {
	for _, s := range []string{`{"a":1,}`, `{'a': "b`, "```json\n{}", `"{\"a\":1}"`, `{“a”:True}`, `{"a":"\d"}`, `{{"a":1}}`, `{"a":[{"b":1]}`, `{"a":"""x`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, ok := Repair(s)
		if !ok {
			return
		}
		v := jsontext.Value(got)
		if !v.IsValid() || v.Kind() != '{' {
			t.Fatalf("Repair(%q): got %q, which is no JSON object", s, got)
		}
		if again, ok := Repair(got); !ok || again != got {
			t.Fatalf("Repair(%q): got %q, %v, want it unchanged", got, again, ok)
		}
	})
}
