package file

// Everything that this package says to a model. The parameters are JSON with fixed
// bytes: they are part of a prompt's prefix.
const (
	readDescription = "Shows a text file of the working directory, or a part of it, with line numbers. A line is shown as its number, \" | \" and its text: number and bar are not part of the file, so leave them out of what you copy. Shows %d lines unless limit says otherwise; when more follow, the end of the page says which offset continues. A file that has not changed since you saw all of it is not shown again: a notice says so. Look at folders, pictures and other files that are not text with shell."
	readParameters  = `{"type":"object","properties":{` +
		`"path":{"type":"string","description":"File to show, relative to the working directory."},` +
		`"offset":{"type":"integer","description":"First line to show, counted from 1. Leave it out for the start."},` +
		`"limit":{"type":"integer","description":"Number of lines to show, %d if left out."}` +
		`},"required":["path"]}`

	patchDescription = "Changes files: the only way to change a file that exists, also for one line. It updates, adds, deletes and moves files, several in one patch, and applies all of it or nothing. A patch looks like this:\n" +
		"*** Begin Patch\n" +
		"*** Add File: notes/todo.txt\n" +
		"+first line of the new file\n" +
		"*** Update File: src/main.py\n" +
		"@@ def total(items):\n" +
		"     result = 0\n" +
		"-    for i in items:\n" +
		"+    for i in items[1:]:\n" +
		"         result += i\n" +
		"*** Delete File: old.txt\n" +
		"*** End Patch\n" +
		"A line that stays begins with a space, a line that goes with -, a line that comes with +. Give about three lines that stay around each change, copied from the file without line numbers. Where they stand more than once, name the function or class above in an @@ line. \"*** Move to: NEW\" directly below an \"*** Update File:\" line moves the file. Paths are relative to the working directory. After a success the files are as the patch says: do not read them again. In shell the same works as `apply_patch <<'EOF'` with the patch below; no other name works."
	patchParameters = `{"type":"object","properties":{` +
		`"patch":{"type":"string","description":"The whole patch from *** Begin Patch to *** End Patch, with real line breaks."}` +
		`},"required":["patch"]}`

	writeDescription = "Makes a new file with the content given, and the folders on its path. It refuses a path that exists: change such a file with apply_patch. After a success the file is as you sent it: do not read it again."
	writeParameters  = `{"type":"object","properties":{` +
		`"path":{"type":"string","description":"File to make, relative to the working directory."},` +
		`"content":{"type":"string","description":"The whole text of the file, with real line breaks."}` +
		`},"required":["path","content"]}`

	// nothing stands before every refusal (B1 5.2).
	nothing = "Nothing was changed. "

	// workspaceLost follows the first answer after the folders had to be made again.
	workspaceLost = "The working directory was lost and is empty now: the earlier files are gone. Make again what you still need."
	wasStopped    = "The call was stopped before it was done."
	patchSlow     = "Finding where the hunks belong took too long. Send fewer hunks at once, each with lines that stand in the file once."

	// Arguments.
	badRead       = `The arguments of read_file cannot be read. Send a JSON object: {"path": "src/main.py"}.`
	badWrite      = `The arguments of write_file cannot be read: they may have been cut off. Send a JSON object with the whole text, line breaks as \n and quotes as \": {"path": "src/main.py", "content": "import os\n"}. Make a long file in parts: the first with write_file, more with apply_patch.`
	badEdit       = `The arguments cannot be read: they may have been cut off. Change the file with apply_patch.`
	badPatch      = `The arguments of apply_patch cannot be read. Send a JSON object: {"patch": "*** Begin Patch\n...\n*** End Patch"}.`
	argumentTwice = "The argument %q stands there twice with different values: send it once."
	argumentHalf  = `The argument %q holds half of a character: an escape \ud800 to \udfff whose other half is missing. Write the character itself.`
	badNumber     = "%s is %q and must be a whole number. Leave it out to begin at the first line, or to see a page."
	badRange      = "The lines %q are no range. Give offset, the first line, and limit, the number of lines."
	noPathRead    = `No file is named. Give its path: {"path": "src/main.py"}.`
	noPathWrite   = `No file is named. Give its path and content: {"path": "src/main.py", "content": "..."}.`
	noPathEdit    = "No file is named. Give its path, or change the file with apply_patch, which names it."
	severalPaths  = "One call works on one file. Send a call for each, or change several with one apply_patch."
	noContent     = `The content of %s is missing. Send the whole text of the file as "content"; for an empty file send "".`
	noOld         = `"old_string" is missing: the text to replace. Or change the file with apply_patch.`
	noNew         = `"new_string" is missing: what to put in its place, "" to delete. Or change the file with apply_patch.`
	sameStrings   = "old_string and new_string are the same, so there is nothing to change."
	otherCommand  = "The command %q does not exist here. Change files with apply_patch."

	// Paths.
	refusedPath  = "%s cannot be used: %s."
	tooLargeFile = "%s has %d bytes, and the file tools take at most %d. Work on it with shell: head, sed -n, grep, or a script."
	largeReason  = "it has %d bytes, more than the %d that the file tools take"
	missingFile  = "There is no file %s."
	onlyRelative = "paths are relative to the working directory"
	writeItAs    = "%s. Name it from there, such as %s"
	didYouMean   = " Did you mean %s?"
	isFolder     = "%s is a folder. %s Name a file in it, or look with shell: ls -la %s"
	folderName   = "%s is the name of a folder. Name the file to make in it."
	folderHolds  = "%s holds: %s."
	folderPart   = "%s holds: %s and %d more."
	folderEmpty  = "%s is empty."
	folderClosed = "%s cannot be listed: %s."
	theFolder    = "Folder %s"
	theDirectory = "The working directory"
	noRoom       = "The workspace holds %d bytes of the %d that it may, so there is no room for %d more. Delete what is not needed with shell: du -a . | sort -n | tail shows what is large."

	// Reading. numbered is the form of every line that is shown from a file.
	numbered     = "%*d | %s\n"
	readHeader   = "%s, line %d to %d of %d:\n"
	moreLines    = "[%s. Continue with read_file(path=%q, offset=%d).]\n"
	clippedLine  = "[Line %d is too long for a page: its last %d bytes are not shown. See them with shell: sed -n %dp %s | cut -b %d-%d]\n"
	crlfEndings  = "[Lines end in CRLF; patches keep that.]\n"
	mixedEndings = "[%d lines end in CRLF and %d in LF; patches keep that.]\n"
	utf16File    = "[The file is UTF-16 and shown decoded; patches keep that.]\n"
	notUTF8      = "[The file is not UTF-8: bytes that cannot be shown stand as \ufffd. A patch keeps them, but cannot name them.]\n"
	emptyFile    = "%s is empty: 0 lines."
	unchanged    = "%s has not changed since you saw all of it: its %d lines stand above as you read or wrote them. Go on with these; to see it again all the same: read_file(path=%q, offset=1)."
	pastTheEnd   = "%s has %d lines, so there is none at %d. Give a smaller offset, or leave it out."
	binaryFile   = "%s is not text (%d bytes). Look at it with shell, for example with file or xxd, or with a script in Python."
	oneFileRead  = "\n[One call shows one file. Named besides: %d. Call read_file for each.]"

	// Writing.
	created        = "Created %s: %s."
	createdBelow   = "Created %s (%s from the top of the workspace): %s."
	madeBelow      = "\nFrom the top of the workspace, the new paths are: %s."
	madeMore       = "%s and %d more"
	nestedNote     = "\nNote: the shell is in %s, and paths begin there: %s is %s from the top of the workspace. If %s was meant: mv %s %s"
	nestedThere    = "\nNote: the shell is in %s, and paths begin there: %s is %s from the top of the workspace. %s is there, too: if that was meant, delete the new file and change that one, as %s, with apply_patch."
	replaced       = "Replaced %s: %s."
	filled         = "Filled %s, which was empty: %s."
	alreadyHolds   = "%s holds exactly this already (%s), so nothing was written. Go on."
	holdsSent      = "It holds what you sent; it need not be read back."
	existsAlready  = "%s exists already and holds something else: %s Change it with apply_patch and *** Update File, with the lines that differ. If you have not seen it, read it first. If it is meant to be another file, choose another path."
	existsBinary   = "%s exists already and is no text, which the file tools do not change. Have a script change it, run with shell, or choose another path."
	existsInEnds   = "%s exists already with the same text: only its line breaks or its encoding differ. Go on with it, or change these with shell, for example with sed or iconv."
	appeared       = "Something has the name %s already: a link that leads nowhere, or a file that came a moment ago. Look with shell: ls -la %s"
	notWritten     = "%s could not be written: %s."
	contentLarge   = "The file would have %d bytes, and the file tools write at most %d. Have a script write it, run with shell."
	resultLarge    = "The file would have more than the %d bytes that the file tools write. Have a script change it, run with shell."
	oldIsGone      = "You had not seen what the file held before (%d lines): it is gone. If it is missed, say so in the answer."
	contentWasJSON = "The content came as JSON and not as text, so it was written as JSON. If a text was meant, send it as one string."
	oneFileWritten = "One call writes one file: the other calls in the same list (%d) did nothing."
	escapedBreaks  = `The file is one line with %d times the two characters \n. If line breaks were meant, correct it with apply_patch and send real ones.`
	oneLine        = "1 line"
	manyLines      = "%d lines"
	oneMore        = "1 more line"
	manyMore       = "%d more lines"
	differsAt      = "line %d is %q there, and %q in what you sent."
	differsAfter   = "it ends after line %d, where what you sent goes on."
	differsBefore  = "what you sent ends after line %d, and it has %d."

	// Editing.
	edited         = "Changed %s %s."
	restKept       = "The rest of the file is as it was; it need not be read back."
	quotesFolded   = "It was found only by taking all kinds of quotes, dashes and spaces for the same; the new text was written the way the file does."
	escapesRead    = `It was found only by reading \u escapes as characters, in the new text too.`
	numbersCut     = "It was found only without the line numbers in front, which are not part of the file."
	inLine         = "in line %s"
	inLines        = "in lines %s"
	linesAndMore   = "in lines %s and %d more places"
	severalPlaces  = "old_string stands %d times in %s, %s. Send more of the lines around the one you mean, or replace_all=true for all of them."
	notAllSeen     = "To replace all, see all of %s first: read_file(path=%q), every page. Then send this again."
	sameBytes      = "%s has this text already."
	emptyOld       = "old_string is empty, and %s is not. Send the text to replace, or change the file with apply_patch."
	onlyASCII      = "%s is not UTF-8, so new_string may hold only ASCII. Convert the file first with iconv in shell, or do without."
	notFound       = "old_string is not in %s. It was looked for as:\n%s"
	sentMore       = "  and %d more lines\n"
	indentDiffers  = "The cause: the indentation differs. The file has %s where you sent %s."
	endsDiffer     = "The cause: white space at the end of the lines differs."
	tabsOnly       = "tabs (%d)"
	spacesOnly     = "spaces (%d)"
	tabsAndSpaces  = "tabs and spaces (%d and %d)"
	noIndent       = "no indentation"
	oneLineIsThere = "Line %d of it stands in line %d of the file, with other lines around."
	almostThere    = "No line of it is in the file; line %d of it is most like line %d of the file."
	nothingAlike   = "No line like it is in the file."
	realLines      = " The file has there:\n%s"
	copyLines      = "Copy from these lines, without numbers, and change the file with apply_patch."
	inOtherFile    = " It is in %s: name that file."
	readFirst      = " Read the file first: read_file(path=%q, offset=1)."
	oneEdit        = "One call makes one edit: the other calls in the same list (%d) did nothing."
)
