package sandbox

import (
	"testing"
	"unsafe"

	"golang.org/x/sys/windows"
)

func TestJobLimits(t *testing.T) {
	want := JobLimits{Flags: windows.JOB_OBJECT_LIMIT_JOB_MEMORY | windows.JOB_OBJECT_LIMIT_ACTIVE_PROCESS, Memory: 64 << 20, Processes: 16}
	tree, err := newTree(Launch{}, Command{Path: `C:\a.exe`, Job: &want})
	if err != nil {
		t.Fatal(err)
	}
	defer tree.close()
	var info windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	if err := windows.QueryInformationJobObject(tree.job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)), nil); err != nil {
		t.Fatal(err)
	}
	b := info.BasicLimitInformation
	if b.LimitFlags&want.Flags != want.Flags || b.LimitFlags&windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE == 0 ||
		b.ActiveProcessLimit != want.Processes || info.JobMemoryLimit != 64<<20 {
		t.Errorf("the job has %+v", info)
	}
}

func TestBatchFilesAreRefused(t *testing.T) {
	for path, refused := range map[string]bool{
		`C:\a.exe`: false, `C:\a.bat`: true, `C:\a.CMD`: true, `C:\a.cmd. .`: true, `C:\bat`: false, `C:\a.bat\b.exe`: false,
	} {
		if got := refuseBatch(path) != nil; got != refused {
			t.Errorf("%s: refused %t", path, got)
		}
	}
}
