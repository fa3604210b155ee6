package main

import (
	"os/exec"
	"syscall"
)

const exeSuffix = ""

// ownGroup puts a child into a process group of its own, so that all it starts
// ends with it, and has the kernel end it should the bench itself be killed.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

func killGroup(cmd *exec.Cmd) {
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // it may have ended already
}
