// Package program holds what backends share that confine a launch by a program of
// others, such as bwrap or runc: whether that program can be trusted, what a launch
// sees of the host, as whom it runs, and what an error of such a program means.
//
// It starts no launch and decides nothing about policy. What a launch sees is
// worked out here so that it is the same under each of these programs.
//
// Start at [Find] for the program and at [Places] for what is seen.
package program

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// standard are the directories that are searched after the operator's own: a
// runtime of containers lies where only root looks.
const standard = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// ErrMissing says that there is no such program.
var ErrMissing = errors.New("the program is not installed")

// Find is the canonical path of a program that nobody but root and the host's own
// user can change. search is the value of PATH; the usual directories of the
// system follow it. A path that holds a slash is taken as it is.
//
// A missing program is [ErrMissing].
func Find(name, search string) (string, error) {
	if strings.ContainsRune(name, filepath.Separator) {
		return trusted(name)
	}
	for _, dir := range filepath.SplitList(search + string(filepath.ListSeparator) + standard) {
		if !filepath.IsAbs(dir) {
			continue // what lies in the working directory is not ours
		}
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return trusted(path)
		}
	}
	return "", ErrMissing
}

// trusted is the canonical path of a program, if only those whom the host trusts
// anyway can put another one there.
func trusted(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%s: %w", path, ErrMissing)
	}
	if err == nil {
		real, err = filepath.Abs(real)
	}
	if err != nil {
		return "", fmt.Errorf("find %s: %w", path, err)
	}
	for at := real; ; at = filepath.Dir(at) {
		if err := ours(at); err != nil {
			return "", fmt.Errorf("trust %s: %w", real, err)
		}
		if at == filepath.Dir(at) {
			return real, nil
		}
	}
}

// Version finds the first word of the first line of a text that is numbers between
// dots, with what a distribution puts behind it cut off: "1.1.5" of "runc version
// 1.1.5+ds1".
func Version(text string) string {
	text, _, _ = strings.Cut(text, "\n")
	for _, word := range strings.Fields(text) {
		word = strings.TrimPrefix(word, "v")
		end := strings.IndexFunc(word, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
		if end >= 0 {
			word = word[:end]
		}
		if word = strings.Trim(word, "."); strings.Contains(word, ".") {
			return word
		}
	}
	return ""
}

// AtLeast reports whether a version is least or newer, number by number. One that
// cannot be read is not.
func AtLeast(version, least string) bool {
	have, want := strings.Split(version, "."), strings.Split(least, ".")
	for i := range want {
		w, h := number(want[i]), 0
		if i < len(have) {
			h = number(have[i])
		}
		if h != w {
			return w >= 0 && h > w
		}
	}
	return version != ""
}

// number is a decimal number; -1 for what is none.
func number(s string) int {
	n := 0
	for _, r := range s {
		if r < '0' || r > '9' || n > 1<<20 {
			return -1
		}
		n = 10*n + int(r-'0')
	}
	if s == "" {
		return -1
	}
	return n
}
