package skill

import "github.com/metier-run/metier/internal/tool"

// Means is the tool that a model means by a name, or empty: hosts that
// models were trained on call these tools by many names (B1 4.1). A caller's
// own tool of such a name never gets here, and is why skills are not advertised.
func Means(name string) string {
	switch tool.Key(name) {
	case "skillslist", "listskills", "skilllist", "getskills", "showskills", "availableskills", "listavailableskills", "skills":
		return ListName
	case "skillsread", "skillread", "readskill", "loadskill", "openskill", "getskill", "useskill", "activateskill",
		"skillview", "viewskill", "skill", "readskillfile", "readskillresource", "loadskillresource",
		"readskillreference", "getskillinstructions", "getskillreference", "getskillscript":
		return ReadName
	}
	return ""
}

// runs reports whether a model means skills_run by a name. These names are not among
// those of [Means]: a caller's own tool that runs scripts is no skill tool, and no
// reason to hold skills back.
func runs(name string) bool {
	switch tool.Key(name) {
	case "skillsrun", "skillrun", "runskill", "runskills", "executeskill", "skillexecute", "skillsexecute", "runscript", "executescript",
		"runskillscript", "executeskillscript", "skillscript", "skillsscript":
		return true
	}
	return false
}

// Canonical is the tool of this package that a name means, or empty, for who shows calls
// to a person.
func Canonical(name string) string {
	if runs(name) {
		return RunName
	}
	return Means(name)
}

// wrapper reports whether a member may hold the arguments as a whole.
func wrapper(key string) bool {
	switch key {
	case "arguments", "input", "parameters", "params", "args", "kwargs":
		return true
	}
	return false
}

// The keys under which an argument comes, the surest first, as [tool.Key] folds
// them.
func skillKeys() []string { return []string{"skill", "skillname", "skillid", "name", "id"} }

func pathKeys() []string {
	return []string{
		"path", "file", "resource", "filename", "filepath", "resourcepath", "paths", "files",
		"reference", "referencepath", "scriptpath",
	}
}

func offsetKeys() []string { return []string{"offset", "start", "from", "byteoffset", "cursor"} }

func listOffsetKeys() []string { return append(offsetKeys(), "page", "index") }
