package program

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Held is a place that stays the same file or directory whatever happens to its
// path.
type Held struct {
	Place
	File     *os.File // opened as a mere handle (O_PATH)
	UID, GID uint32   // who owns it
}

// Hold opens what a launch may see of the host, following no link in any part. The
// result is to be released by [Release], also after an error.
func Hold(places []Place) ([]Held, error) {
	var all []Held
	for _, p := range places {
		h := Held{Place: p}
		if p.Kind == Hidden {
			all = append(all, h)
			continue
		}
		how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS}
		fd, err := unix.Openat2(unix.AT_FDCWD, p.Path, &how)
		if errors.Is(err, unix.ELOOP) {
			err = errors.New("a part of it is a symbolic link")
		}
		if err != nil {
			return all, fmt.Errorf("show %s: %w", p.Path, err)
		}
		h.File = os.NewFile(uintptr(fd), p.Path)
		all = append(all, h)
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			return all, fmt.Errorf("show %s: %w", p.Path, err)
		}
		all[len(all)-1].UID, all[len(all)-1].GID = st.Uid, st.Gid
	}
	return all, nil
}

// Release closes what [Hold] opened.
func Release(all []Held) {
	for _, h := range all {
		if h.File != nil {
			_ = h.File.Close() // a handle has nothing to lose
		}
	}
}
