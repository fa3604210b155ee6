package disclosure

// Everything that this package says to a model.
const (
	// opening comes first where the model has tools.
	opening = "Know what the user wants before you pick a tool. If a needed fact or choice is missing, ask one short question and wait before steps that depend on it; once answered or confirmed, go on with the pending task.\n\n"

	heading = "## Agent skills\n\nA skill is a folder of instructions for one kind of task; for that task they outrank your usual approach. Being listed or selected does not make it relevant.\n"

	selectedHeading = "\n### Skills selected for this conversation\n\nChosen on purpose. Use those that match, maybe none, and say which.\n\n"

	otherHeading = "\n### Other available skills\n\nNot loaded. If one fits better, load it with skills_read(skill=\"NAME\", path=\"SKILL.md\").\n\n"

	moreSkills = "(%d more: call skills_list)\n"

	// deferredCall follows the line of a selected skill that is not loaded.
	deferredCall = "  About %d tokens, not loaded: skills_read(skill=%q, path=\"SKILL.md\")\n"

	// rules and moreRules are for a model with tools, with runRule between them where
	// scripts can run.
	rules = `
### How to use a skill

- Use one the user names (also as $name) or whose description matches; never call skill tools just to open a turn.
- Read all of SKILL.md before you act or write the part it covers (several skills: in one turn). A description is not the instructions: do not follow or report unread steps.
- Paths are inside the skill, not on this host; other agents' install paths are examples.
- Prefer scripts and templates it ships to writing them again. Open only references the task needs.
`
	runRule = `- Run its scripts with skills_run: never copy them out first.
`
	moreRules = `- If a file is cut, go on at the offset it gives.
- If a skill cannot be applied, say so and do the next best thing.
`

	// rulesWithoutTools is for a model that can fetch nothing.
	rulesWithoutTools = `
### How to use a skill

- When a skill's description matches the request, follow its instructions above.
- All that you can have of a skill is written here. A file that it mentions cannot be opened. If something essential is missing, say so.
`

	// cutNotice ends a body that was cut. A body is cut only where there are no
	// tools to fetch the rest.
	cutNotice = "\n\n[Cut here. The other %d of %d bytes are not available.]"

	// leftOut names selected skills that had no room, to a model without tools.
	leftOut = "\nSelected as well, but too long to show here, so do not act as if you knew them: %s.\n"

	indexHeading = "Bundled files (open one with skills_read):\n"
	moreFiles    = "(%d more: skills_read with a folder as path lists it)\n"
)

// How a model works with files, a bullet a line.
const (
	filesHeading    = "## Working with files\n"
	filesPatch      = "- Change files that exist with apply_patch and nothing else, also for one line: send the smallest hunk that fits. Never type a whole file again."
	filesWrite      = "- write_file is for new files: it refuses a path that exists."
	filesWriteAlone = "- write_file makes new files: it refuses a path that exists."
	filesRead       = "- Before a patch that depends on lines you have not seen, read them with read_file and copy them; do not patch from memory."
	filesReadAlone  = "- Look at a file with read_file before you rely on what is in it."
	filesNoReading  = "- When a tool reports success, the file is as you sent it: do not read it back."
	filesShell      = "- Search with `rg` or `grep -rn` and run things through shell."
	filesInHand     = "- Text that stands in this conversation is at hand already: never write it to a file to read it there."
)
