package config

import (
	"net/url"
	"strconv"
	"strings"
)

// ReadCode reads [code]: the flags that say whether a model works with files and runs
// commands, and with what (B1 18.3).
func ReadCode(d *Document) []Setting {
	s := settings{table: d.Top().Table("code")}
	s.yes("code-exec")
	s.yes("code-exec-unconfined")
	s.yes("code-exec-allow-install")
	s.packages("code-exec-packages")
	s.index("code-exec-install-index")
	s.installDomains("code-exec-install-domains")
	s.yes("code-exec-allow-network")
	s.list("code-exec-network-domains")
	s.temperature("code-exec-temperature")
	s.path("code-exec-shell")
	s.removed("code-exec-languages", "a command runs whatever program the sandbox shows it: take it out, and say with code-exec-packages what may be installed")
	s.limits(aboutCode)
	return s.read
}

// aboutCode reports whether a limit stands in [code] rather than [serve].
func aboutCode(l Limit) bool {
	return strings.HasPrefix(l.Flag, "code-exec-") || l.Name == WorkspaceBytes || l.Name == PackagesTotal
}

// packages reads names. None at all could mean that none or that any may be installed.
func (s *settings) packages(key string) {
	var v []string
	switch {
	case !s.table.Strings(key, &v):
	case len(v) == 0:
		s.table.Problem(key, "the list is empty: name a package, or leave the key out to allow any")
	default:
		s.add(key, v...)
	}
}

// installDomains reads hosts. A list without one is a setting, too: it holds no host
// back (B1 13.14).
func (s *settings) installDomains(key string) {
	var v []string
	if !s.table.Strings(key, &v) {
		return
	}
	if len(v) == 0 {
		v = []string{""}
	}
	s.add(key, v...)
}

// index reads a URL. A password in one is a mistake even where a later file replaces it.
func (s *settings) index(key string) {
	s.text(key)
	for _, layer := range s.table.layers {
		n := layer.table[key]
		if n == nil || n.kind != isText {
			continue
		}
		text, _ := scalar[string](n)
		if u, err := url.Parse(text); err == nil && u.User != nil || err != nil && strings.Contains(text, "@") {
			s.table.doc.problem(n.at, "%s %s: a user or a password must not stand in this file: put the whole URL into the variable METIER_CODE_EXEC_INSTALL_INDEX, or the password into netrc", s.table.title(), key)
		}
	}
}

// temperature reads a number from 0 to 2, or a negative one, which takes back what
// an earlier file says.
func (s *settings) temperature(key string) {
	v, ok := read(s.table, key, "a number from 0 to 2", number)
	switch {
	case !ok:
	case v <= 2: // nan is not
		s.add(key, strconv.FormatFloat(v, 'g', -1, 64))
	default:
		s.table.Problem(key, "%g is out of range: give a number from 0 to 2, or a negative one to leave it to the upstream", v)
	}
}

// number takes both kinds that TOML has.
func number(n *node) (float64, bool) {
	if v, ok := n.value.(int64); ok {
		return float64(v), true
	}
	return scalar[float64](n)
}

// removed refuses a key that is no more. It is not told of as one of the section's.
func (s *settings) removed(key, instead string) {
	if s.table.Has(key) {
		s.table.ask(key) // the complaint below is enough
		s.table.Problem(key, "it was removed: %s", instead)
	}
}
