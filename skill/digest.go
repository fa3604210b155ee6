package skill

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"io"
	"io/fs"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/metier-run/metier/internal/guard"
)

// content is what a skill was read from. Snapshots share it for as long as the
// folder stays as it is, so that its digest is worked out once.
type content struct {
	name, real string
	links      map[string]string
	files      []File
	stamps     []stamp
	folders    []string
	read       time.Time // when reading began

	once sync.Once
	sum  string
}

// Digest is the SHA-256, in hexadecimal, over the skill's name and over path and
// content of each of its files. Times and places do not enter it. The first call
// for a folder reads its files; as long as nothing changes there, later calls
// and those of later snapshots cost nothing. A file that cannot be read any more
// counts by its path alone. It is empty for a skill that was not loaded.
func (s Skill) Digest() string {
	c := s.content
	if c == nil {
		return ""
	}
	c.once.Do(func() { c.sum = c.hash() })
	return c.sum
}

func (c *content) hash() string {
	sum := sha256.New()
	put(sum, c.name)
	root, err := guard.OpenRoot(c.real)
	if err == nil {
		defer root.Close()
	}
	known := map[string]string{} // several links can lead to one file
	for _, f := range c.files {
		at := resolve(c.links, f.Path)
		if _, again := known[at]; !again && root != nil {
			known[at] = hashFile(root, at, f.Bytes)
		}
		put(sum, f.Path)
		put(sum, known[at])
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// hashFile is empty for a file that cannot be read.
func hashFile(root *guard.Root, name string, size int64) string {
	f, err := root.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, io.LimitReader(f, size)); err != nil {
		return ""
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// put writes a text with its length before it, so that no two lists of texts
// give the same bytes.
func put(h hash.Hash, s string) {
	h.Write(binary.AppendUvarint(nil, uint64(len(s))))
	io.WriteString(h, s)
}

// tick is more than the step in which any file system that we know keeps times
// (FAT has two seconds). A file that was written so shortly before it was read
// can be written again without its time telling.
const tick = 3 * time.Second

// trusted says whether equal stamps mean equal content.
func (c *content) trusted() bool {
	return !slices.ContainsFunc(c.stamps, func(s stamp) bool {
		return s.info != nil && s.info.Mode()&fs.ModeType == 0 && c.read.Sub(s.info.ModTime()) < tick
	})
}

// parallel calls do for 0 to n-1, as many at a time as there are processors, and
// waits for all.
func parallel(n int, do func(i int)) {
	var wg sync.WaitGroup
	var next atomic.Int64
	for range min(n, runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	wg.Wait()
}
