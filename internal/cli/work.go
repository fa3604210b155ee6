package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/metier-run/metier/internal/app"
	"github.com/metier-run/metier/internal/code"
	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/internal/gateway"
	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/turn"
)

// flagAttach puts files of this machine into the conversation.
const flagAttach = "attach"

// attachment is a file of this machine that a person gives to the model.
func attachment(name string, limits config.Values) (llm.Attachment, error) {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return llm.Attachment{}, err
	case !info.Mode().IsRegular():
		return llm.Attachment{}, fmt.Errorf("%s is no file", name)
	case info.Size() > limits.Get(config.AttachBytes):
		return llm.Attachment{}, fmt.Errorf("%s has %d bytes, and an attached file may have %d", name, info.Size(), limits.Get(config.AttachBytes))
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return llm.Attachment{}, err
	}
	return llm.Attachment{Name: filepath.Base(name), Size: int64(len(data)), Data: func() ([]byte, error) { return data, nil }}, nil
}

// errNoCode says why a file cannot be attached.
var errNoCode = errors.New("there is no workspace to put it in: add --" + flagCode)

// attach reads files for a conversation.
func attach(a *app.App, names []string) ([]llm.Attachment, error) {
	if len(names) > 0 && !a.Settings.Code.Allowed {
		return nil, fault.Usage("--%s %s: %w", flagAttach, names[0], errNoCode)
	}
	var files []llm.Attachment
	for _, name := range names {
		f, err := attachment(name, a.Settings.Limits)
		if err != nil {
			return nil, fault.Usage("--%s: %w", flagAttach, err)
		}
		files = append(files, f)
	}
	return files, nil
}

// sayWarnings tells what was left out of a request.
func (s *session) sayWarnings(t *gateway.Turn) {
	for _, warning := range t.Warnings() {
		fmt.Fprintln(s.std.Err, printable(warning))
	}
}

// withLast puts files into a conversation with its last message.
func withLast(work *code.Conversation, files []llm.Attachment) func([]llm.Message) map[int]string {
	if len(files) == 0 {
		return nil
	}
	return func(messages []llm.Message) map[int]string {
		return map[int]string{len(messages) - 1: work.Attach(files)}
	}
}

// progress tells on a terminal what a call of the host does while it does it (B1 17.6).
type progress struct {
	out     io.Writer
	writing string // the tool whose call is being written
	lines   int    // of output that were shown of the call
	partial string // the last line, which has no end yet
}

// shownLines is how much of a call's output a person is shown while it runs, and
// shownWidth how many characters of a line: the rest is in the model's hands.
const (
	shownLines = 8
	shownWidth = 160
)

func (p *progress) see(s turn.Signal) {
	switch s.Kind {
	case turn.CallWriting:
		if p.writing != s.Call.Name {
			p.writing = s.Call.Name
			fmt.Fprintf(p.out, "[round %d] %s: being written\n", s.Round, printable(code.Canonical(s.Call.Name)))
		}
	case turn.CallStarted:
		p.writing, p.lines, p.partial = "", 0, ""
	case turn.CallRunning:
		p.running(s.Text)
	case turn.CallEnded:
		p.lines, p.partial = 0, ""
		for _, f := range s.Result.Files {
			p.file(f)
		}
	}
}

// running shows whole lines.
func (p *progress) running(text string) {
	lines := strings.Split(p.partial+text, "\n")
	p.partial = beginning(lines[len(lines)-1], shownWidth+1)
	for _, line := range lines[:len(lines)-1] {
		if p.lines++; p.lines <= shownLines {
			fmt.Fprintf(p.out, "  | %s\n", shownLine(line))
		} else if p.lines == shownLines+1 {
			fmt.Fprintln(p.out, "  | ...")
		}
	}
}

// shownLine is the beginning of a line as a terminal shows it.
func shownLine(line string) string {
	line = printable(line)
	if cut := beginning(line, shownWidth); cut != line {
		return cut + "..."
	}
	return line
}

// beginning is the first n characters of a text.
func beginning(text string, n int) string {
	for i := range text {
		if n--; n < 0 {
			return text[:i]
		}
	}
	return text
}

func (p *progress) file(f journal.File) {
	fmt.Fprintf(p.out, "  made %s: %s\n", printable(f.Name), printable(f.URL))
}
