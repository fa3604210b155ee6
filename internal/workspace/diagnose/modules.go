package diagnose

import (
	"iter"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/metier-run/metier/internal/interpreter"
)

// Tool is what installs a package.
type Tool string

// The tools whose installs the host performs (B1 13.4).
const (
	Pip Tool = "pip"
	Npm Tool = "npm"
)

// Interpreter is what runs code that uses such packages.
func (t Tool) Interpreter() interpreter.Kind {
	if t == Npm {
		return interpreter.Node
	}
	return interpreter.Python
}

// Module is an import that found nothing.
type Module struct {
	Tool Tool
	// Name is the module or package at the top of what was imported: "numpy",
	// "@scope/name".
	Name string
	// Distribution is the name to install it by. It is empty for a part of the language
	// itself, which cannot be installed.
	Distribution string
	// Whole is the name as it was imported: "moviepy.editor".
	Whole string
}

// Shapes of a missing module (B1 10.2): Python 3.8 to 3.14, python -m, packages that
// ask for an optional one by their own words; Node 18 to 24, tsc, jest, webpack, esbuild.
var (
	pythonMissing  = regexp.MustCompile(`(?m)(?:(?:ModuleNotFoundError|ImportError): |(?:^|[/\\\s])(?:python|pypy)[\d.]*(?:\.exe)?: )No module named (?:'([A-Za-z_][\w.]*)'|([A-Za-z_][\w.]*)(?:$|[;.,)\s]))`)
	pythonOptional = regexp.MustCompile(`ImportError: Missing optional dependency '([\w.-]{1,80})'|ImportError: ([\w-]{1,80}) not found, please install it|FeatureNotFound: Couldn't find a tree builder with the features you requested: (lxml|html5lib)\b`)
	nodeMissing    = regexp.MustCompile(`(?:Cannot find (?:module|package)|Can't resolve|Could not resolve) ['"]([^'"\s]+)['"]`)
	nodeBuiltin    = regexp.MustCompile(`No such built-in module: (node:[\w/]{1,80})`)
	pythonModule   = regexp.MustCompile(`^[A-Za-z_]\w{0,99}$`)
	pipName        = regexp.MustCompile(`^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?$`)
	npmName        = regexp.MustCompile(`^(?:@[a-z0-9][a-z0-9._-]{0,99}/)?[a-z0-9][a-z0-9._-]{0,99}$`)
	notMissing     = regexp.MustCompile(`is a package and cannot be directly executed|is not a package`)
)

// messageTail is how far Python's own words go on behind the name of a module.
const messageTail = 400

// Missing is the module that an output says is not there: the last one, for what comes
// before it was caught (B1 10.2). A module of the model's own by its spelling, such as
// "./lib" in Node, is none.
func Missing(output string) (Module, bool) {
	m, _, ok := missing(clean(output))
	return m, ok
}

// missing also tells where the last message stands.
func missing(output string) (found Module, at int, ok bool) {
	if !holdsAny(output, []string{"No module named", "Missing optional", "please install it", "tree builder", "Cannot find", "Can't resolve", "Could not resolve", "No such built-in"}) {
		return Module{}, 0, false
	}
	take := func(m Module, ok2 bool, pos int) {
		if ok2 && (!ok || pos > at) {
			found, at, ok = m, pos, true
		}
	}
	for _, m := range pythonMissing.FindAllStringSubmatchIndex(output, -1) {
		from, to := max(m[2], m[4]), max(m[3], m[5])
		after, _, _ := strings.Cut(output[to:min(len(output), to+messageTail)], "\n")
		if notMissing.MatchString(after) {
			continue
		}
		module, good := pythonPackage(output[from:to])
		take(module, good, m[0])
	}
	for _, m := range pythonOptional.FindAllStringSubmatchIndex(output, -1) {
		for i := 2; i < len(m); i += 2 {
			if m[i] >= 0 {
				name := output[m[i]:m[i+1]]
				take(Module{Tool: Pip, Name: name, Distribution: name, Whole: name}, pipName.MatchString(name), m[0])
			}
		}
	}
	for _, m := range nodeMissing.FindAllStringSubmatchIndex(output, -1) {
		module, good := nodePackage(output[m[2]:m[3]])
		take(module, good && !nodeFile(output[m[0]:m[2]], output[m[3]+1:]), m[0])
	}
	for _, m := range nodeBuiltin.FindAllStringSubmatchIndex(output, -1) {
		name := output[m[2]:m[3]]
		take(Module{Tool: Npm, Name: name, Whole: name}, true, m[0])
	}
	return found, at, ok
}

// pythonPackage reduces a module to what is installed for it.
func pythonPackage(whole string) (Module, bool) {
	whole = strings.TrimRight(whole, ".")
	top, rest, dotted := strings.Cut(whole, ".")
	if !pythonModule.MatchString(top) {
		return Module{}, false
	}
	m := Module{Tool: Pip, Name: top, Whole: whole}
	if next, _, _ := strings.Cut(rest, "."); dotted {
		// Some distributions share their top module with others.
		if d, ok := pipDistributions()[top+"."+next]; ok {
			m.Distribution = d
			return m, true
		}
	}
	switch d, known := pipDistributions()[top]; {
	case known:
		m.Distribution = d
	case !slices.Contains(pythonOwn(), top):
		m.Distribution = top
	}
	return m, m.Distribution == "" || pipName.MatchString(m.Distribution)
}

// nodePackage reduces a specifier to the package at its start.
func nodePackage(whole string) (Module, bool) {
	if strings.HasPrefix(whole, "node:") {
		return Module{Tool: Npm, Name: whole, Whole: whole}, true
	}
	parts := strings.SplitN(whole, "/", 3)
	name := parts[0]
	if strings.HasPrefix(name, "@") && len(parts) > 1 {
		name += "/" + parts[1]
	}
	if !npmName.MatchString(name) {
		return Module{}, false
	}
	m := Module{Tool: Npm, Name: name, Distribution: name, Whole: whole}
	if slices.Contains(nodeOwn(), name) {
		m.Distribution = ""
	}
	return m, true
}

// nodeFile reports whether what Node did not find is a file, by what stands before and
// after its name. Once paths are rewritten, the name alone may look like a package's:
// Node names a file that an ES module imports, and the one that it was started with.
func nodeFile(before, after string) bool {
	if !strings.HasPrefix(before, "Cannot find module") {
		return false
	}
	end, next, _ := strings.Cut(after, "\n")
	return strings.HasPrefix(end, " imported from") || strings.TrimSpace(end) == "" && !strings.HasPrefix(next, "Require stack:\n- ")
}

// pipDistributions maps modules to distributions of another name (B1 10.2, and more
// that are well known). Distributions that need a display or a compiler are given in
// the form that has neither.
func pipDistributions() map[string]string {
	return map[string]string{
		"PIL": "pillow", "cv2": "opencv-python-headless", "sklearn": "scikit-learn", "yaml": "PyYAML",
		"bs4": "beautifulsoup4", "docx": "python-docx", "pptx": "python-pptx", "fitz": "PyMuPDF",
		"Crypto": "pycryptodome", "dateutil": "python-dateutil",

		"OpenSSL": "pyOpenSSL", "serial": "pyserial", "usb": "pyusb", "magic": "python-magic", "dotenv": "python-dotenv",
		"jose": "python-jose", "jwt": "PyJWT", "git": "GitPython", "github": "PyGithub", "skimage": "scikit-image",
		"igraph": "python-igraph", "Levenshtein": "python-Levenshtein", "slugify": "python-slugify", "attr": "attrs",
		"MySQLdb": "mysqlclient", "psycopg2": "psycopg2-binary", "zmq": "pyzmq", "nacl": "PyNaCl", "markdown": "Markdown",
		"werkzeug": "Werkzeug", "pkg_resources": "setuptools", "distutils": "setuptools", "OpenGL": "PyOpenGL",
		"socks": "PySocks", "websocket": "websocket-client", "telegram": "python-telegram-bot", "discord": "discord.py",
		"umap": "umap-learn", "wx": "wxPython", "win32api": "pywin32", "win32com": "pywin32", "xlsxwriter": "XlsxWriter",
		"Xlib": "python-xlib", "ldap": "python-ldap", "multipart": "python-multipart", "barcode": "python-barcode",
		"memcache": "python-memcached", "ruamel": "ruamel.yaml", "faiss": "faiss-cpu", "community": "python-louvain",
		"absl": "absl-py", "pywt": "PyWavelets", "snappy": "python-snappy", "vlc": "python-vlc", "nmap": "python-nmap",
		"frontmatter": "python-frontmatter", "pythonjsonlogger": "python-json-logger", "speech_recognition": "SpeechRecognition",
		"Cryptodome": "pycryptodomex", "flask_sqlalchemy": "Flask-SQLAlchemy", "flask_cors": "Flask-Cors",
		"rest_framework": "djangorestframework", "corsheaders": "django-cors-headers", "environ": "django-environ",
		"google.protobuf": "protobuf", "google.generativeai": "google-generativeai", "google.cloud": "google-cloud-core",
		"googleapiclient": "google-api-python-client", "apiclient": "google-api-python-client",
		"IPython": "ipython", "tlz": "toolz", "mpl_toolkits": "matplotlib", "pylab": "matplotlib",
		"cairo": "pycairo", "gi": "PyGObject", "Bio": "biopython", "pyximport": "Cython", "odf": "odfpy",
	}
}

// pythonOwn are modules of Python's own library that a host may lack because its
// version is older or newer, or because it was built without them. No package of the
// same name is them.
func pythonOwn() []string {
	return []string{
		"tomllib", "zoneinfo", "graphlib", "annotationlib", "compression", // came with 3.9 to 3.14
		"imp", "asynchat", "asyncore", "smtpd", "cgi", "cgitb", "crypt", "telnetlib", "pipes", "imghdr", "sndhdr", "uu", "xdrlib", "nntplib", "audioop", "aifc", "chunk", "msilib", "nis", "ossaudiodev", "spwd", "sunau", "lib2to3", // went with 3.12 and 3.13
		"tkinter", "_tkinter", "turtle", "idlelib", "_sqlite3", "_ctypes", "_bz2", "_lzma", "_ssl", "_curses", "curses", "readline", "_zstd", // optional at build time
		"Tkinter", "urllib2", "ConfigParser", "StringIO", "cPickle", "Queue", "commands", "urlparse", "httplib", "HTMLParser", "__builtin__", "sets", // of Python 2
		"os", "sys", "json", "re", "math", "csv", "io", "time", "random", "typing", "pathlib", "datetime", "collections", "subprocess", "itertools", "functools", "email", "http", "urllib", "xml", "html", "asyncio", "logging", "unittest", "statistics", "string", "struct", "shutil", "tempfile", "threading", "multiprocessing", "sqlite3", "importlib", "encodings", "concurrent", "ctypes", "decimal", "fractions", "hashlib", "zipfile", "socket", "copy", "enum", "dataclasses", "glob", "gzip", "pickle", "platform", "pprint", "queue", "textwrap", "traceback", "types", "uuid", "warnings", "winreg", "msvcrt", "_winapi", "fcntl", "termios", "pwd", "grp", "resource",
	}
}

// nodeOwn are Node's own modules that may be imported without "node:".
func nodeOwn() []string {
	return strings.Fields("assert async_hooks buffer child_process cluster console constants crypto dgram diagnostics_channel dns domain events fs http http2 https inspector module net os path perf_hooks process punycode querystring readline repl stream string_decoder sys timers tls trace_events tty url util v8 vm wasi worker_threads zlib")
}

// ownModule finds the model's own file that a missing Python module is: x.py, or
// something in x/, where the command ran or one level down (B1 10.1). Such a module is
// not installed; its directory is off the path.
func ownModule(module string, files iter.Seq[string]) (file string, ok bool) {
	if files == nil || !pythonModule.MatchString(module) {
		return "", false
	}
	for name := range files {
		parts := strings.Split(path.Clean(name), "/")
		if len(parts) > 1 && parts[0] == ".." {
			continue
		}
		depth := slices.Index(parts[:len(parts)-1], module)
		switch {
		case parts[len(parts)-1] == module+".py" && len(parts) <= 2:
		case depth >= 0 && depth <= 1 && len(parts) == depth+2 && strings.HasSuffix(name, ".py"):
		default:
			continue
		}
		if file == "" || len(parts) < strings.Count(file, "/")+1 {
			file = path.Clean(name)
		}
	}
	return file, file != ""
}

// hiddenModule is Python's word for a module of the model's own that is imported in the
// place of another.
var hiddenModule = regexp.MustCompile(`module '([A-Za-z_]\w*)' has no attribute '\w+' \((most likely due to a circular import|consider renaming '.*' (?:since it has the same name as the standard library|if it has the same name as a third-party) module)|No module named '[\w.]+'; '([A-Za-z_]\w*)' is not a package`)

// readHidden is about the model's own file that has the name of a module of Python or
// of a package.
func readHidden(output string, o Facts) (Failure, bool) {
	if !holdsAny(output, []string{"circular import)", "(consider renaming", "is not a package"}) {
		return Failure{}, false
	}
	m := last(hiddenModule, output)
	if m == nil {
		return Failure{}, false
	}
	name := m[1] + m[3]
	file, own := ownModule(name, o.Files)
	d, known := pipDistributions()[name]
	if !known {
		d = name
	}
	sure := known || strings.Contains(m[2], "standard library") || slices.Contains(pythonOwn(), name) || o.installed(Pip, d)
	if !own || !sure {
		return Failure{}, false
	}
	return Failure{Class: OwnFile, Module: Module{Tool: Pip, Name: name, Whole: name}, Path: file, detail: "hides"}, true
}

// readModule is about a module that was not found.
func readModule(output string, o Facts) (Failure, bool) {
	m, at, ok := missing(output)
	if !ok {
		return Failure{}, false
	}
	if m.Tool == Pip && m.Whole != m.Name {
		// Python names a part of a package only when it has found the package.
		if f, known := readPart(output, at, m, o); known {
			return f, f.Class != Unknown
		}
	}
	if m.Distribution == "" {
		return Failure{Class: OldInterpreter, Module: m}, true
	}
	if m.Tool == Npm && m.Whole != m.Name && o.installed(Npm, m.Distribution) {
		return Failure{Class: APIMiss, Module: m, Miss: submodule(m, output)}, true
	}
	if m.Tool == Pip {
		if file, own := ownModule(m.Name, o.Files); own {
			return Failure{Class: OwnFile, Module: m, Path: file}, true
		}
		if m.Name == "pip" || m.Name == "ensurepip" {
			return Failure{Class: MissingCommand, Command: "pip"}, true
		}
	}
	return Failure{Class: MissingModule, Module: m}, true
}

// readPart is about a part of a package that is there. known is false when the package
// may be one of several that share their top.
func readPart(output string, at int, m Module, o Facts) (f Failure, known bool) {
	_, own := ownModule(m.Name, o.Files)
	switch {
	case own:
		return Failure{}, true // an error in the model's own code
	case m.Distribution != "" && !o.installed(m.Tool, m.Distribution):
		return Failure{}, false
	case inPackage(output, at):
		return Failure{Class: BrokenPackage, detail: m.Name}, true
	}
	return Failure{Class: APIMiss, Module: m, Miss: submodule(m, output)}, true
}

// inPackage reports whether the traceback whose last line stands at a position ends in
// an installed package.
func inPackage(output string, at int) bool {
	for _, t := range pythonTraces(output[:min(len(output), at+strings.IndexByte(output[at:]+"\n", '\n'))]) {
		if t.last {
			return packageFile(t.deepest().File)
		}
	}
	return false
}
