package code

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/disclosure"
	"github.com/metier-run/metier/internal/guard"
	"github.com/metier-run/metier/internal/llm"
)

// Attachments are the files of a conversation's messages, each under the name that it
// gets in the workspace (B1 6.4). The zero value has none.
type Attachments struct {
	files []attached
	size  int64
	// The bounds: how many, how long each, and how long all of them.
	most, longest, room int64
}

type attached struct {
	llm.Attachment
	name string
}

// newAttachments has the bounds of the limits table.
func newAttachments(limits config.Values) *Attachments {
	return &Attachments{
		most: limits.Get(config.AttachCount), longest: limits.Get(config.AttachBytes), room: limits.Get(config.WorkspaceBytes),
	}
}

// Add takes the files of one message, and gives back the note that tells a model of
// them; empty when there are none. What is over a bound is left out and told. The
// same files always give the same note.
func (a *Attachments) Add(files []llm.Attachment) string {
	return a.beside(func(string) bool { return false }, files)
}

// beside is Add where the workspace has files of its own already.
func (a *Attachments) beside(exists func(name string) bool, files []llm.Attachment) string {
	var taken, left []string
	for _, f := range files {
		name := a.free(nameOf(f), exists)
		switch {
		case f.Problem != "":
			left = append(left, fmt.Sprintf(leftProblem, name, f.Problem))
		case int64(len(a.files)) >= a.most:
			left = append(left, fmt.Sprintf(leftCount, name, a.most))
		case f.Size > a.longest:
			left = append(left, fmt.Sprintf(leftLong, name, disclosure.Size(f.Size), disclosure.Size(a.longest)))
		case a.size+f.Size > a.room:
			left = append(left, fmt.Sprintf(leftRoom, name, disclosure.Size(a.room)))
		default:
			a.files = append(a.files, attached{f, name})
			a.size += f.Size
			taken = append(taken, fmt.Sprintf(takenFile, name, disclosure.Size(f.Size)))
		}
	}
	return noteOf(strings.Join(taken, ", "), strings.Join(left, "; "))
}

// noteOf tells of the files that are in the working directory, and of those that are not.
func noteOf(taken, left string) string {
	switch {
	case taken == "" && left == "":
		return ""
	case taken == "":
		return "[" + fmt.Sprintf(leftAlone, left) + "]"
	case left == "":
		return "[" + fmt.Sprintf(takenNote, taken) + "]"
	}
	return "[" + fmt.Sprintf(takenNote, taken) + " " + fmt.Sprintf(leftNote, left) + "]"
}

// Names are those of the files, in the order in which they came.
func (a *Attachments) Names() []string {
	if a == nil {
		return nil
	}
	names := make([]string, len(a.files))
	for i, f := range a.files {
		names[i] = f.name
	}
	return names
}

// free is the name, or one like it that no file has.
func (a *Attachments) free(name string, exists func(name string) bool) string {
	taken := func(n string) bool {
		return exists(n) || slices.ContainsFunc(a.files, func(f attached) bool { return strings.EqualFold(f.name, n) })
	}
	ext := path.Ext(name)
	stem := strings.TrimSuffix(name, ext)
	for n := 2; taken(name); n++ {
		name = fmt.Sprintf("%s-%d%s", stem, n, ext)
	}
	return name
}

// longestName is how many bytes of a client's name are kept: file systems take 255,
// and copies get something added.
const longestName = 160

// nameOf is a name for a file in the workspace: the client's own without its folders,
// as far as a file may be called so, or one that says what it is.
func nameOf(f llm.Attachment) string {
	name := path.Base(strings.ReplaceAll(f.Name, `\`, "/"))
	name = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || !unicode.IsPrint(r) || strings.ContainsRune(`/:*?"<>|`, r) {
			return '_'
		}
		return r
	}, strings.ToValidUTF8(name, "_"))
	name = strings.TrimLeft(name, ".-~ ") // no hidden file, no option, no home
	name = strings.TrimRight(clip(name, longestName), ". ")
	if _, err := guard.Clean(name); err == nil && name != "." {
		return name
	}
	kind, sub, _ := strings.Cut(f.MediaType, "/")
	switch kind {
	case "image", "audio", "video", "text":
	default:
		kind = "file"
	}
	return kind + extension(kind, sub)
}

// clip cuts the stem of a name, and leaves its extension.
func clip(name string, most int) string {
	ext := path.Ext(name)
	if len(name) <= most || len(ext) >= most {
		ext = ""
	}
	stem := strings.TrimSuffix(name, ext)
	for len(stem)+len(ext) > most {
		_, size := utf8.DecodeLastRuneInString(stem)
		stem = stem[:len(stem)-size]
	}
	return stem + ext
}

// extension is how files of a media type end. The table is our own, because that of
// the system differs from host to host.
func extension(kind, sub string) string {
	switch sub {
	case "png", "gif", "webp", "bmp", "csv", "html", "css", "wav", "mp3", "flac", "ogg", "mp4", "webm", "pdf", "json", "zip", "xml":
		return "." + sub
	case "jpeg", "jpg":
		return ".jpg"
	case "svg+xml":
		return ".svg"
	case "mpeg":
		return ".mp3"
	case "markdown":
		return ".md"
	}
	if kind == "text" {
		return ".txt"
	}
	return ""
}

// stage writes the files from a number on into a workspace, and gives back a sentence
// for each that could not be. What is there already stays.
func (a *Attachments) stage(root *guard.Root, from int) (problems []string) {
	for i, f := range a.files[from:] {
		data, err := f.Data()
		a.files[from+i].Data = nil // what it holds is not asked for again
		if err == nil {
			err = root.AddFile(f.name, data, 0o644)
		}
		if err != nil {
			problems = append(problems, fmt.Sprintf(notStaged, f.name, err))
		}
	}
	return problems
}
