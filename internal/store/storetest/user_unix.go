//go:build unix

package storetest

import (
	"os"
	"os/exec"
	"syscall"
)

// nobody is who runs a server that will not run as root.
const nobody = 65534

func prepareDir(dir string) error {
	if os.Getuid() != 0 {
		return nil
	}
	return os.Chown(dir, nobody, nobody)
}

// unprivileged has a command run as nobody, if this process is root.
func unprivileged(c *exec.Cmd) {
	if os.Getuid() == 0 {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		c.Dir = "/"
	}
}
