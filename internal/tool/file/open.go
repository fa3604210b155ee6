package file

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/metier-run/metier/internal/guard"
	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/tool"
	"github.com/metier-run/metier/internal/workspace"
)

// held is a file as it is now.
type held struct {
	data []byte
	mode fs.FileMode
}

// largeError is a file that is too large for the file tools (B1 11.2).
type largeError struct{ size, most int64 }

func (e *largeError) Error() string { return fmt.Sprintf(largeReason, e.size, e.most) }

// load reads a whole file of the workspace. It fails with [fs.ErrNotExist], a
// [*guard.PathError], a [*largeError], or an error of the disk.
func (v visit) load(rel string) (held, error) {
	f, err := v.root.Open(rel)
	if err != nil {
		return held{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return held{}, err
	}
	if info.Size() > v.fileSize {
		return held{}, &largeError{info.Size(), v.fileSize}
	}
	// A file that a job writes to grows meanwhile.
	data, err := io.ReadAll(io.LimitReader(f, v.fileSize+1))
	if err != nil {
		return held{}, err
	}
	if int64(len(data)) > v.fileSize {
		return held{}, &largeError{int64(len(data)), v.fileSize}
	}
	return held{data: data, mode: info.Mode().Perm()}, nil
}

// resolve leads a path to the work folder; refused is the answer when it does not lead
// there, with the path that was probably meant: of a file that is there, or with fresh
// of one that is to be made, for which no other file will do.
func (v visit) resolve(ctx context.Context, name string, fresh bool) (rel string, refused journal.Result, ok bool) {
	rel, err := v.w.Resolve(name)
	if err != nil {
		if fresh {
			return "", failure("", refusedPath, tool.Clip(name), v.astray(name, err)), false
		}
		text := fmt.Sprintf(refusedPath, tool.Clip(name), because(err))
		if near := cmp.Or(v.inside(name, false), v.nearest(ctx, name)); near != "" {
			text += fmt.Sprintf(didYouMean, v.name(near))
		}
		return "", failure("", "%s", text), false
	}
	if rel == "." {
		return "", v.folder(rel), false
	}
	return rel, journal.Result{}, true
}

// unreadable is the answer to a file that could not be read, but for one that is not
// there.
func (v visit) unreadable(rel string, err error) journal.Result {
	switch large, tooLarge := errors.AsType[*largeError](err); {
	case tooLarge:
		return failure(rel, tooLargeFile, v.name(rel), large.size, large.most)
	case errors.Is(err, guard.ErrFolder):
		return v.folder(rel)
	case errors.Is(err, fs.ErrNotExist):
		return failure(rel, missingFile, v.name(rel))
	}
	return failure(rel, refusedPath, v.name(rel), reason(err))
}

// reason is what is behind an error, without paths: the sentence around it names one.
func reason(err error) string {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return strings.TrimSuffix(tool.Clip(err.Error()), ".")
		}
		err = inner
	}
}

// name is a path as the model would write it. The guard has judged it: it is on one line.
func (v visit) name(rel string) string { return v.w.Shown(rel) }

// folder is the answer to a path that is a folder: what it holds, and where to look.
func (v visit) folder(rel string) journal.Result {
	return failure(rel, isFolder, v.name(rel), v.here(rel), shellWord(v.name(rel)))
}

// namesShown is how many names of a folder a sentence holds.
const namesShown = 24

// here says what a folder holds.
func (v visit) here(rel string) string {
	folder := fmt.Sprintf(theFolder, v.name(rel))
	if v.name(rel) == "." {
		folder = theDirectory
	}
	entries, err := v.root.ReadDir(rel)
	if err != nil {
		return fmt.Sprintf(folderClosed, folder, reason(err))
	}
	var names []string
	more := 0
	for _, e := range entries {
		switch {
		case e.IsDir() && passed(e.Name()):
		case len(names) == namesShown:
			more++
		case e.IsDir():
			names = append(names, tool.Clip(e.Name())+"/")
		default:
			names = append(names, tool.Clip(e.Name()))
		}
	}
	switch {
	case len(names) == 0:
		return fmt.Sprintf(folderEmpty, folder)
	case more > 0:
		return fmt.Sprintf(folderPart, folder, strings.Join(names, ", "), more)
	}
	return fmt.Sprintf(folderHolds, folder, strings.Join(names, ", "))
}

// around says what is where a file was looked for: in its folder, or in the nearest
// one that is there.
func (v visit) around(rel string) string {
	for dir := path.Dir(rel); ; dir = path.Dir(dir) {
		if info, err := v.root.Stat(dir); err == nil && info.IsDir() || dir == "." {
			return v.here(dir)
		}
	}
}

// knows is what the model knows of a file.
func (v visit) knows(rel string, data []byte) workspace.Knowledge { return v.w.Seen.Know(rel, data) }

// grow refuses to write bytes that the workspace has no room for (DESIGN 5.8). Where
// there are more files than are looked at, the rest counts as nothing.
func (v visit) grow(ctx context.Context, more int64) (string, error) {
	if more <= 0 {
		return "", nil
	}
	used, left := int64(0), v.entries
	for e, err := range v.root.Walk(ctx, nil) {
		if ctx.Err() != nil {
			return "", fmt.Errorf("count the workspace: %w", context.Cause(ctx))
		}
		if left--; left < 0 {
			break
		}
		if err == nil && e.Link == "" && e.Info.Mode().IsRegular() {
			used += e.Info.Size()
		}
	}
	if used+more > v.workspaceBytes {
		return fmt.Sprintf(noRoom, used, v.workspaceBytes, more), nil
	}
	return "", nil
}
