package validate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// folder makes a skill folder of files and gives back its path.
func folder(t testing.TB, name string, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	write(t, dir, files)
	return dir
}

func write(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	check(t, os.MkdirAll(dir, 0o755))
	for name, text := range files {
		p := filepath.Join(dir, filepath.FromSlash(name))
		check(t, os.MkdirAll(filepath.Dir(p), 0o755))
		check(t, os.WriteFile(p, []byte(text), 0o644))
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// manifestOf is a SKILL.md with these lines of front matter.
func manifestOf(head ...string) string {
	return "---\n" + strings.Join(head, "\n") + "\n---\nBody\n"
}

func messages(findings []Finding) []string {
	var out []string
	for _, f := range findings {
		out = append(out, f.Message)
	}
	return out
}

// TestReferenceValidator are the 21 cases of the reference validator, and what
// is not in them but in its contract (skills-apis 4.4).
func TestReferenceValidator(t *testing.T) {
	const described = "description: A test skill"
	tests := []struct {
		test, dir string
		head      []string
		want      []string
	}{
		{"valid", "my-skill", []string{"name: my-skill", described}, nil},
		{"uppercase", "MySkill", []string{"name: MySkill", described}, []string{"Skill name 'MySkill' must be lowercase"}},
		{"too long", strings.Repeat("a", 70), []string{"name: " + strings.Repeat("a", 70), described}, []string{"Skill name '" + strings.Repeat("a", 70) + "' exceeds 64 character limit (70 chars)"}},
		{"leading hyphen", "-my-skill", []string{"name: -my-skill", described}, []string{"Skill name cannot start or end with a hyphen"}},
		{"double hyphen", "my--skill", []string{"name: my--skill", described}, []string{"Skill name cannot contain consecutive hyphens"}},
		{"invalid characters", "my_skill", []string{"name: my_skill", described}, []string{"Skill name 'my_skill' contains invalid characters. Only letters, digits, and hyphens are allowed."}},
		{"directory mismatch", "wrong-name", []string{"name: correct-name", described}, []string{"Directory name 'wrong-name' must match skill name 'correct-name'"}},
		{"unexpected field", "my-skill", []string{"name: my-skill", described, "unknown_field: x"}, []string{"Unexpected fields in frontmatter: unknown_field. Only ['allowed-tools', 'compatibility', 'description', 'license', 'metadata', 'name'] are allowed."}},
		{"all fields", "my-skill", []string{"name: my-skill", described, "license: MIT", "metadata:", "  author: Test"}, nil},
		{"allowed-tools", "my-skill", []string{"name: my-skill", described, "allowed-tools: Bash(jq:*) Bash(git:*)"}, nil},
		{"Chinese name", "技能", []string{"name: 技能", described}, nil},
		{"Russian name with hyphens", "мой-навык", []string{"name: мой-навык", described}, nil},
		{"Russian lowercase", "навык", []string{"name: навык", described}, nil},
		{"Russian uppercase refused", "НАВЫК", []string{"name: НАВЫК", described}, []string{"Skill name 'НАВЫК' must be lowercase"}},
		{"description too long", "my-skill", []string{"name: my-skill", "description: " + strings.Repeat("x", 1100)}, []string{"Description exceeds 1024 character limit (1100 chars)"}},
		{"compatibility valid", "my-skill", []string{"name: my-skill", described, "compatibility: Requires Python 3.11+"}, nil},
		{"compatibility too long", "my-skill", []string{"name: my-skill", described, "compatibility: " + strings.Repeat("x", 550)}, []string{"Compatibility exceeds 500 character limit (550 chars)"}},
		{"NFKC", "caf\u00e9", []string{"name: cafe\u0301", described}, nil},

		{"NFKC of the directory", "cafe\u0301", []string{"name: caf\u00e9", described}, nil},
		{"a ligature is two letters", "ofﬁce", []string{"name: office", described}, nil},
		{"several at once", "d", []string{"zeta: 1", "name: -A--b_", "alpha: 2", "compatibility:", "  - x"}, []string{
			"Unexpected fields in frontmatter: alpha, zeta. Only ['allowed-tools', 'compatibility', 'description', 'license', 'metadata', 'name'] are allowed.",
			"Skill name '-A--b_' must be lowercase", "Skill name cannot start or end with a hyphen", "Skill name cannot contain consecutive hyphens",
			"Skill name '-A--b_' contains invalid characters. Only letters, digits, and hyphens are allowed.",
			"Directory name 'd' must match skill name '-A--b_'",
			"Missing required field in frontmatter: description", "Field 'compatibility' must be a string",
		}},
		{"code points, not bytes", "my-skill", []string{"name: my-skill", "description: " + strings.Repeat("é", 1024)}, nil},
		{"one code point more", "my-skill", []string{"name: my-skill", "description: " + strings.Repeat("é", 1025)}, []string{"Description exceeds 1024 character limit (1025 chars)"}},
		{"64 letters", strings.Repeat("я", 64), []string{"name: " + strings.Repeat("я", 64), described}, nil},
		{"scalars are text", "123", []string{"name: 123", "description: true", "compatibility: 3.11"}, nil},
		{"empty fields", "d", []string{"name:", "description: ''"}, []string{"Field 'name' must be a non-empty string", "Field 'description' must be a non-empty string"}},
		{"fields that are lists", "d", []string{"name:", "  - d", described}, []string{"Field 'name' must be a non-empty string"}},
		{"missing both", "d", []string{"license: MIT"}, []string{"Missing required field in frontmatter: name", "Missing required field in frontmatter: description"}},
		{"flow style", "my-skill", []string{"name: my-skill", described, "allowed-tools: [Read, Write]"}, []string{"Invalid YAML in frontmatter: flow style ([...] and {...}) is not allowed: write one entry a line"}},
		{"twice", "my-skill", []string{"name: my-skill", described, "name: other"}, []string{`Invalid YAML in frontmatter: the key "name" stands twice: keep one of them`}},
		{"twice below metadata", "my-skill", []string{"name: my-skill", described, "metadata:", "  a: 1", "  a: 2"}, []string{`Invalid YAML in frontmatter: the key "a" stands twice: keep one of them`}},
		{"anchor", "my-skill", []string{"name: &n my-skill", described}, []string{"Invalid YAML in frontmatter: anchors and aliases (& and *) are not allowed: write the value out"}},
		{"tag", "my-skill", []string{"name: !!str my-skill", described}, []string{"Invalid YAML in frontmatter: tags (!) are not allowed: write the value as it is"}},
		{"dashes inside a value", "my-skill", []string{"name: my-skill", "description: cuts --- here"}, nil},
		{"CRLF", "my-skill", []string{"name: my-skill\r", described + "\r"}, nil},
	}
	for _, tt := range tests {
		dir := folder(t, tt.dir, map[string]string{"SKILL.md": manifestOf(tt.head...)})
		r := Check(t.Context(), dir, Spec)
		if diff := cmp.Diff(tt.want, messages(r.Of(Error))); diff != "" {
			t.Errorf("%s: %s", tt.test, diff)
		}
		if r.Valid() != (tt.want == nil) {
			t.Errorf("%s: valid is %v", tt.test, r.Valid())
		}
	}
}

// TestReferenceFolders are its cases about the folder itself.
func TestReferenceFolders(t *testing.T) {
	dir := t.TempDir()
	missing, file := filepath.Join(dir, "nonexistent"), filepath.Join(dir, "file.txt")
	check(t, os.WriteFile(file, []byte("test"), 0o644))
	empty := folder(t, "my-skill", map[string]string{"README.md": "x"})
	lower := folder(t, "my-skill", map[string]string{"skill.md": manifestOf("name: my-skill", "description: d")})
	other := folder(t, "my-skill", map[string]string{"Skill.md": manifestOf("name: my-skill", "description: d")})
	if _, err := os.Stat(filepath.Join(lower, "SKILL.md")); err == nil {
		t.Skip("this file system ignores case, so the two spellings are one file")
	}
	both := folder(t, "my-skill", map[string]string{"SKILL.md": "uppercase", "skill.md": manifestOf("name: my-skill", "description: d")})
	tests := []struct {
		dir  string
		want []string
	}{
		{missing, []string{"Path does not exist: " + missing}},
		{file, []string{"Not a directory: " + file}},
		{empty, []string{"Missing required file: SKILL.md"}},
		{other, []string{"Missing required file: SKILL.md"}},
		{lower, nil},
		{both, []string{"SKILL.md must start with YAML frontmatter (---)"}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, messages(Check(t.Context(), tt.dir, Spec).Of(Error))); diff != "" {
			t.Errorf("%s: %s", tt.dir, diff)
		}
	}
}

// TestReferenceParser are its 15 cases of reading a manifest.
func TestReferenceParser(t *testing.T) {
	const named, described = "name: my-skill", "description: A test skill"
	tests := []struct {
		test  string
		files map[string]string
		want  Properties
		err   string
	}{
		{"valid", map[string]string{"SKILL.md": "---\nname: my-skill\ndescription: A test skill\n---\n# My Skill\n\nInstructions.\n"}, Properties{Name: "my-skill", Description: "A test skill"}, ""},
		{"missing front matter", map[string]string{"SKILL.md": "# No frontmatter here"}, Properties{}, "SKILL.md must start with YAML frontmatter (---)"},
		{"unclosed", map[string]string{"SKILL.md": "---\nname: my-skill\ndescription: A test skill\n"}, Properties{}, "SKILL.md frontmatter not properly closed with ---"},
		{"invalid YAML", map[string]string{"SKILL.md": manifestOf("name: [invalid", "description: broken")}, Properties{}, "Invalid YAML in frontmatter: "},
		{"non-mapping", map[string]string{"SKILL.md": manifestOf("- just", "- a", "- list")}, Properties{}, "SKILL.md frontmatter must be a YAML mapping"},
		{"license", map[string]string{"SKILL.md": manifestOf(named, described, "license: MIT")}, Properties{Name: "my-skill", Description: "A test skill", License: "MIT"}, ""},
		{"metadata 1.0", map[string]string{"SKILL.md": manifestOf(named, described, "metadata:", "  author: Test Author", "  version: 1.0")}, Properties{Name: "my-skill", Description: "A test skill", Metadata: map[string]string{"author": "Test Author", "version": "1.0"}}, ""},
		{"missing SKILL.md", map[string]string{}, Properties{}, "SKILL.md not found in "},
		{"missing name", map[string]string{"SKILL.md": manifestOf(described)}, Properties{}, "Missing required field in frontmatter: name"},
		{"missing description", map[string]string{"SKILL.md": manifestOf(named)}, Properties{}, "Missing required field in frontmatter: description"},
		{"uppercase preferred", map[string]string{"SKILL.md": manifestOf(named, "description: upper"), "skill.md": manifestOf(named, "description: lower")}, Properties{Name: "my-skill", Description: "upper"}, ""},
		{"lowercase accepted, and read", map[string]string{"skill.md": manifestOf(named, described)}, Properties{Name: "my-skill", Description: "A test skill"}, ""},
		{"none found", map[string]string{"readme.md": "x"}, Properties{}, "SKILL.md not found in "},
		{"allowed-tools", map[string]string{"SKILL.md": manifestOf(named, described, "allowed-tools: Bash(jq:*) Bash(git:*)")}, Properties{Name: "my-skill", Description: "A test skill", AllowedTools: "Bash(jq:*) Bash(git:*)"}, ""},

		{"allowed-tools as a list", map[string]string{"SKILL.md": manifestOf(named, described, "allowed-tools:", "  - Read", "  - Bash")}, Properties{Name: "my-skill", Description: "A test skill", AllowedTools: "Read Bash"}, ""},
		{"empty name", map[string]string{"SKILL.md": manifestOf("name: ' '", described)}, Properties{}, "Field 'name' must be a non-empty string"},
		{"nothing between the fences", map[string]string{"SKILL.md": "---\n---\n"}, Properties{}, "SKILL.md frontmatter must be a YAML mapping"},
		{"byte order mark", map[string]string{"SKILL.md": "\ufeff" + manifestOf(named, described)}, Properties{}, "SKILL.md must start with YAML frontmatter (---), and this one starts with a byte order mark"},
	}
	for _, tt := range tests {
		dir := folder(t, "my-skill", tt.files)
		got, err := ReadProperties(t.Context(), dir)
		switch {
		case tt.err != "":
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: error %v, want %q", tt.test, err, tt.err)
			}
			continue
		case err != nil:
			t.Errorf("%s: %v", tt.test, err)
			continue
		}
		if !filepath.IsAbs(got.Location) || !strings.EqualFold(filepath.Base(got.Location), "SKILL.md") {
			t.Errorf("%s: location %s", tt.test, got.Location)
		}
		got.Location = ""
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: %s", tt.test, diff)
		}
	}
}

// TestReferencePrompt are its four cases of the catalog.
func TestReferencePrompt(t *testing.T) {
	a := Properties{Name: "skill-a", Description: "First skill", Location: "/x/skill-a/SKILL.md"}
	b := Properties{Name: "skill-b", Description: `Use <foo> & <bar> "tags", don't ask`, Location: "/x/&-<>/SKILL.md"}
	one := "<skill>\n<name>\nskill-a\n</name>\n<description>\nFirst skill\n</description>\n<location>\n/x/skill-a/SKILL.md\n</location>\n</skill>\n"
	two := "<skill>\n<name>\nskill-b\n</name>\n<description>\nUse &lt;foo&gt; &amp; &lt;bar&gt; &quot;tags&quot;, don&#x27;t ask\n</description>\n<location>\n/x/&amp;-&lt;&gt;/SKILL.md\n</location>\n</skill>\n"
	tests := []struct {
		skills []Properties
		want   string
	}{
		{nil, "<available_skills>\n</available_skills>"},
		{[]Properties{a}, "<available_skills>\n" + one + "</available_skills>"},
		{[]Properties{b}, "<available_skills>\n" + two + "</available_skills>"},
		{[]Properties{b, a}, "<available_skills>\n" + two + one + "</available_skills>"},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, Prompt(tt.skills)); diff != "" {
			t.Error(diff)
		}
	}
}
