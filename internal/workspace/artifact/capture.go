package artifact

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"

	"github.com/go-json-experiment/json"

	"github.com/metier-run/metier/internal/guard"
)

// Capture is what was kept of a launch, and what was not.
type Capture struct {
	// RunID finds the files again; empty when there are none.
	RunID string
	Files []File
	// Skipped are new or changed files that are not kept, at most as many as files
	// could be kept. Unlisted is how many there are besides.
	Skipped  []Skipped
	Unlisted int
}

// Skipped is something new or changed that is not kept.
type Skipped struct {
	// Path is safe to print: what is no plain text in it is escaped. "." is the
	// workdir itself.
	Path string
	// Reason is a clause for a reader who may be a model.
	Reason string
}

// Capture copies the regular files that are new or changed since a snapshot of
// the same directory. The launch must have ended: what changes while it is copied
// is skipped. What is not kept is told in the result and is no failure; an error
// means that nothing was kept, and that the disk holds nothing of it; its text is
// for the log, because it may name directories of this host.
//
// Skipped are links, files with more than one name (the other may lie outside,
// and which one does not show), everything else that is no regular file, names
// that [guard.Clean] refuses, and what is beyond the limits.
//
// Room for new files is made by removing the oldest runs, whoever owns them. A
// file counts for its bytes in whole blocks and for its folders, so that many
// small files are not free.
func (s *Store) Capture(ctx context.Context, owner, dir string, before Snapshot) (Capture, error) {
	c := &capture{store: s, before: before, limit: int(s.count)}
	if before.cut {
		c.skip(".", unknowable(before.scope.entries()))
		return c.result, nil
	}
	cut, err := look(ctx, dir, before.scope, c.see)
	if err != nil {
		return Capture{}, fmt.Errorf("keep the files of a launch: %w", err)
	}
	if len(c.found) > 0 {
		if err := c.keep(ctx, owner, dir); err != nil {
			return Capture{}, fmt.Errorf("keep the files of a launch: %w; nothing of it is kept", err)
		}
	}
	if cut {
		c.skip(".", overfull(before.scope.entries()))
	}
	return c.result, nil
}

// capture is one [Store.Capture].
type capture struct {
	store  *Store
	before Snapshot
	limit  int
	found  []entry
	result Capture
	held   int64 // room that was promised
}

func (c *capture) see(e entry) {
	if c.before.has(e) {
		return
	}
	if e.why == "" {
		e.why = c.judge(e.path, e.info)
	}
	if e.why != "" {
		c.skip(e.path, e.why)
		return
	}
	c.found = append(c.found, e)
}

// judge tells why a file is not kept; empty if it is.
func (c *capture) judge(name string, info fs.FileInfo) string {
	_, names := identity(info)
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return isLink
	case !info.Mode().IsRegular():
		return guard.ErrIrregular.Error()
	case names > 1:
		return isShared
	case info.Size() > c.store.bytes:
		return tooLarge(info.Size(), c.store.bytes)
	case runCost+cost(File{Path: name, Bytes: info.Size()}) > c.store.total:
		return noRoom(c.store.total)
	case len(c.found) >= c.limit:
		return tooMany(c.store.count)
	}
	return ""
}

func (c *capture) skip(name, why string) {
	// The last place is for the workdir itself, which explains the others.
	if len(c.result.Skipped) >= c.limit && name != "." {
		c.result.Unlisted++
		return
	}
	c.result.Skipped = append(c.result.Skipped, Skipped{Path: printable(name), Reason: why})
}

// printable escapes what could disturb a terminal, a log or a line of text.
func printable(name string) string {
	quoted := strconv.Quote(name)
	if quoted == `"`+name+`"` {
		return name
	}
	return quoted[1 : len(quoted)-1]
}

// keep copies what was found into a folder beside the runs, and makes it a run
// when it is whole.
func (c *capture) keep(ctx context.Context, owner, dir string) (err error) {
	id := c.store.options.NewID()
	if !validID(id) {
		return fmt.Errorf("make a run id: %q is not %d hexadecimal digits", id, 2*idBytes)
	}
	stage, mark, err := c.store.stage(id)
	if err != nil {
		return err
	}
	defer func() {
		if c.result.RunID == "" {
			c.store.release(c.held)
			err = errors.Join(err, os.RemoveAll(stage))
		}
	}()
	defer func() {
		if mark != nil {
			_ = mark.Close() // nothing was written through it
		}
	}()
	if err := c.copyAll(ctx, dir, stage); err != nil || len(c.result.Files) == 0 {
		return err
	}
	rec := record{Owner: owner, Created: c.store.options.Now().UTC().Round(0), Files: c.result.Files}
	return c.finish(id, stage, rec)
}

func (c *capture) finish(id, stage string, rec record) error {
	data, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	root, err := guard.OpenRoot(stage)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.WriteFile(recordName, data, 0o600); err != nil {
		return err
	}
	if err := c.store.commit(id, stage, rec.Created, c.held); err != nil {
		return err
	}
	c.result.RunID = id
	return nil
}

func (c *capture) copyAll(ctx context.Context, dir, stage string) error {
	from, err := guard.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer from.Close()
	into := filepath.Join(stage, filesDir)
	if err := os.Mkdir(into, 0o700); err != nil {
		return err
	}
	to, err := guard.OpenRoot(into)
	if err != nil {
		return err
	}
	defer to.Close()
	ok, err := c.reserve(runCost)
	for _, e := range c.found {
		if err != nil {
			return err
		}
		if !ok {
			c.skip(e.path, noRoom(c.store.total))
			continue
		}
		err = c.one(ctx, from, to, e)
	}
	return err
}

// one keeps one file, or tells why not.
func (c *capture) one(ctx context.Context, from, to *guard.Root, e entry) error {
	file := File{Path: e.path, Bytes: e.info.Size()}
	room := cost(file)
	ok, err := c.reserve(room)
	if err != nil {
		return err
	}
	why := noRoom(c.store.total)
	if ok {
		why, err = c.copy(ctx, from, to, e)
	}
	switch {
	case err != nil:
		return err
	case why == "":
		c.result.Files = append(c.result.Files, file)
		return nil
	case ok:
		c.held -= room
		c.store.release(room)
	}
	c.skip(e.path, why)
	return nil
}

func (c *capture) reserve(room int64) (bool, error) {
	ok, err := c.store.reserve(room)
	if ok {
		c.held += room
	}
	return ok, err
}

// copy copies a file if it is the one that was looked at and stays so. An error is
// a failure of the store's own disk or the end of ctx; why is what is wrong with
// the source.
func (c *capture) copy(ctx context.Context, from, to *guard.Root, e entry) (why string, err error) {
	source, err := from.Open(e.path)
	if err != nil {
		return reason(err), nil
	}
	defer source.Close()
	if !unchanged(source, e.info) {
		return isMoving, nil
	}
	if err := to.MkdirAll(path.Dir(e.path), 0o700); err != nil {
		return "", err
	}
	target, err := to.Create(e.path, 0o600)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	if why, err := pour(ctx, target.File, source, e.info.Size()); err != nil || why != "" {
		return why, err
	}
	if !unchanged(source, e.info) {
		return isMoving, nil
	}
	return "", target.Commit()
}

// unchanged reports whether an open file is the one that was seen, as it was.
func unchanged(f *os.File, seen fs.FileInfo) bool {
	now, err := f.Stat()
	if err != nil || !os.SameFile(now, seen) || stampOf(now) != stampOf(seen) {
		return false
	}
	_, names := identity(now)
	return names == 1
}

// bufferSize is how much is read between two looks at the context.
const bufferSize = 256 << 10

// pour copies exactly as many bytes as were seen, whatever the source has become:
// it never reads more than that and one buffer.
func pour(ctx context.Context, to, from *os.File, size int64) (why string, err error) {
	buffer := make([]byte, min(size+1, bufferSize))
	var done int64
	for {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		n, end := from.Read(buffer)
		if done += int64(n); done > size {
			return isMoving, nil
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return "", fmt.Errorf("write a copy: %w", pathless(err))
		}
		switch {
		case errors.Is(end, io.EOF) && done == size:
			return "", nil
		case errors.Is(end, io.EOF):
			return isMoving, nil
		case end != nil:
			return isFailing, nil
		}
	}
}

// pathless drops the host's path from an error of the disk: the text may be shown
// to a model.
func pathless(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		return e.Err
	}
	return err
}
