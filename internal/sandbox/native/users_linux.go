package native

import (
	"bufio"
	"errors"
	"os"
	"strconv"
	"strings"
)

// users are the ids under which launches run when the host is root: one for each
// launch at a time, so that neither limits nor rights of one touch another.
// Without root a launch runs as the host's own user.
type users struct {
	root  bool
	base  int
	count int
}

// mostUsers is how many ids are set aside, and so how many launches of a host
// that is root can run at once.
const mostUsers = 4096

// preferredBase is a range that no distribution gives to people, services or
// containers by default: those of systemd end below it.
const preferredBase = 0x70000000

// outer are the ids of a slot outside; 0 means the host's own.
func (u users) outer(slot int) (uid, gid int) {
	if !u.root {
		return 0, 0
	}
	return u.base + slot, u.base + slot
}

func findUsers() (users, error) {
	if os.Geteuid() != 0 {
		return users{count: mostUsers}, nil
	}
	maps, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return users{}, err
	}
	known, err := os.ReadFile("/etc/passwd")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return users{}, err
	}
	base, ok := freeRange(string(maps), string(known))
	if !ok {
		return users{}, errors.New("this container maps too few users: there is no free range of " + strconv.Itoa(mostUsers))
	}
	return users{root: true, base: base, count: mostUsers}, nil
}

// freeRange is the first of mostUsers ids that exist here and that no account of
// this host has: the preferred one, or the highest there is.
func freeRange(maps, passwd string) (int, bool) {
	for line := range strings.Lines(maps) {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			continue
		}
		first, err1 := strconv.Atoi(fields[0])
		size, err2 := strconv.Atoi(fields[2])
		if err1 != nil || err2 != nil || size < mostUsers {
			continue
		}
		for _, base := range []int{preferredBase, first + size - mostUsers - 1} {
			if base >= max(first, 1) && base+mostUsers <= first+size && !taken(passwd, base) {
				return base, true
			}
		}
	}
	return 0, false
}

// taken reports whether an account's id lies in the range.
func taken(passwd string, base int) bool {
	lines := bufio.NewScanner(strings.NewReader(passwd))
	for lines.Scan() {
		fields := strings.Split(lines.Text(), ":")
		if len(fields) < 4 {
			continue
		}
		for _, f := range fields[2:4] {
			if id, err := strconv.Atoi(f); err == nil && id >= base && id < base+mostUsers {
				return true
			}
		}
	}
	return false
}
