package diagnose

// Everything that this package says to a model. The golden files of testdata pin it.
const (
	coachInstallFailed = "The import of %s found nothing, and %s could not install %s: %s. Do not install it again. Use another package or the standard library, or say what is missing."
	coachUnusable      = "%s is installed for this conversation, and %s can still not be imported. Installing it again changes nothing. Check that the command runs the same interpreter (python3, node) and not another one, or take another package."
	coachWrongName     = "The package %s is installed and has not what the import of %s looks for: that comes with the package %s."
	coachInstallsOff   = "The module %s is not here, and packages cannot be installed. This is not an error in the code. Use what the language brings itself, or say what is missing."
	coachOtherName     = "The module %s is not here. It comes with the package %s."
	coachNotInstalled  = "The package %s is not installed. The code needs no change for that."
	coachInstall       = " Install it and run the command again: %s install %s"
	coachNoInstall     = " Packages cannot be installed here, so do without it."

	coachHides          = "Your own file %s has the name of the package %s and is imported in its place. Rename the file, and change what imports it."
	coachOwnHere        = "%s is your own code (%s) and no package to install. Python does not look in this directory for the script that you ran."
	coachOwnBelow       = "%s is your own code (%s) and no package to install. Python does not look in %s."
	coachPath           = " Put that on the path for the command: PYTHONPATH=%s python3 ..."
	coachPathPowerShell = " Put that on the path first: $env:PYTHONPATH = '%s'"

	coachManager    = "%s is not here. Packages are installed by the host when it reads this command: %s install NAME"
	coachManagerOff = "%s is not here, and packages cannot be installed. Work with what the language brings itself, or say what is missing."
	coachSpelled    = "%s is not here; this host has %s. Run the command again with that."
	coachScript     = "%s is a file of yours and not on PATH. Run it with: %s"
	coachSystem     = "%s is not here: programs cannot be installed on this host, and nothing runs as another user. Do it in Python or JavaScript, or say what is missing."
	coachEditor     = "%s is not here: there is no terminal to edit in. Change files with apply_patch, and create them with write_file."
	coachViewer     = "%s is not here: nobody sees a screen of this host. Save what you made as a file in the working directory and name it in the answer."
	coachPatch      = "%s is a tool and no program of the shell. Call apply_patch with the patch, or send it as the only command of the line."
	coachProgram    = "The program %s is not here. It comes with the %s package %s."
	coachNoProgram  = "The program %s is not on this host. Only packages of pip and npm bring programs here. Do it in another way, such as in Python or JavaScript, or say what is missing."

	coachProgramRefused = "The program %s is not here. It comes with the %s package %s, which could not be installed: %s. Do it in another way, or say what is missing."
	coachNoProgramOff   = "The program %s is not on this host, and nothing can be installed. Do it in another way, such as in Python or JavaScript, or say what is missing."

	coachNodeOwn   = "%s would be a part of Node itself, and the Node of this host has no such part. It cannot be installed. Use another module."
	coachTk        = "%s needs a desktop, and this host has none: no package brings it. Write the result to a file, such as an image or HTML."
	coachPythonOwn = "%s is or was a part of Python itself, and %s does not have it. No package of that name is it. Use what has taken its place, or write the few lines yourself."
	coachOldPython = "This host runs %s, and the code uses what came with Python %s. The error comes from that: write this place for the older version."

	coachNetwork         = "Commands have no network here. This is not an error in the code, and another try ends the same. Work with what is in the workspace and the conversation, or say what could not be fetched."
	coachNetworkInstalls = "Commands have no network here: only installs by the host (pip install NAME, npm install NAME) reach a registry. This is not an error in the code, and another try ends the same. Work with what is in the workspace and the conversation, or say what could not be fetched."
	coachDenied          = "The sandbox does not allow this: commands write only in the working directory and in $TMPDIR. This is not an error in the logic of the code. Use a relative path."
	coachLibrary         = "The native library %s is not on this host, and no package manager here supplies it. This is not an error in the code, and editing it does not help. Use a package that brings its own libraries or needs none."
	coachPackage         = "The import fails inside the installed package %s, not in your code, and editing your code does not help. Another version of it or of what it needs may work; or use another package."
	coachSomePackage     = "The failure comes from an installed package that does not fit this host or its other packages, not from your code. Install another version of it, or use another package."
	coachNested          = "The program starts a sandbox of its own, which cannot be done inside this one. Use the program's own setting that turns its sandbox off; it stays confined by this one."
	coachChromium        = "The browser starts a sandbox of its own, which cannot be done inside this one. Start it with --no-sandbox (Playwright: chromiumSandbox: false; Puppeteer: args: ['--no-sandbox']); it stays confined by this one."

	probeIt         = "it"
	probeNoName     = "What the installed library has: %s has no %s."
	probeNoArgument = "What the installed library has: %s takes no argument %s."
	probeNear       = " Nearest: %s."
	probeHas        = " It has: %s."
	probeTakes      = " It takes: %s."
	probeMore       = " and %d more"
	probeHow        = " Use one of these names."

	repeatTwice = "This command failed before, exactly as it is: 2 times now. Unless something changed since then it fails again: change the command or what it runs, or report what could not be done."
	repeatMany  = "This command has now failed %d times, exactly as it is. Sent again unchanged it will fail again: change the command or what it runs, or report what could not be done."

	rewriteNote = "%s was typed anew, %d lines, of which %d came back as they were; %d were changed or left out.\n"
	rewriteMore = "and %d more\n"
	rewriteHow  = "Next time change only such lines with apply_patch: an *** Update File section with these lines and about three around them."

	repairAt   = "The error comes from %s, line %d:\n"
	repairTest = "This is a test and says what is wanted: the cause is most likely in the code that it calls. Read that code and correct it first, with the smallest change by apply_patch, then run the same check again. Change the test only where it asks for something else than the task does."
	repairHow  = "Make the smallest change that fixes it with apply_patch, then run the same check again. Do not write the whole file again. If the lines do not match any more, read that part of the file first."

	benignGrep = "nothing matched; this is an answer and not an error"
	benignFind = "some places could not be looked at; what was found is listed"
	benignDiff = "the files differ; this is an answer and not an error"
	benignTest = "the condition is false; this is an answer and not an error"

	theCommand = "the command"
)
