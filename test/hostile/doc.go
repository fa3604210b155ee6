// Package hostile is the proof of the sandbox: a table of attempts to get out, each
// of which is really made under every backend of this machine, as root and as an
// ordinary user, while an honest script runs beside it.
//
// It confines nothing and is part of no program. An attempt that the control run,
// without confinement, does not carry through proves nothing and fails, unless
// exceptions names it with a reason. What a program says of its own attempt
// is believed only where it speaks against the sandbox: the host looks itself
// whether a file changed, a victim died or a connection came.
//
// Start at rows in rows_linux_test.go; testdata/attack is the program that
// attacks. Run it with "go test ./test/hostile"; -update writes the table of results
// in docs/sandbox.md, -rows REGEXP takes some rows, -short leaves out the costly
// ones. As root it runs everything again as an ordinary user.
package hostile
