package file

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/metier-run/metier/internal/guard"
	"github.com/metier-run/metier/internal/patch"
)

// because says why a path leads nowhere in the workspace.
func because(err error) string {
	outside := []error{guard.ErrAbsolute, guard.ErrHome, guard.ErrDrive, guard.ErrShare}
	if slices.ContainsFunc(outside, func(is error) bool { return errors.Is(err, is) }) {
		return onlyRelative
	}
	return reason(err)
}

// astray is because for a file that may be one to make, and how it is named here.
func (v visit) astray(name string, err error) string {
	why := because(err)
	if why != onlyRelative {
		return why
	}
	if inside := v.inside(name, true); inside != "" {
		return fmt.Sprintf(writeItAs, why, v.name(inside))
	}
	return why
}

// inside is the path of this workspace that is probably meant by one from the top of a
// host, where a model thinks its work lies: the longest end of it that is a file here, or
// with fresh that begins in a folder here, and else what is below the place where hosts
// have such work. It is empty when nothing fits.
func (v visit) inside(name string, fresh bool) string {
	rel, err := v.w.Resolve(name)
	if err == nil || errors.Is(err, guard.ErrLong) {
		return rel
	}
	names := strings.FieldsFunc(name, func(r rune) bool { return r == '/' || r == '\\' })
	below := ""
	for i := range names {
		end, err := guard.Clean(strings.Join(names[i:], "/"))
		if err != nil || end == "." {
			continue
		}
		if i <= aboveWork(names) {
			below = end
		}
		look := end
		if fresh {
			look = names[i]
		}
		info, err := v.root.Stat(look)
		last := i == len(names)-1
		if err == nil && (!fresh && info.Mode().IsRegular() || fresh && !last && info.IsDir()) {
			return end
		}
	}
	if fresh {
		return below
	}
	return ""
}

// aboveWork is how many names at the beginning of a path may be those of folders that a
// host's work lies in: /repo, C:\repo, ~/project, /mnt/data, or /home/user/project.
func aboveWork(names []string) int {
	for at, name := range names {
		switch {
		case name == "home" || name == "Users":
			return at + 3
		case name == "mnt":
			return at + 2
		case name[len(name)-1] != ':' && name[0] != '~': // no drive, and no home
			return at + 1
		}
	}
	return len(names)
}

// nested is the note on a file that is to be made in a new folder that is called like
// one of those that the shell is in: after "cd app", app/main.py is app/app/main.py
// (B1 11.1), and may be meant to be app/main.py. It is empty where nothing hints at that.
func (v visit) nested(rel string) string {
	current := v.w.Current()
	name, below := strings.CutPrefix(rel, current+"/")
	folder, _, deep := strings.Cut(name, "/")
	if !below || !deep {
		return ""
	}
	if _, err := v.root.Stat(path.Join(current, folder)); err == nil {
		return "" // it was made before, and was meant
	}
	folders := strings.Split(current, "/")
	at := slices.Index(folders, folder)
	if at < 0 {
		return ""
	}
	meant := path.Join(path.Join(folders[:at]...), name)
	if _, err := v.root.Stat(meant); err == nil {
		return fmt.Sprintf(nestedThere, current, name, rel, meant, v.name(meant))
	}
	return fmt.Sprintf(nestedNote, current, name, rel, meant, shellWord(name), shellWord(v.name(meant)))
}

// made tells where the files are that a patch is about to make, if the shell is not at
// the top of the workspace, and whether one of them may be meant to be elsewhere.
func (f *files) made(change patch.Change) string {
	if f.current == "." {
		return ""
	}
	var made []string
	note := ""
	for _, c := range change.Files {
		if c.Kind != patch.Add && c.From == "" {
			continue
		}
		rel := f.rel(c.Path)
		made = append(made, rel)
		if note == "" {
			note = f.nested(rel)
		}
	}
	if len(made) == 0 {
		return ""
	}
	list := strings.Join(made[:min(len(made), placesShown)], ", ")
	if more := len(made) - placesShown; more > 0 {
		list = fmt.Sprintf(madeMore, list, more)
	}
	return fmt.Sprintf(madeBelow, list) + note
}
