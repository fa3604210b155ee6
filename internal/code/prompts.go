package code

// Everything that this package says to a model.
const (
	takenNote = "Files of this message, in the working directory of the tools: %s."
	takenFile = "%s (%s)"
	leftNote  = "Not there: %s."
	leftAlone = "Files of this message that are not in the working directory of the tools: %s."
	// What follows the name is [llm.Attachment.Problem].
	leftProblem = "%s (%s)"
	leftCount   = "%s (there may be %d files)"
	leftLong    = "%s (%s, and one file may have %s)"
	leftRoom    = "%s (all files together may have %s)"
	notStaged   = "Note: the attached file %s is not in the working directory: %v."

	// theCommand stands for the script that a command was written into, in what a person
	// is shown of a running call.
	theCommand = "the command"

	// What a host without recovery says.
	plainUnknown   = "There is no tool %s."
	plainArguments = "The arguments of %s are not valid."
	plainPatch     = "Nothing was changed. The patch is not valid."
)
