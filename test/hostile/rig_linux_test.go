package hostile

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/metier-run/metier/internal/sandbox"
)

// rig is what all rows of one process share.
type rig struct {
	// tools holds the attacking program and, made by root, its set-user-id copy.
	tools string
	// near is a folder in the temporary one, where launches work; far is one in
	// another place, where the user's home and other people's files are.
	near, far string
	// home holds a key, skills the skills, of which a launch sees one.
	home, skills string
}

func (r *rig) attack() string { return filepath.Join(r.tools, "attack") }
func (r *rig) suid() string   { return filepath.Join(r.tools, "suid") }
func (r *rig) own() string    { return filepath.Join(r.skills, "own") }

// newRig makes the folders and builds the program, or takes what root built.
func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{near: folder(t, ""), far: folder(t, "/var/tmp"), tools: os.Getenv(envFamily)}
	if r.tools == "" {
		r.tools = filepath.Join(r.near, "tools")
		build(t, r)
	}
	r.home, r.skills = filepath.Join(r.far, "home"), filepath.Join(r.near, "skills")
	for _, dir := range []string{r.home + "/.ssh", r.own(), r.skills + "/other"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(r.own(), "SKILL.md"), "honest instructions\n")
	return r
}

func folder(t *testing.T, parent string) string {
	t.Helper()
	dir, err := os.MkdirTemp(parent, "hostile-")
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err = errors.Join(err, os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remove(t, dir) })
	return dir
}

// build compiles testdata/attack. It is linked statically, so that it runs in any
// root.
func build(t *testing.T, r *rig) {
	t.Helper()
	if err := os.Mkdir(r.tools, 0o755); err != nil {
		t.Fatal(err)
	}
	parts, err := filepath.Glob("testdata/attack/*.c")
	if err != nil || len(parts) == 0 {
		t.Fatalf("the attacking program is not there: %v", err)
	}
	args := append([]string{"-O1", "-Wall", "-Wno-unused-result", "-static", "-pthread", "-o", r.attack()}, parts...)
	if out, err := exec.CommandContext(t.Context(), "cc", args...).CombinedOutput(); err != nil {
		t.Fatalf("build the attacking program (a C compiler is needed): %v\n%s", err, out)
	}
	if os.Geteuid() == 0 {
		copyFile(t, r.attack(), r.suid())
		if err := os.Chmod(r.suid(), 0o755|os.ModeSetuid); err != nil {
			t.Fatal(err)
		}
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// random is a text that is in no other place.
func random() string { return rand.Text()[:20] }

// number is what a verdict's marker is computed from.
func number() uint32 {
	var b [4]byte
	_, _ = rand.Read(b[:]) // it never fails
	return binary.NativeEndian.Uint32(b[:]) >> 1
}

// trial is one row under one backend.
type trial struct {
	*testing.T
	*rig
	b sandbox.Backend
	// control says that nothing confines it.
	control bool
	// name is for files of this trial; secret is what must not come out, and what
	// another run of this row does not have.
	name, secret string
	// work is the working directory.
	work string
	// l is the launch; a row changes what it needs.
	l sandbox.Launch
}

func newTrial(t *testing.T, r *rig, b sandbox.Backend) *trial {
	x := &trial{T: t, rig: r, b: b, control: b.Name() == bareControl, name: "hostile-" + random(), secret: random()}
	x.work = x.scratch()
	x.l = x.launch(x.work)
	return x
}

// scratch is a new working directory.
func (x *trial) scratch() string {
	x.Helper()
	dir, err := os.MkdirTemp(x.near, "work-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		x.Fatal(err)
	}
	x.Cleanup(func() { remove(x.T, dir) })
	return dir
}

// launch is what a skill's script would get, with small bounds.
func (x *trial) launch(work string) sandbox.Launch {
	return sandbox.Launch{
		Purpose: sandbox.Script, Dir: work, Write: []string{work},
		Read: []string{x.tools, x.own()}, Hide: []string{x.skills},
		Env:      []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", "HOME=" + work, "TMPDIR=" + work},
		Deadline: 25 * time.Second, Output: 256 << 10, Memory: 512 << 20, Processes: 128, Disk: 64 << 20,
	}
}

// outside is a file of the host that holds the secret and that a launch has no
// business with.
func (x *trial) outside(dir, name string) string {
	x.Helper()
	path := filepath.Join(dir, name)
	write(x.T, path, x.secret+"\n")
	x.Cleanup(func() { _ = os.Remove(path) }) // a row may have moved it
	return path
}

// leak leaves a descriptor open as a careless parent does: Go closes none at a start
// that it did not open itself.
func (x *trial) leak(name string) {
	x.Helper()
	fd, err := syscall.Open(name, syscall.O_RDONLY, 0)
	if err != nil {
		x.Fatal(err)
	}
	x.Cleanup(func() { _ = syscall.Close(fd) })
}

// send starts a launch of the attacking program and hands its result out.
func (x *trial) send(l sandbox.Launch, verb string, args ...string) (sandbox.Result, *outcome) {
	x.Helper()
	n := number()
	l.Argv = append([]string{x.attack(), strconv.FormatUint(uint64(n), 10), verb}, args...)
	r, err := sandbox.Run(x.Context(), x.b, l)
	if err != nil {
		return r, &outcome{broken: []string{"launch:" + err.Error()}}
	}
	return r, x.verdict(n, r)
}

// exists says whether the host has a path now.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func pair(name string, value any) string { return fmt.Sprintf("%s=%v", name, value) }
