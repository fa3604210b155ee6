package diagnose

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestMissing is the table of shapes of B1 10.2.
func TestMissing(t *testing.T) {
	for output, want := range map[string]Module{
		"Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\n    import numpy\nModuleNotFoundError: No module named 'numpy'\n": {Pip, "numpy", "numpy", "numpy"},
		"ModuleNotFoundError: No module named 'numpy'":                                                                                      {Pip, "numpy", "numpy", "numpy"},
		"ModuleNotFoundError: No module named 'nunpy'. Did you mean: 'numpy'?":                                                              {Pip, "nunpy", "nunpy", "nunpy"},
		"ModuleNotFoundError: No module named 'PIL'":                                                                                        {Pip, "PIL", "pillow", "PIL"},
		"ModuleNotFoundError: No module named 'PIL.Image'":                                                                                  {Pip, "PIL", "pillow", "PIL.Image"},
		"ModuleNotFoundError: No module named 'google.protobuf'":                                                                            {Pip, "google", "protobuf", "google.protobuf"},
		"ModuleNotFoundError: No module named 'google.protobuf.json_format'":                                                                {Pip, "google", "protobuf", "google.protobuf.json_format"},
		"ImportError: No module named requests":                                                                                             {Pip, "requests", "requests", "requests"},
		"ImportError: No module named requests.adapters":                                                                                    {Pip, "requests", "requests", "requests.adapters"},
		"/usr/bin/python3: No module named pytest":                                                                                          {Pip, "pytest", "pytest", "pytest"},
		"/usr/bin/python3.11: No module named http_server":                                                                                  {Pip, "http_server", "http_server", "http_server"},
		`C:\Python312\python.exe: No module named pytest`:                                                                                   {Pip, "pytest", "pytest", "pytest"},
		"python3: Error while finding module specification for 'a.b' (ModuleNotFoundError: No module named 'a')":                            {Pip, "a", "a", "a"},
		"E   ModuleNotFoundError: No module named 'yaml'":                                                                                   {Pip, "yaml", "PyYAML", "yaml"},
		"    | ModuleNotFoundError: No module named 'cv2'":                                                                                  {Pip, "cv2", "opencv-python-headless", "cv2"},
		"\x1b[1;35mModuleNotFoundError\x1b[0m: \x1b[35mNo module named 'bs4'\x1b[0m":                                                        {Pip, "bs4", "beautifulsoup4", "bs4"},
		"ModuleNotFoundError: No module named 'a'\nx\nModuleNotFoundError: No module named 'b'\n":                                           {Pip, "b", "b", "b"},
		"ModuleNotFoundError: No module named 'tkinter'":                                                                                    {Pip, "tkinter", "", "tkinter"},
		"ModuleNotFoundError: No module named '_ctypes'":                                                                                    {Pip, "_ctypes", "", "_ctypes"},
		"ModuleNotFoundError: No module named 'tomllib'":                                                                                    {Pip, "tomllib", "", "tomllib"},
		"ModuleNotFoundError: No module named 'distutils'":                                                                                  {Pip, "distutils", "setuptools", "distutils"},
		"ImportError: Missing optional dependency 'openpyxl'.  Use pip or conda to install openpyxl.":                                       {Pip, "openpyxl", "openpyxl", "openpyxl"},
		"ImportError: lxml not found, please install it":                                                                                    {Pip, "lxml", "lxml", "lxml"},
		"bs4.FeatureNotFound: Couldn't find a tree builder with the features you requested: lxml. Do you need to install a parser library?": {Pip, "lxml", "lxml", "lxml"},

		"Error: Cannot find module 'left-pad'\nRequire stack:\n- a.js\n":                             {Npm, "left-pad", "left-pad", "left-pad"},
		"Error: Cannot find module 'chart.js'\nRequire stack:\n- a.js\n":                             {Npm, "chart.js", "chart.js", "chart.js"},
		"Error: Cannot find module 'lodash/fp'\nRequire stack:\n- a.js\n":                            {Npm, "lodash", "lodash", "lodash/fp"},
		"Error: Cannot find module '@scope/name/sub'\nRequire stack:\n- a.js\n":                      {Npm, "@scope/name", "@scope/name", "@scope/name/sub"},
		"Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'left-pad' imported from a.mjs":           {Npm, "left-pad", "left-pad", "left-pad"},
		"Error [ERR_MODULE_NOT_FOUND]: Cannot find package '@a/b' imported from a.mjs":               {Npm, "@a/b", "@a/b", "@a/b"},
		"Error [ERR_UNKNOWN_BUILTIN_MODULE]: No such built-in module: node:sqlite":                   {Npm, "node:sqlite", "", "node:sqlite"},
		"a.ts(1,15): error TS2307: Cannot find module 'zod' or its corresponding type declarations.": {Npm, "zod", "zod", "zod"},
		"    Cannot find module 'axios' from 'src/a.js'\n":                                           {Npm, "axios", "axios", "axios"},
		"Module not found: Error: Can't resolve 'react' in 'src'":                                    {Npm, "react", "react", "react"},
		`✘ [ERROR] Could not resolve "react"`:                                                        {Npm, "react", "react", "react"},
		`error: Cannot find package "hono" from "a.ts"`:                                              {Npm, "hono", "hono", "hono"},
	} {
		if got, ok := Missing(output); !ok || got != want {
			t.Errorf("%q: %+v, %v", output, got, ok)
		}
	}
	for _, output := range []string{
		"", "No module named 'x'", "python3: No module named x.__main__; 'x' is a package and cannot be directly executed",
		"ModuleNotFoundError: No module named 'a.b'; 'a' is not a package",
		"ModuleNotFoundError: No module named 'rm -rf /'", "ModuleNotFoundError: No module named '../x'", "ModuleNotFoundError: No module named '_private'", "ModuleNotFoundError: No module named 'x_'",
		"Error: Cannot find module './lib'\nRequire stack:\n- a.js\n", "Error: Cannot find module '../lib/x.js'\nRequire stack:\n- a.js\n",
		"Error: Cannot find module 'main.js'\n    at Function._resolveFilename\n  code: 'MODULE_NOT_FOUND',\n  requireStack: []\n",
		"Error [ERR_MODULE_NOT_FOUND]: Cannot find module 'lib.js' imported from main.mjs", "Error: Cannot find module '/abs/x'\nRequire stack:\n- a.js\n",
		"Error: Cannot find module '--registry=x'\nRequire stack:\n- a.js\n", "Error: Cannot find package 'https://x/y'",
	} {
		if got, ok := Missing(output); ok {
			t.Errorf("%q: %+v", output, got)
		}
	}
}

// TestDistributions: all names are such that can be installed, and none needs a map to
// itself.
func TestDistributions(t *testing.T) {
	if n := len(pipDistributions()); n < 40 {
		t.Errorf("%d names", n)
	}
	for module, d := range pipDistributions() {
		if !pipName.MatchString(d) || module == d {
			t.Errorf("%s -> %s", module, d)
		}
	}
	for module, want := range map[string]string{"PIL": "pillow", "sklearn": "scikit-learn", "docx": "python-docx", "pptx": "python-pptx", "fitz": "PyMuPDF", "Crypto": "pycryptodome", "dateutil": "python-dateutil"} {
		if got, ok := Missing("ModuleNotFoundError: No module named '" + module + "'"); !ok || got.Distribution != want {
			t.Errorf("%s -> %s", module, got.Distribution)
		}
	}
}

// TestOwnModule is B1 10.1's check.
func TestOwnModule(t *testing.T) {
	for _, e := range []struct {
		files []string
		want  string
	}{
		{[]string{"helpers.py"}, "helpers.py"},
		{[]string{"./helpers.py"}, "helpers.py"},
		{[]string{"helpers/__init__.py"}, "helpers/__init__.py"},
		{[]string{"src/helpers.py", "a.py"}, "src/helpers.py"},
		{[]string{"src/helpers/__init__.py"}, "src/helpers/__init__.py"},
		{[]string{"src/helpers/x.py"}, "src/helpers/x.py"},
		{[]string{"src/helpers.py", "helpers.py"}, "helpers.py"},
		{[]string{"a/b/helpers.py"}, ""},
		{[]string{"a/b/helpers/__init__.py"}, ""},
		{[]string{"helpers.txt", "helpers/data.csv", "my_helpers.py", "helpers.py/x", "../helpers.py"}, ""},
		{nil, ""},
	} {
		if got, ok := ownModule("helpers", slices.Values(e.files)); got != e.want || ok != (e.want != "") {
			t.Errorf("%v: %q", e.files, got)
		}
	}
	if _, ok := ownModule("a", nil); ok {
		t.Error("found in nothing")
	}
}

// TestMissingCommand is the table of shapes of B1 10.4.
func TestMissingCommand(t *testing.T) {
	for output, want := range map[string]string{
		"zsh:1: command not found: foo":                                    "foo",
		"zsh: command not found: foo":                                      "foo",
		"bash: line 3: foo: command not found":                             "foo",
		"bash: foo: command not found":                                     "foo",
		"line 3 of the command: foo: command not found":                    "foo",
		"line 3 of the command: foo: not found":                            "foo",
		"sh: 1: foo: not found":                                            "foo",
		"sh: foo: not found":                                               "foo",
		"/bin/sh: 1: foo: not found":                                       "foo",
		"dash: 12: foo-bar.sh: not found":                                  "foo-bar.sh",
		"ash: foo: not found":                                              "foo",
		"run.sh: line 2: foo: not found":                                   "foo",
		"run.sh: 2: foo: not found":                                        "foo",
		"run.ksh[4]: foo: not found":                                       "foo",
		"sudo: foo: command not found":                                     "foo",
		"/usr/bin/env: 'foo': No such file or directory":                   "foo",
		"/usr/bin/env: ‘foo’: No such file or directory":                   "foo",
		"env: foo: No such file or directory":                              "foo",
		"xargs: foo: No such file or directory":                            "foo",
		"timeout: failed to run command ‘foo’: No such file or directory":  "foo",
		"make: foo: No such file or directory":                             "foo",
		"make[1]: foo: No such file or directory":                          "foo",
		"Error: spawn foo ENOENT\n    at x":                                "foo",
		"Error: spawnSync foo ENOENT":                                      "foo",
		`exec: "foo": executable file not found in $PATH`:                  "foo",
		"The term 'foo' is not recognized as a name of a cmdlet, function": "foo",
		"'foo' is not recognized as an internal or external command,":      "foo",
		"busybox: foo: applet not found":                                   "",
		"  File \"/usr/lib/python3.11/subprocess.py\", line 1, in _execute_child\nFileNotFoundError: [Errno 2] No such file or directory: 'ffmpeg'": "ffmpeg",
		"FileNotFoundError: [Errno 2] No such file or directory: 'data.csv'":                                                                        "",
		"404: page: not found":                      "",
		"error: 404: page: not found":               "",
		"error: user: not found":                    "",
		"Module: not found":                         "",
		"foo bar: command not found":                "",
		"command not found":                         "",
		"bash: ./run.sh: No such file or directory": "",
		"x: command not found: see the manual":      "",
		"bash: $(id): command not found":            "",
	} {
		if got, _ := missingCommand(output); got != want {
			t.Errorf("%q: %q", output, got)
		}
	}
}

// TestClasses: each class by its signs, and nothing by what only looks like them.
func TestClasses(t *testing.T) {
	own := Facts{Files: slices.Values([]string{"src/helpers.py", "random.py"}), Python: "3.8.10"}
	installed := Facts{Installed: func(tool Tool, d string) bool { return tool == Pip && d == "moviepy" || tool == Npm && d == "pk" }}
	trace := func(file, header string) string {
		return "Traceback (most recent call last):\n  File \"main.py\", line 2, in <module>\n    x\n  File \"" + file + "\", line 1, in f\n    y\n" + header + "\n"
	}
	for _, e := range []struct {
		output string
		facts  Facts
		want   Class
	}{
		{"", Facts{}, Unknown},
		{"something went wrong", Facts{}, Unknown},
		{"error", Facts{}, Unknown},
		{"ModuleNotFoundError: No module named 'helpers'", own, OwnFile},
		{"ModuleNotFoundError: No module named 'helpers'", Facts{}, MissingModule},
		{"ModuleNotFoundError: No module named 'moviepy.editor'", installed, APIMiss},
		{"ModuleNotFoundError: No module named 'moviepy.editor'", Facts{}, MissingModule},
		{trace("/x/site-packages/moviepy/a.py", "ModuleNotFoundError: No module named 'moviepy.editor'"), installed, BrokenPackage},
		{trace("/x/site-packages/other/a.py", "ModuleNotFoundError: No module named 'numpy'"), Facts{}, MissingModule},
		{"Error: Cannot find module 'pk/sub'\nRequire stack:\n- a.js", installed, APIMiss},
		{"ModuleNotFoundError: No module named 'imp'", Facts{}, OldInterpreter},
		{"/usr/bin/python3: No module named pip", Facts{}, MissingCommand},
		{trace("a.py", "AttributeError: partially initialized module 'random' has no attribute 'x' (most likely due to a circular import)"), own, OwnFile},
		{trace("a.py", "AttributeError: partially initialized module 'helpers' has no attribute 'x' (most likely due to a circular import)"), own, Code},
		{"bash: foo: command not found", Facts{}, MissingCommand},
		{trace("main.py", "TypeError: unsupported operand type(s) for |: 'type' and 'NoneType'"), own, OldInterpreter},
		{trace("main.py", "TypeError: unsupported operand type(s) for |: 'type' and 'NoneType'"), Facts{Python: "3.12"}, Code},
		{trace("main.py", "TypeError: unsupported operand type(s) for |: 'type' and 'NoneType'"), Facts{}, Code},
		{trace("main.py", "TypeError: unsupported operand type(s) for |: 'dict' and 'int'"), own, Code},
		{trace("main.py", "TypeError: 'type' object is not subscriptable"), own, OldInterpreter},
		{trace("main.py", "ImportError: cannot import name 'Self' from 'typing' (/usr/lib/python3.8/typing.py)"), own, OldInterpreter},
		{trace("main.py", "AttributeError: 'str' object has no attribute 'removeprefix'"), own, OldInterpreter},
		{"  File \"a.py\", line 3\n    match x:\n          ^\nSyntaxError: invalid syntax\n", own, OldInterpreter},
		{"  File \"a.py\", line 3\n    x = (\n        ^\nSyntaxError: invalid syntax\n", own, Code},
		{"./a: error while loading shared libraries: libfoo.so.1: cannot open shared object file: No such file or directory", Facts{}, MissingLibrary},
		{trace("/x/site-packages/cv2/__init__.py", "ImportError: libGL.so.1: cannot open shared object file: No such file or directory"), Facts{}, MissingLibrary},
		{"OSError: cannot load library 'libpango-1.0-0': error", Facts{}, MissingLibrary},
		{`OSError: no library called "cairo-2" was found`, Facts{}, MissingLibrary},
		{"dyld[1]: Library not loaded: @rpath/libz.1.dylib", Facts{}, MissingLibrary},
		{trace("/x/site-packages/a/b.py", "ImportError: cannot import name 'x' from 'c' (/x/site-packages/c/__init__.py)"), Facts{}, BrokenPackage},
		{trace("main.py", "ImportError: cannot import name 'x' from 'c' (/x/site-packages/c/__init__.py)"), Facts{}, APIMiss},
		{"ValueError: numpy.dtype size changed, may indicate binary incompatibility", Facts{}, BrokenPackage},
		{"Error: x.node was compiled against a different Node.js version using", Facts{}, BrokenPackage},
		{"curl: (6) Could not resolve host: example.com", Facts{}, NoNetwork},
		{"curl: (6) Could not resolve host: example.com", Facts{Network: true}, Unknown},
		{trace("/x/site-packages/urllib3/a.py", "socket.gaierror: [Errno -3] Temporary failure in name resolution"), Facts{}, NoNetwork},
		{"TypeError: fetch failed\n    at a (main.js:1:1)\n  [cause]: Error: getaddrinfo EAI_AGAIN example.com", Facts{}, NoNetwork},
		{"connect ENETUNREACH 1.1.1.1:443", Facts{}, NoNetwork},
		{"ENOTFOUNDATION", Facts{}, Unknown},
		{"touch: cannot touch '/etc/x': Read-only file system", Facts{}, Denied},
		{"PermissionError: [Errno 13] Permission denied: '/etc/x'", Facts{}, Denied},
		{"bash: ./run.sh: Permission denied", Facts{}, Unknown},
		{"Error: EACCES: permission denied, open '/root/x'", Facts{}, Denied},
		{"[1:1:FATAL:zygote_host_impl_linux.cc(127)] No usable sandbox! If you are", Facts{}, NestedSandbox},
		{"Running as root without --no-sandbox is not supported.", Facts{}, NestedSandbox},
		{"bwrap: Creating new namespace failed: Operation not permitted", Facts{}, NestedSandbox},
		{"sandbox-exec: sandbox_apply: Operation not permitted", Facts{}, NestedSandbox},
		{trace("main.py", "AttributeError: module 'json' has no attribute 'dump_s'. Did you mean: 'dumps'?"), Facts{}, APIMiss},
		{trace("main.py", "AttributeError: 'NoneType' object has no attribute 'x'"), Facts{}, Code},
		{trace("main.py", "ValueError: bad"), Facts{}, Code},
		{"Traceback (most recent call last):\n  File \"main.py\", line 2, in <module>\n    x\n", Facts{}, Unknown},
		{"a.c:1:20: error: 'x' undeclared", Facts{}, Code},
		{"a.c:1:20: warning: unused", Facts{}, Unknown},
	} {
		f := Read(e.output, e.facts)
		if f.Class != e.want {
			t.Errorf("%q: %q, not %q", e.output, f.Class, e.want)
		}
	}
}

// TestTraces: a traceback that is cut is none.
func TestTraces(t *testing.T) {
	got := pythonTraces("Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\n    x\ncut here of something\nTraceback (most recent call last):\n  File \"b.py\", line 2, in <module>\n    f()\n    ~^^\n  File \"c.py\", line 3, in f\n    g()\n  [Previous line repeated 995 more times]\nRecursionError: maximum\n")
	want := []trace{{frames: []place{{"b.py", 2}, {"c.py", 3}}, header: "RecursionError: maximum", last: true}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(trace{})); diff != "" {
		t.Error(diff)
	}
}
