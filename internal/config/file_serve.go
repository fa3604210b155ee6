package config

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// Setting is a key of a file that stands for a command-line flag.
type Setting struct {
	// Flag is its name, without dashes.
	Flag string
	// Values are what would be given on the command line, one for each time that
	// the flag is repeated.
	Values []string
	// From names the key and its place, for errors.
	From string
}

// ReadServe reads [serve]: the flags that are not about skills or code, limits included.
func ReadServe(d *Document) []Setting {
	s := settings{table: d.Top().Table("serve")}
	s.text("host")
	s.number("port", 0, 65535)
	s.yes("insecure")
	s.yes("no-auth")
	s.path("record")
	s.text("upstream")
	s.text("upstream-type")
	s.variable("upstream-key-env")
	s.choice("log-level", "debug", "info", "warn", "error")
	s.yes("log-json")
	s.limits(func(l Limit) bool { return !aboutSkills(l) && !aboutCode(l) })
	return s.read
}

// ReadTop reads the keys that stand before all sections.
func ReadTop(d *Document) []Setting {
	s := settings{table: d.Top()}
	s.database("db")
	return s.read
}

// database reads a path, the URL of a server, or a word. A URL with a password is refused:
// a file is no place for one.
func (s *settings) database(key string) {
	var v string
	if !s.table.String(key, &v) {
		return
	}
	switch u, err := url.Parse(v); {
	case v == "memory":
	case !strings.Contains(v, "://"):
		v = resolve(s.table.At(key), v)
	case err != nil:
		s.table.Problem(key, "this is no URL: it looks like postgres://user@host/database")
		return
	default:
		if _, has := u.User.Password(); has || u.Query().Has("password") {
			s.table.Problem(key, "a password does not belong in a file: put the whole URL into the variable METIER_DB and leave the key out")
			return
		}
	}
	s.add(key, v)
}

// aboutSkills reports whether a limit stands in [skills] rather than [serve].
func aboutSkills(l Limit) bool { return strings.HasPrefix(l.Flag, "skills-") }

// settings reads keys into the texts that a flag takes.
type settings struct {
	table *Table
	read  []Setting
}

func (s *settings) add(key string, values ...string) {
	from := fmt.Sprintf("%s: %s", s.table.At(key), strings.TrimSpace(s.table.title()+" "+key))
	s.read = append(s.read, Setting{Flag: key, Values: values, From: from})
}

func (s *settings) text(key string) {
	var v string
	if s.table.String(key, &v) {
		s.add(key, v)
	}
}

func (s *settings) list(key string) {
	var v []string
	if s.table.Strings(key, &v) {
		s.add(key, v...)
	}
}

func (s *settings) path(key string) {
	var v string
	if s.table.Path(key, &v) {
		s.add(key, v)
	}
}

func (s *settings) variable(key string) {
	var v string
	if s.table.Variable(key, &v) {
		s.add(key, v)
	}
}

func (s *settings) choice(key string, words ...string) {
	var v string
	if s.table.Choice(key, &v, words...) {
		s.add(key, v)
	}
}

func (s *settings) yes(key string) {
	var v bool
	if s.table.Bool(key, &v) {
		s.add(key, strconv.FormatBool(v))
	}
}

func (s *settings) number(key string, low, high int64) {
	var v int64
	if s.table.Int(key, low, high, &v) {
		s.add(key, strconv.FormatInt(v, 10))
	}
}

// limits reads the rows of the table of limits that have a flag.
func (s *settings) limits(here func(Limit) bool) {
	for _, l := range Limits() {
		if l.Flag != "" && here(l) {
			s.number(l.Flag, l.Min, l.Max)
		}
	}
}
