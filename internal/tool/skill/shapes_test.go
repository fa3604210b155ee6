package skill

import (
	"fmt"
	"strings"
	"testing"

	"github.com/metier-run/metier/internal/journal"
)

// shape is a way in which models write the arguments of a read. Want is what
// was read, as "skill path@offset", or the exact sentence.
type shape struct{ name, arguments, want string }

const (
	cones = "kiln references/cones.md"
	long  = "kiln references/long.md@30"
	main_ = "kiln SKILL.md"
	tide  = "tide SKILL.md"
	top   = "salt-glaze ."
)

// shapes come from public reports of what models send to such tools, restated
// with values of our own.
func shapes() []shape {
	return []shape{
		// As declared, and close to it.
		{"declared", `{"skill":"kiln","path":"references/cones.md"}`, cones},
		{"declared with offset", `{"skill":"kiln","path":"references/long.md","offset":30}`, long},
		{"white space around", " \n{ \"skill\" : \"kiln\" , \"path\" : \"references/cones.md\" }\n", cones},
		{"twice the same name", `{"skill":"kiln","skill":"kiln","path":"references/cones.md"}`, cones},
		{"more than was asked", `{"skill":"kiln","path":"references/cones.md","reason":{"a":[1]}}`, cones},
		{"not UTF-8 beside it", "{\"skill\":\"kiln\",\"path\":\"references/cones.md\",\"why\":\"\xff\"}", cones},

		// Names of their own.
		{"name", `{"name":"kiln","path":"references/cones.md"}`, cones},
		{"skill_name", `{"skill_name":"kiln","path":"references/cones.md"}`, cones},
		{"skillName", `{"skillName":"kiln","path":"references/cones.md"}`, cones},
		{"skill_id", `{"skill_id":"kiln","path":"references/cones.md"}`, cones},
		{"id", `{"id":"kiln","path":"references/cones.md"}`, cones},
		{"file", `{"skill":"kiln","file":"references/cones.md"}`, cones},
		{"resource", `{"skill":"kiln","resource":"references/cones.md"}`, cones},
		{"filename", `{"skill":"kiln","filename":"references/cones.md"}`, cones},
		{"filepath", `{"skill":"kiln","filepath":"references/cones.md"}`, cones},
		{"file_path", `{"name":"kiln","file_path":"references/cones.md"}`, cones},
		{"resource_path", `{"skill":"kiln","resource_path":"references/cones.md"}`, cones},
		{"start", `{"skill":"kiln","path":"references/long.md","start":30}`, long},
		{"from", `{"skill":"kiln","path":"references/long.md","from":30}`, long},
		{"byte_offset", `{"skill":"kiln","path":"references/long.md","byte_offset":30}`, long},
		{"cursor", `{"skill":"kiln","path":"references/long.md","cursor":"30"}`, long},
		{"keys in any case", `{"Skill":"kiln","PATH":"references/long.md","Offset":30}`, long},
		{"an empty one before another", `{"skill":"kiln","path":"","file":"references/cones.md"}`, cones},
		{"the surer name wins", `{"name":"cones","skill":"kiln","path":"references/cones.md"}`, cones},

		// Objects in something.
		{"object in a string", `"{\"skill\":\"kiln\",\"path\":\"references/cones.md\"}"`, cones},
		{"object in a string in a string", `"\"{\\\"skill\\\":\\\"kiln\\\",\\\"path\\\":\\\"references/cones.md\\\"}\""`, cones},
		{"object in a list", `[{"skill":"kiln","path":"references/cones.md"}]`, cones},
		{"object in a string in a list", `["{\"skill\":\"kiln\",\"path\":\"references/cones.md\"}"]`, cones},
		{"list of values", `["kiln","references/cones.md"]`, cones},
		{"list of values with offset", `["kiln","references/long.md",30]`, long},
		{"list of values with offset as string", `["kiln","references/long.md","30"]`, long},
		{"list of one", `["tide"]`, tide},
		{"bare JSON string", `"tide"`, tide},
		{"bare string with path", `"kiln/references/cones.md"`, cones},
		{"bare string with colon", `"kiln:references/cones.md"`, cones},
		{"bare word", `tide`, tide},
		{"bare word with path", `kiln/references/cones.md`, cones},
		{"bare word with colon", `kiln:references/cones.md`, cones},
		{"arguments", `{"arguments":{"skill":"kiln","path":"references/cones.md"}}`, cones},
		{"input", `{"input":{"skill":"kiln","path":"references/cones.md"}}`, cones},
		{"parameters", `{"parameters":{"skill":"kiln","path":"references/cones.md"}}`, cones},
		{"args", `{"args":{"skill":"kiln","path":"references/cones.md"}}`, cones},
		{"kwargs", `{"kwargs":{"skill":"kiln","path":"references/cones.md"}}`, cones},
		{"arguments in a string", `{"arguments":"{\"skill\":\"kiln\",\"path\":\"references/cones.md\"}"}`, cones},
		{"the call as arguments", `{"name":"skills_read","arguments":{"skill":"kiln","path":"references/cones.md"}}`, cones},
		{"the call as arguments, names of their own", `{"name":"load_skill","parameters":{"name":"kiln","file":"references/cones.md"}}`, cones},
		{"the call as arguments, flat", `{"name":"skills_read","id":"kiln","path":"references/cones.md"}`, cones},
		{"the call as arguments, with its own id", `{"id":"call_7","arguments":{"id":"kiln","path":"references/cones.md"}}`, cones},
		{"the call as arguments, with a word", `{"name":"load_skill","arguments":"tide"}`, tide},
		{"an empty wrapper beside", `{"arguments":{},"skill":"kiln","path":"references/cones.md"}`, cones},
		{"half in a wrapper", `{"skill":"kiln","args":{"path":"references/cones.md"}}`, cones},
		{"wrapper with a list", `{"args":["kiln","references/cones.md"]}`, cones},
		{"wrapper with a word", `{"input":"tide"}`, tide},
		{"args as text for the skill", `{"skill":"tide","args":"high water on Monday"}`, tide},
		{"args as a list for the skill", `{"skill":"tide","args":["--port","kiln"]}`, tide},
		{"skill as object", `{"skill":{"name":"kiln"},"path":"references/cones.md"}`, cones},
		{"wrappers in wrappers", `{"input":{"arguments":{"args":{"skill":"tide"}}}}`, tide},

		// Values of other kinds.
		{"offset as string", `{"skill":"kiln","path":"references/long.md","offset":"30"}`, long},
		{"offset as float", `{"skill":"kiln","path":"references/long.md","offset":30.0}`, long},
		{"offset as float in a string", `{"skill":"kiln","path":"references/long.md","offset":" 30.0 "}`, long},
		{"offset null", `{"skill":"kiln","path":"references/cones.md","offset":null}`, cones},
		{"offset empty", `{"skill":"kiln","path":"references/cones.md","offset":""}`, cones},
		{"offset as a word for nothing", `{"skill":"kiln","path":"references/cones.md","offset":"None"}`, cones},
		{"offset true", `{"skill":"kiln","path":"references/cones.md","offset":true}`, cones},
		{"offset negative", `{"skill":"kiln","path":"references/cones.md","offset":-3}`, cones},
		{"path null", `{"skill":"tide","path":null}`, tide},
		{"path false", `{"skill":"tide","path":false,"offset":false}`, tide},
		{"path empty", `{"skill":"tide","path":""}`, tide},
		{"no path", `{"skill":"tide"}`, tide},
		{"lists as values", `{"skill":["kiln"],"path":["references/cones.md"],"offset":[0]}`, cones},
		{"a list in a string as value", `{"skill":"kiln","path":"[\"references/cones.md\"]"}`, cones},

		// Names of skills.
		{"wrong case", `{"skill":"KILN","path":"references/cones.md"}`, cones},
		{"dollar", `{"skill":"$kiln","path":"references/cones.md"}`, cones},
		{"white space in the value", `{"skill":" kiln\n","path":" references/cones.md\n"}`, cones},
		{"quotes in the value", `{"skill":"\"kiln\"","path":"'references/cones.md'"}`, cones},
		{"backticks in the value", "{\"skill\":\"`kiln`\",\"path\":\"`references/cones.md`\"}", cones},
		{"underscores for hyphens", `{"skill":"Salt_Glaze","path":"b.md"}`, "salt-glaze b.md"},
		{"spaces for hyphens", `{"skill":"salt glaze","path":"b.md"}`, "salt-glaze b.md"},
		{"skill with a path in it", `{"skill":"kiln/references/cones.md"}`, cones},
		{"skill with the path's folder", `{"skill":"kiln/references","path":"cones.md"}`, cones},
		{"skill with the manifest and a path", `{"skill":"tide/SKILL.md","path":"SKILL.md"}`, tide},
		{"skill below the root", `{"skill":"skills/tide"}`, tide},
		{"skill as address", `{"skill":"skill://kiln/references/cones.md"}`, cones},
		{"no skill, in the path", `{"path":"kiln/references/cones.md"}`, cones},
		{"no skill, below the root", `{"path":"skills/kiln/references/cones.md"}`, cones},
		{"no skill, an address", `{"file":"skill://tide/SKILL.md"}`, tide},

		// Paths.
		{"the skill's name in front", `{"skill":"kiln","path":"kiln/references/cones.md"}`, cones},
		{"the skill's name and a colon", `{"skill":"kiln","path":"kiln:references/cones.md"}`, cones},
		{"a folder of the skill's own name", `{"skill":"kiln","path":"kiln/same.md"}`, "kiln kiln/same.md"},
		{"the skill's name alone", `{"skill":"tide","path":"tide"}`, tide},
		{"below the root", `{"skill":"kiln","path":"skills/kiln/references/cones.md"}`, cones},
		{"dot", `{"skill":"kiln","path":"./references/cones.md"}`, cones},
		{"dots and the name", `{"skill":"kiln","path":"././Kiln/references/cones.md"}`, cones},
		{"backslashes", `{"skill":"kiln","path":".\\kiln\\references\\cones.md"}`, cones},
		{"percent", `{"skill":"salt-glaze","path":"two%20words.md"}`, "salt-glaze two words.md"},
		{"percent for a slash", `{"skill":"kiln","path":"references%2Fcones.md"}`, cones},
		{"percent that belongs to the name", `{"skill":"salt-glaze","path":"100%25.md"}`, "salt-glaze 100%25.md"},
		{"file address", `{"skill":"kiln","path":"file://references/cones.md"}`, cones},
		{"skill address", `{"skill":"kiln","path":"skill://kiln/references/cones.md"}`, cones},
		{"skill address with three slashes", `{"skill":"kiln","path":"SKILL:///references/cones.md"}`, cones},
		{"heading behind", `{"skill":"kiln","path":"references/cones.md#cone-6"}`, cones},
		{"another case", `{"skill":"salt-glaze","path":"notes.md"}`, "salt-glaze Notes.MD"},
		{"SKILL", `{"skill":"kiln","path":"SKILL"}`, main_},
		{"skill.md", `{"skill":"kiln","path":"skill.md"}`, main_},
		{"Skill.MD", `{"skill":"kiln","path":"kiln/Skill.MD"}`, main_},
		{"dot alone", `{"skill":"salt-glaze","path":"."}`, top},
		{"dot and slash", `{"skill":"salt-glaze","path":"./"}`, top},
		{"slash alone", `{"skill":"salt-glaze","path":"/"}`, top},
		{"folder", `{"skill":"kiln","path":"references"}`, "kiln references"},
		{"folder with slash", `{"skill":"kiln","path":"kiln/references/"}`, "kiln references"},

		// Text around and instead of JSON.
		{"fences", "```json\n{\"skill\":\"kiln\",\"path\":\"references/cones.md\"}\n```", cones},
		{"fences without a language", "```\n{\"skill\":\"kiln\",\"path\":\"references/cones.md\"}\n```", cones},
		{"fences on one line", "```json{\"skill\":\"kiln\",\"path\":\"references/cones.md\"}```", cones},
		{"fences in a string", "{\"arguments\":\"```json\\n{\\\"skill\\\":\\\"tide\\\"}\\n```\"}", tide},
		{"trailing comma", `{"skill":"kiln","path":"references/cones.md",}`, cones},
		{"trailing comma in a list", `["kiln","references/cones.md", ]`, cones},
		{"single quotes", `{'skill': 'kiln', 'path': 'references/cones.md'}`, cones},
		{"single quotes and Python's words", `{'skill': 'kiln', 'path': 'references/cones.md', 'offset': None, 'all': False}`, cones},
		{"single quotes in double ones", `"{'skill': 'kiln', 'path': 'references/cones.md'}"`, cones},
		{"quotes within single quotes", `{'skill': 'kiln', 'path': 'references/cones.md', 'why': 'it\'s "hot", or'}`, cones},

		// Several at once: the first is read, the others are named.
		{
			"several paths", `{"skill":"salt-glaze","path":["b.md","Notes.MD"]}`,
			"salt-glaze b.md" + "\n\n" + `[One call reads one file. For the rest call skills_read(skill="salt-glaze", path="Notes.MD").]`,
		},
		{
			"several paths in a string", `{"skill":"salt-glaze","paths":"[\"b.md\", \"./notes.md\"]"}`,
			"salt-glaze b.md" + "\n\n" + `[One call reads one file. For the rest call skills_read(skill="salt-glaze", path="Notes.MD").]`,
		},
		{
			"several skills", `{"skill":["tide","kiln","nobody"]}`,
			tide + "\n\n" + `[One call reads one file. For the rest call skills_read(skill="kiln", path="SKILL.md").]`,
		},
		{
			"several calls", `[{"skill":"tide"},{"skill":"kiln","path":"references/cones.md"},{"skill":"kiln","path":"SKILL"}]`,
			tide + "\n\n" + `[One call reads one file. For the rest call skills_read(skill="kiln", path="references/cones.md"), skills_read(skill="kiln", path="SKILL.md").]`,
		},
		{
			"more paths than a sentence holds", `{"skill":"tide","path":["SKILL.md","1","2","3","4","5","6","7","8","9","10"]}`,
			tide + "\n\n" + `[One call reads one file. For the rest call skills_read(skill="tide", path="1"), skills_read(skill="tide", path="2"), skills_read(skill="tide", path="3"), skills_read(skill="tide", path="4"), skills_read(skill="tide", path="5"), skills_read(skill="tide", path="6"), skills_read(skill="tide", path="7"), skills_read(skill="tide", path="8") and 2 more.]`,
		},
		{
			"several values", `["salt-glaze","b.md","Notes.MD",0]`,
			"salt-glaze b.md" + "\n\n" + `[One call reads one file. For the rest call skills_read(skill="salt-glaze", path="Notes.MD").]`,
		},

		// What stays a mistake.
		{"nothing", ``, noName},
		{"null", `null`, noName},
		{"empty object", `{}`, noName},
		{"a file without a skill", `{"path":"SKILL.md"}`, noName},
		{"skill true", `{"skill":true}`, noName},
		{"cut off", `{"skill":"kiln","pa`, notJSON},
		{"a number", `7`, notJSON},
		{"true", `true`, notJSON},
		{"prose", `please read the kiln skill`, notJSON},
		{"unknown", `{"skill":"ovens"}`, `Error: there is no skill "ovens" here. ` + all},
		{"misspelt", `{"skill":"klin"}`, `Error: there is no skill "klin" here. Did you mean "kiln"? ` + all},
		{"misspelt bare", `tyde`, `Error: there is no skill "tyde" here. Did you mean "tide"? ` + all},
		{"not reachable", `{"skill":"secret"}`, `Error: there is no skill "secret" here. ` + all},
		{"not reachable by address", `{"path":"skill://secret/x.md"}`, noName},
		{"offset of words", `{"skill":"kiln","path":"references/long.md","offset":"soon"}`, `Error: offset "soon" is not a whole number. Give the byte that the previous page named, or leave it out: skills_read(skill="kiln", path="references/long.md").`},
		{"up", `{"skill":"kiln","path":"../secret/x.md"}`, `Error: skill kiln: path "../secret/x.md": ` + up},
		{"up, with the name in front", `{"skill":"kiln","path":"kiln/../../secret/x.md"}`, `Error: skill kiln: path "../../secret/x.md": ` + up},
		{"up, with percents", `{"skill":"kiln","path":"%2e%2e%2fsecret%2fx.md"}`, `Error: skill kiln: path "../secret/x.md": ` + up},
		{"up, with backslashes", `{"skill":"kiln","path":"..\\secret\\x.md"}`, `Error: skill kiln: path "../secret/x.md": ` + up},
		{"up, in the skill", `{"skill":"kiln/../secret","path":"x.md"}`, `Error: skill kiln: path "../secret/x.md": ` + up},
		{"up, bare", `kiln/../secret/x.md`, `Error: skill kiln: path "../secret/x.md": ` + up},
		{"absolute", `{"skill":"kiln","path":"/references/cones.md"}`, `Error: skill kiln: path "/references/cones.md": ` + absolute},
		{"absolute file address", `{"skill":"kiln","path":"file:///etc/passwd"}`, `Error: skill kiln: path "/etc/passwd": ` + absolute},
	}
}

const (
	all      = "The skills are: kiln, salt-glaze, tide. Name one of them, or go on without."
	noName   = `Error: no skill is named. Give the argument "skill". ` + all
	notJSON  = `Error: the arguments of skills_read cannot be read, so nothing was. Write them as a JSON object: {"skill": "NAME", "path": "SKILL.md"}.`
	up       = `".." is refused, because files outside this folder may not be opened: write the path from the top of the folder.`
	absolute = "absolute paths are refused: write the path relative to the folder, such as references/api.md."
)

// TestShapes: each way of writing a call reads the same as the declared one.
func TestShapes(t *testing.T) {
	s := New(Options{Skills: pick(t, "kiln", "tide", "salt-glaze")})
	seen := map[string]bool{}
	for _, sh := range shapes() {
		if seen[sh.name] || seen[sh.arguments] {
			t.Errorf("%s: the shape stands twice", sh.name)
		}
		seen[sh.name], seen[sh.arguments] = true, true
		t.Run(sh.name, func(t *testing.T) { sh.check(t, s, invoke(t, s, ReadName, sh.arguments)) })
	}
	if n := len(shapes()); n < 60 {
		t.Errorf("there are %d shapes", n)
	}
}

// check compares a result with what was wanted.
func (sh shape) check(t *testing.T, s *Set, got journal.Result) {
	t.Helper()
	if strings.HasPrefix(sh.want, failed) {
		if got.OK || got.Text != sh.want {
			t.Errorf("%s\ngot  %s\nwant %s", sh.arguments, got.Text, sh.want)
		}
		return
	}
	file, behind, also := strings.Cut(sh.want, "\n\n")
	if also {
		behind = "\n\n" + behind
	}
	skill, path, _ := strings.Cut(file, " ")
	path, offset, found := strings.Cut(path, "@")
	if !found {
		offset = "0"
	}
	want := invoke(t, s, ReadName, fmt.Sprintf(`{"skill":%q,"path":%q,"offset":%s}`, skill, path, offset))
	if got.Text != want.Text+behind || !got.OK || got.Skill != skill || got.Detail != path {
		t.Errorf("%s\nread %s %s:\n%s\nwant %s:\n%s", sh.arguments, got.Skill, got.Detail, got.Text, sh.want, want.Text+behind)
	}
}

// TestOneReachableSkill: where there is only one, it need not be named.
func TestOneReachableSkill(t *testing.T) {
	s := New(Options{Skills: pick(t, "kiln")})
	for _, sh := range []shape{
		{"nothing", ``, main_},
		{"empty object", `{}`, main_},
		{"a path alone", `{"path":"references/cones.md"}`, cones},
		{"a path in the folder of its own name", `{"path":"kiln/same.md"}`, "kiln kiln/same.md"},
		{"another skill", `{"skill":"secret"}`, `Error: there is no skill "secret" here. The skills are: kiln. Name one of them, or go on without.`},
	} {
		t.Run(sh.name, func(t *testing.T) { sh.check(t, s, invoke(t, s, ReadName, sh.arguments)) })
	}
	none := New(Options{})
	if got := invoke(t, none, ReadName, `{"skill":"kiln"}`).Text; got != failed+`there is no skill "kiln" here. `+skillsNone {
		t.Error(got)
	}
}
