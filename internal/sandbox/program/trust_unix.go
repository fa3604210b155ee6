//go:build unix

package program

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// ours finds out who else could change a file or put another one into a
// directory. A directory in which everybody may only remove his own files is
// none.
func ours(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return errors.New("its owner is not known")
	}
	if st.Uid != 0 && int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to user %d: give it to root", path, st.Uid)
	}
	if info.IsDir() && info.Mode()&os.ModeSticky != 0 {
		return nil
	}
	if info.Mode()&0o002 != 0 || info.Mode()&0o020 != 0 && st.Gid != 0 {
		return fmt.Errorf("others may write to %s: run chmod go-w %s", path, path)
	}
	if !info.IsDir() && info.Mode()&(os.ModeSetuid|os.ModeSetgid) != 0 {
		return fmt.Errorf("%s is set-user-ID: run chmod ug-s %s", path, path)
	}
	return nil
}
