// Package watch keeps a registry of skills up to date while its folders change.
//
// [Run] is told by the host of every change in the folders of a
// [skill.Registry], waits until it is quiet, and has the registry rescan. A
// skill that is being written stays as it was until nothing has been written in
// its folder for a while; only then does it count, with its faults. A snapshot
// that a reader holds never changes.
//
// It only reads, and decides nothing about skills: which folders matter and what
// a skill is, the registry knows. Where the host cannot tell of changes, it looks
// from time to time, and says so in the log.
//
// Start at [Run].
package watch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/metier-run/metier/skill"
)

// Defaults of [Options].
const (
	// DefaultSettle is longer than the pauses of programs that write a folder
	// file by file, and too short for a person to notice.
	DefaultSettle = 300 * time.Millisecond
	// DefaultPoll is how often a watcher looks that is not told.
	DefaultPoll = 2 * time.Second
)

// patience is how many times the settling time a change waits at most for the
// others to end, so that one folder that is always written to holds up no other.
const patience = 10

// Options say how to watch. The zero Options is right for a server.
type Options struct {
	// Settle is how long nothing may have been written in a skill's folder before
	// what is there counts; 0 is [DefaultSettle].
	Settle time.Duration
	// Poll is the time between two looks, where the host cannot tell of changes;
	// 0 is [DefaultPoll]. It then adds to Settle.
	Poll time.Duration
	// Polling looks even where the host could tell: network file systems tell
	// nothing of changes that other hosts make.
	Polling bool
	// Logger gets one line for each new snapshot, each skill in it that does not
	// load any more, and each failure; nil is silent.
	Logger *slog.Logger
	// Changed is called with each snapshot that differs from the one before,
	// after it is in force. Calls come one after the other.
	Changed func(*skill.Snapshot)
}

// Run watches until ctx ends, and then gives back nil. It fails at once when the
// options make no sense, and otherwise never: what goes wrong meanwhile is logged
// and tried again with the next change.
func Run(ctx context.Context, r *skill.Registry, o Options) error {
	if o.Settle < 0 || o.Poll < 0 {
		return fmt.Errorf("watch skills: the times to settle (%v) and to poll (%v) must not be negative: leave them out or give positive ones", o.Settle, o.Poll)
	}
	o.Settle, o.Poll = cmp.Or(o.Settle, DefaultSettle), cmp.Or(o.Poll, DefaultPoll)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return run(ctx, r, o, func() (source, error) { return newNotifier() })
}

// run watches with the host's own means, and by looking if these do not suffice.
func run(ctx context.Context, r *skill.Registry, o Options, host func() (source, error)) error {
	if !o.Polling {
		src, err := host()
		if err == nil {
			err = newWatcher(r, o, src).run(ctx)
		}
		if err == nil {
			return nil
		}
		o.Logger.WarnContext(ctx, "skill folders are looked at from time to time, because the host cannot watch them all: on Linux, raise fs.inotify.max_user_watches",
			slog.Any("error", err), slog.Duration("every", o.Poll))
	}
	o.Settle += o.Poll // quiet is what has not changed between two looks
	return newWatcher(r, o, newPoller(o.Poll)).run(ctx)
}

// errFull: the host watches no more folders.
var errFull = errors.New("the host's limit of watched folders is reached")

// source tells of changes in folders, not in those below them.
type source interface {
	// add starts with a folder, or makes sure of it. It fails with errFull, and
	// with the disk's error for a folder that cannot be watched.
	add(dir string) error
	// remove ends with a folder; one that is not watched is fine.
	remove(dir string)
	events() <-chan event
	// close ends the source and its goroutines.
	close()
}

// event is a change. Its path may be empty when events were lost.
type event struct {
	path string
	kind kind
}

type kind int

const (
	written kind = iota // or removed, or renamed away
	created             // or renamed to
	touched             // only its attributes
	lost                // any path may have changed
)
