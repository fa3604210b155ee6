package disclosure

import "strings"

// FileTools are the tools for files that a request declares.
type FileTools struct {
	// Read, Patch and Write are read_file, apply_patch and write_file; Shell is shell.
	// A caller's own tool of the name is none of them.
	Read, Patch, Write, Shell bool
}

// WorkingWithFiles is the block that tells a model how to work with files, fixed but for which
// tools are declared; empty without any of the file tools (B1 2.15).
func WorkingWithFiles(t FileTools) string {
	if !t.Read && !t.Patch && !t.Write {
		return ""
	}
	lines := []string{filesHeading}
	add := func(when bool, line string) {
		if when {
			lines = append(lines, line)
		}
	}
	add(t.Patch, filesPatch)
	add(t.Write && t.Patch, filesWrite)
	add(t.Write && !t.Patch, filesWriteAlone)
	add(t.Read && t.Patch, filesRead)
	add(t.Read && !t.Patch, filesReadAlone)
	add(true, filesNoReading)
	add(t.Shell, filesShell)
	add(true, filesInHand)
	return strings.Join(lines, "\n")
}
