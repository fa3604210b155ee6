package tool

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/metier-run/metier/internal/disclosure"
	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/workspace/artifact"
)

// Kept tells of the files that were kept of a launch (B1 14): in words for a model,
// without a newline at the end and empty when there are none, and as a list. url is the
// address below which they are served; when it is empty they are named by their paths
// on this host, below dir.
func Kept(c artifact.Capture, url, dir string) (string, []journal.File) {
	var b strings.Builder
	switch {
	case len(c.Files) > 0 && url != "":
		b.WriteString(filesLinked)
	case len(c.Files) > 0:
		b.WriteString(filesOnDisk)
	case len(c.Skipped) > 0:
		b.WriteString(filesNone)
	}
	var files []journal.File
	for _, f := range c.Files {
		where := filepath.Join(dir, filepath.FromSlash(f.Path))
		file := journal.File{Name: f.Path, Bytes: f.Bytes, URL: where}
		if url != "" {
			file.URL = artifact.URL(url, c.RunID, f.Path)
			where = fmt.Sprintf("[%s](%s)", linkText.Replace(f.Path), file.URL)
		}
		files = append(files, file)
		fmt.Fprintf(&b, fileLine, where, disclosure.Size(f.Bytes))
	}
	for _, skipped := range c.Skipped {
		fmt.Fprintf(&b, fileSkipped, skipped.Path, skipped.Reason)
	}
	if c.Unlisted > 0 {
		fmt.Fprintf(&b, filesUnlisted, c.Unlisted)
	}
	return strings.TrimSuffix(b.String(), "\n"), files
}

// FilesLost says that what a launch made could not be kept.
const FilesLost = "The files that were made could not be kept: they are gone. Say so, and do not link to them."

// linkText escapes what would end the text of a Markdown link.
var linkText = strings.NewReplacer(`\`, `\\`, "[", `\[`, "]", `\]`, "`", "\\`", "<", `\<`)
