package native

import (
	"runtime"
	"sync"
)

// spareThreads is how many threads a child keeps for its runtime.
const spareThreads = 4

// spare has the runtime make threads that it can use later. A program that has used
// up its processes leaves none for the runtime of the process that minds it, which
// would end for want of a thread, and the program with it.
func spare() {
	var made, done sync.WaitGroup
	release := make(chan struct{})
	for range spareThreads {
		made.Add(1)
		done.Go(func() {
			runtime.LockOSThread() // so that each has a thread of its own
			defer runtime.UnlockOSThread()
			made.Done()
			<-release
		})
	}
	made.Wait()
	close(release)
	done.Wait()
}
