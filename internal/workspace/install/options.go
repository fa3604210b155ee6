package install

import (
	"regexp"
	"strings"
)

// option is what is done about an option of pip or npm.
type option struct {
	// skip says that it changes neither what is installed nor from where.
	skip  bool
	value bool // it takes the next word, if nothing is attached to it
	// why is the reason that it is refused for.
	why string
}

// pipOptions are the options of pip that are known (B1 13.5). Those that make
// pip look at what it has again are skipped: what is installed stays the same.
// So are those about building, which never happens.
func pipOptions() map[string]option {
	all := map[string]option{}
	addAll(all, option{skip: true}, `-q --quiet -v --verbose -U --upgrade --user --disable-pip-version-check
		--no-input --no-cache-dir --no-cache --no-color --no-warn-script-location --no-warn-conflicts
		--break-system-packages --prefer-binary --no-python-version-warning --compile --no-compile
		--isolated --force-reinstall -I --ignore-installed --require-virtualenv --no-clean --no-build-isolation
		--use-pep517 --check-build-dependencies`)
	addAll(all, option{skip: true, value: true}, `--progress-bar --timeout --default-timeout --retries --cache-dir
		--root-user-action --only-binary --exists-action --upgrade-strategy --use-feature --resume-retries`)
	addAll(all, option{why: changesSource}, `-i --index-url --pypi-url --extra-index-url -f --find-links --no-index
		--trusted-host --proxy --cert --client-cert --keyring-provider --config-file --prerelease`)
	addAll(all, option{why: changesPlace}, `-t --target --prefix --root --src --python --prefix-path`)
	addAll(all, option{why: needsBuild}, `--no-binary --config-settings -C --global-option --build-option --install-option
		--no-use-pep517 --platform --python-version --implementation --abi`)
	addAll(all, option{why: isEditable}, `-e --editable`)
	addAll(all, option{why: isConstraint}, `-c --constraint --build-constraint`)
	addAll(all, option{why: isGroup}, `--group --requirements-from-script`)
	addAll(all, option{why: isPre}, `--pre`)
	addAll(all, option{why: dropsNeeds}, `--no-deps --no-dependencies`)
	addAll(all, option{why: isDry}, `--dry-run --report`)
	addAll(all, option{why: isHash}, `--require-hashes --hash`)
	return all
}

// npmOptions are those of npm, pnpm and yarn. What is saved to a package.json
// changes nothing about what is installed.
func npmOptions() map[string]option {
	all := map[string]option{}
	addAll(all, option{skip: true}, `-s -q -d --silent --quiet --verbose --no-audit --audit=false --no-fund --fund=false
		--no-progress --progress=false --progress --save -S --save-dev -D --dev --save-exact -E --exact --save-prod -P
		--save-optional -O --no-save --save=false --prefer-offline --prefer-online --no-package-lock --package-lock=false --no-lockfile
		--ignore-scripts --yes -y --no-update-notifier --no-color --color=false --legacy-peer-deps --force -f
		--non-interactive --no-bin-links=false --include=dev --no-optional=false --unsafe-perm`)
	addAll(all, option{skip: true, value: true}, `--loglevel --fetch-retries --fetch-timeout --network-timeout --maxsockets --reporter --cache`)
	addAll(all, option{why: changesSource}, `--registry --userconfig --globalconfig --proxy --https-proxy --noproxy --cafile --ca --strict-ssl --offline --before`)
	addAll(all, option{why: isGlobal}, `-g --global --location`)
	addAll(all, option{why: changesPlace}, `--prefix -C --dir --cwd --modules-folder --install-links --node-linker`)
	addAll(all, option{why: isWorkspaces}, `-w -W --workspace --workspaces --workspace-root --filter --ignore-workspace-root-check -r --recursive`)
	addAll(all, option{why: isLocked}, `--frozen-lockfile --immutable --pure-lockfile --lockfile-only --package-lock-only`)
	addAll(all, option{why: isDry}, `--dry-run`)
	addAll(all, option{why: runsScripts}, `--ignore-scripts=false`)
	return all
}

func addAll(to map[string]option, o option, names string) {
	for _, name := range strings.Fields(names) {
		to[name] = o
	}
}

// production are the options with which a package.json's devDependencies stay
// out.
func production(text string) bool {
	switch text {
	case "--production", "--production=true", "--prod", "--omit=dev", "--only=prod", "--only=production", "--no-dev":
		return true
	}
	return false
}

// find looks an option up: as it is written, then without its value, and for a
// single dash letter by letter, since -qU is two and -rfile one with its value.
// Letters are those that are skipped, up to one with a value.
func find(known map[string]option, w word) (name, value string, attached bool, o option, ok bool) {
	if o, ok = known[w.text]; ok {
		return w.text, "", false, o, true
	}
	name, value, attached = w.option()
	if o, ok = known[name]; ok {
		return name, value, attached, o, true
	}
	if strings.HasPrefix(name, "--") {
		return name, value, attached, option{}, false
	}
	for i := 1; i < len(w.text); i++ {
		name = "-" + w.text[i:i+1]
		o, ok = known[name]
		if !ok || !o.skip {
			return name, w.text[i+1:], i+1 < len(w.text), o, ok
		}
	}
	return name, "", false, option{skip: true}, true
}

// settingOf is the option that an assignment sets for an installer, "" if it is
// none: PIP_INDEX_URL and npm_config_registry are --index-url and --registry.
func settingOf(variable string) (string, Kind) {
	upper := strings.ToUpper(variable)
	for prefix, kind := range map[string]Kind{"PIP_": Pip, "NPM_CONFIG_": Npm} {
		if rest, found := strings.CutPrefix(upper, prefix); found {
			return "--" + strings.ReplaceAll(strings.ToLower(rest), "_", "-"), kind
		}
	}
	return "", ""
}

// setting remembers an assignment of the line that would change what an install
// does: it would be lost, since the host installs with its own settings. value is as it
// stands in the source.
func (r *reader) setting(variable, value string) {
	if variable == "PATH" && leadsToEnvironment(value) {
		r.activated, r.environment = true, ""
	}
	name, kind := settingOf(variable)
	if name != "" && !r.known[kind][name].skip {
		r.routes = append(r.routes, variable)
	}
}

var (
	noQuotes = strings.NewReplacer(`"`, "", "'", "")
	// programsDir is the folder of programs of a virtual environment, as every guide has
	// it: PATH="$PWD/v/bin:$PATH".
	programsDir = regexp.MustCompile("^(?:\\$\\{?(?:PWD|HOME)\\}?/|(?:\\$\\(pwd\\)|`pwd`|~)/|\\.?/)?(?:\\w[\\w.-]*/)+(?:bin|Scripts)/?$")
	// systemDir is one of the host.
	systemDir = regexp.MustCompile(`^/(?:usr|opt|bin|sbin|snap|nix)/`)
)

// leadsToEnvironment says whether a value of PATH may put the programs of a virtual
// environment first.
func leadsToEnvironment(value string) bool {
	for dir := range strings.SplitSeq(noQuotes.Replace(value), ":") {
		if strings.Contains(strings.ToLower(dir), "env") || programsDir.MatchString(dir) && !systemDir.MatchString(dir) {
			return true
		}
	}
	return false
}
