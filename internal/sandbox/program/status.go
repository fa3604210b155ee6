package program

import "github.com/metier-run/metier/internal/sandbox"

// signals are those that end programs, by number; the numbers are the same on
// all of Linux that we know. SIGHUP and SIGQUIT are left out: statuses 129 and 131
// are what some programs, git among them, end with by themselves.
func signals() map[int]string {
	return map[int]string{
		2: "int", 4: "ill", 5: "trap", 6: "abrt", 7: "bus", 8: "fpe", 9: "kill", 11: "segv", 13: "pipe", 14: "alrm", 15: "term",
		24: "xcpu", 25: "xfsz", 31: "sys",
	}
}

// Signalled corrects the result of a launch that a program minds which tells the
// end by a signal only by a status of 128 and its number. A launch that ends itself
// with such a status, as shells do when their last command was killed, is taken for
// killed.
func Signalled(r *sandbox.Result) {
	if name, known := signals()[r.Exit-128]; known && r.Ended == sandbox.Exited {
		r.Ended, r.Signal = sandbox.Signalled, name
	}
}
