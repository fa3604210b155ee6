package native

import (
	"os"
	"strings"
)

// sysctlIs reports whether a setting of the kernel exists and has a value.
func sysctlIs(file, value string) bool {
	text, err := os.ReadFile(file)
	return err == nil && strings.TrimSpace(string(text)) == value
}
