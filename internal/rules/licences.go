package rules

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// allowedLicences are those that a program under Apache-2.0 can be given away
// with, by SPDX name.
func allowedLicences() []string {
	return []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MPL-2.0"}
}

// checkLicences compares the licences that are listed with the files that the
// modules bring, as far as the module cache holds them.
func (t *Tree) checkLicences(mod goMod, rows []dependency) []Problem {
	if t.ModCache == "" {
		return nil
	}
	var found []Problem
	for _, d := range rows {
		i := slices.IndexFunc(mod.Require, func(r requirement) bool { return r.Path == d.module })
		if i < 0 {
			continue
		}
		dir := filepath.Join(t.ModCache, filepath.FromSlash(escapePath(d.module))+"@"+mod.Require[i].Version)
		text, ok := licenceText(dir)
		if !ok {
			continue
		}
		if is := licenceOf(text); is != d.licence {
			found = append(found, Problem{File: dependencyList, Line: d.line, Text: d.module + " is listed as " + d.licence + ", and its own file says " + is})
		}
	}
	return found
}

// escapePath is how the module cache spells a path: a capital is an exclamation
// mark and the small letter.
func escapePath(modulePath string) string {
	var b strings.Builder
	for _, r := range modulePath {
		if unicode.IsUpper(r) {
			b.WriteByte('!')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

func licenceText(dir string) (string, bool) {
	for _, name := range []string{"LICENSE", "LICENSE.txt", "LICENSE.md", "LICENCE", "COPYING"} {
		if data, err := os.ReadFile(filepath.Join(dir, name)); err == nil {
			return string(data), true
		}
	}
	return "", false
}

// licenceOf tells a licence by the sentences that only it has.
func licenceOf(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	has := func(s string) bool { return strings.Contains(text, s) }
	switch {
	case has("Apache License Version 2.0, January 2004"):
		return "Apache-2.0"
	case has("Mozilla Public License Version 2.0"):
		return "MPL-2.0"
	case has("Permission is hereby granted, free of charge, to any person obtaining a copy"):
		return "MIT"
	case has("Permission to use, copy, modify, and/or distribute this software for any purpose"),
		has("Permission to use, copy, modify, and distribute this software for any purpose"):
		return "ISC"
	case has("Redistribution and use in source and binary forms") && has("Neither the name"):
		return "BSD-3-Clause"
	case has("Redistribution and use in source and binary forms"):
		return "BSD-2-Clause"
	}
	return "a licence that the rules do not know"
}
