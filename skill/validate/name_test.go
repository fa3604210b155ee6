package validate

import (
	"strings"
	"testing"
)

func TestPortableName(t *testing.T) {
	tests := []struct{ name, err string }{
		{"pdf", ""},
		{"a-1-b", ""},
		{strings.Repeat("a", 64), ""},
		{strings.Repeat("a", 65), `take "` + strings.Repeat("a", 64) + `"`},
		{"My PDF Tool", `take "my-pdf-tool"`},
		{"a--b", `take "a-b"`},
		{"-a", `take "a"`},
		{"навык", "choose one like pdf-forms"},
		{"", "choose one like pdf-forms"},
		{"../a", `take "a"`},
		{"my-Claude", `holds "Claude", which Anthropic reserves`},
	}
	for _, tt := range tests {
		err := PortableName(tt.name)
		if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%q: %v, want %q", tt.name, err, tt.err)
		}
	}
	for _, name := range []string{"pdf", "a-1-b", strings.Repeat("a", 64)} {
		dir := folder(t, name, map[string]string{"SKILL.md": manifestOf("name: "+name, "description: d")})
		for _, target := range Targets() {
			if r := Check(t.Context(), dir, target); len(r.Findings) > 0 {
				t.Errorf("%s is said to fit, and %s has %v", name, target, r.Findings)
			}
		}
	}
}
