package native

import "golang.org/x/sys/unix"

// child is the work of a process that was started under a name of the house.
func child(name string) func() int {
	switch name {
	case spawnerName:
		return spawnerMain
	case initName:
		return initMain
	case lockedName:
		return lockedMain
	case holderName:
		return holderMain
	case supervisorName:
		return supervisorMain
	}
	return nil
}

// control is the descriptor of a child's control socket.
const control = 3

// holderMain keeps a user namespace alive until its descriptor has been taken.
func holderMain() int {
	var b [1]byte
	_ = retry(func() error { _, err := unix.Read(control, b[:]); return err })
	return 0
}
