package diagnose

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Coach is a sentence that says what to do about a failure (B1 10.3). It is empty for
// what others speak of: an [APIMiss] has its probe, [Code] its [Repair], and what is
// unknown has nothing.
func (f Failure) Coach() string {
	switch f.Class {
	case MissingModule:
		return f.coachModule()
	case OwnFile:
		return f.coachOwn()
	case MissingCommand:
		return f.coachCommand()
	case OldInterpreter:
		return f.coachOld()
	case NoNetwork:
		if f.facts.Installs {
			return coachNetworkInstalls
		}
		return coachNetwork
	case Denied:
		return coachDenied
	case MissingLibrary:
		return fmt.Sprintf(coachLibrary, plain(f.Library, longestName))
	case BrokenPackage:
		if f.detail != "" {
			return fmt.Sprintf(coachPackage, f.detail)
		}
		return coachSomePackage
	case NestedSandbox:
		if f.detail == "chromium" {
			return coachChromium
		}
		return coachNested
	}
	return ""
}

// coachModule is about a package that is not there. The order is that of what is known
// best: what was tried, what is there, what can be done.
func (f Failure) coachModule() string {
	m := f.Module
	reason, failed := f.facts.refused(m.Tool, m.Distribution)
	switch {
	case failed:
		return fmt.Sprintf(coachInstallFailed, m.Name, m.Tool, m.Distribution, plain(reason, longestQuote))
	case f.facts.installed(m.Tool, m.Distribution):
		return fmt.Sprintf(coachUnusable, m.Distribution, m.Name)
	case m.Distribution != m.Name && f.facts.installed(m.Tool, m.Name):
		return fmt.Sprintf(coachWrongName, m.Name, m.Name, m.Distribution) + f.installWith(m.Tool, m.Distribution)
	case !f.facts.Installs:
		return fmt.Sprintf(coachInstallsOff, m.Name)
	case m.Distribution != m.Name:
		return fmt.Sprintf(coachOtherName, m.Name, m.Distribution) + f.installWith(m.Tool, m.Distribution)
	}
	return fmt.Sprintf(coachNotInstalled, m.Name) + f.installWith(m.Tool, m.Distribution)
}

// installWith is the command to type, if that is of use.
func (f Failure) installWith(tool Tool, distribution string) string {
	if !f.facts.Installs {
		return coachNoInstall
	}
	return fmt.Sprintf(coachInstall, tool, distribution)
}

// coachOwn is about the model's own file.
func (f Failure) coachOwn() string {
	file := plain(f.Path, longestQuote)
	if f.detail == "hides" {
		return fmt.Sprintf(coachHides, file, f.Module.Name)
	}
	dir := path.Dir(f.Path)
	if strings.HasPrefix(f.Path, f.Module.Name+"/") || dir == "." {
		return fmt.Sprintf(coachOwnHere, f.Module.Name, file) + f.pythonPath(".")
	}
	if path.Base(dir) == f.Module.Name {
		dir = path.Dir(dir)
	}
	return fmt.Sprintf(coachOwnBelow, f.Module.Name, file, plain(dir, longestQuote)) + f.pythonPath(plain(dir, longestQuote))
}

func (f Failure) pythonPath(dir string) string {
	if f.facts.PowerShell {
		return fmt.Sprintf(coachPathPowerShell, dir)
	}
	return fmt.Sprintf(coachPath, dir)
}

// coachCommand is about a program that is not there.
func (f Failure) coachCommand() string {
	name := path.Base(f.Command)
	shown := plain(f.Command, longestName)
	if tool, ok := packageManager(name); ok {
		if f.facts.Installs {
			return fmt.Sprintf(coachManager, shown, tool)
		}
		return fmt.Sprintf(coachManagerOff, shown)
	}
	if tool, distribution, ok := f.facts.programPackage(name); ok {
		if reason, failed := f.facts.refused(tool, distribution); failed {
			return fmt.Sprintf(coachProgramRefused, shown, tool, distribution, plain(reason, longestQuote))
		}
		return fmt.Sprintf(coachProgram, shown, tool, distribution) + f.installWith(tool, distribution)
	}
	if other := f.facts.spelling(f.Command); other != "" {
		return fmt.Sprintf(coachSpelled, shown, other)
	}
	if file := f.facts.ownScript(f.Command); file != "" {
		return fmt.Sprintf(coachScript, shown, runOf(plain(file, longestQuote)))
	}
	switch {
	case isSystemManager(name) || name == "sudo" || name == "su" || name == "doas":
		return fmt.Sprintf(coachSystem, shown)
	case slices.Contains(editors(), name):
		return fmt.Sprintf(coachEditor, shown)
	case slices.Contains(viewers(), name):
		return fmt.Sprintf(coachViewer, shown)
	case name == "apply_patch" || name == "apply-patch" || name == "applypatch":
		return fmt.Sprintf(coachPatch, shown)
	}
	if f.facts.Installs {
		return fmt.Sprintf(coachNoProgram, shown)
	}
	return fmt.Sprintf(coachNoProgramOff, shown)
}

// runOf is the command that runs a script of the workspace.
func runOf(file string) string {
	switch path.Ext(file) {
	case ".py":
		return "python3 " + file
	case ".js", ".mjs", ".cjs":
		return "node " + file
	case ".sh", ".bash":
		return "bash " + file
	}
	return "./" + file
}

// coachOld is about a language that is older, or newer, than the code.
func (f Failure) coachOld() string {
	switch {
	case f.Module.Tool == Npm:
		return fmt.Sprintf(coachNodeOwn, f.Module.Name)
	case slices.Contains([]string{"tkinter", "_tkinter", "turtle"}, f.Module.Name):
		return fmt.Sprintf(coachTk, f.Module.Name)
	case f.Module.Name != "":
		return fmt.Sprintf(coachPythonOwn, f.Module.Name, f.version())
	}
	return fmt.Sprintf(coachOldPython, f.version(), f.detail)
}

func (f Failure) version() string {
	if v := plain(f.facts.Python, longestName); v != "" {
		return "Python " + v
	}
	return "the Python of this host"
}
