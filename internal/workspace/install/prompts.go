package install

import (
	"fmt"
	"slices"
	"strings"

	"github.com/metier-run/metier/internal/config"
)

// Everything that this package says to a model. Every refusal says first that
// nothing ran, since the line may hold more than the install, and last what to
// do.

// What to do in place of a tool that the host cannot be (B1 13.9).
const (
	usePip        = "Ask for Python packages with `pip install NAME`, which is carried out here."
	useNpm        = "Ask for packages with `npm install NAME`, which is carried out here."
	useBinary     = "Install the package with `npm install NAME`, then run its program as node_modules/.bin/PROGRAM."
	useModule     = "Install the package with `pip install NAME`, then run it with `python3 -m MODULE`."
	otherLanguage = "Only pip and npm packages can be installed here: do it without the package or in Python or JavaScript, or say in the answer that it needs the package."
	noPrograms    = "Programs of the system cannot be installed here: do it with the programs that are here or with a pip or npm package, or say in the answer what is missing."
)

// Why an option is not taken.
const (
	changesSource = "it changes where packages come from"
	changesPlace  = "packages go to one place here, where Python and Node find them"
	needsBuild    = "it is about building packages, and only built ones are installed here"
	runsScripts   = "install scripts of packages are never run here"
	isConstraint  = "constraint files are not read. Put the versions behind the names"
	isEditable    = "code of the workspace needs no install. Install what it needs by name, and run it from its folder or with PYTHONPATH set to it"
	isGlobal      = "there is one place for packages here, and nothing outside of it: a package's program is in node_modules/.bin afterwards"
	isWorkspaces  = "npm workspaces are not set up here. Install what the code needs by name"
	isLocked      = "that lock file is not read here, so other versions might come"
	isGroup       = "dependency groups are not read. Write the names out"
	isPre         = "a version that is not final is asked for by its number, as in NAME==2.0rc1"
	dropsNeeds    = "a package comes with what it needs"
	isDry         = "it asks what would be done, and here the install is done or not"
	isHash        = "packages are checked against what the index says, not against a hash in the command"
	isUnknown     = "only options are taken that change nothing about what is installed"
)

// Why a package is not taken.
const (
	isURL           = "it is a URL, and packages come from the registry by name only. Write the package's name"
	isGit           = "it is a Git address, and packages come from the registry by name only. Write the package's name"
	isPath          = "it is a path, and packages come from the registry by name only. Install what the code needs by name, and run the code from its folder"
	isAlias         = "it is an alias, which puts a package under another name. Write the package's own name"
	notAPipName     = "that is no name of a Python package. Write NAME, NAME==1.2 or 'NAME>=1.2,<2'"
	notAVersion     = "what follows the name is no comparison of versions. Write NAME==1.2 or 'NAME>=1.2,<2'"
	notAMarker      = "what follows the ; is no condition that pip knows. Leave it out"
	notAnNpmName    = "that is no name of an npm package. Write NAME, @SCOPE/NAME or NAME@1.2.3"
	notAnNpmVersion = "what follows the @ is no version, range or tag. Write NAME@1.2.3 or 'NAME@^1.2'"
	wantsTwoEquals  = "pip takes versions with two equals signs. Write NAME==1.2"
	wantsAt         = "npm takes versions behind an @. Write NAME@1.2.3"
	wantsQuotes     = "the shell takes < and > for redirections. Put the package into quotes, as in 'NAME>=1.2,<2'"
	isLoose         = "the version stands apart from its name. Write NAME==1.2 as one word, or 'NAME>=1.2,<2' in quotes"
)

// What is wrong with a file.
const (
	isMissing    = "there is no such file. The install is read before the line runs: write the file in a call before, or write the names out"
	isNoPackage  = "there is no such file, and npm install without a name installs what it lists. Write the names out"
	isNoLock     = "there is no such file, and npm ci installs what it lists. Use npm install"
	isNotLocked  = "the lock file does not have it at a version of the registry. Use npm install"
	isWritten    = "the line writes the file itself, and the install is read before the line runs. Write the file in a call before, or write the names out"
	isInput      = "input is not read. Write the names out"
	isNowhere    = "the line changes the folder in a way that cannot be told before it runs. Change it in a call before, or write the names out"
	isNoFiles    = "there are no files here to read. Write the names out"
	isManyFiles  = "the line reads too many files for its installs. Spread them over more calls"
	isEmptyFile  = "it lists no package"
	isFileOption = "options are not taken from a file, only packages, one a line"
	notJSON      = "it is not valid JSON of that kind of file. Repair it, or write the names out"
)

// tooMuch is what is wrong with a text that is not parsed at all.
const tooMuch = "it is too long or too deeply nested to be read"

const nothingRan = "Nothing ran: "

// nothing is the sentence about a refused command.
func nothing(format string, args ...any) string { return nothingRan + fmt.Sprintf(format, args...) }

func cannotRead(err error) string {
	return fmt.Sprintf("it cannot be read (%s). Write the names out", clip(err.Error()))
}

func offRefused(a ask) string {
	return nothing("`%s` asks for packages, and installing is not enabled here. Do it with what is here already, or say in the answer what is missing. The rest of the line can be run without the install.", a.shown)
}

func optionRefused(a ask, name, why string) string {
	if why == "" {
		why = isUnknown
	}
	if !strings.Contains(why, ". ") { // else it says itself what to do
		why += ". Write the command again without it"
	}
	return nothing("`%s` is not carried out with the option %s, because %s.", a.shown, clip(name), why)
}

func settingRefused(variable string) string {
	return nothing("the line sets %s, which would change what an install does, and the host installs with its own settings. Write the line again without it.", clip(variable))
}

func specRefused(a ask, w word, problem string) string {
	text := clip(withoutUser(w.text + w.glued))
	if text == "" {
		text = "''"
	}
	return nothing("`%s` does not take `%s` here: %s.", a.shown, text, problem)
}

func expansionRefused(a ask, w word) string {
	instead := "give a file of the workspace that lists them with -r"
	if a.family == npm {
		instead = "install what package.json lists with `npm install`"
	}
	return nothing("`%s` is read before the shell runs, so what the shell would put in at `%s` is not known. Write the names of the packages out, or %s.", a.shown, clip(withoutUser(w.raw)), instead)
}

func fileRefused(a ask, name, problem string) string {
	return nothing("`%s` needs %s, but %s.", a.shown, clip(name), problem)
}

func lineRefused(a ask, name string, line int, text, problem string) string {
	return nothing("`%s` cannot take line %d of %s, `%s`: %s.", a.shown, line, clip(name), clip(withoutUser(text)), problem)
}

func entryRefused(a ask, name, entry, version, problem string) string {
	return nothing("`%s` cannot take `%s` of %s at `%s`: %s.", a.shown, clip(entry), clip(name), clip(withoutUser(version)), problem)
}

func nothingAsked(a ask) string {
	if a.family == npm {
		return nothing("`%s` names no package. Write `%s NAME`, or `%s install` for what package.json lists.", a.shown, a.shown, a.name)
	}
	return nothing("`%s` names no package. Write `%s NAME`, or `%s -r FILE` with a file of the workspace that lists one a line.", a.shown, a.shown, a.shown)
}

func tooManyRefused(a ask, have, most int) string {
	return nothing("`%s` asks for %d packages, and one install has at most %d (limit %s). Ask for those that are needed, or spread them over more commands.", a.shown, have, most, config.InstallNames)
}

func unlistedRefused(name string, listed []string) string {
	const shown = 24
	names := slices.Clone(listed)
	more := ""
	if len(names) > shown {
		more = fmt.Sprintf(" and %d more", len(names)-shown)
		names = names[:shown]
	}
	return nothing("%s is not among the packages that may be installed here, which are %s%s. Do it with those and what is here already, or say in the answer that it needs %s.", clip(name), strings.Join(names, ", "), more, clip(name))
}

func archivesRefused(a ask) string {
	return nothing("`%s` makes archives, and packages are only installed here. Write `%s install NAME`.", a.shown, strings.TrimSuffix(a.shown, " "+a.verb))
}

func updateRefused(a ask) string {
	add := "install"
	if a.name == "yarn" {
		add = "add"
	}
	return nothing("`%s` does not say which version is wanted. Write `%s %s NAME@latest`.", a.shown, a.name, add)
}

func verbRefused(a ask) string {
	return nothing("`%s` does more than an install, which is not carried out here. Write `%s install NAME`, and what else is wanted as a command of its own.", a.shown, a.name)
}

func globalRefused(a ask) string {
	return nothing("`%s` is not carried out here, because %s. Write `%s add NAME`.", a.shown, isGlobal, a.name)
}

func ciRefused(a ask) string {
	return nothing("`%s` takes no names: it installs what package-lock.json lists. Write `%s install NAME` for a package.", a.shown, a.name)
}

func execRefused(a ask) string {
	return nothing("`%s` fetches a package in order to run it, which is not done here. Install it by name with `npm install NAME`, then run its program as node_modules/.bin/PROGRAM.", a.shown)
}

func runnerRefused(a ask) string {
	return nothing("`%s` fetches a package in order to run it, which is not done here. %s", a.shown, a.advice)
}

func programRefused(a ask, kind Kind, name, program string) string {
	return nothing("`%s` fetches a package in order to run it, which is not done here. The program %s comes with the %s package %s: write `%s install %s` as a command before, then `%s`.", a.shown, clip(program), kind, name, kind, name, clip(program))
}

func otherRefused(a ask) string {
	return nothing("`%s` is not carried out here. %s", a.shown, a.advice)
}

func fedRefused(a ask) string {
	return nothing("`%s` gets its names from another command, and an install is read before anything runs. Write the names out, or use `pip install -r FILE` with a file of the workspace that lists them.", a.shown)
}

func hiddenRefused(a ask, command string) string {
	return nothing("an install seems to be in the text that `%s` is to run, and it cannot be carried out there. Write `%s` as a plain command on a line of its own.", a.shown, clip(command))
}

func trapRefused(a ask, command string) string {
	return nothing("`%s` would run an install when the shell ends, and the host carries installs out before anything runs. Write `%s` as a plain command on a line of its own.", a.shown, clip(command))
}

func unclearRefused(a ask) string {
	return nothing("`%s` is not known before the shell runs, and the command may be an install. Write its name out: pip install NAME.", a.shown)
}

func unreadable(problem string) string {
	return nothing("an install seems to be in the line, and the line cannot be read as shell: %s. Repair it, or send the install in a call of its own.", problem)
}

func loopRefused(a ask) string {
	return nothing("`%s` is the condition of a loop, and an install is tried once, before the line runs. Write it as a command before the loop.", a.shown)
}

func backquotesRefused(a ask) string {
	return nothing("`%s` stands in backquotes with backslashes in them, where it cannot be replaced. Write it as a command of its own.", a.shown)
}

// clipped is how much of a text of the model's is said back to it, in bytes.
const clipped = 80

// clip is a text on one line, short.
func clip(text string) string {
	text = strings.Join(strings.Fields(strings.ReplaceAll(text, "`", "'")), " ")
	if len(text) <= clipped {
		return text
	}
	return strings.ToValidUTF8(text[:clipped], "") + "..."
}

// withoutUser drops what stands before the "@" of a URL, which may be a password.
func withoutUser(text string) string { return userInfo.ReplaceAllString(text, "//") }

// line is the note on an outcome.
func (o Outcome) line() string {
	names := strings.Join(o.Names, ", ")
	switch o.State {
	case Installed:
		return fmt.Sprintf("Installed with %s: %s.", o.Kind, names)
	case Already:
		return fmt.Sprintf("Installed already in this session: %s.", names)
	case BuiltIn:
		if o.Unchecked {
			return fmt.Sprintf("Here already without an install, in the version that the host has: %s. Installing is not enabled, so the version that was asked for was not looked at.", names)
		}
		return fmt.Sprintf("Here already without an install: %s.", names)
	case ManifestDone:
		if names == "" {
			return "Installed what package.json lists, which is nothing."
		}
		return fmt.Sprintf("Installed what package.json lists: %s.", names)
	case Failed:
		return fmt.Sprintf("Not installed: %s. %s.", names, strings.TrimSuffix(o.Reason, "."))
	case Together:
		return fmt.Sprintf("Not installed either, because %s installs all of a command or nothing: %s. Ask for that again without %s.", o.Kind, names, o.Reason)
	case Skipped:
		return fmt.Sprintf("Not installed, because the install before failed: %s.", names)
	}
	return ""
}
