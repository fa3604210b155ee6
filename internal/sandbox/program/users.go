package program

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Users are ids that belong to nobody, for launches of a host that is root: one
// launch's is no other's at the same time, so that neither limits nor rights of one
// touch another. They are safe for concurrent use.
type Users struct {
	mu    sync.Mutex
	base  uint32
	step  uint32
	inUse []bool
}

// mostUsers is how many launches of one backend can run at once on a host that is
// root.
const mostUsers = 4096

// The first ids. Those that systemd gives to containers end below them, and the
// backends that share this package have a range each.
const (
	FirstBwrap uint32 = 0x70010000
	FirstRunc  uint32 = 0x70020000
	FirstCrun  uint32 = 0x70030000
)

// NewUsers sets ids aside from first on, each for consecutive ids a launch. An
// error means that these ids do not exist here, as in a container.
func NewUsers(first, each uint32) (*Users, error) {
	maps, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return nil, err
	}
	if !mapped(string(maps), uint64(first), uint64(first)+mostUsers*uint64(each)) {
		return nil, errors.New("this container maps too few users to give a launch one of its own")
	}
	return &Users{base: first, step: each, inUse: make([]bool, mostUsers)}, nil
}

// mapped reports whether ids from first up to end exist by the text of a uid_map.
func mapped(maps string, first, end uint64) bool {
	for line := range strings.Lines(maps) {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			continue
		}
		from, err1 := strconv.ParseUint(fields[0], 10, 32)
		size, err2 := strconv.ParseUint(fields[2], 10, 32)
		if err1 == nil && err2 == nil && first >= from && end <= from+size {
			return true
		}
	}
	return false
}

// Take is the lowest free id. Give it back with [Users.Return].
func (u *Users) Take() (uint32, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	i := slices.Index(u.inUse, false)
	if i < 0 {
		return 0, errors.New("too many launches run at once: lower sandbox-launches")
	}
	u.inUse[i] = true
	return u.base + uint32(i)*u.step, nil
}

// Return gives an id back once nothing runs under it.
func (u *Users) Return(id uint32) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.inUse[(id-u.base)/u.step] = false
}
