//go:build !linux

package main

import "os/exec"

// exeSuffix lets Windows start what was built; others do not mind it.
const exeSuffix = ".exe"

// ownGroup does nothing here: the children start no others.
func ownGroup(*exec.Cmd) {}

func killGroup(cmd *exec.Cmd) {
	_ = cmd.Process.Kill() // it may have ended already
}
