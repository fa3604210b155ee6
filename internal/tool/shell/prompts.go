package shell

// Everything that this package says to a model. The golden files of testdata pin it. The
// parameters are JSON with fixed bytes: they are part of a prompt's prefix.
const (
	descPurpose      = "Runs a command line, which may have many lines, in %s and answers with its exit code and its output. Run code to find out or to compute something: do not work it out in your head."
	descStays        = "Files, the directory after cd, exported variables and installed packages stay for the next call. PATH does not: it is set anew each time. HOME is the working directory."
	descNothingStays = "Nothing stays for the next call, no file either: do all that belongs together in one command. HOME is the working directory."
	descServers      = "A server that you start is reached on 127.0.0.1 by later commands while it runs in the background."
	descHost         = "Host: %s, sandbox %s, %s. No browser profile and no saved login of anybody is here."
	descInstalls     = "To install packages write pip install NAME or npm install NAME: the host reads that out of the command and does it (Python wheels only, no install scripts). Other sources, and options that change what is installed, are refused."
	descOnlyPackages = "Only these can be installed: %s."
	descNoInstalls   = "Nothing can be installed: use what is there."
	descOpen         = "Network: open."
	descProxied      = "Network: only %s, by https through the proxy that the environment names."
	descDenied       = "Network: none. Each command has a 127.0.0.1 of its own: start a server and use it in one command."
	descNotLimited   = "Network: meant to be closed, but not limited by this host's sandbox."
	descLinks        = "Files that a command makes come back as links for the user."
	descNoLinks      = "Files that a command makes stay in the working directory."
	descGone         = "Files that a command makes are gone after it."
	descResult       = "The result has the exit code first, then what was written to stdout and then to stderr. Input is closed."
	descFileTools    = "Look at files with read_file, make new ones with write_file, change them with apply_patch; or run `apply_patch <<'EOF'` with a patch as the whole command."
	descHeredoc      = "Write a file with `cat > NAME <<'EOF'`, and use it in the same command."
	descHereString   = "Write a file with `@'`, its lines, and `'@ | Set-Content NAME`, and use it in the same command."

	descUseful           = "Chain with &&. Search with rg or grep -rn. Do not write a script only to print a file."
	descUsefulPowerShell = "Search with rg or Select-String. Do not write a script only to print a file."
	descPrograms         = "Programs found here: %s. Others are probably absent."

	paramCommand    = `"command":{"type":"string","description":"The command line."}`
	paramWorkdir    = `"workdir":{"type":"string","description":"Directory for this call alone, relative to where the shell is."}`
	paramTimeout    = `"timeout_ms":{"type":"integer","description":"Milliseconds that the command may run: %d if left out, at most %d."}`
	paramBackground = `"run_in_background":{"type":"boolean","description":"Start it and return at once; the result names the file with its output."}`

	badArguments   = `The arguments of shell cannot be read, so nothing ran: they may have been cut off. Send a JSON object: {"command": "ls -la"}.`
	argumentTwice  = "The argument %q stands there twice with different values, so nothing ran. Send it once."
	oneCall        = "One call runs one command, and this one holds several, so nothing ran. Send a call for each, or chain them with &&."
	noCommand      = `There is no command, so nothing ran. Send {"command": "ls -la"}.`
	nulByte        = "The command holds a NUL character, so nothing ran. Leave it out."
	badTimeout     = "timeout_ms is %q and must be a whole number of milliseconds, so nothing ran. Leave it out for the usual time."
	tooLong        = "The command has %d bytes, more than the %d that one may have, so nothing ran."
	tooLongFiles   = "Write large texts with write_file, in parts."
	tooLongAlone   = "Do it with less text, or in several commands."
	refused        = "Commands cannot run on this host, so nothing ran: %s. Do not try again: answer without, and do not report anything as run."
	noBackground   = "Nothing runs in the background here, since nothing stays after a command, so nothing ran. Leave run_in_background out."
	ampersand      = "The command ends in &, so nothing ran: it would be stopped with the call. Leave the & out and set run_in_background to true."
	ampersandAlone = "The command ends in &, so nothing ran: it would be stopped with the call. Leave the & out, or put what needs it into the same command."
	patchShape     = "apply_patch is no program of this shell, so nothing ran. Call the tool apply_patch; or make the patch the whole command: `apply_patch <<'EOF'`, the patch from *** Begin Patch to *** End Patch, and EOF, with no pipe, no second command, no redirection and no workdir."
	patchNone      = "There is no apply_patch here, so nothing ran. Write files with `cat > NAME <<'EOF'`."
	badWorkdir     = "workdir %q cannot be used, so nothing ran: %v. Give a directory inside the working directory, such as \"src\", or leave it out."
	missingWorkdir = "There is no directory %q for workdir, so nothing ran. Make it with mkdir -p %s, or leave workdir out."
	noWorkdir      = "workdir %q is no directory, so nothing ran. Name one, or leave workdir out."
	cannotRun      = "Nothing ran: %s."

	busy              = "This host runs as many commands as it may already, so nothing ran. Call shell again with the same command."
	manyJobs          = "%d commands run in the background already, as many as may at once, so this one was not started. Wait until one has ended."
	noJobs            = "This host runs nothing in the background, so nothing ran. Leave run_in_background out."
	backgroundInstall = "An install cannot run in the background, so nothing ran. Install first in a call of its own, then start the command with run_in_background."
	started           = "%s runs in the background. What it writes is in %s."
	lookTail          = "Look at it with: tail %s"
	lookPowerShell    = "Look at it with: Get-Content -Tail 20 %s"
	startedEnds       = "It ends by itself or with the conversation; other commands cannot stop it."

	notStarted      = "The command was not started, through no fault of its own: %s."
	notStartedOnce  = "Nothing of it ran. Try it once more."
	shellBroken     = "This was failure %d in a row: the shell itself does not work here now."
	brokenWithFiles = "Do not try it again. read_file, write_file and apply_patch work without it: go on with them, and say what you could not run."
	brokenAlone     = "Do not try it again: answer without, and say what you could not run."

	noteLost    = "The working directory was lost and is empty now: the earlier files are gone. Make again what you still need."
	promptTaken = "Before the command stood %s, which a terminal or a notebook shows and no shell reads: it was taken away. Write commands without it."

	environmentKept  = "Packages are kept for the conversation and not in a virtual environment or with one Python: every Python here finds them, by PYTHONPATH."
	programOther     = "%s is not of the Python that packages are made for here, which is Python %s: those with compiled parts cannot be imported in another one. Run the code with python3."
	environmentOther = "The virtual environment %s runs Python %s, and packages are made for Python %s here: those with compiled parts cannot be imported in it. Run the code with python3, or make the environment anew with python3 -m venv."

	leftOut       = " (left out: its condition does not hold here)"
	installFailed = "An install in this command failed, so the command did not do what was asked."
	installing    = "[installing %s]\n"
	autoInstalled = "The package for %q was missing: installed %s and ran the command again."
	autoLate      = "The package for %q was missing: installed %s. That took all the time of the call, so run the command again."
	autoStuck     = "The package for %q was missing: installed %s. The command could not be started again, so run it again."
	onlyListed    = "the operator allows only these packages: %s"

	exit         = "exit %d (%s, sandbox: %s)"
	exitOfRest   = "exit %d, of the rest of the line alone (%s, sandbox: %s)"
	benignExit   = ", no failure: %s"
	timedOut     = "Stopped after %s, the time that the command had, with all that it started (sandbox: %s). If it needs longer, give timeout_ms; if it never ends, such as a server or a loop, use run_in_background or change it."
	timedOutOnly = "Stopped after %s, the time that the command had, with all that it started (sandbox: %s). If it needs longer, give timeout_ms; if it never ends, such as a server or a loop, change it."
	timedOutRest = "Stopped after %s, which was left of its time after an install (sandbox: %s). The package is there now: run the command again."
	outOfMemory  = "Stopped after %s because it used more memory than a command may (sandbox: %s). Work on less at a time."
	outOfRoom    = "Stopped after %s because it wrote more to the disk than a workspace may hold (sandbox: %s). Remove what is not needed, and write less."
	tooMany      = "Stopped after %s because it started more processes than a command may (sandbox: %s). Have it do one thing after the other."
	signalled    = "Ended by the signal %q (%s, sandbox: %s)."
	otherEnd     = "Did not finish: %s (%s, sandbox: %s)."
	directoryIs  = "Working directory is now %s"
	directoryTop = "Working directory is the top again"
	movedOutside = "The command ended outside of the working directory; the next one starts where this one did."
	exportsReset = "The exported variables are gone: they are too long together, or one of them cannot be set again. Export again what you still need."
	gapsAre      = "Not confined on this host: %s."
	networkOpen  = "Network: open, by the operator's choice."
	networkOnly  = "Network: only %s."
	dropped      = "[... %d bytes left out ...]\n"
	fileIs       = "A patch names this file %s."
	noOutput     = "(no output)"
	notKept      = "The files of this command could not be looked at, so none of them is kept for the user."
)
