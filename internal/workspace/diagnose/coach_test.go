package diagnose

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestCoach pins what is said of each kind of failure (B1 10.3, 10.13).
func TestCoach(t *testing.T) {
	on := Facts{Installs: true, Python: "3.8.10", Files: slices.Values([]string{"src/helpers.py", "lib/tools/__init__.py", "own.py", "build.sh", "yaml.py"}), Program: func(name string) bool {
		return slices.Contains([]string{"python3", "node", "grep", "ls", "find"}, name)
	}}
	off := on
	off.Installs = false
	installed := on
	installed.Installed = func(_ Tool, d string) bool { return d == "numpy" || d == "cv2" || d == "left-pad" }
	refused := on
	refused.Refused = func(_ Tool, d string) (string, bool) {
		return "no wheel for \x1b[31mthis\x1b[0m host\n" + strings.Repeat("and so on ", 100), d == "numpy"
	}
	nodeless, lost, had := on, on, on
	nodeless.Program = func(name string) bool { return name == "python3" }
	lost.Refused = func(_ Tool, d string) (string, bool) { return "no registry has it", d == "typescript" }
	had.Installed = func(_ Tool, d string) bool { return d == "typescript" }
	windows := on
	windows.PowerShell = true
	python := func(module string) string {
		return "ModuleNotFoundError: No module named '" + module + "'"
	}
	command := func(name string) string { return "bash: line 1: " + name + ": command not found" }
	trace := func(header string) string {
		return "Traceback (most recent call last):\n  File \"/usr/lib/python3/dist-packages/thing/x.py\", line 1, in <module>\n    y\n" + header + "\n"
	}
	var b strings.Builder
	for _, e := range []struct {
		name, output string
		facts        Facts
	}{
		{"not installed", python("numpy"), on},
		{"npm", "Cannot find package '@a/b' imported from a.mjs", on},
		{"another name", python("PIL.Image"), on},
		{"installs off", python("numpy"), off},
		{"wrong distribution", python("cv2"), installed},
		{"unusable", python("numpy"), installed},
		{"refused", python("numpy"), refused},
		{"own, here", python("own"), on},
		{"own, below", python("helpers"), on},
		{"own, package below", python("tools"), on},
		{"own, PowerShell", python("helpers"), windows},
		{"own, hides", python("yaml.x") + "; 'yaml' is not a package", on},
		{"tkinter", python("tkinter"), on},
		{"gone from Python", python("imp"), on},
		{"distutils", python("distutils"), on},
		{"distutils, installs off", python("distutils"), off},
		{"Node's own", "No such built-in module: node:sqlite", on},
		{"pip", command("pip3"), on},
		{"pip, installs off", command("pip3"), off},
		{"yarn", command("yarn"), on},
		{"python", command("python"), on},
		{"rg", command("rg"), on},
		{"own script", command("build.sh"), on},
		{"apt-get", command("apt-get"), on},
		{"sudo", command("sudo"), on},
		{"vim", command("vim"), on},
		{"xdg-open", command("xdg-open"), on},
		{"apply_patch", command("apply_patch"), on},
		{"ffmpeg", command("ffmpeg"), on},
		{"ffmpeg, installs off", command("ffmpeg"), off},
		{"tsc", command("tsc"), on},
		{"tsc, by path", "bash: line 1: node_modules/.bin/tsc: No such file or directory\nsh: 1: tsc: not found", on},
		{"tsc, installs off", command("tsc"), off},
		{"tsc, without Node", command("tsc"), nodeless},
		{"tsc, refused", command("tsc"), lost},
		{"tsc, installed", command("tsc"), had},
		{"ts-node", command("ts-node"), on},
		{"ts-node, installs off", command("ts-node"), off},
		{"pytest", command("pytest"), on},
		{"pytest, installs off", command("pytest"), off},
		{"ng", command("ng"), on},
		{"old Python", "TypeError: unsupported operand type(s) for |: 'type' and 'NoneType'", on},
		{"network", "curl: (6) Could not resolve host: x", on},
		{"network, installs off", "curl: (6) Could not resolve host: x", off},
		{"denied", "touch: cannot touch '/etc/x': Permission denied", on},
		{"library", "ImportError: libGL.so.1: cannot open shared object file: No such file", on},
		{"package", trace("ImportError: cannot import name 'a' from 'b' (/x/b.py)"), on},
		{"some package", "numpy.dtype size changed", on},
		{"sandbox", "bwrap: setting up uid map: Permission denied", on},
		{"browser", "No usable sandbox!", on},
		{"code", "  File \"a.py\", line 1\n    x x\nSyntaxError: invalid syntax\n", on},
		{"unknown", "it did not work", on},
	} {
		text := Read(e.output, e.facts).Coach()
		if strings.ContainsAny(text, "\x1b\n\r!") || strings.Contains(text, "%!") {
			t.Errorf("%s: %q", e.name, text)
		}
		fmt.Fprintf(&b, "%s: %s\n", e.name, text)
	}
	golden(t, "coach.txt", b.String())
}
