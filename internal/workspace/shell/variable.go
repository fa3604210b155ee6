package shell

import (
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/metier-run/metier/internal/bash"
)

// variable is an exported variable that is remembered.
type variable struct {
	name, value string
	// around holds what stands before and after the launch's own value of the variable,
	// if the command kept that: PYTHONPATH=src:$PYTHONPATH is to go on when the host has
	// more packages for the next command.
	around *[2]string
	array  *array // in place of value
}

// array is an array of bash. Its exports are remembered, though no program sees them:
// a list in a variable is worth as much to the next command as a word.
type array struct {
	named bool // its keys are texts
	items []item
}

type item struct{ key, value string }

// posix is the line that sets the variable. "declare" would make an array local.
func (v variable) posix() string {
	if v.array == nil {
		return "export " + v.name + "=" + bash.Quote(v.value) + "\n"
	}
	var b strings.Builder
	if v.array.named {
		b.WriteString("declare -gA " + v.name + "; ")
	}
	b.WriteString(v.name + "=(")
	for i, it := range v.array.items {
		if i > 0 {
			b.WriteByte(' ')
		}
		key := it.key
		if v.array.named {
			key = bash.Quote(key)
		}
		b.WriteString("[" + key + "]=" + bash.Quote(it.value))
	}
	b.WriteString("); export " + v.name + "\n")
	return b.String()
}

// environment is the environment of a launch by name, as a program sees it.
func environment(env []string) map[string]string {
	values := make(map[string]string, len(env))
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		values[folded(name)] = value
	}
	return values
}

// folded is a name by which variables are told apart.
func folded(name string) string {
	if runtime.GOOS == "windows" {
		return strings.ToUpper(name)
	}
	return name
}

// changed are the variables that a command added to the environment that its launch
// was given, or changed there.
func changed(vars []variable, launched map[string]string) []variable {
	var kept []variable
	for _, v := range vars {
		if neverKept(v.name) {
			continue
		}
		base, ours := launched[folded(v.name)]
		if ours && v.array == nil {
			if v.value == base {
				continue
			}
			v.around = around(v.value, base)
		}
		kept = append(kept, v)
	}
	return kept
}

// around is what stands before and after the entries of one list of directories in
// another; nil when they are not there.
func around(list, base string) *[2]string {
	const sep = string(filepath.ListSeparator)
	before, after, found := strings.Cut(sep+list+sep, sep+base+sep)
	if !found || base == "" {
		return nil
	}
	if before != "" {
		before = before[len(sep):] + sep
	}
	if after != "" {
		after = sep + after[:len(after)-len(sep)]
	}
	return &[2]string{before, after}
}

// settled are remembered variables with the values that they have in a launch.
func settled(vars []variable, launched map[string]string) []variable {
	vars = slices.Clone(vars)
	for i, v := range vars {
		if base, ours := launched[folded(v.name)]; ours && v.around != nil {
			vars[i].value = v.around[0] + base + v.around[1]
		}
	}
	return vars
}

// neverKept reports whether a variable is not remembered (B1 9.4): what the host sets
// for each launch, what makes programs load or run something unseen, how the network is
// reached and whom it trusts, and what belongs to the shell itself.
func neverKept(name string) bool {
	upper := strings.ToUpper(name)
	for _, p := range []string{"LD_", "DYLD_", "METIER_", "__METIER_", "BASH"} {
		if strings.HasPrefix(upper, p) {
			return true
		}
	}
	if strings.HasSuffix(upper, "_PROXY") || strings.HasSuffix(upper, "_NOPROXY") {
		return true
	}
	switch upper {
	case "PATH", "HOME", "USERPROFILE", "TMPDIR", "TEMP", "TMP", "PWD", "OLDPWD", "SHLVL", "IFS", "_",
		// Whom the network trusts.
		"NODE_USE_ENV_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "NIX_SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
		"AWS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "PIP_CERT", "NPM_CONFIG_CA",
		"NPM_CONFIG_CAFILE", "CARGO_HTTP_CAINFO", "DENO_CERT", "HTTPLIB2_CA_CERTS", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
		// The shell's own: most may not be set, and LINENO would move its messages.
		"ENV", "SHELLOPTS", "UID", "EUID", "PPID", "GROUPS", "LINENO", "FUNCNAME", "DIRSTACK", "OPTIND", "POSIXLY_CORRECT":
		return true
	}
	return false
}
