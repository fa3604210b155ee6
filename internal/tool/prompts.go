package tool

import (
	"fmt"
	"slices"
	"strings"

	"github.com/metier-run/metier/internal/journal"
)

// Everything that this package says to a model.
const (
	streamCut      = " (the beginning and the end of %d bytes)"
	streamControls = " (%d control characters left out)"

	filesLinked   = "Files that were made. Give these links to the user as they are:\n"
	filesOnDisk   = "Files that were made, on the disk of this host:\n"
	filesNone     = "Nothing is kept of the files that were made:\n"
	fileLine      = "- %s (%s)\n"
	fileSkipped   = "- not kept: %s: %s\n"
	filesUnlisted = "- not kept: %d more\n"

	unknown  = "Error: no tool is called %q, so nothing ran. "
	toolsAre = "The tools are: %s. Call one of them, or answer without."
	noTools  = "There are no tools here: answer without."

	codeOff        = "Running code is not enabled here: answer without, and do not report anything as run. "
	filesOff       = "Working with files is not enabled here: answer without, and do not report a file as read or written. "
	scriptsOff     = "Scripts are disabled here: carry out the script's steps yourself, or say what it would do. "
	scriptsOffRead = "Scripts are disabled here: read the script with skills_read and carry out its steps yourself, or say what it would do. "
	filesAreRead   = "A file of a skill is read with skills_read. "
	agentsOff      = "Sub-agents are not enabled here: do the task yourself. "
	picturesOff    = "Pictures cannot be shown here: check yours by its structure (size, parts, text in it) with what there is, and say in the answer that you have not seen it. "
)

// readTool is the tool that reads skills, as far as the sentences name it.
const readTool = "skills_read"

// Unknown answers a call to a tool that nobody declared: that nothing ran, why
// if the name is one of something that is off, and what there is instead (B1
// 6.2, 6.5 and 4.2).
func Unknown(name string, e Env) journal.Result {
	names := slices.Clone(e.Caller)
	for _, d := range e.Offer.Declared {
		names = append(names, d.Name)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	text := fmt.Sprintf(unknown, name) + off(name, names)
	if len(names) == 0 {
		return journal.Result{Text: text + noTools}
	}
	return journal.Result{Text: text + fmt.Sprintf(toolsAre, strings.Join(names, ", "))}
}

// surface is a part of the house that may be off.
type surface int

const (
	none surface = iota
	code
	files
	scripts
	agents
	pictures
)

// off says what is not to be had here, when the name asks for something that no
// tool on offer gives.
func off(name string, offered []string) string {
	wanted := surfaceOf(name)
	if slices.ContainsFunc(offered, func(o string) bool { return serves(surfaceOf(o), wanted) }) {
		return ""
	}
	reads := slices.ContainsFunc(offered, func(o string) bool { return Key(o) == Key(readTool) })
	switch {
	case wanted == scripts && reads:
		return scriptsOffRead
	case wanted == scripts:
		return scriptsOff
	case wanted == files && reads:
		return filesOff + filesAreRead
	case wanted == files:
		return filesOff
	case wanted == code:
		return codeOff
	case wanted == agents:
		return agentsOff
	case wanted == pictures:
		return picturesOff
	}
	return ""
}

// serves reports whether a tool of the one surface does what was wanted of the
// other. Who has a shell has files as well.
func serves(has, wanted surface) bool {
	return has == wanted || has == code && wanted == files
}

// surfaceOf sorts the names under which models reach for what a host may have.
func surfaceOf(name string) surface {
	switch Key(name) {
	case "shell", "bash", "sh", "terminal", "powershell", "cmd", "command", "exec", "execute", "execcommand",
		"executecommand", "runcommand", "runshell", "runshellcommand", "runterminalcmd", "python", "python3", "ipython",
		"node", "javascript", "executecode", "executepython", "runcode", "runpython", "codeinterpreter",
		"codeexecution", "bashcodeexecution", "localshell":
		return code
	case "applypatch", "applypatchtool", "readfile", "read", "readtextfile", "viewfile", "catfile", "getfile",
		"editfile", "edit", "strreplace", "strreplaceeditor", "strreplacebasededittool", "replaceinfile", "applyedit",
		"stringreplace", "writefile", "write", "createfile", "newfile", "putfile", "listdir", "listdirectory",
		"listfiles", "ls", "glob", "grep", "cat":
		return files
	case "skillsrun", "skillrun", "runskill", "executeskill", "runscript", "executescript", "runskillscript":
		return scripts
	case "spawnagent", "waitagent", "sendinput", "closeagent", "listagents", "spawnsubagent", "subagent", "agent",
		"task", "delegate", "delegatetask":
		return agents
	case "view", "viewimage", "open", "openimage", "display", "show", "showimage", "readimage", "look", "lookat",
		"see", "screenshot", "render", "preview", "image", "inspectimage":
		return pictures
	}
	return none
}

// Works reports whether a name is that of a tool that runs code or works with files.
func Works(name string) bool { return surfaceOf(name) == code || surfaceOf(name) == files }

// Key is a tool's name as names are compared that models wrote: in lower case,
// without a namespace, and without what stands between words.
func Key(name string) string {
	name = strings.ToLower(strings.TrimSpace(name))
	for _, space := range []string{"functions.", "function.", "tools.", "tool.", "default_api."} {
		if rest, ok := strings.CutPrefix(name, space); ok && rest != "" {
			name = rest
			break
		}
	}
	return between.Replace(name)
}

// between stands between the words of a name.
var between = strings.NewReplacer("_", "", "-", "", ".", "", " ", "")
