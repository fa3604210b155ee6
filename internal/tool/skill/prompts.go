package skill

// Everything that this package says to a model. The parameters are JSON with
// fixed bytes: they are part of a prompt's prefix.
const (
	listDescription = "Lists the skills of this conversation: name, description, what each needs, and its files. Takes no arguments."
	listParameters  = `{"type":"object","properties":{},"required":[]}`

	readDescription = "Reads one file of a skill, a page at a time. Read SKILL.md, the instructions, before you use a skill; read its other files only when the instructions or the task call for them. Do not read a skill that has nothing to do with the request. When more follows, the end of the page says which call gets it."
	readParameters  = `{"type":"object","properties":{` +
		`"skill":{"type":"string","description":"Name of the skill, exactly as listed."},` +
		`"path":{"type":"string","description":"File inside the skill: SKILL.md for the instructions, or a relative path such as references/api.md. Never an absolute path."},` +
		`"offset":{"type":"integer","description":"Byte to start from, as the previous page gave it. Counts bytes, not lines. Leave it out for the start."}` +
		`},"required":["skill","path"]}`

	// failed stands before every failure.
	failed = "Error: "

	listNone     = "No skill can be reached in this conversation."
	listOne      = "1 skill:\n"
	listMany     = "%d skills:\n"
	listOnlyMain = "SKILL.md only"
	listMore     = " and %d more"

	readHeader    = "Skill: %s\nFile: %s\n"
	readRange     = "Bytes %d-%d of %d\n"
	readTruncated = "\n\n[Truncated. Continue with skills_read(skill=%q, path=%q, offset=%d).]"
	readBinary    = "This file is not text (%s) and is not shown. Use it by its path where the instructions say so."
	readAtEnd     = "[The file ends here. Nothing follows.]"
	readEmpty     = "[The file is empty.]"
	readFolder    = "Skill: %s\nFolder: %s\n\n%s"

	badArguments = `the arguments of %s are not a JSON object, so nothing was read. Write them as {"skill": "NAME", "path": "SKILL.md"}.`
	badOffset    = "offset %q is not a whole number. Give the byte offset that the previous page reported, or leave it out."
	noSkillNamed = "no skill is named. Give the argument \"skill\". "
	unknownSkill = "there is no skill %q here. "
	skillsAre    = "The skills are: %s."
	skillsNone   = "No skill can be reached in this conversation, so answer without one."
	refused      = "skill %s: %s."
	noFile       = "skill %s has no file %q."
	didYouMean   = " Did you mean %q?"
	filesAre     = " Its files:\n- SKILL.md\n%s"
	onlyMain     = " Its only file is SKILL.md."
	goneFile     = "skill %s: the file %s could be read when the skills were loaded and is gone now. Go on without it and say so."
	isSkill      = "no tool is called %q, so nothing ran. That is a skill, and it is available: read it with skills_read(skill=%q, path=\"SKILL.md\")."
)
