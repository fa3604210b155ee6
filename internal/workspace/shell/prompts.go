package shell

// Everything of this package that a model may read.
const (
	// commandMark is the last line of the host's own in a script.
	commandMark = "The command begins below."
	// noWorkdir is said by the script of a command that was to run elsewhere.
	noWorkdir = "workdir: this folder cannot be entered. Name a folder of the workspace that exists, or leave workdir out."

	// The last lines of a background command's log.
	jobExited    = "[%s ended: exit %d after %s]\n"
	jobSignalled = "[%s ended: killed by the signal %s after %s]\n"
	jobStopped   = "[%s was ended with its conversation after %s]\n"
	jobBounded   = "[%s was ended after %s: it reached the limit of this host for %s]\n"
	jobLogFull   = "\n[This log is full. What the command writes from here on is not kept.]\n"
)
