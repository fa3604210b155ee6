package shell

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/sandbox"
)

// cwdName is the file in which [workspace.Workspace.Current] looks for the directory.
const cwdName = "cwd"

// keptName is the name of a file for the state of one command. Nobody can know it
// before, so no command can put something there that would hold up a later one.
func keptName() string { return "kept-" + strings.ToLower(rand.Text()) }

func (s *Session) saved(name string) string { return filepath.Join(s.w.Saved(), name) }

// path is a folder of the workspace on this host.
func (s *Session) path(rel string) string { return filepath.Join(s.w.Work(), filepath.FromSlash(rel)) }

// mend gives the folders that commands may write back to their owner. Without it a
// "chmod 0 ." would keep every later command from starting. No link is followed out
// of the workspace.
func (s *Session) mend() error {
	for _, dir := range []string{s.w.Work(), s.w.Saved()} {
		root, err := os.OpenRoot(filepath.Dir(dir))
		if err != nil {
			return err
		}
		info, err := root.Stat(filepath.Base(dir))
		if err == nil && info.Mode().Perm()&0o700 != 0o700 {
			err = root.Chmod(filepath.Base(dir), 0o700)
		}
		if err := errors.Join(err, root.Close()); err != nil {
			return err
		}
	}
	return nil
}

// write writes the script of a number, and removes the oldest of those that are kept
// (B1 9.5).
func (s *Session) write(number int, script string) (path string, err error) {
	root, err := os.OpenRoot(s.w.State())
	if err != nil {
		return "", fmt.Errorf("write the script of a command: %w", err)
	}
	defer root.Close()
	name := s.scriptName(number)
	if err := writeNew(root, name, script, 0o644); err != nil {
		return "", fmt.Errorf("write the script of a command: %w", err)
	}
	if old := number - s.w.Limits().Int(config.CodeWrappers); old > 0 {
		// One whose command still runs in the background is open there.
		if err := root.Remove(s.scriptName(old)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.o.Logger.Warn("the script of an old command was left behind", "error", err)
		}
	}
	return filepath.Join(s.w.State(), name), nil
}

func (s *Session) scriptName(number int) string {
	if s.Dialect() == PowerShell {
		return "command-" + strconv.Itoa(number) + ".ps1"
	}
	return "command-" + strconv.Itoa(number) + ".sh"
}

// writeNew writes a file that is not there, or is nothing that this host wrote.
func writeNew(root *os.Root, name, text string, mode fs.FileMode) error {
	if err := root.RemoveAll(name); err != nil {
		return err
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Chmod(mode), f.Close()) // whatever the umask took away
}

// settle takes over what a command left.
func (s *Session) settle(p plan, r sandbox.Result) Outcome {
	out := Outcome{Result: r, Ran: p.ran, Script: p.script}
	left, dir, err := s.read(p)
	if err != nil {
		s.o.Logger.Warn("exported variables are not remembered", "error", err)
		out.Reset = true
	}
	s.mu.Lock()
	if left != nil {
		s.vars = *left
	} else if err != nil {
		s.vars = nil
	}
	s.mu.Unlock()
	if p.moves && dir != "" {
		out.Outside = !s.move(dir, p.was)
	}
	out.Dir = s.w.Current()
	out.Moved = out.Dir != p.was
	return out
}

var (
	errUnset = errors.New("the shell could not set those that were remembered")
	errShape = errors.New("what the shell left is not what it writes")
)

// read reads what a command left: nil when it left nothing, or was killed while it
// did. An error says that what was remembered before is lost.
func (s *Session) read(p plan) (vars *[]variable, dir string, err error) {
	defer s.clear(p.kept)
	text, err := s.w.ReadSaved(p.kept)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", s.unset(p)
	}
	if err != nil {
		return nil, "", err
	}
	whole, found := strings.CutSuffix(string(text), endMark)
	if !found {
		return nil, "", s.unset(p)
	}
	all, rest, err := parseExports(whole, s.Dialect())
	if err != nil {
		return nil, "", err
	}
	dir, found = strings.CutPrefix(rest, dirMark)
	if !found {
		return nil, "", errShape
	}
	left := changed(all, environment(p.launch.Env))
	return &left, strings.TrimRight(dir, "\r\n"), s.unset(p)
}

// unset is an error when the command began without the variables.
func (s *Session) unset(p plan) error {
	if _, err := s.w.ReadSaved(p.kept + resetTail); err == nil {
		return errUnset
	}
	return nil
}

// clear removes what a command left, whatever it is.
func (s *Session) clear(kept string) {
	root, err := os.OpenRoot(s.w.Saved())
	if err != nil {
		return
	}
	defer root.Close()
	for _, name := range []string{kept, kept + resetTail} {
		_ = root.RemoveAll(name) // mostly it is not there; else it goes with the workspace
	}
}

// move has the session go on in a directory, and reports whether that lies in the
// workspace by its name: [workspace.Workspace.Current] judges the rest.
func (s *Session) move(dir, was string) bool {
	rel, err := filepath.Rel(s.w.Work(), filepath.FromSlash(dir))
	if err != nil || !filepath.IsLocal(rel) {
		return false
	}
	if filepath.ToSlash(rel) == was {
		return true
	}
	if err := s.writeDir(filepath.Join(s.w.Work(), rel)); err != nil {
		s.o.Logger.Warn("the directory of a command is not remembered", "error", err)
	}
	return true
}

// writeDir replaces the file that holds the directory, whatever is there: a pipe
// would hold up whoever opens it, so what is there is never opened.
func (s *Session) writeDir(dir string) error {
	root, err := os.OpenRoot(s.w.Saved())
	if err != nil {
		return err
	}
	defer root.Close()
	name := keptName()
	if err := writeNew(root, name, dir+"\n", 0o600); err != nil {
		return err
	}
	if err = root.Rename(name, cwdName); err != nil {
		// A directory is in the way.
		if err = root.Rename(cwdName, path.Join(".", keptName())); err == nil {
			err = root.Rename(name, cwdName)
		}
	}
	return err
}
