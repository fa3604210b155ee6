package skill

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"sync"
)

// Snapshot is a view of all skills of all roots that never changes. A request
// holds one from its start to its end.
type Snapshot struct {
	skills  []Skill
	errs    []*LoadError
	pending []string
	folders []string // that the scan looked at, links resolved

	once   sync.Once
	digest string
}

// Skills lists the skills sorted by name, byte by byte.
func (s *Snapshot) Skills() []Skill { return slices.Clone(s.skills) }

// Errors lists what was found and not loaded, in the order of the scan.
func (s *Snapshot) Errors() []*LoadError { return slices.Clone(s.errs) }

// Pending lists the folders that were being written while they were read: each
// is as it was in the snapshot before, or left out if it was not there. The next
// scan after the writing has ended takes them. Only a [Registry] has any.
func (s *Snapshot) Pending() []string { return slices.Clone(s.pending) }

// Digest is the SHA-256, in hexadecimal, over the digests of all skills (see
// [Skill.Digest]): snapshots of equal digest hold the same names, paths and
// bytes. The first call may read every file, and later ones cost nothing; a
// [Registry] has done it before it gives out a snapshot of a rescan.
func (s *Snapshot) Digest() string {
	s.once.Do(func() {
		parallel(len(s.skills), func(i int) { s.skills[i].Digest() })
		sum := sha256.New()
		for _, k := range s.skills {
			put(sum, k.Digest())
		}
		s.digest = hex.EncodeToString(sum.Sum(nil))
	})
	return s.digest
}

// Find looks a skill up by name. White space around it and case do not matter.
func (s *Snapshot) Find(name string) (Skill, bool) {
	name = strings.ToLower(strings.TrimSpace(name))
	i, ok := slices.BinarySearchFunc(s.skills, name, func(k Skill, name string) int { return cmp.Compare(k.Name, name) })
	if !ok {
		return Skill{}, false
	}
	return s.skills[i], true
}
