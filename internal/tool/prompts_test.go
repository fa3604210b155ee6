package tool

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/llm"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func env(caller, host string) Env {
	e := Env{Caller: strings.Fields(caller)}
	for _, name := range strings.Fields(host) {
		e.Offer.Declared = append(e.Offer.Declared, llm.Declaration{Name: name})
	}
	return e
}

// TestUnknown pins what a model reads that calls what is not there.
func TestUnknown(t *testing.T) {
	const skills = "skills_list skills_read"
	tests := []struct{ name, caller, host string }{
		{"teleport", "", ""},
		{"teleport", "weather a_tool", skills},
		{"skills_run", "", skills},
		{"Skills-Run", "", "shell"},
		{"run_script", "", ""},
		{"shell", "", skills},
		{"functions.Bash", "", skills},
		{"python", "", ""},
		{"execute", "weather", skills},
		{"run_command", "", skills},
		{"apply_patch", "", skills},
		{"read_file", "", skills},
		{"write_file", "", ""},
		{"spawn_agent", "", skills},
		{"view_image", "", skills},
		{"Screenshot", "", ""},
		// What is offered under another name is not called off.
		{"python", "", "shell"},
		{"read_file", "", "shell skills_read"},
		{"bash", "terminal", skills},
		{"edit", "Write", skills},
		{"task", "", "spawn_agent"},
		{"look", "view_image", ""},
		{"run_script", "", "skills_run"},
	}
	var b strings.Builder
	for _, tt := range tests {
		r := Unknown(tt.name, env(tt.caller, tt.host))
		if r.OK {
			t.Errorf("%s is OK", tt.name)
		}
		fmt.Fprintf(&b, ">>> %s, offered: %s\n%s\n\n", tt.name, strings.Join(strings.Fields(tt.caller+" "+tt.host), ", "), r.Text)
	}
	file := filepath.Join("testdata", "unknown.txt")
	got := strings.TrimSpace(b.String()) + "\n"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs; run the test with -update if that is meant\n%s", file, diff)
	}
}

// TestUnknownCoversTheNames: every name of B1 4.1, 4.2 and 6.5 gets its reason.
func TestUnknownCoversTheNames(t *testing.T) {
	tests := []struct{ reason, names string }{
		{codeOff, "shell bash python execute run_command terminal exec code_interpreter run_python PowerShell"},
		{filesOff, "apply_patch apply-patch applypatch apply_patch_tool read_file read readfile read_text_file view_file cat_file get_file"},
		{filesOff, "edit_file edit editfile str_replace str_replace_editor str_replace_based_edit_tool replace_in_file apply_edit string_replace"},
		{filesOff, "write_file write writefile create_file new_file put_file"},
		{scriptsOff, "skills_run run_skill run_script run_skill_script"},
		{agentsOff, "spawn_agent wait_agent send_input close_agent list_agents spawn_subagent"},
		{picturesOff, "view view_image open open_image display show show_image read_image look look_at see screenshot render preview image inspect_image"},
	}
	for _, tt := range tests {
		for _, name := range strings.Fields(tt.names) {
			for _, spelling := range []string{name, strings.ToUpper(name), "functions." + name, "tool." + strings.ReplaceAll(name, "_", "-")} {
				want := fmt.Sprintf(unknown, spelling) + tt.reason + noTools
				if got := Unknown(spelling, Env{}); got.Text != want {
					t.Errorf("%s\ngot  %s\nwant %s", spelling, got.Text, want)
				}
			}
		}
	}
}

func TestKey(t *testing.T) {
	for name, want := range map[string]string{
		"skills_read": "skillsread", " Skills-Read ": "skillsread", "skills.read": "skillsread", "skills read": "skillsread",
		"functions.skills_read": "skillsread", "Tool.skills_read": "skillsread", "readSkill": "readskill", "tool.": "tool", "": "",
	} {
		if got := Key(name); got != want {
			t.Errorf("Key(%q) = %q, want %q", name, got, want)
		}
	}
}

// FuzzUnknown: any name gets one sentence or more that begin alike.
func FuzzUnknown(f *testing.F) {
	f.Add("bash")
	f.Add("\xff")
	f.Fuzz(func(t *testing.T, name string) {
		r := Unknown(name, Env{Offer: journal.Offer{}})
		if r.OK || !strings.HasPrefix(r.Text, "Error: no tool is called ") || !strings.HasSuffix(r.Text, noTools) {
			t.Errorf("%q: %+v", name, r)
		}
	})
}
