package native

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"
)

// canaryName, as the first argument, makes this binary try to get out of the
// sandbox that it is in.
const (
	canaryName = "metier-sandbox-canary"
	canaryArgs = 5
)

// Canary is the command line of the canary: what it is to read and to write
// outside, and the address that it is to reach. It prints a line for each attempt
// that succeeded, and [CanaryDone] in the end.
func Canary(exe, secret, outside, address string) []string {
	return []string{exe, canaryName, secret, outside, address}
}

// What a canary prints. The words are an aspect of a sandbox each.
const (
	CanaryRead      = "escaped: read "
	CanaryWrote     = "escaped: wrote"
	CanaryConnected = "escaped: connected"
	CanaryVsock     = "escaped: vsock"
	CanaryNamespace = "escaped: user namespace"
	CanaryDone      = "canary done"
)

// patience is how long the canary waits for a connection that a sandbox drops
// and does not refuse.
const patience = 2 * time.Second

func canaryMain(args []string) int {
	secret, outside, address := args[0], args[1], args[2]
	if text, err := os.ReadFile(filepath.Clean(secret)); err == nil {
		fmt.Printf("%s%s\n", CanaryRead, text)
	}
	if err := os.WriteFile(filepath.Clean(outside), []byte(CanaryWrote), 0o600); err == nil {
		fmt.Println(CanaryWrote)
	}
	d := net.Dialer{Timeout: patience}
	if conn, err := d.Dial("tcp", address); err == nil {
		_ = conn.Close()
		fmt.Println(CanaryConnected)
	}
	canaryCalls()
	fmt.Println(CanaryDone)
	return 0
}
