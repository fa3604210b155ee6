package jobobject

import (
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/windows"

	"github.com/metier-run/metier/internal/sandbox"
)

// The flags are those of the system, or this does not compile.
var (
	_ [0]struct{} = [limitActive - windows.JOB_OBJECT_LIMIT_ACTIVE_PROCESS]struct{}{}
	_ [0]struct{} = [limitJobMemory - windows.JOB_OBJECT_LIMIT_JOB_MEMORY]struct{}{}
	_ [0]struct{} = [limitNoErrorBox - windows.JOB_OBJECT_LIMIT_DIE_ON_UNHANDLED_EXCEPTION]struct{}{}
	_ [0]struct{} = [limitKillOnClose - windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE]struct{}{}
	_ [0]struct{} = [uiHandles - windows.JOB_OBJECT_UILIMIT_HANDLES]struct{}{}
	_ [0]struct{} = [uiExitWindows - windows.JOB_OBJECT_UILIMIT_EXITWINDOWS]struct{}{}
	_ [0]struct{} = [uiDesktop - windows.JOB_OBJECT_UILIMIT_DESKTOP]struct{}{}
)

func TestRun(t *testing.T) {
	f := Find(t.Context())
	if f.Problem != nil {
		t.Fatal(f.Problem)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r, err := sandbox.Run(t.Context(), f.Backend, sandbox.Launch{
		Line: "Start-Process -NoNewWindow ping -ArgumentList '-n','600','127.0.0.1'; Start-Sleep 600",
		Dir:  dir, Write: []string{dir}, Deadline: 5 * time.Second, Memory: 1 << 30, Processes: 32,
	})
	if err != nil || r.Ended != sandbox.TimedOut || r.Exit != 137 {
		t.Errorf("%v, %+v", err, r)
	}
}
