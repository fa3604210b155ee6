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

	runDescription = "Runs a script that a skill ships and answers with its exit code, its output and links to the files it made. Only for a skill that fits the request, after its SKILL.md, and only for scripts that it has. Where SKILL.md writes `cd SKILL/scripts` and `python3 tool.py --in a.pdf`, that is one call: path scripts/tool.py, args --in a.pdf. Do not copy a script, and read one only when its traceback shows that it is broken."
	// Where a script begins: in a scratch, or where the model's own commands run.
	runsInScratch   = " A script begins in an empty working directory of its own and gets no input on stdin."
	runsInWorkspace = " A script begins in the directory where the shell is, with the same files and installed packages, and gets no input on stdin."
	runParameters   = `{"type":"object","properties":{` +
		`"skill":{"type":"string","description":"Name of the skill, exactly as listed."},` +
		`"path":{"type":"string","description":"Script inside the skill, such as scripts/tool.py, and nothing else: no program before it, no arguments behind it."},` +
		`"args":{"type":"string","description":"Arguments of the script: one line with quotes as in a shell, or a JSON array of strings. No shell reads them, so variables, wildcards and pipes are plain text. Leave it out for none."}` +
		`},"required":["skill","path"]}`

	// guidance follows the last page of a SKILL.md whose skill has scripts.
	guidance = `[Metier: how to run scripts here. This is not part of SKILL.md.]
The scripts of this skill run with skills_run, which finds the skill itself. Install paths, home folders, variables for them and "cd" in the text above belong to other hosts: leave them out, and do not look for the scripts, copy them or write them again. Take the script that the text names for the task, and give only its arguments. For example:
%s`

	runBadArguments = `the arguments of skills_run cannot be read, so nothing ran. Write them as a JSON object: {"skill": "NAME", "path": "scripts/tool.py", "args": ["--in", "a file.pdf"]}.`
	argsList        = `args begins with "[" and is no JSON array of strings, so nothing ran. Quote every element: "args": ["--range", "[1,2]"]. For one argument that begins with "[" put it into an array too.`
	argsObject      = `args is an object, so nothing ran. Write the arguments as the script takes them, in an array of strings: "args": ["--cone", "6"]. For JSON as one argument put its text into the array.`
	argsQuote       = `a quote in args is never closed, so nothing ran. Close it, or write args as a JSON array of strings, in which a quote is plain text: "args": ["it's"].`
	argsNUL         = "an argument holds a NUL character, which no program can be given, so nothing ran. Leave it out."
	argsLong        = "the arguments have %d bytes, more than the %d that a script can be given, so nothing ran. Shorten them."

	runBusy      = "this host runs as many scripts as it may already, so nothing ran. Call skills_run again with the same arguments."
	runRefused   = "scripts cannot run on this host, so nothing ran: %s. Do not try again. Read the script with skills_read and carry out its steps yourself, or say what it would do."
	runNoPath    = "no script of the skill %s is named, so nothing ran."
	runGlued     = "path holds more than the path of a script, so nothing ran. Call skills_run with %s"
	runFolder    = "skill %s: %q is a folder, so nothing ran."
	runReadable  = "skill %s: %s is a text to read and no script, so nothing ran. Read it with skills_read(skill=%q, path=%q)."
	runBinary    = "skill %s: %s is not text, so it does not run here."
	runOtherKind = "skill %s: %s does not run here: only files that end in %s do. Read it with skills_read(skill=%q, path=%q) and carry out its steps yourself."
	runScripts   = " Its scripts are: %s. Name one of them, or go on without."
	runNone      = " The skill %s has no script that runs here: follow its instructions without."
	runNoProgram = "this host has no %s that scripts may use, so nothing ran and none of this kind will. Read the script with skills_read(skill=%q, path=%q) and carry out its steps yourself, or say what it would do."
	scriptsToo   = " Its scripts run with skills_run."

	runExit      = "%s: exit %d (%s, sandbox: %s)"
	runSignalled = "%s: ended by the signal %q (%s, sandbox: %s). It did not finish: look at its output, and try a smaller input once."
	runTimedOut  = "%s: stopped after %s, the time that a script has, with all that it started (sandbox: %s). It did not finish. Give one call less to do, such as fewer pages or a part of the input."
	runOutOfMem  = "%s: stopped after %s because it used more memory than a script may (sandbox: %s). It did not finish. Give one call less to do, such as a part of the input."
	runTooMany   = "%s: stopped after %s because it started more processes than a script may (sandbox: %s). It did not finish. Have it do one thing after the other."
	runOutOfRoom = "%s: stopped after %s because it wrote more to the disk than a script may (sandbox: %s). It did not finish. Have it write less, or a part at a time."
	runEnded     = "%s: did not finish: %s (%s, sandbox: %s)."
	runGaps      = "Not confined on this host: %s."
	runOpen      = "Network: open, by the operator's choice."
	runProxied   = "Network: only %s."
	runNoOutput  = "(no output)"
	runStdout    = "stdout"
	runStderr    = "stderr"
	runOneCall   = "One call runs one script: the other calls in the same list (%d) did not run."

	workLost       = "The working directory was lost and is empty now: the earlier files are gone. Make again what you still need."
	stateName      = "(the host's state)"
	packagesOff    = "Packages cannot be installed here, so those that packages names were passed over."
	packagesAsked  = "packages is judged like a command that asks for them. %s"
	packagesBad    = `packages holds %s, which is no package, so nothing ran. Give names, with a version where it matters: "packages": ["pandas", "lxml==5.3.0"].`
	packagesFailed = "%s The script did not run. Leave packages out to try it with what is here, or take other packages or another way."
	needsApplied   = "From %s of the skill: %s"
	needsPassed    = "Passed over in %s of the skill, of which only names with versions are taken, and only what may be installed here: %s."
	needsMany      = "%s of the skill is longer than the %d packages that are installed from such a file: the rest was passed over."
	manifestPassed = "Passed over %s of the skill: it lists something else than names with versions from the registry."
	autoInstalled  = "The package for %q was missing: installed %s and ran the script again."
	autoLate       = "The package for %q was missing: installed %s. Call skills_run again with the same arguments."

	hintOf            = "Hint: %s"
	hintNotInstalled  = "Hint: the script needs the package %s, which could not be installed: %s. Do not try that again. Use another script or another way, or say what is missing."
	hintNotYet        = "Hint: the script needs the package %s, which could not be installed: %s. Call skills_run once more, or use another way."
	hintUnusable      = "Hint: the package %s is installed, and the script still does not find %q. Installing it again changes nothing. Use another script or another way, or say so."
	hintUnlisted      = "Hint: the script needs the package %s, which is not among those that may be installed here. Use another script or another way, or say what is missing."
	hintInstall       = "Hint: the package %s is not installed. Run `%s` with the shell, then call skills_run again."
	hintSkillFileHere = "Hint: %q is a file of the skill, but the script looked for it in the working directory. Read it with skills_read(skill=%q, path=%q) and write it there with write_file, or give what is in it as an argument if the script takes that."
	hintNoFileHere    = "Hint: a script begins at the top of the working directory, and names of files count from there. See what is there with `ls` in the shell."
	hintNoFileIn      = "Hint: a script begins where the shell is, which is %s now, and names of files count from there. See what is there with `ls` in the shell."
	hintRepair        = "Hint: the skill itself cannot be changed, so %s is a copy of its script for you to change. Run the copy in place of the script with the shell:\n%s\nIf the arguments are at fault, leave the copy alone and call skills_run with others."
	hintOwnCopy       = "Hint: this ran the script as the skill has it, and not your changed copy %s. Run the copy with the shell:\n%s"

	hintOwnModule    = "Hint: %q is a part of this skill (%s) and no package to install. Modules are found in the skill's top folder and beside the script. Run the script that SKILL.md names for this task; if this is the one, say that it does not work here."
	hintNoModule     = "Hint: the package %q is not on this host, and nothing can be installed. Use another script or another way, or say what is missing."
	hintOldPython    = "Hint: the Python of this host is %s, and scripts may need 3.10 or newer: the error may come from that and not from the script. Take another way, or say so."
	hintNetwork      = "Hint: scripts have no network here. Do not try again: work with what is in the conversation, or say what could not be fetched."
	hintReadOnly     = "Hint: the folder of the skill is read-only. Have the script write into its working directory: give a relative path such as out.pdf."
	hintSkillFile    = "Hint: %q is a file of the skill, but the script looked for it in its own working directory, which is empty at the start. Give what is in the file as an argument if the script takes that, or carry out the step yourself."
	hintNoFile       = "Hint: a script begins in an empty working directory: files of the conversation and of other calls are not there. Paths in its arguments are for what it makes itself."
	hintJSONArgument = "Hint: argument %d is not valid JSON, so do not blame the script: %s"
	hintJSONFile     = "Hint: the file %q that the arguments name is not valid JSON, so do not blame the script: %s"
	hintJSONAt       = "it goes wrong in line %d, column %d. Correct that and run it again."
	hintJSONLine     = "\n  %d: %s"
)
