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

	listNone      = "No skill can be reached in this conversation."
	listOne       = "1 skill:\n"
	listMany      = "%d skills:\n"
	listPart      = "%d skills, here %d to %d:\n"
	listTruncated = "\n\n[%d more. Continue with %s(offset=%d).]"
	listPast      = "offset %d is past the end of the list, which has %d skills. Leave offset out to list them from the start."
	listOnlyMain  = "SKILL.md only"
	listMore      = " and %d more"

	readCall      = `skills_read(skill=%q, path=%q)`
	readHeader    = "Skill: %s\nFile: %s\n"
	readRange     = "Bytes %d-%d of %d\n"
	readTruncated = "\n\n[Truncated. Continue with skills_read(skill=%q, path=%q, offset=%d).]"
	readBinary    = "This file is not text (%s) and is not shown. Use it by its path where the instructions say so."
	readAtEnd     = "[The file ends here. Nothing follows.]"
	readEmpty     = "[The file is empty.]"
	oneAtATime    = "\n\n[One call reads one file. For the rest call %s.]"

	// indexElsewhere stands in for an index that the model has no room for.
	indexElsewhere = `[Bundled files: skills_read(skill=%q, path=".") lists them.]`

	readFolder      = "Skill: %s\nFolder: %s\n"
	folderFrom      = "From file %d of %d\n"
	folderTruncated = "\n\n[%d more. Continue with skills_read(skill=%q, path=%q, offset=%d).]"
	folderPast      = "skill %s: the folder %s has %d files, so none follows offset %d. Leave offset out to list them."

	badArguments = `the arguments of %s cannot be read, so nothing was. Write them as a JSON object: {"skill": "NAME", "path": "SKILL.md"}.`
	badOffset    = "offset %q is not a whole number. Give the byte that the previous page named, or leave it out: skills_read(skill=%q, path=%q)."
	noSkillNamed = "no skill is named. Give the argument \"skill\". "
	unknownSkill = "there is no skill %q here."
	skillsAre    = "The skills are: %s. Name one of them, or go on without."
	skillsMore   = ", and %d more that skills_list names"
	skillsNone   = "No skill can be reached in this conversation, so answer without one."
	refused      = "skill %s: %s."
	noFile       = "skill %s has no file %q."
	didYouMean   = " Did you mean %q?"
	filesAre     = " Name one that it has:\n- SKILL.md\n%s"
	onlyMain     = " Its only file is SKILL.md: skills_read(skill=%q, path=\"SKILL.md\")."
	goneFile     = "skill %s: the file %s could be read when the skills were loaded and is gone now. Go on without it and say so."
	isSkill      = "no tool is called %q, so nothing ran. That is a skill, and it is available: read it with skills_read(skill=%q, path=\"SKILL.md\")."
)
