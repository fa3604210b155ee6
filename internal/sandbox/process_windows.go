package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// tree is how a program and its descendants are found and killed: a job object that
// no process can leave and that ends with the host.
type tree struct {
	job    windows.Handle
	limits JobLimits
}

// killed is the exit status of a process that the host ended: what a shell of other
// systems shows for it.
const killed = 128 + 9

func newTree(_ Launch, cmd Command) (*tree, error) {
	if len(cmd.ExtraFiles) > 0 || cmd.User != nil {
		return nil, errors.New("extra files and users are not for Windows")
	}
	if err := refuseBatch(cmd.Path); err != nil {
		return nil, err
	}
	t := &tree{}
	if cmd.Job != nil {
		t.limits = *cmd.Job
	}
	var err error
	if t.job, err = windows.CreateJobObject(nil, nil); err != nil {
		return nil, fmt.Errorf("make a job object: %w", err)
	}
	if err := t.limit(); err != nil {
		t.close()
		return nil, fmt.Errorf("set up a job object: %w", err)
	}
	return t, nil
}

// limit sets the limits of the job.
func (t *tree) limit() error {
	var info windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	info.BasicLimitInformation.LimitFlags = t.limits.Flags |
		windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE | windows.JOB_OBJECT_LIMIT_DIE_ON_UNHANDLED_EXCEPTION
	info.BasicLimitInformation.ActiveProcessLimit = t.limits.Processes
	info.JobMemoryLimit = uintptr(min(t.limits.Memory, uint64(^uintptr(0))))
	_, err := windows.SetInformationJobObject(t.job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	return err
}

// refuseBatch refuses batch files: the system runs them by a shell of its own,
// which reads the arguments by rules that no quoting satisfies.
func refuseBatch(path string) error {
	// Trailing dots and spaces are dropped when a file is opened.
	switch ext := strings.ToLower(filepath.Ext(strings.TrimRight(path, ". "))); ext {
	case ".bat", ".cmd":
		return fmt.Errorf("%s is a batch file, whose arguments a shell would read; run the program that it starts", path)
	}
	return nil
}

// attr starts the program suspended. Go lets it inherit the three standard handles
// and no other.
func (t *tree) attr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		HideWindow:    true,
		CreationFlags: windows.CREATE_SUSPENDED | windows.CREATE_NEW_PROCESS_GROUP | windows.CREATE_NO_WINDOW,
	}
}

func (t *tree) spawn(path string, args []string, attr *os.ProcAttr) (*os.Process, error) {
	return os.StartProcess(path, args, attr)
}

func (t *tree) adopt(p *os.Process) error {
	var failed error
	if err := p.WithHandle(func(h uintptr) { failed = windows.AssignProcessToJobObject(t.job, windows.Handle(h)) }); err != nil {
		return err
	}
	if failed != nil {
		return fmt.Errorf("put the program into a job object: %w", failed)
	}
	// Only now: a job that is limited so cannot become a part of another one.
	desktop := windows.JOBOBJECT_BASIC_UI_RESTRICTIONS{UIRestrictionsClass: t.limits.Desktop}
	_, _ = windows.SetInformationJobObject(t.job, windows.JobObjectBasicUIRestrictions,
		uintptr(unsafe.Pointer(&desktop)), uint32(unsafe.Sizeof(desktop))) // refused inside of another job; see JobLimits
	return nil
}

// release lets the suspended program run.
func (t *tree) release(p *os.Process) error {
	list, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPTHREAD, 0)
	if err != nil {
		return fmt.Errorf("list threads: %w", err)
	}
	defer func() { _ = windows.CloseHandle(list) }()
	entry := windows.ThreadEntry32{Size: uint32(unsafe.Sizeof(windows.ThreadEntry32{}))}
	resumed := false
	for err = windows.Thread32First(list, &entry); err == nil; err = windows.Thread32Next(list, &entry) {
		if entry.OwnerProcessID != uint32(p.Pid) {
			continue
		}
		if err := resume(entry.ThreadID); err != nil {
			return err
		}
		resumed = true
	}
	if !resumed {
		return errors.New("resume the program: it has no thread")
	}
	return nil
}

func resume(id uint32) error {
	thread, err := windows.OpenThread(windows.THREAD_SUSPEND_RESUME, false, id)
	if err != nil {
		return fmt.Errorf("open a thread: %w", err)
	}
	defer func() { _ = windows.CloseHandle(thread) }()
	if _, err := windows.ResumeThread(thread); err != nil {
		return fmt.Errorf("resume a thread: %w", err)
	}
	return nil
}

// close ends whatever is still in the job.
func (t *tree) close() { _ = windows.CloseHandle(t.job) }

func (t *tree) kill() { _ = windows.TerminateJobObject(t.job, killed) }

func (t *tree) tracks() bool { return false }

func (t *tree) observe() {}

// accounting is JOBOBJECT_BASIC_ACCOUNTING_INFORMATION of winnt.h.
type accounting struct {
	userTime, kernelTime, periodUserTime, periodKernelTime int64
	faults, total, active, terminated                      uint32
}

// sweep waits until the job is empty and reports whether it was not.
func (t *tree) sweep() bool {
	const pause = 5 * time.Millisecond
	found := false
	for end := time.Now().Add(sweepWait); time.Now().Before(end); time.Sleep(pause) {
		var a accounting
		err := windows.QueryInformationJobObject(t.job, windows.JobObjectBasicAccountingInformation,
			uintptr(unsafe.Pointer(&a)), uint32(unsafe.Sizeof(a)), nil)
		if err != nil || a.active == 0 {
			return found
		}
		found = true
		t.kill()
	}
	return found
}

// await waits until the program has ended.
func (t *tree) await(p *os.Process) {
	_ = p.WithHandle(func(h uintptr) { // there is always a handle
		_, _ = windows.WaitForSingleObject(windows.Handle(h), windows.INFINITE)
	})
}

// FindShell is the argument vector of the shell of this host that a line is
// appended to; nil if there is none.
func FindShell() []string {
	dir, err := windows.GetSystemDirectory()
	if err != nil {
		return nil
	}
	path := filepath.Join(dir, "WindowsPowerShell", "v1.0", "powershell.exe")
	if _, err := os.Stat(path); err != nil {
		return nil
	}
	return []string{path, "-NoLogo", "-NoProfile", "-NonInteractive", "-Command"}
}

// status is the exit status of a process; there are no signals.
func status(state *os.ProcessState) (int, string) {
	if state == nil {
		return killed, ""
	}
	return state.ExitCode(), ""
}

// fileID tells files apart; here they are not.
type fileID struct{}

// diskUse is what a file takes, by its length.
func diskUse(info fs.FileInfo) (size int64, id fileID, shared bool) {
	return info.Size(), fileID{}, false
}

// trueProgram is a program that does nothing.
func trueProgram() ([]string, error) {
	dir, err := windows.GetSystemDirectory()
	if err != nil {
		return nil, err
	}
	return []string{filepath.Join(dir, "cmd.exe"), "/d", "/c", "exit"}, nil
}
