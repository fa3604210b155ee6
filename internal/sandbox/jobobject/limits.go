package jobobject

import (
	"math"

	"github.com/metier-run/metier/internal/sandbox"
)

// Flags of winnt.h, here because they are decided on, and tested, on every system.
const (
	limitActive       = 0x00000008 // JOB_OBJECT_LIMIT_ACTIVE_PROCESS
	limitJobMemory    = 0x00000200 // JOB_OBJECT_LIMIT_JOB_MEMORY
	limitNoErrorBox   = 0x00000400 // JOB_OBJECT_LIMIT_DIE_ON_UNHANDLED_EXCEPTION
	limitKillOnClose  = 0x00002000 // JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	uiHandles         = 0x00000001 // JOB_OBJECT_UILIMIT_HANDLES: windows of other programs
	uiReadClipboard   = 0x00000002 // JOB_OBJECT_UILIMIT_READCLIPBOARD
	uiWriteClipboard  = 0x00000004 // JOB_OBJECT_UILIMIT_WRITECLIPBOARD
	uiSystemSettings  = 0x00000008 // JOB_OBJECT_UILIMIT_SYSTEMPARAMETERS
	uiDisplaySettings = 0x00000010 // JOB_OBJECT_UILIMIT_DISPLAYSETTINGS
	uiGlobalAtoms     = 0x00000020 // JOB_OBJECT_UILIMIT_GLOBALATOMS
	uiDesktop         = 0x00000040 // JOB_OBJECT_UILIMIT_DESKTOP
	uiExitWindows     = 0x00000080 // JOB_OBJECT_UILIMIT_EXITWINDOWS
)

// desktop is all that a job can be kept from of the user's desktop.
const desktop = uiHandles | uiReadClipboard | uiWriteClipboard | uiSystemSettings |
	uiDisplaySettings | uiGlobalAtoms | uiDesktop | uiExitWindows

// limitsOf are the limits of a launch. Processes are counted, not their threads. A
// flag that lets a process leave the job is never among them.
func limitsOf(l sandbox.Launch) *sandbox.JobLimits {
	x := &sandbox.JobLimits{Flags: limitKillOnClose | limitNoErrorBox, Desktop: desktop}
	if l.Memory > 0 {
		x.Flags |= limitJobMemory
		x.Memory = uint64(l.Memory)
	}
	if l.Processes > 0 {
		x.Flags |= limitActive
		x.Processes = uint32(min(l.Processes, math.MaxUint32))
	}
	return x
}

// capabilities are what a job object bounds, by seed 1, "What each platform
// enforces".
func capabilities() sandbox.Capabilities {
	able := sandbox.Capabilities{Backend: Name, Tier: sandbox.TierNone}
	for _, a := range sandbox.Aspects() {
		c := sandbox.Capability{Aspect: a, Note: "a job object does not confine it"}
		switch a {
		case sandbox.Tree:
			c.Held, c.Note = true, "by job object, which no process can leave"
		case sandbox.Memory:
			c.Held, c.Note = true, "by job object"
		case sandbox.Processes:
			c.Held, c.Note = true, "by job object; threads do not count"
		case sandbox.Disk:
			c.Note = "the working directory is looked at now and then, other places are not"
		}
		able.All = append(able.All, c)
	}
	return able
}
