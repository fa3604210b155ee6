package skill

import (
	"strings"
	"testing"
)

// TestNames: the names that other hosts taught models lead to the same tools.
func TestNames(t *testing.T) {
	s := New(Options{Skills: pick(t, "kiln", "tide")})
	for tool, names := range map[string]string{
		ReadName: "skills_read skill_read read_skill load_skill open_skill get_skill use_skill activate_skill skill_view view_skill skill " +
			"read_skill_file read_skill_resource load_skill_resource read_skill_reference get_skill_instructions get_skill_reference get_skill_script",
		ListName: "skills_list list_skills skill_list get_skills show_skills available_skills list_available_skills skills",
	} {
		want := invoke(t, s, tool, `{"skill":"tide"}`)
		if !want.OK {
			t.Fatal(want.Text)
		}
		for _, name := range strings.Fields(names) {
			dashed := strings.ReplaceAll(name, "_", "-")
			for _, spelling := range []string{
				name, strings.ToUpper(name), strings.ToUpper(name[:1]) + name[1:], dashed, strings.ReplaceAll(name, "_", "."), strings.ReplaceAll(name, "_", " "),
				"functions." + name, "tool." + name, "Functions." + dashed, " " + name + "\n", strings.ReplaceAll(name, "_", ""),
			} {
				if got := invoke(t, s, spelling, `{"skill":"tide"}`); !same(got, want) {
					t.Errorf("%q: %s", spelling, got.Text)
				}
			}
		}
	}
	for _, name := range []string{"read", "view", "open", "show", "show_image", "list", "skills_run", "run_skill", "skill_manage", "read_file", "kiln", "search_skills", "functions.", ""} {
		if Means(name) != "" {
			t.Errorf("%q is taken for %s", name, Means(name))
		}
	}
}
