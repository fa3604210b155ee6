// Package programtest is the suite that backends pass which confine a launch by a
// program of others, run for real. It is used by tests only.
//
// It is no hostile suite: it holds what such a backend can get wrong in handing
// a launch to its program, and what may be left on the host.
//
// Start at [Run]; [AsUsers] runs a test as root and as an ordinary user.
package programtest
