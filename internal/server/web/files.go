package web

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/metier-run/metier/internal/continuity"
	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/llm/openai"
)

// files is what a session knows of the files that its client gave it: where each lies is
// told behind the message that it came with, in each request that holds the message, so
// that the model's prompt stays as it was (B1 6.4).
type files struct {
	mu      sync.Mutex
	pending []upload          // no message has told of them yet
	told    map[string]string // notes, by message
	spoken  bool              // a turn has run since the session was empty
}

// upload is a file that came by itself.
type upload struct{ name, note string }

// add puts an uploaded file into the workspace and gives its name there.
func (x *session) add(f llm.Attachment) (string, error) {
	x.files.mu.Lock()
	defer x.files.mu.Unlock()
	had, most := len(x.work.Attached()), x.sessions.files
	if had >= most {
		e := fault.New(fault.TooLarge, "the session has %d files, and there may be %d: send \"newChat\": true, or begin another session", had, most)
		e.Param, e.Detail = "file", "too_many_attachments"
		return "", e
	}
	note := x.work.Attach([]llm.Attachment{f})
	names := x.work.Attached()
	if len(names) == had {
		e := fault.New(fault.TooLarge, "the file %q does not fit: %s", f.Name, strings.Trim(note, "[]"))
		e.Param, e.Detail = "file", "attachment_too_large"
		return "", e
	}
	if err := x.work.Settle(); err != nil {
		return "", fault.Wrap(err, fault.Internal, "the file %q could not be put into the workspace; the server's log has the reason", f.Name)
	}
	name := names[len(names)-1]
	x.files.pending = append(x.files.pending, upload{name: name, note: note})
	return name, nil
}

// notes tell of the files of a request's messages, by the messages' places. Files that
// stand in a message are put into the workspace the first time that it comes; what was
// uploaded is told behind the last message of the user.
func (x *session) notes(messages []llm.Message) map[int]string {
	x.files.mu.Lock()
	defer x.files.mu.Unlock()
	notes, told := map[int]string{}, map[string]string{}
	last, n := lastOfUser(messages), 0
	for i, m := range messages {
		if m.Role != llm.User {
			continue
		}
		n++
		note, keep := x.noteOf(n, m, i == last)
		if note == "" {
			continue
		}
		notes[i] = note
		if keep {
			told[mark(n, m)] = note
		}
	}
	// A message that the client does not send any more needs no note.
	x.files.told = told
	return notes
}

func lastOfUser(messages []llm.Message) int {
	for i, m := range slices.Backward(messages) {
		if m.Role == llm.User {
			return i
		}
	}
	return -1
}

// noteOf is the note of the n-th message of the user, and whether it is to be kept.
func (x *session) noteOf(n int, m llm.Message, last bool) (note string, keep bool) {
	known := false
	if len(x.files.told) > 0 {
		note, known = x.files.told[mark(n, m)]
	}
	keep = known
	if !known {
		note, keep = x.take(openai.Attachments(m))
	}
	if !last || len(x.files.pending) == 0 {
		return note, keep
	}
	all := []string{note}
	if note == "" {
		all = nil
	}
	for _, u := range x.files.pending {
		all = append(all, u.note)
	}
	x.files.pending = nil
	return strings.Join(all, "\n"), true
}

// take puts the files of a message into the workspace. The note of a message with more
// files than there may ever be is not kept: it may be as long as the message.
func (x *session) take(found []llm.Attachment) (note string, keep bool) {
	if len(found) == 0 {
		return "", false
	}
	had := len(x.work.Attached())
	note = x.work.Attach(found)
	if len(x.work.Attached()) > had {
		if err := x.work.Settle(); err != nil {
			x.sessions.o.Logger.Error("attached files not in the workspace", "session", x.id, "error", err)
		}
	}
	return note, len(found) <= x.sessions.files
}

// mark tells the n-th message of the user from others, however its client writes it.
func mark(n int, m llm.Message) string {
	h := sha256.New()
	for _, part := range continuity.Canonical(openai.Expand(m)) {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return fmt.Sprint(n, ":", hex.EncodeToString(h.Sum(nil)))
}

// empty begins the session anew. One that nobody has spoken in is new already, and keeps
// what was uploaded for its first message. It gives the names of uploads that are gone
// although no message has told of them.
func (x *session) empty() (lost []string) {
	x.files.mu.Lock()
	defer x.files.mu.Unlock()
	if !x.files.spoken {
		return nil
	}
	for _, u := range x.files.pending {
		lost = append(lost, u.name)
	}
	x.files.pending, x.files.told, x.files.spoken = nil, nil, false
	if x.work == nil {
		return nil
	}
	// The client may go meanwhile: half an empty workspace helps nobody.
	if err := x.work.Reset(context.Background()); err != nil {
		x.sessions.o.Logger.Error("workspace left behind", "session", x.id, "error", err)
	}
	return lost
}

// speak says that a turn has begun.
func (x *session) speak() {
	x.files.mu.Lock()
	defer x.files.mu.Unlock()
	x.files.spoken = true
}
