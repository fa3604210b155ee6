package diagnose

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/metier-run/metier/internal/interpreter"
)

// Shapes of a missing command (B1 10.4), in the order in which they are tried. zsh's
// comes first, because the others would take its last word for something else.
var (
	zshMissing   = regexp.MustCompile(`(?m)command not found: ([^\s:'"]{1,80})$`)
	bashMissing  = regexp.MustCompile(`(?m)(?:^|: )([^\s:'"]{1,80}): command not found$`)
	shMissing    = regexp.MustCompile(`(?m)^(?:(?:\S*sh|\S*[./]\S*): (?:line )?\d+: |\S+\[\d+\]: |line \d+ of the command: |(?:\S*/)?(?:ba|da|z|k|a)?sh: )([^\s:'"]{1,80}): (?:not found|inaccessible or not found)$`)
	psMissing    = regexp.MustCompile(`The term '([^'\s]{1,80})' is not recognized|^'([^'\s]{1,80})' is not recognized as an internal or external command`)
	startMissing = regexp.MustCompile(`(?m)(?:env|xargs|make|nice|nohup|timeout|stdbuf|time|setsid|watch|find|parallel)(?:\[\d+\])?: (?:failed to run command |cannot run )?['"‘“` + "`" + `]?([\w.+-]{1,80})['"’”]?: No such file or directory`)
	callMissing  = regexp.MustCompile(`spawn(?:Sync)? ([\w.+-]{1,80}) ENOENT|exec: "([\w.+-]{1,80})": executable file not found|FileNotFoundError: \[(?:Errno|WinError) 2\] (?:No such file or directory|The system cannot find the file specified): '([\w+-][\w.+-]{0,79})'`)
	programName  = regexp.MustCompile(`^[\w./+@\[-][\w./+@\[\]-]{0,79}$`)
)

// commandShapes lists the shapes with what each of them holds.
func commandShapes() []shape {
	return []shape{
		{"command not found: ", zshMissing},
		{": command not found", bashMissing},
		{" not found", shMissing},
		{"' is not recognized", psMissing},
		{": No such file or directory", startMissing},
		{" ENOENT", callMissing},
		{": executable file not found", callMissing},
		{"_execute_child", callMissing}, // what Python could not open is a file, unless it meant to run it
	}
}

// missingCommand is the program that an output says is not there.
func missingCommand(output string) (string, bool) {
	for _, s := range commandShapes() {
		if !strings.Contains(output, s.holds) {
			continue
		}
		for _, m := range s.re.FindAllStringSubmatch(output, mostPlaces) {
			if s.re == callMissing && m[3] != "" && s.holds != "_execute_child" {
				continue
			}
			for _, name := range m[1:] {
				if name != "" && programName.MatchString(name) {
					return name, true
				}
			}
		}
	}
	return "", false
}

// readCommand is about a program that was not found.
func readCommand(output string, _ Facts) (Failure, bool) {
	name, ok := missingCommand(output)
	return Failure{Class: MissingCommand, Command: name}, ok
}

// packageManagers are the programs that install packages under another name than the
// two that the host performs, and the form that works here.
func packageManagers() map[string]Tool {
	return map[string]Tool{
		"pip": Pip, "pip2": Pip, "pip3": Pip, "easy_install": Pip, "uv": Pip, "uvx": Pip, "poetry": Pip, "pipenv": Pip, "pipx": Pip,
		"conda": Pip, "mamba": Pip, "micromamba": Pip, "pdm": Pip, "rye": Pip, "hatch": Pip,
		"npm": Npm, "npx": Npm, "pnpm": Npm, "pnpx": Npm, "yarn": Npm, "bun": Npm, "bunx": Npm, "corepack": Npm,
	}
}

var versionedPip = regexp.MustCompile(`^pip\d[\d.]*$`)

func packageManager(name string) (Tool, bool) {
	name = path.Base(name)
	if versionedPip.MatchString(name) {
		return Pip, true
	}
	t, ok := packageManagers()[name]
	return t, ok
}

// npmPrograms are well-known programs of npm packages, with the package of each.
func npmPrograms() map[string]string {
	return map[string]string{
		"tsc": "typescript", "tsserver": "typescript", "ts-node": "ts-node", "tsx": "tsx", "esbuild": "esbuild", "rollup": "rollup", "webpack": "webpack-cli", "vite": "vite", "parcel": "parcel", "swc": "@swc/cli", "babel": "@babel/cli",
		"eslint": "eslint", "prettier": "prettier", "stylelint": "stylelint", "standard": "standard", "biome": "@biomejs/biome", "markdownlint": "markdownlint-cli",
		"jest": "jest", "mocha": "mocha", "vitest": "vitest", "ava": "ava", "nyc": "nyc", "c8": "c8", "cypress": "cypress",
		"nodemon": "nodemon", "http-server": "http-server", "serve": "serve", "json-server": "json-server", "concurrently": "concurrently", "rimraf": "rimraf", "cross-env": "cross-env", "npm-run-all": "npm-run-all", "turbo": "turbo",
		"ng": "@angular/cli", "vue": "@vue/cli", "next": "next", "nest": "@nestjs/cli", "gulp": "gulp-cli", "grunt": "grunt-cli", "sass": "sass", "lessc": "less", "postcss": "postcss-cli", "tailwindcss": "@tailwindcss/cli", "uglifyjs": "uglify-js", "terser": "terser",
		"mmdc": "@mermaid-js/mermaid-cli", "marp": "@marp-team/marp-cli", "prisma": "prisma", "svgo": "svgo", "cowsay": "cowsay", "typedoc": "typedoc", "jsdoc": "jsdoc", "asar": "@electron/asar",
	}
}

// pipPrograms are those of Python packages.
func pipPrograms() map[string]string {
	return map[string]string{
		"pytest": "pytest", "py.test": "pytest", "tox": "tox", "nox": "nox", "coverage": "coverage", "hypothesis": "hypothesis",
		"black": "black", "ruff": "ruff", "flake8": "flake8", "pylint": "pylint", "mypy": "mypy", "pyright": "pyright", "isort": "isort", "autopep8": "autopep8", "yapf": "yapf", "bandit": "bandit", "pre-commit": "pre-commit", "yamllint": "yamllint", "sqlfluff": "sqlfluff",
		"ipython": "ipython", "jupyter": "jupyter-core", "jupytext": "jupytext", "papermill": "papermill", "streamlit": "streamlit",
		"flask": "flask", "django-admin": "django", "uvicorn": "uvicorn", "gunicorn": "gunicorn", "hypercorn": "hypercorn", "celery": "celery", "alembic": "alembic", "scrapy": "scrapy",
		"http": "httpie", "yt-dlp": "yt-dlp", "aws": "awscli", "ansible": "ansible", "markitdown": "markitdown", "mkdocs": "mkdocs", "sphinx-build": "sphinx", "cookiecutter": "cookiecutter", "in2csv": "csvkit", "csvsql": "csvkit", "pygmentize": "pygments",
		"cmake": "cmake", "ninja": "ninja", "meson": "meson", "cython": "cython", "maturin": "maturin", "twine": "twine", "pyinstaller": "pyinstaller", "ocrmypdf": "ocrmypdf", "img2pdf": "img2pdf", "pdf2txt.py": "pdfminer.six",
	}
}

// Brings is the package of an interpreter that is well known to bring a program; empty
// where none is.
func Brings(kind interpreter.Kind, program string) string {
	if kind == interpreter.Node {
		return npmPrograms()[program]
	}
	return pipPrograms()[program]
}

// programPackage is the package to install for a program, where one is well known that is
// of use here.
func (o Facts) programPackage(name string) (t Tool, distribution string, ok bool) {
	if !o.Installs {
		return "", "", false
	}
	t, distribution = Npm, Brings(interpreter.Node, name)
	if distribution == "" {
		t, distribution = Pip, Brings(interpreter.Python, name)
	}
	if distribution == "" || o.installed(t, distribution) {
		return "", "", false
	}
	return t, distribution, t == Pip || o.Program == nil || o.program("node")
}

// systemManagers install programs for the whole host, which nothing does here.
func systemManagers() []string {
	return []string{"apt", "apt-get", "aptitude", "dpkg", "yum", "dnf", "rpm", "zypper", "pacman", "apk", "brew", "port", "snap", "flatpak", "choco", "winget", "scoop", "nix", "nix-env", "gem", "cargo", "go", "dotnet"}
}

// otherSpellings are other names of what a program does, the best first.
func otherSpellings() map[string][]string {
	return map[string][]string{
		"python": {"python3"}, "python2": {"python3"}, "python3": {"python"}, "py": {"python3", "python"}, "pypy": {"python3"}, "ipython": {"python3"},
		"node": {"nodejs"}, "nodejs": {"node"}, "js": {"node"}, "ts-node": {"node"}, "tsx": {"node"}, "deno": {"node"},
		"rg": {"grep"}, "ripgrep": {"rg", "grep"}, "ag": {"rg", "grep"}, "ack": {"rg", "grep"}, "egrep": {"grep"}, "fgrep": {"grep"}, "ggrep": {"grep"},
		"fd": {"fdfind", "find"}, "fdfind": {"fd", "find"}, "bat": {"batcat", "cat"}, "batcat": {"bat", "cat"}, "exa": {"ls"}, "eza": {"ls"}, "ll": {"ls"}, "dir": {"ls"}, "tree": {"find"},
		"convert": {"magick"}, "magick": {"convert"}, "identify": {"magick"}, "mogrify": {"magick"},
		"gsed": {"sed"}, "gawk": {"awk"}, "mawk": {"awk"}, "nawk": {"awk"}, "gfind": {"find"}, "gtar": {"tar"}, "bsdtar": {"tar"}, "gmake": {"make"}, "gdate": {"date"}, "greadlink": {"readlink"},
		"libreoffice": {"soffice"}, "soffice": {"libreoffice"}, "chromium": {"chromium-browser", "google-chrome"}, "google-chrome": {"chromium", "chromium-browser"}, "chrome": {"chromium", "google-chrome"}, "chromium-browser": {"chromium"},
		"md5": {"md5sum"}, "md5sum": {"md5"}, "shasum": {"sha256sum"}, "sha256sum": {"shasum"}, "7z": {"7za", "7zr", "unzip"}, "zcat": {"gzip"}, "gunzip": {"gzip"}, "wget": {"curl"}, "curl": {"wget"}, "more": {"cat"}, "less": {"cat"},
		"nc": {"ncat"}, "cc": {"gcc", "clang"}, "gcc": {"cc", "clang"}, "clang": {"gcc", "cc"}, "g++": {"c++", "clang++"}, "c++": {"g++", "clang++"}, "bash": {"sh"}, "zsh": {"bash", "sh"}, "ksh": {"bash", "sh"}, "source": {"."}, "pytest": {"python3"}, "py.test": {"pytest"}, "jshell": {"java"},
	}
}

// editors have no terminal here.
func editors() []string {
	return []string{"vi", "vim", "nvim", "nano", "emacs", "ed", "ex", "code", "subl", "pico", "micro"}
}

// viewers show something to a person who is not here.
func viewers() []string {
	return []string{"open", "xdg-open", "start", "display", "eog", "feh", "xdotool", "explorer", "gnome-open"}
}

// spelling is the name under which this host has what a program does.
func (o Facts) spelling(name string) string {
	for _, other := range otherSpellings()[path.Base(name)] {
		if o.program(other) {
			return other
		}
	}
	return ""
}

// ownScript is the model's own file of a command's name, which no PATH leads to.
func (o Facts) ownScript(name string) string {
	if o.Files == nil {
		return ""
	}
	for f := range o.Files {
		if f = path.Clean(f); f == path.Clean(name) {
			return f
		}
	}
	return ""
}

func isSystemManager(name string) bool { return slices.Contains(systemManagers(), path.Base(name)) }
